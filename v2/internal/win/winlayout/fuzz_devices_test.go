package winlayout_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// In all of these no buffer makes the decoder panic or run for ever, and what it returns
// can be worked with.

func FuzzDecodeDeviceDescriptor(f *testing.F) {
	f.Add(descriptor(f, 36, " serial \x00"))
	f.Add(named(f, 36, 45, 60, "NVMe    \x00Model v1.0    \x00serial"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, _ := winlayout.DecodeDeviceDescriptor(b)
		for _, text := range []string{got.Vendor, got.Product, got.Serial} {
			if !utf8.ValidString(text) || strings.Trim(text, " \x00") != text || len(text) > 2*len(b) {
				t.Fatalf("%q", text)
			}
		}
	})
}

func FuzzDecodeDeviceIdentifiers(f *testing.F) {
	f.Add(identifiers(f, 2, identifier(f, 1, 0, 4, 20, "abcd"), identifier(f, 2, 1, 0, 0, "")))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := winlayout.DecodeDeviceIdentifiers(b)
		if err == nil && len(got) > (len(b)-12)/16 {
			t.Fatalf("%d identifiers in %d bytes", len(got), len(b))
		}
	})
}

func FuzzDecodeDeviceLocation(f *testing.F) {
	f.Add(pack(f, uint32(36), uint32(42), make([]byte, 24), uint32(36), "a\x00b\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, _ := winlayout.DecodeDeviceLocation(b); len(got) > 2*len(b) {
			t.Fatalf("%d bytes of text in %d bytes", len(got), len(b))
		}
	})
}

func FuzzDecodeDriveLayout(f *testing.F) {
	f.Add(encodeLayout(f, gptLayout))
	f.Add(encodeLayout(f, mbrLayout))
	far := encodeLayout(f, mbrLayout)
	far[48+8+6] = 0x10 // PartitionEntry[0].StartingOffset: 4 PiB
	f.Add(far)
	f.Fuzz(func(t *testing.T, b []byte) {
		layout, err := winlayout.DecodeDriveLayout(b)
		if err != nil || layout.Style == win.StyleRaw {
			return
		}
		for _, partition := range layout.Partitions {
			if partition.Offset < 0 || partition.End() < partition.Offset {
				t.Fatalf("partition from %d to %d", partition.Offset, partition.End())
			}
		}
		written, err := winlayout.EncodeDriveLayout(layout)
		if err != nil && beyondMBR(layout) {
			return // read on a disk of 4 KiB sectors; only layouts of 512 byte sectors are written
		}
		require.NoError(t, err, "written:")
		again, err := winlayout.DecodeDriveLayout(written)
		if diff := cmp.Diff(layout, again); err != nil || diff != "" {
			t.Fatalf("written and read again: %v (-first +second):\n%s", err, diff)
		}
	})
}

// beyondMBR reports whether a partition starts where 32 bits of 512 byte sectors do not reach.
func beyondMBR(layout win.DriveLayout) bool {
	return layout.Style == win.StyleMBR && slices.ContainsFunc(layout.Partitions, func(p win.Partition) bool {
		return p.Offset/512 > math.MaxUint32
	})
}

func FuzzDecodeVolumeExtents(f *testing.F) {
	f.Add(extents(f, 1, win.Extent{Disk: 1, Offset: 2, Length: 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := winlayout.DecodeVolumeExtents(b)
		if err == nil && winlayout.ExtentsSize(b) > len(b) {
			t.Fatalf("%d extents in %d bytes", len(got), len(b))
		}
	})
}

// FuzzDecodeFixed is for the structures that have no variable part.
func FuzzDecodeFixed(f *testing.F) {
	f.Add(geometry(f, 1<<30, 512))
	f.Add(ntfs(f, 1000, 512, 4096))
	f.Add(pack(f, uint32(7), uint32(3), uint32(2)))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = winlayout.DecodeDeviceNumber(b)
		_, _ = winlayout.DecodeSCSIAddress(b)
		_, _ = winlayout.DecodeDiskAttributes(b)
		if got, err := winlayout.DecodeDiskGeometry(b); err == nil && (got.Size < 0 || got.BytesPerSector == 0) {
			t.Fatalf("%+v", got)
		}
		if got, err := winlayout.DecodeNTFSVolumeData(b); err == nil && got.BytesPerCluster/got.BytesPerSector < 1 {
			t.Fatalf("%+v", got)
		}
	})
}
