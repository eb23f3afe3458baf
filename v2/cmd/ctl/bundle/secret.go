package bundle

import (
	"regexp"
	"strings"
)

// removed stands for a secret.
const removed = "[removed]"

// word is what a name has that holds a secret.
const word = `(?:pass(?:word|wd|phrase)?|pwd|secret|token|credential|authorization|cookie|(?:api|access|account|private)[-_ ]?key|signature)`

// Secrets in texts of any program: the daemon logs none, but a log file can hold what others wrote.
var secrets = []struct {
	pattern *regexp.Regexp
	to      string
}{
	// Headers of HTTP.
	{regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)\s+[A-Za-z0-9+/=._~-]{6,}`), "$1 " + removed},
	// JSON Web Tokens, and key ids of AWS with what follows.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`), removed},
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), removed},
	// Users in addresses.
	{regexp.MustCompile(`(://)[^/\s"'<>]+@`), "${1}" + removed + "@"},
	// Signatures of Azure.
	{regexp.MustCompile(`(?i)(\bsig=)[^&\s"';]+`), "${1}" + removed},
	// Commands that have a password anywhere.
	{regexp.MustCompile(`(?im)(\bnet1?(?:\.exe)?["']?\s+use\b).*$`), "$1 " + removed},
	{regexp.MustCompile(`(?im)^.*\b(ConvertTo-SecureString|PSCredential)\b.*$`), "$1 " + removed},
	// key:"password" value:"a", as CSI logs requests, and {"name":"PASSWORD","value":"a"}.
	{regexp.MustCompile(`(?i)((?:key|name)"?\s*:\s*"[^"\\]*` + word + `[^"\\]*"\s*,?\s*"?value"?\s*:\s*")(?:[^"\\]|\\.)*(")`), "${1}" + removed + "${2}"},
	{regexp.MustCompile(`(?i)((?:key|name)\\*"?\s*:\s*\\+"[^"\\]*` + word + `[^"\\]*\\+"\s*,?\s*\\*"?value\\*"?\s*:\s*\\+")(?:[^"\\]|\\+[^"\\])*`), "${1}" + removed},
	// <password>a</password>, password%3Da, password: [a] and {"value": a}.
	{regexp.MustCompile(`(?i)(<[\w:.-]*` + word + `[\w.-]*(?:\s[^<>]*)?>)[^<]+(<)`), "${1}" + removed + "${2}"},
	{regexp.MustCompile(`(?i)(` + word + `[\w.-]*(?:%5c)*(?:%22)?%3[ad](?:%5c)*(?:%22)?)[^&\s"';<>]+`), "${1}" + removed},
	{regexp.MustCompile(`(?i)(` + word + `[\w.-]*\\*["']?\s*[:=]\s*)(?:\[[^\]]*\]|\{[^{}]*\})`), "${1}" + removed},
	// password="a \" b", "password":"a", \"password\":\"a\", password: a, password=a;
	{regexp.MustCompile(`(?i)(` + word + `[\w.-]*\\+"?\s*[:=]\s*\\+")(?:[^"\\]|\\+[^"\\])*(\\*")`), "${1}" + removed + "${2}"},
	{regexp.MustCompile(`(?i)(` + word + `[\w.-]*["']?\s*[:=]\s*")(?:[^"\\]|\\.)*(")`), "${1}" + removed + "${2}"},
	{regexp.MustCompile(`(?i)(` + word + `[\w.-]*["']?\s*[:=]\s*')[^']*(')`), "${1}" + removed + "${2}"},
	{regexp.MustCompile(`(?i)(` + word + `[\w.-]*["']?\s*[:=]\s*)[^\s,;&"'{}\[\]\\]+`), "${1}" + removed},
}

// pem is a key, which has many lines. A log can begin or end in it.
var pem = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)|\A[A-Za-z0-9+/=\s]*-----END [A-Z ]*PRIVATE KEY-----`)

// mayHaveSecret reports whether a line in lower case has what is in every secret that the patterns find. Most
// lines have nothing of it, and patterns are slow.
var mayHaveSecret = hasAny(
	"pass", "pwd", "secret", "token", "credential", "authorization", "cookie", "key", "signature",
	"bearer", "basic", "negotiate", "eyj", "akia", "asia", "://", "sig=", " use", "securestring",
)

// flagSecrets are secrets in the next argument: --password x, --password "x y", and "--password","x y" in
// a list.
var flagSecrets = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(--?[\w-]*` + word + `[\w-]*)(\s+"|"\s*,\s*")((?:[^"\\]|\\.)*)`),
	regexp.MustCompile(`(?i)(--?[\w-]*` + word + `[\w-]*)(\s+'|'\s*,\s*')([^']*)`),
	regexp.MustCompile(`(?i)(--?[\w-]*` + word + `[\w-]*)(["']?(?:\s*,\s*|\s+)["']?)([^\s"',-][^\s"',]*)`),
}

// removeSecrets replaces what looks like a secret.
func removeSecrets(text string) string {
	if strings.Contains(text, "PRIVATE KEY") {
		text = pem.ReplaceAllString(text, removed)
	}
	return eachLine(text, func(line string) string {
		if !mayHaveSecret(strings.ToLower(line)) {
			return line
		}
		return removeFromLine(line)
	})
}

// eachLine changes a text line by line.
func eachLine(text string, change func(line string) string) string {
	var b strings.Builder
	b.Grow(len(text))
	for line := range strings.Lines(text) {
		b.WriteString(change(line))
	}
	return b.String()
}

func removeFromLine(text string) string {
	for _, secret := range secrets {
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
	return text
}
