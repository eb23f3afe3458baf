package winpath

import "testing"

func TestLong(t *testing.T) {
	for in, want := range map[string]string{
		`C:\`:                  `\\?\C:\`,
		`C:\a`:                 `\\?\C:\a`,
		`\\server\share\a`:     `\\?\UNC\server\share\a`,
		`\\?\C:\a`:             `\\?\C:\a`,
		`\\?\UNC\server\share`: `\\?\UNC\server\share`,
		`\\?\Volume{x}\a`:      `\\?\Volume{x}\a`,
		`\\.\PhysicalDrive0`:   `\\.\PhysicalDrive0`,
	} {
		got := Long(in)
		if got != want {
			t.Errorf("Long(%q) = %q, want %q", in, got, want)
		}
		if again := Long(got); again != got {
			t.Errorf("Long(%q) = %q", got, again)
		}
	}
}

func TestSameTarget(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`C:\a`, `C:\a`, true},
		{`C:\a`, `c:\A\`, true},
		{`C:\a`, `C:\a\\`, true},
		{`C:\a`, `\\?\C:\a`, true},
		{`C:\a`, `\??\C:\a\`, true},
		{`C:\a`, `C:\b`, false},
		{`C:\a`, `D:\a`, false},
		{`C:\a`, `C:\a\b`, false},
		{`C:\a`, `a`, false},
		{`C:\`, `\\?\c:\`, true},
		{`C:\`, `C:`, false}, // the current directory on C:
		{`\\server\share\`, `\\SERVER\share`, true},
		{`\\server\share\`, `\\?\UNC\server\share`, true},
		{`\\server\share\`, `\\?\unc\server\share\`, true},
		{`\\server\share`, `\??\UNC\server\share\`, true},
		{`\\server\share`, `server\share`, false},
		{`\\server\share`, `\\server\share2`, false},
		{`\\?\Volume{x}\`, `\??\Volume{x}\`, true},
		{`\\?\Volume{x}\a`, `\\?\Volume{x}\a\`, true},
		{`\\?\Volume{x}\`, `\\?\Volume{x}`, false},  // the device
		{`\\?\Volume{x}\a`, `Volume{x}\a`, false},   // a relative path
		{`\\?\GLOBALROOT\x`, `GLOBALROOT\x`, false}, // likewise
		{`a`, `a\`, true},
		{``, `\`, false}, // the root of the current drive
	} {
		if SameTarget(c.a, c.b) != c.want || SameTarget(c.b, c.a) != c.want {
			t.Errorf("SameTarget(%q, %q) = %v and %v, want %v", c.a, c.b, SameTarget(c.a, c.b), SameTarget(c.b, c.a), c.want)
		}
	}
}
