package winpath

import (
	"unicode"
	"unicode/utf8"
)

// Fold returns the form of s in which names that Windows takes for the same are
// equal: every character replaced by its upper case in Windows' own table, one by
// one and without regard to locale.
func Fold(s string) string {
	var short [128]byte // most names are, and cost no more than the result
	return string(AppendFold(short[:0], s))
}

// AppendFold appends the folded form of s to dst, for callers that compare often
// and want no garbage.
func AppendFold(dst []byte, s string) []byte {
	for s != "" {
		r, size := nextFolded(s)
		if r > unicode.MaxRune {
			dst = append(dst, s[0])
		} else {
			dst = utf8.AppendRune(dst, r)
		}
		s = s[size:]
	}
	return dst
}

// Equal reports whether two names or paths are the same to Windows, spelling of
// case aside.
func Equal(a, b string) bool {
	rest, ok := cutFold(a, b)
	return ok && rest == ""
}

// cutFold is strings.CutPrefix without regard to case.
func cutFold(s, prefix string) (rest string, ok bool) {
	s, prefix, ok = skipASCII(s, prefix)
	for ok && prefix != "" {
		if s == "" {
			return "", false
		}
		a, sizeA := nextFolded(s)
		b, sizeB := nextFolded(prefix)
		ok = a == b
		s, prefix = s[sizeA:], prefix[sizeB:]
	}
	return s, ok
}

// skipASCII returns what is left of two strings after what they have in common before the
// first character beyond ASCII, which is all of almost every path. It is not ok if they
// differ there.
func skipASCII(a, b string) (restA, restB string, ok bool) {
	i := 0
	for ; i < min(len(a), len(b)) && a[i]|b[i] < utf8.RuneSelf; i++ {
		if upperASCII(a[i]) != upperASCII(b[i]) {
			return "", "", false
		}
	}
	return a[i:], b[i:], true
}

// nextFolded returns the first character of s in upper case, and its length in
// bytes. A byte that belongs to no character counts as one of its own, beyond
// unicode.MaxRune, so that malformed strings do not become equal.
func nextFolded(s string) (r rune, size int) {
	if s[0] < utf8.RuneSelf {
		return rune(upperASCII(s[0])), 1
	}
	r, size = utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && size == 1:
		return unicode.MaxRune + rune(s[0]), 1
	case unicode.Is(upcased, r):
		return unicode.ToUpper(r), size
	}
	return r, size
}
