package winlayout_test

import (
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// FuzzDecodeReparsePoint: no buffer makes the decoder panic, and a link that decodes
// can be written and read again.
func FuzzDecodeReparsePoint(f *testing.F) {
	for _, c := range reparseBuffers {
		f.Add(buffer(f, c.name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		point, err := winlayout.DecodeReparsePoint(b)
		if err != nil {
			return
		}
		_ = point.Target()
		if id, ok := point.MountedVolume(); ok && (len(id) != len(mountedVolume) || point.Tag != win.TagMountPoint) {
			t.Fatalf("%+v shows the volume %q", point, id)
		}
		if point.Tag != win.TagSymlink && point.Tag != win.TagMountPoint {
			return
		}
		encoded, err := winlayout.EncodeReparsePoint(point)
		if err != nil {
			return // both names overlap in b and together are too long
		}
		if again, err := winlayout.DecodeReparsePoint(encoded); err != nil || again != point {
			t.Fatalf("%+v came back as %+v, %v", point, again, err)
		}
	})
}

// FuzzDecodeDirectory: no buffer makes the decoder panic or run for ever, and every name
// is one component.
func FuzzDecodeDirectory(f *testing.F) {
	f.Add(buffer(f, "directory"))
	f.Add(dirEntry(0, "x"))
	f.Add(append(dirEntry(70, "x"), dirEntry(0, `link\file`)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, _ := winlayout.DecodeDirectory(b)
		if len(entries) > len(b)/68 {
			t.Fatalf("%d entries in %d bytes", len(entries), len(b))
		}
		for _, entry := range entries {
			if name := entry.Name; name == "" || name == "." || name == ".." || strings.ContainsAny(name, "\\/\x00") {
				t.Fatalf("an entry is called %q", name)
			}
		}
	})
}
