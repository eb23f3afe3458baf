package winpath

import (
	"strings"
	"testing"
	"unicode"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/winpathtest"
)

func TestInvalidError(t *testing.T) {
	for in, want := range map[string]string{
		`kubelet`:      `path "kubelet" is not an absolute Windows path (it must start with a drive letter as in C:\)`,
		`C:\a\..\b`:    `path "C:\a\..\b": component ".." uses '.' or '..'; give the path without relative parts`,
		`C:\a\x"y`:     `path "C:\a\x<U+0022>y": component "x<U+0022>y" contains '"', which Windows does not allow in names`,
		"C:\\a\nb":     `path "C:\a<U+000A>b": component "a<U+000A>b" contains a control character (0x0a)`,
		"C:\\\u202ea:": `path "C:\<U+202E>a:": component "<U+202E>a:" contains ':', which names an alternate data stream`,
		"C:\\a\xff":    `path "C:\a<0xFF>" is not valid UTF-8`,
		`C:\x\ÄÖÜ~1`:   `path "C:\x\ÄÖÜ~1": component "ÄÖÜ~1" looks like an 8.3 alias of another name; give the long name`,
	} {
		if err := Validate(in); err == nil || err.Error() != want {
			t.Errorf("Validate(%q) says\n%v, want\n%s", in, err, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		``:                       `""`,
		`C:\a b`:                 `"C:\a b"`,
		"ä日😀":                    `"ä日😀"`,
		"\x00\x1b\x7f":           `"<U+0000><U+001B><U+007F>"`,
		"\u0085\u2028":           `"<U+0085><U+2028>"`,
		"\u202a\u202e\u2066":     `"<U+202A><U+202E><U+2066>"`,
		"\u200e\u200f\ufeff":     `"<U+200E><U+200F><U+FEFF>"`,
		"\u00a0\u3000\u200b":     `"<U+00A0><U+3000><U+200B>"`,
		"\U000e0041\ue000":       `"<U+E0041><U+E000>"`,
		"\xff\xed\xa0\x80\ufffd": "\"<0xFF><0xED><0xA0><0x80>\ufffd\"",
		strings.Repeat("x", 300): `"` + strings.Repeat("x", 300) + `"`,
		strings.Repeat(`\`, 301): `"` + strings.Repeat(`\`, 300) + `"... (301 bytes)`,
		strings.Repeat("日", 200): `"` + strings.Repeat("日", 100) + `"... (600 bytes)`,
	} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%.60q) = %s, want %s", in, got, want)
		}
	}
}

// Whatever a caller sends: one line of bounded length, nothing in it that is invisible.
func TestInvalidError_FitsOneLogLine(t *testing.T) {
	for _, c := range winpathtest.Corpus() {
		err := Validate(c.Path)
		if err == nil {
			continue
		}
		if text := err.Error(); len(text) > 1000 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("hostile-paths.txt:%d: unfit for one log line: %q", c.Line, text)
		}
	}
}
