package bundle

import (
	"regexp"
	"slices"
	"strings"
)

const removed = "[removed]"

// word is what a name has that holds a secret.
const word = `(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|credential|authorization|cookie|(?:api|access|account|private|client|encryption)[-_ ]?key|key[-_ ]?data|signature)`

const (
	// key is such a name, as in "password", config["password"] and \"password\".
	key = word + `[\w.-]*\\*["'\])]*`
	// equals assigns: password: a, password=a, password := a, password => a, $password += 'a' and $password -eq 'a'.
	equals = `\s*(?:[+?]?[:=][=>]?|->|-c?eq\b)\s*`
)

// Secrets in texts of any program: the daemon logs none, but a log file can hold what others wrote.
var secrets = []struct {
	needs   string // in lower case: most lines do not have it, and patterns are slow
	pattern *regexp.Regexp
	to      string
}{
	// Headers of HTTP.
	{"", regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)\s+[A-Za-z0-9+/=._~-]{6,}`), "$1 " + removed},
	// JSON Web Tokens, and key ids of AWS with what follows.
	{`eyj`, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`), removed},
	{"", regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), removed},
	// Users in addresses: https://a:b@c, //a:b@c, a:b@c.
	{`@`, regexp.MustCompile(`(//)(?:[^/\s:"'<>]+:[^\s"'<>]+|[^/\s"'<>]+)@`), "${1}" + removed + "@"},
	{`@`, regexp.MustCompile(`\b([\w.%+-]{2,}:)[^\s@:"'<>[\\/][^\s@:"'<>[]*(@[\w.-]+)`), "${1}" + removed + "${2}"},
	// Signatures of Azure.
	{`sig=`, regexp.MustCompile(`(?i)(\bsig=)[^&\s"';]+`), "${1}" + removed},
	// Commands that have a password anywhere.
	{"", regexp.MustCompile(`(?im)(\b(?:net1?(?:\.exe)?["']?\s+use|cmdkey(?:\.exe)?["']?\s+/)).*$`), "$1 " + removed},
	{"", regexp.MustCompile(`(?im)^.*\b(ConvertTo-SecureString|PSCredential)\b.*$`), "$1 " + removed},
	// key:"password" value:"a", as CSI logs requests, and {"name":"PASSWORD","value":"a"}.
	{`value`, regexp.MustCompile(`(?i)((?:key|name)"?\s*:\s*"[^"\\]*` + word + `[^"\\]*"\s*,?\s*"?value"?\s*:\s*")(?:[^"\\]|\\.)*(")`), "${1}" + removed + "${2}"},
	{`value`, regexp.MustCompile(`(?i)((?:key|name)\\*"?\s*:\s*\\+"[^"\\]*` + word + `[^"\\]*\\+"\s*,?\s*\\*"?value\\*"?\s*:\s*\\+")(?:[^"\\]|\\+[^"\\])*`), "${1}" + removed},
	{`value`, regexp.MustCompile(`(?i)("value"\s*:\s*")(?:[^"\\]|\\.)*("\s*,\s*"(?:key|name)"\s*:\s*"[^"]*` + word + `)`), "${1}" + removed + "${2}"},
	// SetEnvironmentVariable('PASSWORD', 'a').
	{"", regexp.MustCompile(`(?i)(["'][\w.-]*` + word + `[\w.-]*["']\s*,\s*["'])[^"']*`), "${1}" + removed},
	// curl -u a:b.
	{`-u`, regexp.MustCompile(`(\s(?:-u|--user)[\s=]+["']?[^\s:"']+:)[^\s"']+`), "${1}" + removed},
	// <password>a</password>, <add key="password" value="a"/>, password%3Da, password: [a] and {"value": a}.
	{`<`, regexp.MustCompile(`(?i)(<[\w:.-]*` + word + `[\w.-]*(?:\s[^<>]*)?>)[^<]+(<)`), "${1}" + removed + "${2}"},
	{`value=`, regexp.MustCompile(`(?i)((?:key|name)=["'][^"']*` + word + `[^"']*["']\s+value=["'])[^"'<>]*`), "${1}" + removed},
	{`%3`, regexp.MustCompile(`(?i)(` + word + `[\w.-]*(?:%5c)*(?:%22)?%3[ad](?:%5c)*(?:%22)?)[^&\s"';<>]+`), "${1}" + removed},
	{"", regexp.MustCompile(`(?i)(` + key + equals + `)(?:\[[^\]]*\]|[@$]?\{[^{}]*\}|[@$]?\([^()]*\))`), "${1}" + removed},
	// password: a b, password=a b and export PASSWORD=a b, which have the line to themselves.
	{"", regexp.MustCompile(`(?i)^([\s#;/]*(?:- |export |set |setx |\$env:|\$)?[\w.-]*` + word + `[\w.-]*` + equals + `)[^\s"'[{(|>@$\\` + "`" + `][^\r\n]*`), "${1}" + removed},
	{`set`, regexp.MustCompile(`(?i)(\bsetx?\s+[\w.-]*` + word + `[\w.-]*=)[^\s"'[][^"&|\r\n]*`), "${1}" + removed},
	// password="a \" b", password="a ""b""", "password":"a", \"password\":\"a\", password: a, password=a;
	{`\"`, regexp.MustCompile(`(?i)(` + word + `[\w.-]*\\+"?` + equals + `\\+")(?:[^"\\]|\\+[^"\\])*(\\*")`), "${1}" + removed + "${2}"},
	{`"`, regexp.MustCompile(`(?i)(` + key + `(?:` + equals + `|\s+)")(?:[^"\\]|\\.|"")*(")`), "${1}" + removed + "${2}"},
	{`'`, regexp.MustCompile(`(?i)(` + key + `(?:` + equals + `|\s+)')(?:[^']|'')*(')`), "${1}" + removed + "${2}"},
	{`-`, regexp.MustCompile(`(?i)(--?[\w-]*` + word + `[\w-]*=)[^\s"'[][^\s"']*`), "${1}" + removed},
	// With a space after the sign, a value can have spaces.
	{"", regexp.MustCompile(`(?i)(` + key + `\s*(?:[+?]?[:=][=>]?|->)\s+)[^\s,;&"'{}\[\]\\][^,;&"'{}\[\]\r\n]*`), "${1}" + removed},
	{"", regexp.MustCompile(`(?i)(` + key + equals + `)(?:[^\s,;&"'{}\[\]\\]|\\[^"'\s])+`), "${1}" + removed},
	// CHAPSecret a, smb_password a: names, not English words.
	{"", regexp.MustCompile(`(\b[a-zA-Z0-9_]*[a-zA-Z0-9](?:Pass(?:word|wd|phrase)?|Pwd|Secret|Token|Key)\s+)[^\s"',;:=\[({-][^\s"',;]*`), "${1}" + removed},
	{"", regexp.MustCompile(`(?i)(\b[a-z0-9]+[-_]` + word + `\s+)[^\s"',;:=\[({-][^\s"',;]*`), "${1}" + removed},
}

var (
	assignment = regexp.MustCompile(`(?i)` + key + equals)
	// unfinished is an assignment whose value is on the next lines: nothing, the head of a block of YAML, an open quote or
	// bracket, or the mark of a line that goes on.
	unfinished = regexp.MustCompile(`(?i)` + key + equals + "(?:[|>][+-]?\\d?[+-]?|[@$]?(?:(\")[^\"]*|(')[^']*|({)[^}]*|(\\[)[^\\]]*|(\\()[^)]*)|[^\"']*[\\\\`^])?\\s*$")
	// nextArgument is a flag whose value is on the next line.
	nextArgument = regexp.MustCompile("(?i)--?[\\w-]*" + word + "[\\w-]*\\s+[\\\\`^]\\s*$")
	// message begins a message of a log, and so ends a value that has not ended.
	message = regexp.MustCompile(`^(?:[IWEF]\d{4} \d\d:|\d{4}-\d\d-\d\d[T ]\d\d:|time=)`)
)

// closing is what ends a value.
var closing = map[string]string{`"`: `"`, "'": "'", "{": "}", "[": "]", "(": ")"}

// openValue is a value that goes on with the next line.
type openValue struct {
	end    string // "" for one that ends with its indentation
	indent int    // of the line with the name
	begun  bool
}

// next returns what may stay of a line, or "" if the value has ended before it, and whether the value goes on.
func (v *openValue) next(line string) (stays string, more bool) {
	if v.end != "" {
		if _, after, found := strings.Cut(line, v.end); found {
			return removed + v.end + removeFromLine(after), false
		}
		return removed + "\n", true
	}
	switch {
	case strings.TrimSpace(line) == "":
		return line, true
	case !v.begun || indentation(line) > v.indent || strings.HasPrefix(strings.TrimSpace(line), "- "):
		v.begun = true
		return removed + "\n", true
	default:
		return "", false
	}
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// opened returns the value that a line begins, or nil.
func opened(line string) *openValue {
	found := unfinished.FindStringSubmatch(line)
	if found == nil && !nextArgument.MatchString(line) {
		return nil
	}
	return &openValue{end: closing[strings.Join(found[min(1, len(found)):], "")], indent: indentation(line)}
}

// pem is a key, which has many lines. A log can begin or end in it.
var pem = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)|\A[A-Za-z0-9+/=\s]*-----END [A-Z ]*PRIVATE KEY-----`)

// variable is a variable of a container in YAML: name: PASSWORD, and on the next line value: a.
var variable = regexp.MustCompile(`(?im)((?:name|key):[ \t]*["']?[\w.-]*` + word + `[\w.-]*["']?[ \t\r]*\n\s*(?:- )?value:[ \t]*)\S.*$`)

// mayHaveSecret reports whether a line in lower case has what is in every secret that the patterns find. Most
// lines have nothing of it, and patterns are slow.
func mayHaveSecret(lower string) bool {
	return slices.ContainsFunc(partsOfSecrets, func(part string) bool { return strings.Contains(lower, part) })
}

var partsOfSecrets = []string{
	"pass", "pwd", "secret", "token", "credential", "authorization", "cookie", "key", "signature",
	"bearer", "basic", "negotiate", "eyj", "akia", "asia", "@", "sig=", "cmdkey", " use", "securestring",
}

// flagSecrets are secrets in the next argument: --password x, --password "x y", and "--password","x y" in
// a list.
var flagSecrets = []*regexp.Regexp{
	regexp.MustCompile(`(?i)((?:--?|/)[\w-]*` + word + `[\w-]*)(\s+"|"\s*,\s*")((?:[^"\\]|\\.)*)`),
	regexp.MustCompile(`(?i)((?:--?|/)[\w-]*` + word + `[\w-]*)(\s+'|'\s*,\s*')([^']*)`),
	regexp.MustCompile(`(?i)((?:--?|/)[\w-]*` + word + `[\w-]*)(["']?(?:\s*,\s*|\s+)["']?)([^\s"',-][^\s"',]*)`),
}

// RemoveSecrets removes what looks like a secret from a text.
func RemoveSecrets(text string) string {
	if strings.Contains(text, "PRIVATE KEY") {
		text = pem.ReplaceAllString(text, removed)
	}
	text = variable.ReplaceAllString(text, "${1}"+removed)
	var value *openValue
	return eachLine(text, func(line string) string {
		if value != nil && !message.MatchString(line) {
			stays, more := value.next(line)
			if !more {
				value = nil
			}
			if stays != "" {
				return stays
			}
		}
		value = nil
		if !mayHaveSecret(strings.ToLower(line)) {
			return line
		}
		value = opened(line)
		return removeFromLine(line)
	})
}

func eachLine(text string, change func(line string) string) string {
	var b strings.Builder
	b.Grow(len(text))
	for line := range strings.Lines(text) {
		b.WriteString(change(line))
	}
	return b.String()
}

func removeFromLine(text string) string {
	lower := strings.ToLower(text)
	for _, secret := range secrets {
		if !strings.Contains(lower, secret.needs) {
			continue
		}
		text = secret.pattern.ReplaceAllString(text, secret.to)
	}
	for _, secret := range flagSecrets {
		text = secret.ReplaceAllStringFunc(text, func(found string) string {
			parts := secret.FindStringSubmatch(found)
			// Flags that end so name a file or standard input.
			if flag := strings.ToLower(parts[1]); strings.HasSuffix(flag, "-file") || strings.HasSuffix(flag, "-stdin") {
				return found
			}
			return parts[1] + parts[2] + removed
		})
	}
	return cutRest(text)
}

// cutRest ends a line at the first assignment whose value no pattern has removed, such as one with an odd quote.
func cutRest(line string) string {
	for _, at := range assignment.FindAllStringIndex(line, -1) {
		value := strings.TrimSpace(strings.TrimLeft(line[at[1]:], `\"'@$ `))
		if value != "" && !strings.HasPrefix(value, removed) {
			return line[:at[1]] + removed + line[len(strings.TrimRight(line, "\r\n")):]
		}
	}
	return line
}
