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
// a foreign directory pass for an allowed one. Nor do characters beyond 16 bits fold:
// to NTFS they are two units, and neither has a case.
func Fold(s string) string { return string(AppendFold(nil, s)) }

// AppendFold appends the folded form of s to dst, for callers that compare often
// and want no garbage.
func AppendFold(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			dst = append(dst, upperASCII(c))
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if upper := unicode.ToUpper(r); upper >= utf8.RuneSelf && r <= 0xFFFF {
			r = upper
		}
		dst = utf8.AppendRune(dst, r)
		i += size
	}
	return dst
}

// Equal reports whether two names or paths are the same to Windows, spelling of
// case aside.
func Equal(a, b string) bool {
	rest, ok := cutFold(a, b)
	return ok && rest == ""
}

// Contains reports whether path is dir or lies below it, component by component:
// C:\kubelet does not contain C:\kubelet-evil. Both must be clean.
func Contains(dir, path string) bool {
	rest, ok := cutFold(path, dir)
	return ok && (rest == "" || rest[0] == '\\' || strings.HasSuffix(dir, Separator))
}

// cutFold is strings.CutPrefix on folded strings. The rest is folded, too, if there
// is anything but ASCII before it.
func cutFold(s, prefix string) (rest string, ok bool) {
	for i := range len(prefix) {
		if i == len(s) {
			return "", false
		}
		if s[i] >= utf8.RuneSelf || prefix[i] >= utf8.RuneSelf {
			return strings.CutPrefix(Fold(s[i:]), Fold(prefix[i:]))
		}
		if upperASCII(s[i]) != upperASCII(prefix[i]) {
			return "", false
		}
	}
	return s[len(prefix):], true
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
