package mounter

import (
	"strings"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// defaultDrive is the drive of paths without one: the kubelet's default directory is
// /var/lib/kubelet.
const defaultDrive = `C:`

// Path returns a path in the one spelling that CSI Proxy takes: C:\var\lib\kubelet\pods. It
// accepts what the kubelet and drivers send: slashes of both kinds, repeated or at the end, no drive
// (/var/lib/kubelet), a lower case drive (c:), and a prefix \\?\ or \\.\. The verbs call it for each
// path.
//
// Paths on a network, of devices and of volumes, relative paths and those with "." or ".." are
// errors that match fs.ErrInvalid.
func Path(path string) (string, error) {
	const op = "normalize path"
	clean := strings.ReplaceAll(path, "/", `\`)
	for _, prefix := range []string{`\\?\`, `\\.\`} {
		if rest, ok := strings.CutPrefix(clean, prefix); ok && startsWithDrive(rest) {
			clean = rest
		}
	}
	switch {
	case !utf8.ValidString(path):
		return "", newError(failure.Invalid, op, "", "%q is not valid UTF-8", path)
	case path == "":
		return "", newError(failure.Invalid, op, "", "the path is empty")
	case strings.HasPrefix(clean, `\\`):
		return "", newError(failure.Invalid, op, path, "it is not on a drive of the node; pass a local path")
	case strings.HasPrefix(clean, `\`):
		clean = defaultDrive + clean
	case !startsWithDrive(clean):
		return "", newError(failure.Invalid, op, path, "it is not absolute; pass a path such as %s", defaultWorkingDir)
	}
	names := strings.FieldsFunc(clean[2:], func(r rune) bool { return r == '\\' })
	for _, name := range names {
		if name == "." || name == ".." {
			return "", newError(failure.Invalid, op, path, "it has a relative part; pass the path that it stands for")
		}
	}
	return strings.ToUpper(clean[:1]) + `:\` + strings.Join(names, `\`), nil
}

// startsWithDrive reports whether a path begins as C:\ does. C:file is relative.
func startsWithDrive(path string) bool {
	return len(path) >= 3 && path[1] == ':' && path[2] == '\\' &&
		(path[0] >= 'a' && path[0] <= 'z' || path[0] >= 'A' && path[0] <= 'Z')
}

// parent returns the directory of a path in our spelling. A drive has none.
func parent(path string) (string, bool) {
	i := strings.LastIndex(path, `\`)
	switch {
	case i == len(path)-1:
		return "", false
	case i == len(defaultDrive):
		return path[:i+1], true
	default:
		return path[:i], true
	}
}

// isRemote reports whether a path is on a server: \\server\share, with slashes of either kind.
func isRemote(path string) bool {
	path = strings.ReplaceAll(path, "/", `\`)
	return strings.HasPrefix(path, `\\`) && !strings.HasPrefix(path, `\\?\`) && !strings.HasPrefix(path, `\\.\`)
}
