package win_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

func TestReparsePoint_MountedVolume(t *testing.T) {
	const guid = `3a1c2b4d-0000-0000-0000-501f00000000`
	for _, c := range []struct {
		tag        win.ReparseTag
		substitute string
		want       string
	}{
		{win.TagMountPoint, `\??\Volume{` + guid + `}\`, `\\?\Volume{` + guid + `}\`},
		{win.TagMountPoint, `\??\volume{3A1C2B4D-0000-0000-0000-501F00000000}\`, `\\?\Volume{3A1C2B4D-0000-0000-0000-501F00000000}\`},

		// Junctions, into a volume or elsewhere.
		{win.TagMountPoint, `\??\Volume{` + guid + `}\dir`, ""},
		{win.TagMountPoint, `\??\Volume{` + guid + `}\dir\`, ""},
		{win.TagMountPoint, `\??\Volume{` + guid + `}\}\`, ""},
		{win.TagMountPoint, `\??\C:\`, ""},
		{win.TagMountPoint, `\??\C:\Volume{` + guid + `}\`, ""},

		// The volume's device instead of its root directory.
		{win.TagMountPoint, `\??\Volume{` + guid + `}`, ""},

		// Symbolic links to a volume are links.
		{win.TagSymlink, `\??\Volume{` + guid + `}\`, ""},
		{0, `\??\Volume{` + guid + `}\`, ""},

		// Malformed.
		{win.TagMountPoint, ``, ""},
		{win.TagMountPoint, `\??\Volume{`, ""},
		{win.TagMountPoint, `\??\Volume{}\`, ""},
		{win.TagMountPoint, `\??\Volume{x}\`, ""},
		{win.TagMountPoint, `\??\Volume{3a1c2b4d00000000000000501f00000000}\`, ""},
		{win.TagMountPoint, `\??\Volume{3a1c2b4d-0000-0000-0000-501f0000000}\`, ""},
		{win.TagMountPoint, `\??\Volume{3a1c2b4d-0000-0000-0000-501f00000000-}\`, ""},
		{win.TagMountPoint, `\??\Volume{3a1c2b4d-0000-0000-0000-501f000000000}\`, ""},
		{win.TagMountPoint, `\??\Volume{ga1c2b4d-0000-0000-0000-501f00000000}\`, ""},
		{win.TagMountPoint, `\??\Volume{3a1c2b4d-0000-0000-0000-501f000000\0}\`, ""},
		{win.TagMountPoint, `\\?\Volume{` + guid + `}\`, ""},
		{win.TagMountPoint, `\??\Völume{` + guid + `}\`, ""},
	} {
		got, ok := win.ReparsePoint{Tag: c.tag, Substitute: c.substitute}.MountedVolume()
		if got != c.want || ok != (c.want != "") {
			t.Errorf("tag %#x, %q: volume %q, %v, want %q", uint32(c.tag), c.substitute, got, ok, c.want)
		}
	}
}

func TestReparsePoint_Target(t *testing.T) {
	for substitute, want := range map[string]string{
		`\??\C:\dir`:              `C:\dir`,
		`\??\C:\`:                 `C:\`,
		`\??\c:`:                  `c:`,
		`\??\UNC\server\share`:    `\\server\share`,
		`\??\unc\server\share\x\`: `\\server\share\x\`,
		`\??\UNC`:                 `\\?\UNC`,
		`\??\Volume{guid}\`:       `\\?\Volume{guid}\`,
		`\??\Volume{guid}\dir`:    `\\?\Volume{guid}\dir`,
		// Containers get their layers and devices so; it must not look relative.
		`\??\GLOBALROOT\Device\HarddiskVolume3\x`: `\\?\GLOBALROOT\Device\HarddiskVolume3\x`,
		`\??\`:                        `\\?\`,
		`dir`:                         `dir`,
		`..\dir`:                      `..\dir`,
		`\dir`:                        `\dir`,
		`\Device\HarddiskVolume3\`:    `\Device\HarddiskVolume3\`,
		`\\?\C:\written by hand\oops`: `\\?\C:\written by hand\oops`,
		``:                            ``,
	} {
		if got := (win.ReparsePoint{Tag: win.TagSymlink, Substitute: substitute}).Target(); got != want {
			t.Errorf("target of %q is %q, want %q", substitute, got, want)
		}
	}
}

func TestReparseTag_NameSurrogate(t *testing.T) {
	for name, c := range map[string]struct {
		tag  win.ReparseTag
		want bool
	}{
		"none":           {0, false},
		"mount point":    {0xA0000003, true},
		"symbolic link":  {0xA000000C, true},
		"container link": {0xA0000027, true},
		"deduplicated":   {0x80000013, false},
		"NFS":            {0x80000014, false},
		"compressed":     {0x80000017, false},
		"container file": {0x80000018, false},
		"socket":         {0x80000023, false},
		"cloud file":     {0x9000001A, false},
	} {
		if got := c.tag.NameSurrogate(); got != c.want {
			t.Errorf("%s (%#x): NameSurrogate is %v, want %v", name, uint32(c.tag), got, c.want)
		}
	}
}
