package winpath

import "strings"

const (
	longPrefix   = `\\?\`
	longUNC      = `\\?\UNC\`
	devicePrefix = `\\.\`
	ntPrefix     = `\??\`
	uncPrefix    = `\\`
)

// Long returns an absolute path in the form that lifts the limit of 260
// characters. Only validated paths may be given: the prefix also switches off the
// normalisation that makes "dir." and "dir" the same. A network path gets
// \\?\UNC\; \\?\\\server would name nothing. Paths that bypass the limit already,
// and those of devices, stay as they are.
// https://learn.microsoft.com/windows/win32/fileio/naming-a-file#win32-file-namespaces
func Long(path string) string {
	switch {
	case strings.HasPrefix(path, longPrefix), strings.HasPrefix(path, devicePrefix):
		return path
	case strings.HasPrefix(path, uncPrefix):
		return longUNC + path[len(uncPrefix):]
	default:
		return longPrefix + path
	}
}

// SameTarget reports whether two link targets lead to the same place by their
// spelling: prefixes for long paths, trailing backslashes and case do not count.
// At least one of them should be validated: \\?\C:\dir. and C:\dir. have the same
// spelling, but differ.
func SameTarget(a, b string) bool { return Equal(plainTarget(a), plainTarget(b)) }

// plainTarget removes what does not count. The prefix stays where it is part of
// the name, as in \\?\Volume{guid}\, which is not a relative path without it; so does
// the backslash that makes a root of C: and \\?\Volume{guid}.
func plainTarget(target string) string {
	if rest, ok := strings.CutPrefix(target, ntPrefix); ok {
		target = longPrefix + rest // what the kernel stores in a link
	}
	if rest, ok := cutFold(target, longUNC); ok {
		target = uncPrefix + rest
	} else if rest := strings.TrimPrefix(target, longPrefix); startsWithRoot(rest) {
		target = rest
	}
	trimmed := strings.TrimRight(target, Separator)
	if len(trimmed) < len(target) && isRoot(trimmed) {
		trimmed += Separator
	}
	return trimmed
}

// isRoot reports whether path, which lost its trailing backslash, was a root.
func isRoot(path string) bool {
	name, long := strings.CutPrefix(path, longPrefix)
	return path == "" || isDrive(path) || long && !strings.Contains(name, Separator)
}
