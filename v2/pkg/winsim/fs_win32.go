package winsim

import (
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// win32Path normalises a path as Win32 does: it converts slashes, resolves dots lexically, and
// drops trailing dots and spaces. The prefix \\?\ disables all of that.
// https://learn.microsoft.com/dotnet/standard/io/file-path-formats#path-normalization
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
	turned := strings.ReplaceAll(path, "/", winpath.Separator)
	switch {
	case strings.HasPrefix(turned, `\\.\`):
		return "", &winpath.InvalidError{Path: path, Rule: "is that of a device"}
	case strings.HasPrefix(turned, `\\`):
		return turned, nil
	case !isDrivePath(turned):
		return "", &winpath.InvalidError{Path: path, Rule: `is not an absolute Windows path (it must start with a drive letter as in C:\)`}
	}
	names, err := normalNames(turned[len(`C:\`):])
	if err != nil {
		err.Path = path
		return "", err
	}
	return turned[:len(`C:\`)] + strings.Join(names, winpath.Separator), nil
}

func isDrivePath(path string) bool { return len(path) >= 3 && path[1:3] == `:\` }

// normalNames normalises the names after the root. Inside a path Win32 drops only one trailing
// dot per name, and no spaces.
// https://learn.microsoft.com/dotnet/standard/io/file-path-formats#trim-characters
func normalNames(path string) ([]string, *winpath.InvalidError) {
	var names []string
	for rest, more := path, true; more; {
		var name string
		name, rest, more = strings.Cut(rest, winpath.Separator)
		switch {
		case name == "..":
			names = names[:max(0, len(names)-1)]
			continue
		case !more:
			name = strings.TrimRight(name, ". ")
		case !strings.HasSuffix(name, ".."):
			name = strings.TrimSuffix(name, ".")
		}
		if name == "" {
			continue
		}
		if strings.Contains(name, ":") {
			return nil, &winpath.InvalidError{Component: name, Rule: "is a stream, which no emulated file has"}
		}
		if isDevice(name) {
			return nil, &winpath.InvalidError{Component: name, Rule: `is a reserved device name; with \\?\ before the path it is a file`}
		}
		names = append(names, name)
	}
	return names, nil
}

// isDevice reports whether Win32 treats a name as a device, with any extension or stream.
func isDevice(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	return winpath.IsReserved(name)
}

// find walks a Win32 path. A missing last name is not an error. t.mu is held.
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
