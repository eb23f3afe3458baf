package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
)

// shortest is the length of a name that is replaced wherever it stands. A shorter one would change
// other words; it is replaced only in paths and shares.
const shortest = 3

// Names replaces names by pseudonyms, the same for the same name in all files of a bundle.
type Names struct {
	pseudonyms map[string]string // by kind and name in lower case
	counts     map[string]int    // by kind
	known      map[string][]string
	learned    map[string]bool // a recording repeats its names in every line
	ordinary   map[string]bool
}

// ordinary are words of our own output. As names they reveal nothing, and replacing them would spoil the
// text.
var ordinary = []string{
	"csi", "proxy", "csi-proxy", "csi-proxyctl", "kubelet", "kubernetes", "plugins", "mount", "globalmount", "data", "system", "default", "guest",
	"windows", "localhost", "administrator", "backup", "files", "logs", "test", "none", "unknown",
	"basic data partition", "efi system partition", "microsoft reserved partition",
}

// NewNames returns pseudonyms for the names of a node, as 'csi-proxyctl node -o json' prints it, and
// for others, such as that of the machine. Names in logs are found by their form.
func NewNames(node []byte, machines ...string) *Names {
	n := &Names{
		pseudonyms: map[string]string{}, counts: map[string]int{}, known: map[string][]string{}, learned: map[string]bool{},
		// Words of our own output that are also names of shares, labels and users.
		ordinary: map[string]bool{},
	}
	for _, word := range ordinary {
		n.ordinary[word] = true
	}
	for _, name := range machines {
		n.learn("machine", name)
	}
	var decoded any
	if json.Unmarshal(node, &decoded) == nil {
		n.learnKeys(decoded)
		n.learnFrom("", decoded)
	}
	return n
}

// LearnCalls gives pseudonyms to the names in recorded calls, one JSON object per line. They can be of disks and
// shares that the node has no more.
func (n *Names) LearnCalls(recording []byte) {
	var calls []map[string]any
	for line := range bytes.Lines(recording) {
		var call map[string]any
		if json.Unmarshal(line, &call) == nil {
			calls = append(calls, call)
			n.learnKeys(call)
		}
	}
	for _, call := range calls {
		method, _ := call["method"].(string)
		n.learnFrom("", call["args"])
		n.learnFrom(method, call["result"])
	}
}

// kinds are the names in a description, by their JSON key, and in recorded calls, by field or method.
var kinds = map[string]string{
	"host": "machine", "pods.uid": "pod", "pods.namespace": "namespace", "pods.name": "pod",
	"serial": "machine", "serialNumber": "serial", "page83": "serial", "eui64": "serial", "nguid": "serial",
	"label": "label", "user": "user", "pods": "pod", "persistentVolumes": "volume",
	"BIOSSerialNumber": "machine", "Serial": "serial", "DeviceIdentifiers.Value": "serial", "Label": "label", "Partitions.Name": "label",
	"User": "user", "Address": "address", "SymbolicName": "address",
}

// learnKeys collects the words that descriptions consist of.
func (n *Names) learnKeys(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			n.ordinary[strings.ToLower(key)] = true
			n.learnKeys(inner)
		}
	case []any:
		for _, inner := range value {
			n.learnKeys(inner)
		}
	}
}

func (n *Names) learnFrom(key string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range slices.Sorted(maps.Keys(value)) {
			at := inner
			if outer := key + "." + inner; kinds[outer] != "" {
				at = outer
			}
			n.learnFrom(at, value[inner])
		}
	case []any:
		for _, inner := range value {
			n.learnFrom(key, inner)
		}
	case string:
		parts := strings.FieldsFunc(value, func(r rune) bool { return r == '\\' || r == '@' })
		switch kind := kinds[key]; {
		case kind == "user":
			for _, part := range parts { // of a domain
				n.learn(kind, part)
			}
		case kind != "":
			n.learn(kind, value)
		case strings.EqualFold(key, "remote") && len(parts) == 2:
			n.learn("server", parts[0])
			n.learn("share", parts[1])
		}
	}
}

// learn gives a name a pseudonym, wherever it stands. Device names have spaces at their ends.
func (n *Names) learn(kind, name string) {
	name = strings.TrimSpace(name)
	if lower := lowerASCII(name); len(name) < shortest || n.learned[lower] || n.ordinary[lower] || kept[lower] {
		return
	}
	n.learned[lowerASCII(name)] = true
	for _, form := range written(name) {
		lower := lowerASCII(form)
		prefix := lower[:shortest]
		if slices.Contains(n.known[prefix], lower) {
			continue
		}
		n.known[prefix] = append(n.known[prefix], lower)
		slices.SortFunc(n.known[prefix], func(a, b string) int { return len(b) - len(a) })
		n.pseudonyms[lower] = n.of(kind, name)
	}
}

// written returns a name as it is, as JSON and logs quote it, and as csi-proxyctl prints it.
func written(name string) []string {
	forms := []string{name, printable.Text(name), inside(strconv.Quote(name)), inside(strconv.QuoteToASCII(name))}
	for _, html := range []bool{false, true} {
		var b strings.Builder
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(html)
		if encoder.Encode(name) == nil {
			forms = append(forms, inside(strings.TrimSpace(b.String())), inside(strings.TrimSpace(printable.JSON(b.String()))))
		}
	}
	return forms
}

// inside returns what is in the quotes.
func inside(quoted string) string { return quoted[1 : len(quoted)-1] }

// of returns the pseudonym of a name of a kind.
func (n *Names) of(kind, name string) string {
	if known := n.pseudonyms[lowerASCII(name)]; known != "" {
		return known
	}
	key := kind + " " + lowerASCII(name)
	if n.pseudonyms[key] == "" {
		n.counts[kind]++
		n.pseudonyms[key] = fmt.Sprintf("%s-%d", kind, n.counts[kind])
	}
	return n.pseudonyms[key]
}

// Names by their form. Backslashes may be doubled, as in JSON and in logs.
var forms = []struct {
	kind    string
	pattern *regexp.Regexp // the last group is the name
	// may reports whether a line in lower case can have such a name. Patterns are slow.
	may func(lower string) bool
}{
	{"pod", regexp.MustCompile(`(?i)([\\/]pods[\\/]+)([^\\/"'\s<>&]+)`), hasAny(`\pods\`, `/pods/`)},
	{"volume", regexp.MustCompile(`(?i)([\\/]kubernetes\.io~[^\\/"'\s]+[\\/]+|[\\/]volume-subpaths[\\/]+|[\\/]csi[\\/]+pv[\\/]+)([^\\/"'\s<>&]+)`), hasAny(`kubernetes.io~`, `volume-subpaths`, `\csi\`, `/csi/`)},
	{"user", regexp.MustCompile(`(?i)\b((?:user|username|account)\\*["']?\s*[:=]\s*\\*["']?)((?:[^\s"',;\\{}\[\]]|\\+[^\s"',;\\{}\[\]])+)`), hasAny("user", "account")},
	{"serial", regexp.MustCompile(`(?i)\b((?:serial|serialnumber|page83|eui64|nguid)\\*["']?\s*[:=]\s*\\*["']?)([^\s"',;\\{}\[\]]+)`), hasAny("serial", "page83", "eui64", "nguid")},
	{"device", regexp.MustCompile(`(?i)()((?:scsi|nvme|usbstor|ide|storage)#[^{}"'\s<>]+)`), hasAny("scsi#", "nvme#", "usbstor#", "ide#", "storage#")},
	{"target", regexp.MustCompile(`(?i)()\b((?:iqn\.\d{4}-\d{2}|eui|naa)\.[a-z0-9.:_-]+)`), hasAny("iqn.", "eui.", "naa.")},
	{"device", regexp.MustCompile(`(?i)(\b(?:pci|usb)\\+[a-z]+_[^\\"'\s]+\\+)([^\\"'\s,;]+)`), hasAny(`pci\`, `usb\`)},
	{"account", regexp.MustCompile(`()\b(S-1-(?:5-21|12-1)(?:-\d+)+)`), hasAny("s-1-5-21", "s-1-12-1")},
	{"hash", regexp.MustCompile(`(?i)()\b([0-9a-f]{64})\b`), func(lower string) bool { return len(lower) >= 64 }},
	{"id", regexp.MustCompile(`(?i)()\b([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b`), func(lower string) bool { return strings.Count(lower, "-") >= 4 }},
	// IPv6, and addresses of network cards. The time of day is neither.
	{
		"address", regexp.MustCompile(`(?i)()\b([0-9a-f]{1,4}(?::[0-9a-f]{1,4}){7}|(?:[0-9a-f]{1,4}:)+(?::[0-9a-f]{1,4})+|[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5})\b`),
		func(lower string) bool {
			return strings.Contains(lower, "::") || strings.Count(lower, ":") >= 5 || strings.Count(lower, "-") >= 5
		},
	},
	{"address", regexp.MustCompile(`()\b((?:\d{1,3}\.){3}\d{1,3})\b`), func(lower string) bool { return strings.Count(lower, ".") >= 3 }},
}

// hasAny finds lines with any of these.
func hasAny(hints ...string) func(lower string) bool {
	return func(lower string) bool {
		return slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(lower, hint) })
	}
}

// share is a path of the network, also as a link has it, \??\UNC\server\share, without those of devices.
var share = regexp.MustCompile(`(^|[^\\\w:{}])(\\{1,2}(?i:UNC)\\{1,2}|\\{2,4})([A-Za-z0-9][\w.-]*)(\\{1,2})([^\\"'\s,;<>&)]+)`)

// kept are names that reveal nothing.
var kept = map[string]bool{
	"127.0.0.1": true, "0.0.0.0": true,
	"53f56307-b6bf-11d0-94f2-00a0c91efb8b": true, // the class of disks
	"00000000-0000-0000-0000-000000000000": true, // none
	"ebd0a0a2-b9e5-4433-87c0-68b6b72699c7": true, // types of partitions: data, reserved, EFI and recovery
	"e3c9e316-0b5c-4db8-817d-f92df00215ae": true,
	"c12a7328-f81f-11d2-ba4b-00a0c93ec93b": true,
	"de94bba4-06d1-4d40-a16a-bfd50179d6ac": true,
	"null":                                 true, "true": true, "false": true,
}

// isPseudonym recognises what stands for a name already.
var isPseudonym = regexp.MustCompile(`^(?:(?:user-\d+\\+)?(?:machine|serial|label|user|pod|volume|server|share|device|target|account|hash|id|address)-\d+)$`)

// replace replaces all names.
func (n *Names) replace(text string) string {
	return eachLine(n.replaceKnown(text), n.replaceForms)
}

// replaceForms replaces names in a line that have the form of one.
func (n *Names) replaceForms(text string) string {
	lower := lowerASCII(text)
	if strings.Contains(lower, `\\`) {
		text = share.ReplaceAllStringFunc(text, func(found string) string {
			p := share.FindStringSubmatch(found)
			return p[1] + p[2] + n.unlessKept("server", p[3]) + p[4] + n.unlessKept("share", p[5])
		})
	}
	for _, form := range forms {
		if !form.may(lower) {
			continue
		}
		text = form.pattern.ReplaceAllStringFunc(text, func(found string) string {
			p := form.pattern.FindStringSubmatch(found)
			return p[1] + n.unlessKept(form.kind, p[2])
		})
	}
	return text
}

// unlessKept returns the pseudonym of a name, or a name that reveals nothing.
func (n *Names) unlessKept(kind, name string) string {
	if kept[lowerASCII(name)] || isPseudonym.MatchString(name) {
		return name
	}
	return n.of(kind, name)
}

// replaceKnown replaces the names that the node has reported.
func (n *Names) replaceKnown(text string) string {
	var b strings.Builder
	lower := lowerASCII(text)
	last := 0
	for i := 0; i+shortest <= len(text); {
		name := n.at(lower, i)
		if name == "" {
			i++
			continue
		}
		b.WriteString(text[last:i] + n.pseudonyms[name])
		i += len(name)
		last = i
	}
	return b.String() + text[last:]
}

// at returns the longest known name at an offset, or nothing. A short name must be a word.
func (n *Names) at(lower string, i int) string {
	for _, name := range n.known[lower[i:i+shortest]] {
		end := i + len(name)
		switch {
		case !strings.HasPrefix(lower[i:], name):
		case len(name) > 2*shortest, !inWord(lower, i) && !inWord(lower, end):
			return name
		}
	}
	return ""
}

// inWord reports whether an offset is between two characters of a word.
func inWord(text string, i int) bool {
	return i > 0 && i < len(text) && wordByte(text[i-1]) && wordByte(text[i])
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// lowerASCII keeps the length of the text.
func lowerASCII(text string) string {
	lower := []byte(text)
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}
