// Package servicelist decides which services of a node callers may start and stop: a list of
// names, and a few services that no list can name.
//
// It lies below package system, because only the host knows which other services a forced
// stop would stop. The daemon always has a list; the library has one if the driver asks.
package servicelist

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// All in a list stands for every service but the protected ones.
const All = "*"

// Default is the daemon's list, what storage on a node may need: iSCSI, multipath, SMB,
// volumes and their optimisation.
func Default() []string {
	return []string{"MSiSCSI", "mpio", "msdsm", "LanmanWorkstation", "vds", "smphost", "defragsvc"}
}

// protected are the services that the node or csi-proxy depends on. They are never started or
// stopped, regardless of the list. If csi-proxy is installed under another name, its process
// identifies it.
var protected = []string{
	"csi-proxy", "csiproxy", // the second is a common variant
	"kubelet", "containerd", "vmcompute", "hns", // pods
	"RpcSs", "RpcEptMapper", "DcomLaunch", // Windows, and with them WMI
}

// List says which services may be started and stopped. It is immutable.
type List struct {
	all   bool
	names map[string]bool // folded
	text  string          // for people
}

// New makes a list of names. An empty one allows nothing.
func New(names []string) (*List, error) {
	list := &List{names: map[string]bool{}, text: strings.Join(names, ", ")}
	for _, name := range names {
		if name == All {
			list.all = true
			continue
		}
		if problem := Check(name); problem != "" {
			return nil, fmt.Errorf("allowed service %.100q: %s", name, problem)
		}
		if isProtected(name) {
			return nil, fmt.Errorf("allowed service %q: csi-proxy never starts or stops it, because the node depends on it", name)
		}
		list.names[winpath.Fold(name)] = true
	}
	return list, nil
}

// Refusal says why a service must not be started or stopped, or is empty. A nil list allows
// everything.
func (l *List) Refusal(name string) string {
	switch {
	case l == nil:
		return ""
	case isProtected(name):
		return "csi-proxy never starts or stops this service, because the node depends on it"
	case l.all || l.names[winpath.Fold(name)]:
		return ""
	case l.text == "":
		return "csi-proxy may not start or stop any service; list the allowed ones with -allowed-services"
	default:
		return fmt.Sprintf("it is not among the services that csi-proxy may start and stop (%s); to allow it, list it with -allowed-services", l.text)
	}
}

// Guard is the refusal as an error of an operation.
func (l *List) Guard(op, name string) error {
	if refusal := l.Refusal(name); refusal != "" {
		return winerr.New(winerr.Denied, op, name, "%s", refusal)
	}
	return nil
}

// isProtected reports whether a program that ignores case could take name for a protected
// service, whichever case table it uses. False positives are harmless.
func isProtected(name string) bool {
	for _, other := range protected {
		if foldAll(name) == foldAll(other) {
			return true
		}
	}
	return false
}

// foldAll folds more than Windows does: the dotless i is an i, the long s an s, the Kelvin
// sign a k.
func foldAll(name string) string {
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, name)
}

// Check says what is wrong with the name of a service, or returns "" for a valid name. Names
// come from callers and can contain anything.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-createservicew
func Check(name string) string {
	const maxUnits = 256 // of UTF-16
	switch {
	case name == "":
		return "it is empty; give the short name of a service, such as MSiSCSI"
	case len(name) > 3*maxUnits || len(utf16.Encode([]rune(name))) > maxUnits:
		return fmt.Sprintf("it has more than %d characters, the limit of service names", maxUnits)
	case !utf8.ValidString(name):
		return "it is not valid UTF-8"
	case strings.ContainsAny(name, `/\`):
		return "it contains a slash or a backslash, which service names cannot"
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
		return "it contains invisible characters"
	case strings.TrimSpace(name) != name:
		return "it begins or ends with a space"
	}
	return ""
}
