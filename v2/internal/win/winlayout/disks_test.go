package winlayout_test

import (
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// geometry is a DISK_GEOMETRY_EX with some data behind it.
func geometry(t testing.TB, size int64, bytesPerSector uint32) []byte {
	t.Helper()
	return pack(t, int64(130), uint32(12), uint32(255), uint32(63), bytesPerSector, size, make([]byte, 80))
}

func TestDecodeDiskGeometry(t *testing.T) {
	b := geometry(t, 1<<30, 4096)
	want := win.DiskGeometry{Size: 1 << 30, BytesPerSector: 4096}
	if got, err := winlayout.DecodeDiskGeometry(b); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	truncate(t, b, 32, winlayout.DecodeDiskGeometry)
	for name, b := range map[string][]byte{
		"no sectors":    geometry(t, 1<<30, 0),
		"negative size": geometry(t, -1, 512),
	} {
		if got, err := winlayout.DecodeDiskGeometry(b); !errors.Is(err, winlayout.ErrMalformed) {
			t.Errorf("%s: %+v, %v, want ErrMalformed", name, got, err)
		}
	}
}

func TestDecodeDiskAttributes(t *testing.T) {
	for bits, want := range map[uint64]win.DiskAttributes{
		0:              {},
		1:              {Offline: true},
		2:              {ReadOnly: true},
		3:              {Offline: true, ReadOnly: true},
		math.MaxUint64: {Offline: true, ReadOnly: true},
		12:             {}, // hidden, and maintenance
	} {
		b := pack(t, uint32(16), uint32(0), bits)
		if got, err := winlayout.DecodeDiskAttributes(b); err != nil || got != want {
			t.Errorf("%#x: %+v, %v, want %+v", bits, got, err, want)
		}
		truncate(t, b, winlayout.DiskAttributesSize, winlayout.DecodeDiskAttributes)
	}
}

func TestEncodeDiskAttributes(t *testing.T) {
	offline, readOnly := win.DiskAttributes{Offline: true}, win.DiskAttributes{ReadOnly: true}
	both := win.DiskAttributes{Offline: true, ReadOnly: true}
	for _, c := range []struct {
		attributes, mask win.DiskAttributes
		want             string
	}{
		// The bytes that published programs send.
		{win.DiskAttributes{}, both, "28000000010000000000000000000000030000000000000000000000000000000000000000000000"},
		{win.DiskAttributes{}, offline, "28000000010000000000000000000000010000000000000000000000000000000000000000000000"},
		{offline, offline, "28000000010000000100000000000000010000000000000000000000000000000000000000000000"},
		{both, readOnly, "28000000010000000200000000000000020000000000000000000000000000000000000000000000"},
	} {
		if got := hex.EncodeToString(winlayout.EncodeDiskAttributes(c.attributes, c.mask)); got != c.want {
			t.Errorf("%+v in %+v:\n%s, want\n%s", c.attributes, c.mask, got, c.want)
		}
	}
}

func TestEncodeCreateDisk(t *testing.T) {
	id := win.MustGUID("00112233-4455-6677-8899-aabbccddeeff")
	// GUIDs have their first three parts turned around.
	const want = "01000000" + "33221100554477668899aabbccddeeff" + "80000000"
	if got := hex.EncodeToString(winlayout.EncodeCreateDisk(id)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestEncodeGrowPartition: without the padding the driver answers 122.
func TestEncodeGrowPartition(t *testing.T) {
	const want = "02000000" + "00000000" + "0000100000000000"
	if got := hex.EncodeToString(winlayout.EncodeGrowPartition(2, 1<<20)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
