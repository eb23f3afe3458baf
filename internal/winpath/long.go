package winpath

import "strings"

const (
	longPrefix = `\\?\`
	longUNC    = `\\?\UNC\`
)

// Long returns path in the form that lifts the limit of 260 characters. Only
// validated paths may be given: the prefix also switches off the normalisation
// that makes "dir." and "dir" the same.
// https://learn.microsoft.com/windows/win32/fileio/naming-a-file#win32-file-namespaces
func Long(path string) string {
	switch {
	case strings.HasPrefix(path, longPrefix):
		return path
	case strings.HasPrefix(path, `\\`):
		return longUNC + path[2:]
	default:
		return longPrefix + path
	}
}
