package winpath

import (
	"errors"
	"strings"
	"testing"
)

func TestClean_Accepts(t *testing.T) {
	long := `C:\` + strings.Repeat(`0123456789\`, 2900) + "end"
	for in, want := range map[string]string{
		`C:\`:                            `C:\`,
		`c:\var\lib\kubelet`:             `C:\var\lib\kubelet`,
		`C:\var\lib\kubelet\`:            `C:\var\lib\kubelet`,
		`D:\a b\c.d\ё~csi`:               `D:\a b\c.d\ё~csi`,
		`C:\pods\kubernetes.io~csi`:      `C:\pods\kubernetes.io~csi`,
		`C:\pvc-0123456789~1`:            `C:\pvc-0123456789~1`,
		`C:\console\com10\.hidden`:       `C:\console\com10\.hidden`,
		`C:\` + strings.Repeat("x", 255): `C:\` + strings.Repeat("x", 255),
		`C:\` + strings.Repeat("😀", 127): `C:\` + strings.Repeat("😀", 127),
		long:                             long,
	} {
		got, err := Clean(in)
		if err != nil || got != want {
			t.Errorf("Clean(%.60q) = %.60q, %v; want %.60q", in, got, err, want)
		}
	}
}

func TestClean_Refuses(t *testing.T) {
	const absolute = "not an absolute Windows path"
	for in, want := range map[string]string{
		``:                                  absolute,
		`var\lib`:                           absolute,
		`\var\lib`:                          absolute,
		`C:`:                                absolute,
		`C:var`:                             absolute,
		`C:/var`:                            absolute,
		`/var/lib`:                          absolute,
		`1:\var`:                            absolute,
		`CC:\var`:                           absolute,
		`\\server\share`:                    absolute,
		`//server/share`:                    absolute,
		`\\?\C:\var`:                        absolute,
		`\\.\PhysicalDrive0`:                absolute,
		`\??\C:\var`:                        absolute,
		"C:\\a\xff":                         "UTF-8",
		"C:\\a\x00b":                        "control character",
		"C:\\a\nb":                          "control character",
		`C:\a\\b`:                           "two backslashes",
		`C:\\`:                              "two backslashes",
		`C:\a\..\b`:                         "relative",
		`C:\a\.\b`:                          "relative",
		`C:\a..b`:                           "relative",
		`C:\a.`:                             "dot or a space",
		`C:\a `:                             "dot or a space",
		`C:\a \b`:                           "dot or a space",
		`C:\a/b`:                            "does not allow",
		`C:\a|b`:                            "does not allow",
		`C:\a<b`:                            "does not allow",
		`C:\a?`:                             "does not allow",
		`C:\a*`:                             "does not allow",
		`C:\a"b`:                            "does not allow",
		`C:\a:stream`:                       "stream",
		`C:\a::$INDEX_ALLOCATION`:           "stream",
		`C:\con`:                            "reserved",
		`C:\a\NUL.txt`:                      "reserved",
		`C:\a\nul .txt`:                     "reserved",
		`C:\com1\x`:                         "reserved",
		`C:\LPT¹`:                           "reserved",
		`C:\CONOUT$`:                        "reserved",
		`C:\PROGRA~1`:                       "8.3",
		`C:\a\KUBELE~2.TXT`:                 "8.3",
		`C:\` + strings.Repeat("x", 256):    "longer than 255",
		`C:\` + strings.Repeat("😀", 128):    "longer than 255",
		`C:\` + strings.Repeat(`a\`, 17000): "longer than the",
	} {
		_, err := Clean(in)
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Clean(%.60q): %v; want an error that says %q", in, err, want)
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 1500) {
			t.Errorf("Clean(%.60q): unfit for one log line: %q", in, err)
		}
	}
}

func TestContains(t *testing.T) {
	for _, c := range []struct {
		dir, path string
		want      bool
	}{
		{`C:\var\lib\kubelet`, `C:\var\lib\kubelet`, true},
		{`C:\var\lib\kubelet`, `C:\VAR\lib\KUBELET\x`, true},
		{`C:\var\lib\kubelet`, `C:\var\lib\kubelet-evil`, false},
		{`C:\var\lib\kubelet`, `C:\var\lib`, false},
		{`C:\var\lib\kubelet`, `D:\var\lib\kubelet\x`, false},
		{`C:\`, `C:\x`, true},
		{`C:\Ärger`, `C:\ärger\x`, true},
		{`C:\KUBELIT`, `C:\kubelıt\x`, false}, // dotless i
		{`C:\𐐀`, `C:\𐐨\x`, false},             // Deseret, beyond 16 bits
	} {
		if got := Contains(c.dir, c.path); got != c.want {
			t.Errorf("Contains(%q, %q) = %v, want %v", c.dir, c.path, got, c.want)
		}
	}
}

func TestParentAndJoin(t *testing.T) {
	for path, want := range map[string]string{`C:\a\b`: `C:\a`, `C:\a`: `C:\`} {
		got, ok := Parent(path)
		if !ok || got != want {
			t.Errorf("Parent(%q) = %q, %v, want %q", path, got, ok, want)
		}
		if back := Join(got, path[strings.LastIndex(path, `\`)+1:]); back != path {
			t.Errorf("Join undoes Parent(%q) to %q", path, back)
		}
	}
	if parent, ok := Parent(`C:\`); ok {
		t.Errorf(`Parent("C:\") = %q, want none`, parent)
	}
}

func TestLong(t *testing.T) {
	for in, want := range map[string]string{
		`C:\a`:             `\\?\C:\a`,
		`\\server\share\a`: `\\?\UNC\server\share\a`,
		`\\?\C:\a`:         `\\?\C:\a`,
	} {
		if got := Long(in); got != want {
			t.Errorf("Long(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzClean checks what every caller relies on: an accepted path is stable under
// Clean, stays below its drive, and none of its components is special.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{`C:\var\lib\kubelet`, `c:\`, `C:\a\..\b`, `C:\PROGRA~1`, `\\?\C:\x`, `C:\x:y`, "C:\\\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		clean, err := Clean(in)
		if err != nil {
			return
		}
		if again, err := Clean(clean); err != nil || again != clean {
			t.Fatalf("Clean(%q) = %q, but again %q, %v", in, clean, again, err)
		}
		if !Contains(clean[:3], clean) || strings.ContainsAny(clean[2:], "/:*?\"<>|\x00") {
			t.Fatalf("Clean(%q) = %q", in, clean)
		}
		for _, name := range Components(clean) {
			if name == "" || strings.Trim(name, ". ") == "" || strings.HasSuffix(name, ".") {
				t.Fatalf("Clean(%q) lets the component %q pass", in, name)
			}
		}
	})
}
