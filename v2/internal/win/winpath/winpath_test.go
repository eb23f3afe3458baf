package winpath

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

const kubelet = `C:\var\lib\kubelet`

func TestClean_Accepts(t *testing.T) {
	long := `C:\` + strings.Repeat(`0123456789\`, 2900) + "end"
	for in, want := range map[string]string{
		`C:\`:                            `C:\`,
		`z:\`:                            `Z:\`,
		`c:\var\lib\kubelet`:             kubelet,
		`C:\var\lib\kubelet\`:            kubelet,
		`c:\var\lib\kubelet\`:            kubelet,
		`C:\\`:                           `C:\`,
		`C:\\\var\\lib\kubelet\\`:        kubelet, // as YAML with one escape too many has it
		`c:\var\lib\\\\kubelet`:          kubelet,
		`D:\a b\c.d\ё~csi`:               `D:\a b\c.d\ё~csi`,
		`C:\VAR\Lib`:                     `C:\VAR\Lib`, // Windows keeps the case of names
		`C:\pods\kubernetes.io~csi`:      `C:\pods\kubernetes.io~csi`,
		`C:\pvc-0123456789~1`:            `C:\pvc-0123456789~1`,
		`C:\console\com10\.hidden`:       `C:\console\com10\.hidden`,
		`C:\` + strings.Repeat("x", 255): `C:\` + strings.Repeat("x", 255),
		`C:\` + strings.Repeat("日", 255): `C:\` + strings.Repeat("日", 255),
		`C:\` + strings.Repeat("😀", 127): `C:\` + strings.Repeat("😀", 127),
		long:                             long,
	} {
		got, err := Clean(in)
		if err != nil || got != want {
			t.Errorf("Clean(%.60q) = %.60q, %v; want %.60q", in, got, err, want)
		}
		if err := Validate(in); err != nil {
			t.Errorf("Validate(%.60q): %v", in, err)
		}
	}
}

// What is refused is for the corpus to say; here is which rule refuses it, and which
// component it blames.
func TestClean_Rules(t *testing.T) {
	const absolute = "not an absolute Windows path" // democratic-csi looks for this text
	for in, want := range map[string]struct{ component, rule string }{
		``:                                  {"", absolute},
		`var\lib`:                           {"", absolute},
		`\var\lib`:                          {"", absolute},
		`C:`:                                {"", absolute},
		`C:var`:                             {"", absolute},
		`C:/var`:                            {"", absolute + ` (it must start with a drive letter as in C:\, with backslashes only)`},
		`/var/lib`:                          {"", absolute},
		`1:\var`:                            {"", absolute},
		`CC:\var`:                           {"", absolute},
		`\\server\share`:                    {"", absolute + " on a local drive"},
		`//server/share`:                    {"", absolute + " on a local drive"},
		`\\?\C:\var`:                        {"", absolute + " on a local drive"},
		`\\.\PhysicalDrive0`:                {"", absolute + " on a local drive"},
		`\??\C:\var`:                        {"", absolute},
		"C:\\a\xff":                         {"", "is not valid UTF-8"},
		"C:\\a\xed\xa0\x80":                 {"", "is not valid UTF-8"}, // an unpaired surrogate
		`C:\` + strings.Repeat(`a\`, 17000): {"", "longer than the 32762 characters"},
		"C:\\x\\a\x00b":                     {"a\x00b", "control character (0x00)"},
		"C:\\x\\a\nb":                       {"a\nb", "control character (0x0a)"},
		"C:\\x\\a\x1fb":                     {"a\x1fb", "control character (0x1f)"},
		`C:\a\..\b`:                         {"..", "relative"},
		`C:\a\.\b`:                          {".", "relative"},
		`C:\a..b`:                           {"a..b", "contains '..'"},
		`C:\...`:                            {"...", "contains '..'"},
		`C:\a.`:                             {"a.", "dot or a space"},
		`C:\a `:                             {"a ", "dot or a space"},
		`C:\a \b`:                           {"a ", "dot or a space"},
		`C:\a/b`:                            {"a/b", "use backslashes"},
		`C:\a|b`:                            {"a|b", "contains '|'"},
		`C:\a<b`:                            {"a<b", "contains '<'"},
		`C:\a>b`:                            {"a>b", "contains '>'"},
		`C:\a?`:                             {"a?", "contains '?'"},
		`C:\a*`:                             {"a*", "contains '*'"},
		`C:\a"b`:                            {`a"b`, `contains '"'`},
		`C:\a:stream\b`:                     {"a:stream", "alternate data stream"},
		`C:\a::$INDEX_ALLOCATION`:           {"a::$INDEX_ALLOCATION", "alternate data stream"},
		`C:\con`:                            {"con", "reserved"},
		`C:\a\NUL.txt`:                      {"NUL.txt", "reserved"},
		`C:\a\nul .tar.gz`:                  {"nul .tar.gz", "reserved"},
		`C:\com1\x`:                         {"com1", "reserved"},
		`C:\LPT¹`:                           {"LPT¹", "reserved"},
		`C:\CONOUT$`:                        {"CONOUT$", "reserved"},
		`C:\PROGRA~1`:                       {"PROGRA~1", "8.3"},
		`C:\a\KUBELE~2.TXT`:                 {"KUBELE~2.TXT", "8.3"},
		`C:\ÄÖÜÄÖÜ~1.ÄÖÜ\x`:                 {"ÄÖÜÄÖÜ~1.ÄÖÜ", "8.3"},
		`C:\` + strings.Repeat("x", 256):    {strings.Repeat("x", 256), "longer than 255"},
		`C:\` + strings.Repeat("😀", 128):    {strings.Repeat("😀", 128), "longer than 255"},
	} {
		_, err := Clean(in)
		var invalid *InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("Clean(%.60q): %v; want an *InvalidError", in, err)
			continue
		}
		if invalid.Path != in || invalid.Component != want.component || !strings.Contains(invalid.Rule, want.rule) {
			t.Errorf("Clean(%.60q) blames %.60q, which %s; want %.60q and %q",
				in, invalid.Component, invalid.Rule, want.component, want.rule)
		}
	}
}

// Clean runs on every request.
func TestClean_DoesNotAllocate(t *testing.T) {
	for _, path := range []string{`C:\`, `c:\`, kubelet, kubelet + `\`, `C:\` + strings.Repeat(`x\`, 1000) + "x", `C:\ärger`} {
		if n := testing.AllocsPerRun(100, func() {
			if clean, err := Clean(path); err != nil || !Contains(`C:\`, clean) {
				t.Fatal(clean, err)
			}
		}); n != 0 {
			t.Errorf("Clean(%.60q) and Contains allocate %v times", path, n)
		}
	}
}

// Sixteen thousand components, and a name that several rules must read to its end, take
// time in proportion: what took seconds would be a way to stop the daemon.
func TestClean_IsLinear(t *testing.T) {
	for _, path := range []string{
		kubelet + strings.Repeat(`\a`, 16000),
		kubelet + strings.Repeat(`\日`, 16000),
		kubelet + `\` + strings.Repeat("~1", 16000),
		strings.Repeat("日", 1<<20),
	} {
		start := time.Now()
		if err := Validate(path); err != nil {
			_ = err.Error()
		}
		if elapsed := time.Since(start); elapsed > time.Second {
			t.Errorf("Clean(%.60q) took %v", path, elapsed)
		}
	}
}

func TestUTF16Len(t *testing.T) {
	for s, want := range map[string]int{"": 0, "a": 1, "ä": 1, "日": 1, "😀": 2, "a\xff": 2} {
		if got := UTF16Len(s); got != want {
			t.Errorf("UTF16Len(%q) = %d, want %d", s, got, want)
		}
	}
}

func BenchmarkClean(b *testing.B) {
	for name, path := range map[string]string{
		"short": kubelet,
		"usual": kubelet + `\pods\0f7a9f1e-8c1b-4b8e-8a39-5f3f3a0c0d11\volumes\kubernetes.io~csi\pvc-1\mount`,
		"deep":  kubelet + strings.Repeat(`\a`, 16000),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, Validate(path))
			}
		})
	}
}
