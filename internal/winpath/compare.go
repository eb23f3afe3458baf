package winpath

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fold returns the form of s in which names that NTFS takes for the same are
// equal: every character replaced by its simple upper case, without regard to
// locale.
//
// A character outside ASCII never folds into ASCII, although Unicode would map
// the dotless i to I: Windows' table does not, and here a false match could let
// a foreign directory pass for an allowed one.
func Fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return rune(upperASCII(byte(r)))
		}
		if upper := unicode.ToUpper(r); upper >= utf8.RuneSelf {
			return upper
		}
		return r
	}, s)
}

// Equal reports whether two names or paths are the same to Windows, spelling of
// case aside.
func Equal(a, b string) bool { return a == b || Fold(a) == Fold(b) }

// Contains reports whether path is dir or lies below it, component by component:
// C:\kubelet does not contain C:\kubelet-evil. Both must be clean.
func Contains(dir, path string) bool {
	dir, path = Fold(dir), Fold(path)
	if dir == path {
		return true
	}
	return strings.HasPrefix(path, strings.TrimSuffix(dir, Separator)+Separator)
}

// SameTarget reports whether two link targets lead to the same place by their
// spelling: prefixes for long paths, a trailing backslash and case do not count.
func SameTarget(a, b string) bool { return Equal(plainTarget(a), plainTarget(b)) }

func plainTarget(target string) string {
	switch {
	case strings.HasPrefix(target, longUNC):
		target = `\\` + target[len(longUNC):]
	case strings.HasPrefix(target, longPrefix):
		target = target[len(longPrefix):]
	}
	return strings.TrimRight(target, Separator)
}
