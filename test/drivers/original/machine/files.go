package machine

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ModeDir is that of package os.
const ModeDir = os.ModeDir

// ErrNotExist is that of package os.
var ErrNotExist = os.ErrNotExist

// realPath is where the mirror has a path of the node. Other paths are those of this machine.
func (m *machine) realPath(name string) string {
	names := strings.FieldsFunc(name, func(c rune) bool { return c == '\\' || c == '/' })
	switch {
	case strings.HasPrefix(name, `\\`) && len(names) >= 2:
		names[0], names[1] = strings.ToLower(names[0]), strings.ToLower(names[1])
		return filepath.Join(m.files, "shares", filepath.Join(names...))
	case len(name) >= 2 && name[1] == ':':
		names[0] = strings.ToUpper(name[:1])
		return filepath.Join(m.files, filepath.Join(names...))
	default:
		return name
	}
}

// Environ is that of package os.
func Environ() []string { return os.Environ() }

// Getenv is that of package os.
func Getenv(name string) string { return os.Getenv(name) }

// LookupEnv is that of package os.
func LookupEnv(name string) (string, bool) { return os.LookupEnv(name) }

// Hostname returns the name of the node.
func Hostname() (string, error) { return hostname, nil }

// TempDir returns a directory of this machine.
func TempDir() string { return os.TempDir() }

// Stat is that of package os.
func Stat(name string) (os.FileInfo, error) { return os.Stat(here.realPath(name)) }

// IsNotExist is that of package os.
func IsNotExist(err error) bool { return os.IsNotExist(err) }

// Mkdir is that of package os. Windows ignores the mode.
func Mkdir(name string, _ os.FileMode) error { return os.Mkdir(here.realPath(name), 0o755) } //nolint:gosec // see MkdirAll

// MkdirAll is that of package os. Windows ignores the mode.
func MkdirAll(name string, _ os.FileMode) error {
	return os.MkdirAll(here.realPath(name), 0o755) //nolint:gosec // a directory below that of this process
}

// Remove is that of package os.
func Remove(name string) error { return os.Remove(here.realPath(name)) }

// RemoveAll is that of package os.
func RemoveAll(name string) error { return os.RemoveAll(here.realPath(name)) }

// Symlink is that of package os. The mirror reads a relative link.
func Symlink(target, name string) error {
	at := here.realPath(name)
	text, err := filepath.Rel(filepath.Dir(at), here.realPath(target))
	if err != nil {
		return err
	}
	return os.Symlink(text, at)
}

// Create is that of package os.
func Create(name string) (*os.File, error) { return os.Create(here.realPath(name)) }

// Open is that of package os.
func Open(name string) (*os.File, error) { return os.Open(here.realPath(name)) }

// ReadFile is that of package ioutil.
func ReadFile(name string) ([]byte, error) { return os.ReadFile(here.realPath(name)) }

// ReadDir is that of package ioutil.
func ReadDir(name string) ([]os.FileInfo, error) {
	entries, err := os.ReadDir(here.realPath(name))
	if err != nil {
		return nil, err
	}
	var infos []os.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// TempFile is that of package ioutil.
func TempFile(dir, pattern string) (*os.File, error) {
	return os.CreateTemp(here.realPath(dir), pattern)
}

// Join is that of package filepath on Windows.
func Join(elements ...string) string {
	server := len(elements) > 0 && strings.HasPrefix(elements[0], `\\`)
	joined := strings.ReplaceAll(path.Join(strings.Split(strings.ReplaceAll(strings.Join(elements, `\`), "/", `\`), `\`)...), "/", `\`)
	if server {
		return `\\` + joined
	}
	return joined
}
