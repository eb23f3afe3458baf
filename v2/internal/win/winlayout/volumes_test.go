package winlayout_test

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// extents is a VOLUME_DISK_EXTENTS that claims to have count of them.
func extents(t testing.TB, count uint32, extents ...win.Extent) []byte {
	t.Helper()
	b := pack(t, count, uint32(0xdddddddd))
	for _, extent := range extents {
		b = append(b, pack(t, extent.Disk, uint32(0xdddddddd), extent.Offset, extent.Length)...)
	}
	return b
}

func TestDecodeVolumeExtents(t *testing.T) {
	first, second := win.Extent{Disk: 1, Offset: 16 << 20, Length: 1 << 30}, win.Extent{Disk: 0xFFFF, Length: 5}
	for name, want := range map[string][]win.Extent{
		"none": nil,
		"one":  {first},
		"two":  {first, second},
	} {
		b := extents(t, uint32(len(want)), want...)
		got, err := winlayout.DecodeVolumeExtents(b)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if size := winlayout.ExtentsSize(b[:8]); size != len(b) {
			t.Errorf("%s: ExtentsSize = %d, want %d", name, size, len(b))
		}
		truncate(t, b, len(b), winlayout.DecodeVolumeExtents)
	}
	if size := len(extents(t, 1, first)); size != winlayout.VolumeExtentsSize {
		t.Errorf("VolumeExtentsSize is %d, want %d", winlayout.VolumeExtentsSize, size)
	}
	for _, count := range []uint32{2, 0xFFFFFFFF} {
		if got, err := winlayout.DecodeVolumeExtents(extents(t, count, first)); !errors.Is(err, winlayout.ErrTruncated) {
			t.Errorf("%d extents of which one is there: %+v, %v", count, got, err)
		}
	}
	if size := winlayout.ExtentsSize(nil); size != 0 {
		t.Errorf("ExtentsSize of nothing is %d", size)
	}
}

// ntfs is an NTFS_VOLUME_DATA_BUFFER.
func ntfs(t testing.TB, sectors int64, bytesPerSector, bytesPerCluster uint32) []byte {
	t.Helper()
	return pack(t, int64(0x1122334455667788), sectors, int64(257791), int64(250000), int64(16),
		bytesPerSector, bytesPerCluster, make([]byte, 48))
}

func TestDecodeNTFSVolumeData(t *testing.T) {
	b := ntfs(t, 2062335, 512, 4096)
	want := win.NTFSVolumeData{Sectors: 2062335, TotalClusters: 257791, FreeClusters: 250000, BytesPerSector: 512, BytesPerCluster: 4096}
	if got, err := winlayout.DecodeNTFSVolumeData(b); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if len(b) != winlayout.NTFSVolumeDataSize {
		t.Errorf("NTFSVolumeDataSize is %d, want %d", winlayout.NTFSVolumeDataSize, len(b))
	}
	truncate(t, b, len(b), winlayout.DecodeNTFSVolumeData)
	for name, b := range map[string][]byte{
		"no sectors":         ntfs(t, 1, 0, 4096),
		"no clusters":        ntfs(t, 1, 512, 0),
		"uneven clusters":    ntfs(t, 1, 512, 4097),
		"clusters too small": ntfs(t, 1, 4096, 512),
		"negative size":      ntfs(t, -1, 512, 4096),
	} {
		if got, err := winlayout.DecodeNTFSVolumeData(b); !errors.Is(err, winlayout.ErrMalformed) {
			t.Errorf("%s: %+v, %v, want ErrMalformed", name, got, err)
		}
	}
}

func TestDecodeReFSVolumeData(t *testing.T) {
	refs := func(sectors int64, bytesPerCluster uint32) []byte {
		return pack(t, uint32(152), uint32(3), uint32(14), uint32(4096), int64(7), sectors, int64(257791), int64(250000), int64(16),
			uint32(512), bytesPerCluster, make([]byte, 88))
	}
	b := refs(2062336, 65536)
	want := win.NTFSVolumeData{Sectors: 2062336, TotalClusters: 257791, FreeClusters: 250000, BytesPerSector: 512, BytesPerCluster: 65536, ReFS: true}
	if got, err := winlayout.DecodeReFSVolumeData(b); err != nil || got != want || len(b) != winlayout.ReFSVolumeDataSize {
		t.Errorf("%+v, %v of %d bytes, want %+v of %d", got, err, len(b), want, winlayout.ReFSVolumeDataSize)
	}
	truncate(t, b, len(b), winlayout.DecodeReFSVolumeData)
	if got, err := winlayout.DecodeReFSVolumeData(refs(-1, 0)); !errors.Is(err, winlayout.ErrMalformed) {
		t.Errorf("%+v, %v, want ErrMalformed", got, err)
	}
}

func TestDecodeVolumeDirty(t *testing.T) {
	for flags, want := range map[uint32]bool{0: false, 1: true, 2: false, 3: true} {
		if got, err := winlayout.DecodeVolumeDirty(pack(t, flags)); err != nil || got != want {
			t.Errorf("%d: %v, %v", flags, got, err)
		}
	}
	truncate(t, pack(t, uint32(1)), winlayout.VolumeDirtySize, winlayout.DecodeVolumeDirty)
}

func TestEncodeExtendVolume(t *testing.T) {
	if got := hex.EncodeToString(winlayout.EncodeExtendVolume(0x0102030405)); got != "0504030201000000" {
		t.Errorf("%s", got)
	}
}
