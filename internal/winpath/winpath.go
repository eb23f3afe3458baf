// Package winpath knows the grammar of Windows paths, as pure functions that
// behave the same on every OS. It decides what a request may name; whether the
// named thing may be touched is for internal/policy to say.
//
// Requests carry paths chosen by whoever can create a pod. Windows offers many
// spellings for one file (streams, 8.3 aliases, trailing dots, device names, two
// kinds of slash), and each of them has been used to slip past a check made on
// strings. Validate therefore accepts exactly one spelling: a drive letter, a
// backslash, and plain components.
package winpath

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of NTFS and of the \\?\ form, in UTF-16 code units.
// https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation
const (
	MaxComponent = 255
	MaxPath      = 32767 - len(longPrefix)
)

// Separator is the only separator accepted in requests.
const Separator = `\`

// InvalidError says which rule a path breaks and where.
type InvalidError struct {
	Path      string
	Component string // the offending component, if it is one component's fault
	Rule      string
}

func (e *InvalidError) Error() string {
	if e.Component != "" {
		return fmt.Sprintf("path %s: component %s %s", quote(e.Path), quote(e.Component), e.Rule)
	}
	return fmt.Sprintf("path %s %s", quote(e.Path), e.Rule)
}

// quote bounds what an attacker can make us repeat in errors and logs.
func quote(s string) string {
	const most = 300
	s = strings.ToValidUTF8(s, "�")
	if len(s) > most {
		cut := most
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		return fmt.Sprintf("%q... (%d bytes)", s[:cut], len(s))
	}
	return `"` + escapeControls(s) + `"`
}

// escapeControls keeps one log line one line without doubling every backslash,
// as %q would: a path must stay readable and searchable.
func escapeControls(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isControl(r) {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isControl(r rune) bool {
	return r < 0x20 || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == '\u2028' || r == '\u2029'
}

// Validate reports whether path is an absolute local path in the one spelling we
// accept. The error is an *InvalidError.
func Validate(path string) error {
	_, err := Clean(path)
	return err
}

// Clean validates path and returns its canonical form: the drive letter in upper
// case and no trailing backslash except for a drive's root.
func Clean(path string) (string, error) {
	fail := func(rule string) (string, error) { return "", &InvalidError{Path: path, Rule: rule} }
	switch {
	case path == "":
		return fail("is empty, so it is not an absolute Windows path")
	case !utf8.ValidString(path):
		return fail("is not valid UTF-8")
	case longer(path, MaxPath):
		return fail(fmt.Sprintf("is longer than the %d characters Windows can handle", MaxPath))
	case strings.HasPrefix(path, `\\`) || strings.HasPrefix(path, `//`):
		// \\server\share, \\?\ and \\.\ leave the local drives or switch off the
		// normalisation that the other rules rely on.
		return fail(`is not an absolute Windows path on a local drive (network, \\?\ and device paths are not accepted)`)
	case len(path) < 3 || !isLetter(path[0]) || path[1] != ':' || path[2] != '\\':
		// C:dir depends on the process's current directory on C:, \dir on the
		// current drive.
		if strings.Contains(path, "/") {
			return fail(`is not an absolute Windows path (it must start with a drive letter as in C:\, with backslashes only)`)
		}
		return fail(`is not an absolute Windows path (it must start with a drive letter as in C:\)`)
	}
	rest := path[3:]
	if rest == "" {
		return drive(path), nil
	}
	if rest != Separator {
		rest = strings.TrimSuffix(rest, Separator)
	}
	for component := range strings.SplitSeq(rest, Separator) {
		if rule := checkComponent(component); rule != "" {
			return "", &InvalidError{Path: path, Component: component, Rule: rule}
		}
	}
	if path = path[:3+len(rest)]; path[0] == drive(path)[0] {
		return path, nil
	}
	return drive(path) + rest, nil
}

// drive returns the root of the drive that path names, its letter in upper case.
func drive(path string) string {
	const roots = `A:\B:\C:\D:\E:\F:\G:\H:\I:\J:\K:\L:\M:\N:\O:\P:\Q:\R:\S:\T:\U:\V:\W:\X:\Y:\Z:\`
	at := 3 * int(upperASCII(path[0])-'A')
	return roots[at : at+3]
}

// Components returns the names below the drive's root; none for the root itself.
// path must be clean.
func Components(path string) []string {
	if len(path) <= 3 {
		return nil
	}
	return strings.Split(path[3:], Separator)
}

// Parent returns the directory that holds path, and false for a drive's root.
// path must be clean.
func Parent(path string) (string, bool) {
	if len(path) <= 3 {
		return "", false
	}
	if i := strings.LastIndexByte(path, '\\'); i > 2 {
		return path[:i], true
	}
	return path[:3], true
}

// Join appends one component to a clean directory path.
func Join(dir, name string) string {
	return strings.TrimSuffix(dir, Separator) + Separator + name
}

// longer reports whether s has more than limit UTF-16 code units, which are never more
// than its bytes.
func longer(s string, limit int) bool { return len(s) > limit && UTF16Len(s) > limit }

// UTF16Len counts UTF-16 code units, the unit of all Windows limits.
func UTF16Len(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

func isLetter(c byte) bool { c = upperASCII(c); return 'A' <= c && c <= 'Z' }

func upperASCII(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}
