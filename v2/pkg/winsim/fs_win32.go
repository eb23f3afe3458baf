package winsim

import (
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// win32Path returns the name of a path as the kernel has it. Without the prefix \\?\ a path on a drive is one that the API
// takes: no caller needs what else Win32 makes a path of.
func win32Path(path string) (string, error) {
	if name, ok := strings.CutPrefix(path, `\\?\`); ok {
		switch {
		case isDrivePath(name):
			return name, nil
		case len(name) >= 4 && winpath.Equal(name[:4], `UNC\`):
			return `\\` + name[4:], nil
		default:
			return path, nil // a volume or another object
		}
	}
	if isUNC(path) {
		return path, nil
	}
	return winpath.Clean(path)
}

func isDrivePath(path string) bool { return len(path) >= 3 && path[1:3] == `:\` }

// find walks a path of a test. A missing last name is not an error. t.mu is held.
func (t *files) find(op, path string, followLast bool) (resolvedPath, error) {
	name, err := win32Path(path)
	if err != nil {
		return resolvedPath{}, winerr.As(winerr.Invalid, op, "", err, "")
	}
	at, err := t.walk(name, followLast)
	return at, winerr.Wrap(op, path, err)
}

// locate is find for an entry that must exist. It does not follow a link at the end.
func (t *files) locate(op, path string) (resolvedPath, error) {
	at, err := t.find(op, path, false)
	if err == nil && at.entry == nil {
		err = winerr.Wrap(op, path, winerr.FileNotFound)
	}
	return at, err
}
