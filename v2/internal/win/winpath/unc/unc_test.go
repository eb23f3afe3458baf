package unc_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, server, share, directory string }{
		{`\\server\share`, `\\server`, `\\server\share`, `\\server\share\`},
		{`\\Server\Share\`, `\\server`, `\\server\share`, `\\Server\Share\`},
		{`//server/share/a/b/`, `\\server`, `\\server\share`, `\\server\share\a\b\`},
		{`\\server\share\\a//b\\`, `\\server`, `\\server\share`, `\\server\share\a\b\`},
		{`\\\\server\\share\\a`, `\\server`, `\\server\share`, `\\server\share\a\`}, // escaped twice in YAML
		{`\\\server\share`, `\\server`, `\\server\share`, `\\server\share\`},
		{`\server\share`, `\\server`, `\\server\share`, `\\server\share\`},
		{`/server/share`, `\\server`, `\\server\share`, `\\server\share\`}, // path.Clean
		{`server\share`, `\\server`, `\\server\share`, `\\server\share\`},
		{`\\10.0.0.5\Data\pvc-1`, `\\10.0.0.5`, `\\10.0.0.5\data`, `\\10.0.0.5\Data\pvc-1\`},
		{`\\fd00--1.ipv6-literal.net\data`, `\\fd00--1.ipv6-literal.net`, `\\fd00--1.ipv6-literal.net\data`, `\\fd00--1.ipv6-literal.net\data\`},
		{`\\account.file.core.windows.net\share`, `\\account.file.core.windows.net`, `\\account.file.core.windows.net\share`, `\\account.file.core.windows.net\share\`},
		{`\\nas_1\hidden$\Ä b`, `\\nas_1`, `\\nas_1\hidden$`, `\\nas_1\hidden$\Ä b\`},
		{"\\\\server\\Data\u212a", `\\server`, "\\\\server\\data\u212a", "\\\\server\\Data\u212a\\"},
		{"\\\\server\\\u0130nfo", `\\server`, "\\\\server\\\u0130nfo", "\\\\server\\\u0130nfo\\"},
		{"\\\\server\\\u03c2\u00c4", `\\server`, "\\\\server\\\u03c2\u00e4", "\\\\server\\\u03c2\u00c4\\"},
		{`\\server\my share`, `\\server`, `\\server\my share`, `\\server\my share\`},
	} {
		got, err := unc.Parse("map share", c.text)
		if err != nil || got.Server() != c.server || got.Share() != c.share || got.Directory() != c.directory {
			t.Errorf("%s: server %s, share %s, directory %s, %v", c.text, got.Server(), got.Share(), got.Directory(), err)
		}
	}
}

func TestPath_CheckMappable(t *testing.T) {
	for text, want := range map[string]bool{
		`\\server\C$`: false, `\\localhost\c$\Windows`: false, `//127.0.0.1/ADMIN$`: false, `\\server\IPC$`: false,
		`\\server\pipe\x`: false, `\\server\mailslot`: false, `\\server\print$`: false, `\\server\fax$`: false, `\\server\Z$`: false, `\\server\a$`: false, `\\server\ClusterStorage$\x`: false,
		`\\server\share`: true, `\\server\c`: true, `\\server\cd$`: true, `\\server\1$`: true, `\\server\pipes`: true, `\\server\hidden$`: true,
	} {
		path, err := unc.Parse("map share", text)
		require.NoError(t, err)
		if err := path.CheckMappable("map share"); (err == nil) != want || (err != nil && winerr.KindOf(err) != winerr.Denied) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

var refused = []string{
	``,
	`server`,
	`\\`,
	`\\server`,
	`\\server\`,
	`\\\share`,
	`C:\x\y`,
	`c:/x/y`,
	`.\share`,
	`..\share`,
	`?\UNC\server\share`,
	`\.\pipe\x`,
	`\\\\?\\UNC\\server\\share`,
	`\\\.\pipe\x`,
	`/./pipe/x`,
	`\\?\C:\x`,
	`\\?\UNC\server\share`,
	`//./pipe/x`,
	`\\.\PhysicalDrive0\x`,
	`\??\UNC\server\share`,
	`\\..\share`,
	`\\.server\share`,
	`\\ser..ver\share`,
	`\\server\DavWWWRoot`,
	`\\server\davwwwroot\x`,
	`\\tsclient\C`,
	`\\WSL$\Ubuntu`,
	`\\wsl.localhost\Ubuntu`,
	"\\\\server\\sh\u200bare",
	"\\\\ser\u202ever\\share",
	`\\server.\share`,
	`\\server\..`,
	`\\server\.`,
	`\\server\...`,
	`\\server\share.`,
	`\\server\share `,
	`\\server\ share`,
	`\\server\share\..`,
	`\\server\share\a\..\b`,
	`\\server\share\..\more`,
	`//server/share/../c$`,
	`\\server\share\.`,
	`\\server\share\a.`,
	`\\server\share\NUL`,
	`\\server\share\a:b`,
	`\\server\share\*`,
	`\\server\sh?re`,
	`\\ser*er\share`,
	`\\server@SSL\share`,
	`\\server@8080\DavWWWRoot`,
	`\\fd00::1\share`,
	`\\a b\share`,
	"\\\\server\x00\\share",
	"\\\\server\\share\x00",
	"\\\\server\\share\\\x00",
	"\\\\server\\share\r\nX",
	"\\\\server\\share\\\xff",
	`\\server\` + strings.Repeat("s", 81),
	`\\` + strings.Repeat("s", 256) + `\share`,
	`\\server\share\` + strings.Repeat("s", 256),
	`\\server\share` + strings.Repeat(`\a`, 17000),
	`\\server\` + strings.Repeat("s", 10<<20),
}

func TestParse_Refuses(t *testing.T) {
	for _, refused := range refused {
		got, err := unc.Parse("map share", refused)
		if err == nil || winerr.KindOf(err) != winerr.Invalid {
			t.Errorf("%.100q is %+v, %v, want an error of kind %v", refused, got, err, winerr.Invalid)
			continue
		}
		if text := err.Error(); len(text) > 1000 || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("%.100q: the error has %d bytes, or control characters: %.200q", refused, len(text), text)
		}
	}
}

func TestShareOf(t *testing.T) {
	for target, want := range map[string]string{
		`\\Server\Share`: `\\server\share`, `\\server\share\`: `\\server\share`, `\\server\share\aux\..`: `\\server\share`, `//server/share/x`: `\\server\share`,
		`\\?\UNC\server\share\x`: `\\server\share`, `\??\unc\server\share`: `\\server\share`, `\\server\\share`: `\\server\share`,
		`C:\x\y`: "", `\\server`: "", `\\?\C:\x`: "", `\\.\pipe\x`: "", `..\x`: "", ``: "", `\\server\..`: "",
	} {
		if got, ok := unc.ShareOf(target); ok != (want != "") || ok && got != want {
			t.Errorf("%s is in %q, %v, want %q", target, got, ok, want)
		}
	}
}

// FuzzParse: what is accepted is in one spelling, which is accepted again, and nothing in it
// leads out of the share.
func FuzzParse(f *testing.F) {
	for _, text := range refused {
		f.Add(text[:min(len(text), 1000)])
	}
	f.Add(`\\server\share\a/b`)
	f.Fuzz(func(t *testing.T, text string) {
		path, err := unc.Parse("map share", text)
		if err != nil {
			return
		}
		again, err := unc.Parse("map share", path.Directory())
		if err != nil || again != path {
			t.Errorf("%q is %+v, and that is %+v, %v", text, path, again, err)
		}
		if len(path.Directory()) < len(path.Share()) || strings.Contains(path.Directory(), `\..\`) || strings.ContainsAny(path.Directory()[2:], "/?*\x00") {
			t.Errorf("%q became %+v", text, path)
		}
	})
}

func TestPath_Inside(t *testing.T) {
	for text, want := range map[string]string{
		`\\Server\Share`:          "",
		`//server/share/`:         "",
		`\\Server\Share\A\b\`:     `\\Server\Share\A\b`,
		`\\server\share\\share`:   `\\server\share\share`,
		`\\10.0.0.1\Daten\Ordner`: `\\10.0.0.1\Daten\Ordner`,
	} {
		path, err := unc.Parse("test", text)
		if err != nil || path.Inside() != want {
			t.Errorf("%s: %q, %v, want %q", text, path.Inside(), err, want)
		}
	}
}
