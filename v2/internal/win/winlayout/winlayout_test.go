package winlayout_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// buffer reads a buffer written down in testdata as rows of hexadecimal bytes. The
// buffers have the exact form that Windows gives them: mklink and CreateSymbolicLinkW
// store the printed name first and end neither name, junctions and mounted folders
// have the substitute name first and end both with NUL.
func buffer(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	require.NoError(t, err)
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

const mountedVolume = `\\?\Volume{3a1c2b4d-0000-0000-0000-501f00000000}\`

var reparseBuffers = []struct {
	name   string
	want   win.ReparsePoint
	target string
	volume string
}{
	{
		name:   "symlink-absolute",
		want:   win.ReparsePoint{Tag: win.TagSymlink, Substitute: `\??\C:\var\lib\kubelet\pods`, Print: `C:\var\lib\kubelet\pods`},
		target: `C:\var\lib\kubelet\pods`,
	},
	{name: "symlink-relative", want: win.ReparsePoint{Tag: win.TagSymlink, Substitute: `..\plugins`, Print: `..\plugins`, Relative: true}, target: `..\plugins`},
	{
		name:   "symlink-unc",
		want:   win.ReparsePoint{Tag: win.TagSymlink, Substitute: `\??\UNC\fileserver\share\`, Print: `\\fileserver\share\`},
		target: `\\fileserver\share\`,
	},
	{name: "junction", want: win.ReparsePoint{Tag: win.TagMountPoint, Substitute: `\??\C:\Users`, Print: `C:\Users`}, target: `C:\Users`},
	{
		name:   "mounted-folder",
		want:   win.ReparsePoint{Tag: win.TagMountPoint, Substitute: `\??\Volume{3a1c2b4d-0000-0000-0000-501f00000000}\`},
		target: mountedVolume,
		volume: mountedVolume,
	},
	{
		name: "socket", // not a link: only the tag is ours to read
		want: win.ReparsePoint{Tag: 0x80000023},
	},
}

func TestDecodeReparsePoint_Buffers(t *testing.T) {
	for _, c := range reparseBuffers {
		t.Run(c.name, func(t *testing.T) {
			b := buffer(t, c.name)
			got, err := winlayout.DecodeReparsePoint(b)
			require.NoError(t, err)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
			if got.Target() != c.target {
				t.Errorf("it leads to %q, want %q", got.Target(), c.target)
			}
			if volume, _ := got.MountedVolume(); volume != c.volume {
				t.Errorf("it shows volume %q, want %q", volume, c.volume)
			}
			// What comes after the reparse data belongs to no one.
			if padded, err := winlayout.DecodeReparsePoint(append(b, "garbage"...)); err != nil || padded != got {
				t.Errorf("in a larger buffer: %+v, %v", padded, err)
			}
		})
	}
}

func TestDecodeReparsePoint_TruncatedAnywhere(t *testing.T) {
	for _, c := range reparseBuffers {
		b := buffer(t, c.name)
		for n := range b {
			if _, err := winlayout.DecodeReparsePoint(b[:n:n]); !errors.Is(err, winlayout.ErrTruncated) {
				t.Errorf("%s cut to %d of %d bytes: %v, want ErrTruncated", c.name, n, len(b), err)
			}
			// The same with a header that admits the shorter length.
			if n < 8 {
				continue
			}
			honest := append([]byte(nil), b[:n]...)
			binary.LittleEndian.PutUint16(honest[4:], uint16(n-8))
			got, err := winlayout.DecodeReparsePoint(honest)
			if err == nil && (len(got.Substitute) > len(c.want.Substitute) || len(got.Print) > len(c.want.Print)) {
				t.Errorf("%s shortened to %d of %d bytes: %+v", c.name, n, len(b), got)
			}
		}
	}
}

// TestDecodeReparsePoint_Lies sets one field at a time to something the buffer does
// not hold.
func TestDecodeReparsePoint_Lies(t *testing.T) {
	for _, c := range []struct {
		name   string
		offset int
		value  uint16
	}{
		{"data length", 4, 0xFFFF},
		{"data length one too many", 4, 0x71},
		{"data length without names", 4, 4},
		{"substitute offset", 8, 0xFFFF},
		{"substitute length", 10, 0xFFFE},
		{"substitute length odd", 10, 0x35},
		{"print offset", 12, 0xFFFE},
		{"print length", 14, 0xFFFE},
	} {
		b := buffer(t, "symlink-absolute")
		binary.LittleEndian.PutUint16(b[c.offset:], c.value)
		if point, err := winlayout.DecodeReparsePoint(b); !errors.Is(err, winlayout.ErrTruncated) {
			t.Errorf("%s: %+v, %v, want ErrTruncated", c.name, point, err)
		}
	}
}

func TestEncodeReparsePoint_RoundTrip(t *testing.T) {
	points := []win.ReparsePoint{
		{Tag: win.TagSymlink},
		{Tag: win.TagMountPoint},
		{Tag: win.TagSymlink, Substitute: `\??\C:\Ärger\😀`, Print: `C:\Ärger\😀`},
		{Tag: win.TagSymlink, Substitute: "half a pair: \xed\xa0\xbd.", Relative: true},
		{Tag: win.TagMountPoint, Substitute: `\??\` + strings.Repeat("x", 4000), Print: strings.Repeat("y", 4000)},
	}
	for _, c := range reparseBuffers {
		if c.target != "" {
			points = append(points, c.want)
		}
	}
	for _, want := range points {
		b, err := winlayout.EncodeReparsePoint(want)
		if err != nil {
			t.Errorf("%+v: %v", want, err)
			continue
		}
		got, err := winlayout.DecodeReparsePoint(b)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("round trip: %v (-want +got):\n%s", err, diff)
		}
	}
}

// TestEncodeReparsePoint_AsWindowsDoes: the layout of mount points is fixed, so ours
// must be the same bytes.
func TestEncodeReparsePoint_AsWindowsDoes(t *testing.T) {
	for _, c := range reparseBuffers {
		if c.want.Tag != win.TagMountPoint {
			continue
		}
		got, err := winlayout.EncodeReparsePoint(c.want)
		if diff := cmp.Diff(buffer(t, c.name), got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
		}
	}
}

func TestEncodeReparsePoint_Refuses(t *testing.T) {
	for name, point := range map[string]win.ReparsePoint{
		"no tag":      {Substitute: `\??\C:\x`},
		"another tag": {Tag: 0x80000023},
		"too long":    {Tag: win.TagSymlink, Substitute: strings.Repeat("x", 8192)},
	} {
		if b, err := winlayout.EncodeReparsePoint(point); err == nil {
			t.Errorf("%s: %d bytes, want an error", name, len(b))
		}
	}
}

// TestEncodeReparsePoint_MountPointIsNeverRelative: the flag would land in the name.
func TestEncodeReparsePoint_MountPointIsNeverRelative(t *testing.T) {
	b, err := winlayout.EncodeReparsePoint(win.ReparsePoint{Tag: win.TagMountPoint, Relative: true})
	require.NoError(t, err)
	if want := make([]byte, 4); !cmp.Equal(b[16:], want) {
		t.Errorf("path buffer % x, want % x", b[16:], want)
	}
}

func TestFileInfo(t *testing.T) {
	const readOnly, directory, archive, reparse = 0x1, 0x10, 0x20, 0x400
	for _, c := range []struct {
		attributes, tag uint32
		want            win.FileInfo
	}{
		{archive, 0, win.FileInfo{}},
		{archive | readOnly, 0, win.FileInfo{ReadOnly: true}},
		{directory, 0, win.FileInfo{Directory: true}},
		{directory | reparse, 0xA000000C, win.FileInfo{Directory: true, Tag: win.TagSymlink}},
		{archive, 0xA000000C, win.FileInfo{}}, // without the attribute the field means something else
	} {
		if got := winlayout.FileInfo(c.attributes, c.tag); got != c.want {
			t.Errorf("FileInfo(%#x, %#x) = %+v, want %+v", c.attributes, c.tag, got, c.want)
		}
	}
}

var wantDirectory = []win.DirEntry{
	{Name: "Ärger.txt", FileInfo: win.FileInfo{ReadOnly: true}},
	{Name: "pods", FileInfo: win.FileInfo{Directory: true}},
	{Name: "mount", FileInfo: win.FileInfo{Directory: true, Tag: win.TagMountPoint}},
	{Name: "link", FileInfo: win.FileInfo{Directory: true, Tag: win.TagSymlink}},
	{Name: "dedup.bin", FileInfo: win.FileInfo{Tag: 0x80000013}},
	{Name: "with attributes"}, // its EaSize is a size, not a tag
}

func TestDecodeDirectory_Capture(t *testing.T) {
	b := buffer(t, "directory")
	got, err := winlayout.DecodeDirectory(b)
	if diff := cmp.Diff(wantDirectory, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err = winlayout.DecodeDirectory(append(b, make([]byte, 500)...)); err != nil || !cmp.Equal(wantDirectory, got) {
		t.Errorf("in a larger buffer: %+v, %v", got, err)
	}
}

func TestDecodeDirectory_TruncatedAnywhere(t *testing.T) {
	b := buffer(t, "directory")
	for n := range b {
		got, err := winlayout.DecodeDirectory(b[:n:n])
		if !errors.Is(err, winlayout.ErrTruncated) {
			t.Errorf("cut to %d of %d bytes: %v, want ErrTruncated", n, len(b), err)
		}
		if len(got) >= len(wantDirectory) || !cmp.Equal(wantDirectory[:len(got)], append([]win.DirEntry{}, got...)) {
			t.Errorf("cut to %d of %d bytes: %+v", n, len(b), got)
		}
	}
}

// dirEntry is one FILE_FULL_DIR_INFO.
func dirEntry(next uint32, name string) []byte {
	b := make([]byte, 68)
	units := utf16.Encode([]rune(name))
	binary.LittleEndian.PutUint32(b[0:], next)
	binary.LittleEndian.PutUint32(b[60:], uint32(2*len(units)))
	for _, unit := range units {
		b = binary.LittleEndian.AppendUint16(b, unit)
	}
	return b
}

func TestDecodeDirectory_Lies(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"a chain that does not advance", dirEntry(4, "x"), winlayout.ErrTruncated},
		{"a chain that ends outside", dirEntry(1000, "x"), winlayout.ErrTruncated},
		{"a chain that ends at the end", dirEntry(70, "x"), winlayout.ErrTruncated},
		{"a chain that jumps far", dirEntry(0xFFFFFFFF, "x"), winlayout.ErrTruncated},
		{"an odd length", append(dirEntry(0, "xy")[:60], 3, 0, 0, 0, 0, 0, 0, 0, 'x', 0, 'y', 0), winlayout.ErrTruncated},
		{"a huge length", append(dirEntry(0, "xy")[:60], 0xFE, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 'x', 0), winlayout.ErrTruncated},
		{"no name", dirEntry(0, ""), winlayout.ErrBadName},
		{"a way through a link", dirEntry(0, `link\file`), winlayout.ErrBadName},
		{"a way out", dirEntry(0, `..\file`), winlayout.ErrBadName},
		{"a slash", dirEntry(0, "a/b"), winlayout.ErrBadName},
		{"a NUL", dirEntry(0, "a\x00b"), winlayout.ErrBadName},
	} {
		if entries, err := winlayout.DecodeDirectory(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v, want the error %q", c.name, entries, err, c.want)
		}
	}
}

// TestDecodeDirectory_HalfAPair: NTFS takes names that are not valid UTF-16. They must
// survive the way to a Go string and back, or they could never be removed.
func TestDecodeDirectory_HalfAPair(t *testing.T) {
	names := map[string][]uint16{}
	for _, units := range [][]uint16{
		{0xD83D}, {0xDE00}, {0xDE00, 0xD83D}, {0xD83D, 'x'}, {'x', 0xD83D, 0xD83D, 0xDE00}, {0xFFFD}, {0xFFFF},
	} {
		b := dirEntry(0, strings.Repeat("x", len(units)))
		for i, unit := range units {
			binary.LittleEndian.PutUint16(b[68+2*i:], unit)
		}
		entries, err := winlayout.DecodeDirectory(b)
		if err != nil || len(entries) != 1 {
			t.Errorf("% x: %+v, %v", units, entries, err)
			continue
		}
		if other, used := names[entries[0].Name]; used {
			t.Errorf("% x and % x have the same name %q", units, other, entries[0].Name)
		}
		names[entries[0].Name] = units
		// Encoded again it is the same.
		link, err := winlayout.EncodeReparsePoint(win.ReparsePoint{Tag: win.TagSymlink, Substitute: entries[0].Name})
		require.NoError(t, err)
		if got := link[20 : 20+2*len(units)]; !cmp.Equal(got, b[68:]) {
			t.Errorf("% x came back as % x", b[68:], got)
		}
	}
}
