// Package winpath knows the grammar of Windows paths, as pure functions that
// behave the same on every OS. It decides what a request may name;
// internal/host/policy decides whether the request may reach it.
//
// Anyone who can create a pod chooses the paths in requests. Windows offers many
// spellings for one file (streams, 8.3 aliases, trailing dots, device names, two
// kinds of slash), and each of them has been used to slip past a check made on
// strings. Clean therefore accepts exactly one spelling: a drive letter, a
// backslash, and plain components. What strings cannot tell, such as links on the
// way, is checked on open handles by those who touch the files.
//
// The tricks known to us are collected in winpathtest.
package winpath

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of NTFS and of the \\?\ form, in UTF-16 code units. The 260 characters
// of MAX_PATH are not among them: kubelet's paths are longer, and Long lifts it.
// https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation
const (
	MaxComponent = 255
	MaxPath      = MaxName - len(longPrefix)
	// MaxName is the limit of the kernel for a name, which is one less than documented: for a
	// longer one Windows answers ERROR_INVALID_NAME (123), as Wine's tests on Windows show
	// (dlls/ntdll/tests/om.c).
	MaxName = 32766
)

// Separator is the only separator accepted in requests.
const Separator = `\`

// rootLen is the length of a drive's root, C:\.
const rootLen = 3

// Validate reports whether path is an absolute local path in the one spelling we
// accept. The error is an *InvalidError.
func Validate(path string) error {
	_, err := Clean(path)
	return err
}

// Clean validates path and returns its canonical form: the drive letter in upper
// case, single backslashes between names, and no trailing backslash except for a
// drive's root. It changes nothing else: a path that Windows would have to normalise
// in any other way is refused, because two normalisers never agree on everything.
// https://learn.microsoft.com/dotnet/standard/io/file-path-formats#path-normalization
//
// Backslashes in a row become one, as in Windows and in the original: paths that went
// through YAML or a join have them, and below a drive they lead nowhere else. A trailing
// backslash goes because Windows follows a link that is named with one.
func Clean(path string) (string, error) {
	if rule := brokenPathRule(path); rule != "" {
		return "", &InvalidError{Path: path, Rule: rule}
	}
	root := drive(path)
	rest, changed := singleSeparators(path[rootLen:])
	if rest == "" {
		return root, nil
	}
	for component := range strings.SplitSeq(rest, Separator) {
		if rule := brokenComponentRule(component); rule != "" {
			return "", &InvalidError{Path: path, Component: component, Rule: rule}
		}
	}
	if path[0] == root[0] && !changed {
		return path[:rootLen+len(rest)], nil // no copy, as this runs on every request
	}
	return root + rest, nil
}

// singleSeparators returns what follows a drive's root without a trailing backslash and
// with one backslash where there are several, and whether it has replaced any.
func singleSeparators(rest string) (single string, changed bool) {
	rest = strings.TrimRight(rest, Separator)
	if !strings.HasPrefix(rest, Separator) && !strings.Contains(rest, Separator+Separator) {
		return rest, false
	}
	names := strings.FieldsFunc(rest, func(r rune) bool { return r == '\\' })
	return strings.Join(names, Separator), true
}

// brokenPathRule returns the rule that path as a whole breaks, or "".
func brokenPathRule(path string) string {
	switch {
	case path == "":
		return "is empty, so it is not an absolute Windows path"
	case !utf8.ValidString(path):
		// It would reach Windows with U+FFFD in place of the bad bytes, as a name
		// other than the one that was checked. Unpaired surrogates, which NTFS
		// allows in names, have no valid encoding and end here, too.
		return "is not valid UTF-8"
	case longer(path, MaxPath):
		return fmt.Sprintf("is longer than the %d characters Windows can handle", MaxPath)
	case strings.HasPrefix(path, `\\`) || strings.HasPrefix(path, `//`):
		// \\server\share, \\?\ and \\.\ leave the local drives or switch off the
		// normalisation that the other rules rely on. Win32 takes // for \\.
		// https://learn.microsoft.com/windows/win32/fileio/naming-a-file#win32-device-namespaces
		return `is not an absolute Windows path on a local drive (network, \\?\ and device paths are not accepted)`
	case startsWithRoot(path):
		return ""
	case strings.Contains(path, "/"):
		return `is not an absolute Windows path (it must start with a drive letter as in C:\, with backslashes only)`
	default:
		return `is not an absolute Windows path (it must start with a drive letter as in C:\)`
	}
}

// startsWithRoot reports whether path starts as in C:\. Without the backslash it
// depends on the process's current directory on C:; \dir depends on the current
// drive, and \??\C:\dir is the kernel's spelling.
// https://learn.microsoft.com/windows/win32/fileio/naming-a-file#fully-qualified-vs-relative-paths
func startsWithRoot(path string) bool {
	return len(path) >= rootLen && isDrive(path[:2]) && path[2] == '\\'
}

// IsRooted reports whether path is absolute but for its drive: it begins with one slash, of either kind.
func IsRooted(path string) bool {
	slash := func(i int) bool { return len(path) > i && (path[i] == '/' || path[i] == '\\') }
	return slash(0) && !slash(1)
}

func isDrive(path string) bool {
	return len(path) == len("C:") && isLetter(path[0]) && path[1] == ':'
}

// drive returns the root of the drive that path names, its letter in upper case.
func drive(path string) string {
	const roots = `A:\B:\C:\D:\E:\F:\G:\H:\I:\J:\K:\L:\M:\N:\O:\P:\Q:\R:\S:\T:\U:\V:\W:\X:\Y:\Z:\`
	at := rootLen * int(upperASCII(path[0])-'A')
	return roots[at : at+rootLen]
}

// Components returns the names below the drive's root; none for the root itself.
// path must be clean.
func Components(path string) []string {
	if len(path) <= rootLen {
		return nil
	}
	return strings.Split(path[rootLen:], Separator)
}

// Parent returns the directory that holds path, and false for a drive's root.
// path must be clean.
func Parent(path string) (string, bool) {
	if len(path) <= rootLen {
		return "", false
	}
	if i := strings.LastIndexByte(path, '\\'); i >= rootLen {
		return path[:i], true
	}
	return path[:rootLen], true
}

// Join appends one component to a clean directory path.
func Join(dir, name string) string {
	return strings.TrimSuffix(dir, Separator) + Separator + name
}

// UTF16Len counts UTF-16 code units, the unit of all Windows limits.
func UTF16Len(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// longer reports whether s has more than limit UTF-16 code units, which are never more
// than its bytes.
func longer(s string, limit int) bool { return len(s) > limit && UTF16Len(s) > limit }

func isLetter(c byte) bool { c = upperASCII(c); return 'A' <= c && c <= 'Z' }

func upperASCII(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}
