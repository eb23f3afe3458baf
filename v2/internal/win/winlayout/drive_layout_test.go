package winlayout_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// gptLayout is what Windows makes of a disk of 1 GiB.
var gptLayout = win.DriveLayout{
	Style:         win.StyleGPT,
	DiskID:        win.MustGUID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"),
	UsableOffset:  17408,
	UsableLength:  1073707520,
	MaxPartitions: 128,
	Partitions: []win.Partition{
		{
			Offset: 17408, Length: 16759808, Number: 1,
			Type: win.PartitionMSR, ID: win.MustGUID("11111111-2222-3333-4444-555555555555"),
			Name: "Microsoft reserved partition",
		},
		{
			Offset: 16777216, Length: 1055916032, Number: 2,
			Type: win.PartitionBasicData, ID: win.MustGUID("66666666-7777-8888-9999-aaaaaaaaaaaa"),
			Attributes: win.NoDriveLetter,
			Name:       "Basic data partition",
		},
	},
}

var mbrLayout = win.DriveLayout{
	Style:     win.StyleMBR,
	Signature: 0x3a1c2b4d,
	Partitions: []win.Partition{
		{Offset: 1 << 20, Length: 500 << 20, Number: 1, MBRType: 7, MBRBoot: true},
		{},
		{},
		{},
	},
}

func encodeLayout(t testing.TB, layout win.DriveLayout) []byte {
	t.Helper()
	b, err := winlayout.EncodeDriveLayout(layout)
	require.NoError(t, err)
	return b
}

// TestEncodeDriveLayout_Bytes has the whole buffer written down, field by field.
func TestEncodeDriveLayout_Bytes(t *testing.T) {
	name := func(text string) string {
		wide := strings.Join(strings.Split(text, ""), "\x00") + "\x00"
		return hex.EncodeToString([]byte(wide)) + strings.Repeat("00", 72-len(wide))
	}
	want := strings.Join([]string{
		"01000000", "02000000", "3c2d1e0f5a4b78698796a5b4c3d2e1f0", "0044000000000000", "007aff3f00000000", "80000000", "00000000",

		"01000000", "00000000", "0044000000000000", "00bcff0000000000", "01000000", "01", "000000",
		"16e3c9e35c0bb84d817df92df00215ae", "11111111222233334444555555555555", "0000000000000000", name("Microsoft reserved partition"),

		"01000000", "00000000", "0000000100000000", "0000f03e00000000", "02000000", "01", "000000",
		"a2a0d0ebe5b9334487c068b6b72699c7", "66666666777788889999aaaaaaaaaaaa", "0000000000000080", name("Basic data partition"),
	}, "")
	if got := hex.EncodeToString(encodeLayout(t, gptLayout)); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}

func TestEncodeDriveLayout_BytesOfMBR(t *testing.T) {
	want := strings.Join([]string{
		"00000000", "04000000", "4d2b1c3a", "00000000", strings.Repeat("00", 32),
		"00000000", "00000000", "0000100000000000", "0000401f00000000", "01000000", "01", "000000",
		"07", "01", "01", "00", "00080000", strings.Repeat("00", 104),
		strings.Repeat(strings.Repeat("00", 28)+"01"+strings.Repeat("00", 115), 3),
	}, "")
	if got := hex.EncodeToString(encodeLayout(t, mbrLayout)); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}

func TestDriveLayout_RoundTrip(t *testing.T) {
	many := win.DriveLayout{Style: win.StyleGPT, UsableLength: math.MaxInt64, MaxPartitions: 128}
	for i := range 128 {
		many.Partitions = append(many.Partitions, win.Partition{
			Offset: int64(i), Length: 1, Number: uint32(i + 1), Type: win.PartitionLDMData, ID: win.NewGUID(),
			Attributes: math.MaxUint64, Name: strings.Repeat("ü", 34) + "😀",
		})
	}
	for name, want := range map[string]win.DriveLayout{
		"GPT":       gptLayout,
		"empty GPT": {Style: win.StyleGPT, UsableOffset: 24576, UsableLength: 1073696768},
		"128":       many,
		"MBR":       mbrLayout,
		"empty MBR": {Style: win.StyleMBR},
		"half a pair": {Style: win.StyleGPT, Partitions: []win.Partition{
			{Name: "\xed\xa0\xbd"},
		}},
	} {
		b := encodeLayout(t, want)
		if len(b) != 48+144*len(want.Partitions) {
			t.Errorf("%s: %d bytes for %d partitions", name, len(b), len(want.Partitions))
		}
		got, err := winlayout.DecodeDriveLayout(b)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		padded, err := winlayout.DecodeDriveLayout(append(b, make([]byte, 1000)...))
		if err != nil || !cmp.Equal(want, padded) {
			t.Errorf("%s in a larger buffer: %+v, %v", name, padded, err)
		}
		truncate(t, b, len(b), winlayout.DecodeDriveLayout)
	}
}

func TestDecodeDriveLayout_Raw(t *testing.T) {
	b := pack(t, uint32(2), uint32(0), bytes.Repeat([]byte{0xFF}, 40))
	got, err := winlayout.DecodeDriveLayout(b)
	if want := (win.DriveLayout{Style: win.StyleRaw}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// TestDecodeDriveLayout_RawEntries: a disk without a table may show empty entries of any
// style, but no partition of another style.
func TestDecodeDriveLayout_RawEntries(t *testing.T) {
	entry := func(style uint32, length int64) []byte {
		return pack(t, style, uint32(0), int64(0), length, uint32(0), make([]byte, 116))
	}
	for _, style := range []win.PartitionStyle{win.StyleMBR, win.StyleGPT, win.StyleRaw} {
		b := pack(t, uint32(2), uint32(4), make([]byte, 40), bytes.Repeat(entry(uint32(style), 0), 4))
		got, err := winlayout.DecodeDriveLayout(b)
		want := win.DriveLayout{Style: win.StyleRaw, Partitions: make([]win.Partition, 4)}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("entries of style %v: %v (-want +got):\n%s", style, err, diff)
		}
	}
	b := pack(t, uint32(2), uint32(1), make([]byte, 40), entry(uint32(win.StyleMBR), 512))
	if got, err := winlayout.DecodeDriveLayout(b); !errors.Is(err, winlayout.ErrMalformed) {
		t.Errorf("a partition of style MBR: %+v, %v, want %q", got, err, winlayout.ErrMalformed)
	}
}

// TestDecodeDriveLayout_Lies sets one field at a time to something that cannot be.
func TestDecodeDriveLayout_Lies(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout win.DriveLayout
		offset int
		value  uint64
		want   error
	}{
		{"style", gptLayout, 0, 3 | 2<<32, winlayout.ErrMalformed},
		{"one partition more", gptLayout, 0, 1 | 3<<32, winlayout.ErrTruncated},
		{"very many partitions", gptLayout, 0, 1 | 0xFFFFFFFF<<32, winlayout.ErrTruncated},
		{"usable offset negative", gptLayout, 24, 1 << 63, winlayout.ErrMalformed},
		{"usable length negative", gptLayout, 32, 1 << 63, winlayout.ErrMalformed},
		{"usable length beyond all numbers", gptLayout, 32, math.MaxInt64, winlayout.ErrMalformed},
		{"partition of another style", gptLayout, 48, 0, winlayout.ErrMalformed},
		{"partition of another style", mbrLayout, 48 + 144, 1, winlayout.ErrMalformed},
		{"partition offset negative", gptLayout, 48 + 8, 1 << 63, winlayout.ErrMalformed},
		{"partition length negative", gptLayout, 48 + 144 + 16, 1 << 63, winlayout.ErrMalformed},
		{"partition length beyond all numbers", mbrLayout, 48 + 16, math.MaxInt64, winlayout.ErrMalformed},
	} {
		b := encodeLayout(t, c.layout)
		binary.LittleEndian.PutUint64(b[c.offset:], c.value)
		if got, err := winlayout.DecodeDriveLayout(b); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestEncodeDriveLayout_Refuses(t *testing.T) {
	for name, layout := range map[string]win.DriveLayout{
		"RAW":             {Style: win.StyleRaw},
		"another style":   {Style: 3},
		"long name":       {Style: win.StyleGPT, Partitions: []win.Partition{{Name: strings.Repeat("x", 37)}}},
		"NUL in a name":   {Style: win.StyleGPT, Partitions: []win.Partition{{Name: "a\x00b"}}},
		"negative offset": {Style: win.StyleGPT, Partitions: []win.Partition{{Offset: -1}}},
		"negative length": {Style: win.StyleMBR, Partitions: []win.Partition{{Length: -1}}},
		"MBR beyond 2TiB": {Style: win.StyleMBR, Partitions: []win.Partition{{Offset: 512 << 32}}},
	} {
		if b, err := winlayout.EncodeDriveLayout(layout); err == nil {
			t.Errorf("%s: %d bytes, want an error", name, len(b))
		}
	}
}
