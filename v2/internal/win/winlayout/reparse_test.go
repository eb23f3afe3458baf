package winlayout_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

func TestSymlinkTo(t *testing.T) {
	for target, want := range map[string]win.ReparsePoint{
		`C:\var\lib\kubelet\pods`: {Substitute: `\??\C:\var\lib\kubelet\pods`},
		`C:\`:                     {Substitute: `\??\C:\`},
		`\\fileserver\share\`:     {Substitute: `\??\UNC\fileserver\share\`},
		`\\?\UNC\server\share`:    {Substitute: `\??\UNC\server\share`},
		`\\?\C:\dir`:              {Substitute: `\??\C:\dir`},
		mountedVolume:             {Substitute: `\??\Volume{3a1c2b4d-0000-0000-0000-501f00000000}\`},
		`..\plugins`:              {Substitute: `..\plugins`, Relative: true},
		`dir`:                     {Substitute: `dir`, Relative: true},
		`\dir`:                    {Substitute: `\dir`, Relative: true},
	} {
		want.Tag, want.Print = win.TagSymlink, target
		if diff := cmp.Diff(want, winlayout.SymlinkTo(target)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

// TestSymlinkTo_AsWindowsDoes: what we store reads as what Windows stores, although Windows
// arranges the names otherwise.
func TestSymlinkTo_AsWindowsDoes(t *testing.T) {
	for _, c := range reparseBuffers {
		if c.want.Tag == win.TagSymlink && winlayout.SymlinkTo(c.target) != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, winlayout.SymlinkTo(c.target), c.want)
		}
	}
}

// TestSymlinkTo_Longest: both names have to fit.
func TestSymlinkTo_Longest(t *testing.T) {
	const names = winlayout.MaxReparseData - 20 - 2*len("xx") // two NULs
	longest := `C:\` + strings.Repeat("x", (names/2-len(`\??\`))/2-len(`C:\`))
	if b, err := winlayout.EncodeReparsePoint(winlayout.SymlinkTo(longest)); err != nil || len(b) > winlayout.MaxReparseData {
		t.Errorf("%d characters: %d bytes, %v", len(longest), len(b), err)
	}
	if b, err := winlayout.EncodeReparsePoint(winlayout.SymlinkTo(longest + "x")); err == nil {
		t.Errorf("%d characters: %d bytes, want an error", len(longest)+1, len(b))
	}
}

// TestMountedFolder_AsWindowsDoes: every byte is that of SetVolumeMountPointW.
func TestMountedFolder_AsWindowsDoes(t *testing.T) {
	got, err := winlayout.EncodeReparsePoint(winlayout.MountedFolder(mountedVolume))
	if diff := cmp.Diff(buffer(t, "mounted-folder"), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if id, ok := winlayout.MountedFolder(mountedVolume).MountedVolume(); !ok || id != mountedVolume {
		t.Errorf("it shows %q, %v, want %q", id, ok, mountedVolume)
	}
}

func TestEncodeReparseTag(t *testing.T) {
	if got, want := winlayout.EncodeReparseTag(win.TagMountPoint), []byte{3, 0, 0, 0xA0, 0, 0, 0, 0}; !cmp.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
}

// volumeMountPointNames reads the two names as the mount manager does.
func volumeMountPointNames(t *testing.T, b []byte) (folder, volume string) {
	t.Helper()
	name := func(at int) string {
		offset, length := int(binary.LittleEndian.Uint16(b[at:])), int(binary.LittleEndian.Uint16(b[at+2:]))
		if offset < 8 || offset%2 != 0 || length%2 != 0 || offset+length > len(b) {
			t.Fatalf("a name at %d of %d bytes in %d", offset, length, len(b))
		}
		var units []uint16
		for i := offset; i < offset+length; i += 2 {
			units = append(units, binary.LittleEndian.Uint16(b[i:]))
		}
		return string(utf16.Decode(units))
	}
	return name(0), name(4)
}

func TestEncodeVolumeMountPoint(t *testing.T) {
	const folder, volume = `\??\Volume{11111111-2222-3333-4444-555555555555}\var\Ärger`, `\??\Volume{3a1c2b4d-0000-0000-0000-501f00000000}`
	b, err := winlayout.EncodeVolumeMountPoint(folder, volume)
	require.NoError(t, err)
	if source, target := volumeMountPointNames(t, b); source != folder || target != volume {
		t.Errorf("%q, %q", source, target)
	}
	if want := 8 + 2*(utf8.RuneCountInString(folder)+len(volume)); len(b) != want {
		t.Errorf("%d bytes, want %d", len(b), want)
	}
}

func TestEncodeVolumeMountPoint_Longest(t *testing.T) {
	const longest = (0xFFFF - 8) / 2 // the second name still has to begin somewhere
	folder := strings.Repeat("x", longest)
	b, err := winlayout.EncodeVolumeMountPoint(folder, "volume")
	require.NoError(t, err)
	if source, target := volumeMountPointNames(t, b); source != folder || target != "volume" {
		t.Errorf("%d characters, %q", len(source), target)
	}
	for _, names := range [][2]string{{folder + "x", "volume"}, {"folder", strings.Repeat("x", 1<<15)}} {
		if b, err := winlayout.EncodeVolumeMountPoint(names[0], names[1]); err == nil {
			t.Errorf("names of %d and %d characters: %d bytes, want an error", len(names[0]), len(names[1]), len(b))
		}
	}
}

// isName reports whether Go decodes a name as it was encoded.
func isName(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// FuzzSymlinkTo: a link that can be stored reads as it was meant.
func FuzzSymlinkTo(f *testing.F) {
	for _, c := range reparseBuffers {
		f.Add(c.target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		link := winlayout.SymlinkTo(target)
		b, err := winlayout.EncodeReparsePoint(link)
		if err != nil || !isName(target) {
			return
		}
		got, err := winlayout.DecodeReparsePoint(b)
		if err != nil || got != link {
			t.Fatalf("%+v came back as %+v, %v", link, got, err)
		}
		if _, mounted := got.MountedVolume(); mounted {
			t.Fatalf("%q makes a mounted folder", target)
		}
	})
}

// FuzzEncodeVolumeMountPoint: names that fit come back.
func FuzzEncodeVolumeMountPoint(f *testing.F) {
	f.Add(`\??\C:\dir`, `\??\Volume{3a1c2b4d-0000-0000-0000-501f00000000}`)
	f.Fuzz(func(t *testing.T, folder, volume string) {
		b, err := winlayout.EncodeVolumeMountPoint(folder, volume)
		if err != nil || !isName(folder) || !isName(volume) {
			return
		}
		if source, target := volumeMountPointNames(t, b); source != folder || target != volume {
			t.Fatalf("%q, %q came back as %q, %q", folder, volume, source, target)
		}
	})
}
