package winlayout_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// pack lays values one after the other, little-endian, as C does.
func pack(t testing.TB, values ...any) []byte {
	t.Helper()
	var b []byte
	for _, value := range values {
		var err error
		if text, ok := value.(string); ok {
			value = []byte(text)
		}
		if b, err = binary.Append(b, binary.LittleEndian, value); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// claim returns a copy of a descriptor whose header claims that it has so many bytes.
func claim(b []byte, size uint32) []byte {
	b = append([]byte(nil), b...)
	binary.LittleEndian.PutUint32(b[4:], size)
	return b
}

// truncate runs a decoder on every beginning of b. None may panic; those up to the size
// of the fixed part must fail.
func truncate[T any](t *testing.T, b []byte, fixed int, decode func([]byte) (T, error)) {
	t.Helper()
	for n := range b {
		_, err := decode(b[:n:n])
		if n < fixed && !errors.Is(err, winlayout.ErrTruncated) {
			t.Errorf("cut to %d of %d bytes: %v, want ErrTruncated", n, len(b), err)
		}
	}
}

func TestDecodeDeviceNumber(t *testing.T) {
	b := pack(t, uint32(7), uint32(3), uint32(2))
	want := win.DeviceNumber{Type: win.DeviceTypeDisk, Number: 3, Partition: 2}
	if got, err := winlayout.DecodeDeviceNumber(b); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if len(b) != winlayout.DeviceNumberSize {
		t.Errorf("DeviceNumberSize is %d, want %d", winlayout.DeviceNumberSize, len(b))
	}
	truncate(t, b, len(b), winlayout.DecodeDeviceNumber)
}

func TestEncodePropertyQuery(t *testing.T) {
	for property, want := range map[winlayout.PropertyID]string{
		winlayout.DeviceProperty:         "000000000000000000000000",
		winlayout.DeviceIDProperty:       "020000000000000000000000",
		winlayout.DeviceLocationProperty: "3a0000000000000000000000",
	} {
		if got := hex.EncodeToString(winlayout.EncodePropertyQuery(property)); got != want {
			t.Errorf("property %d: %s, want %s", property, got, want)
		}
	}
}

// descriptor is the STORAGE_DEVICE_DESCRIPTOR of a SAS disk with these bytes behind the
// fixed part, which ends at offset 36.
func descriptor(t testing.TB, serialOffset uint32, texts string) []byte {
	t.Helper()
	return named(t, 0, 0, serialOffset, texts)
}

// named is such a descriptor with the offsets of vendor and product.
func named(t testing.TB, vendorOffset, productOffset, serialOffset uint32, texts string) []byte {
	t.Helper()
	return pack(t, uint32(40), uint32(36+len(texts)), uint32(0), vendorOffset, productOffset, uint32(0),
		serialOffset, uint32(10), uint32(len(texts)), texts)
}

func TestDecodeDeviceDescriptor(t *testing.T) {
	const texts = "Msft    \x00  6001405a1b2c \x00"
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"serial", descriptor(t, 45, texts), "6001405a1b2c"},
		{"kept as it is", descriptor(t, 36, "vol0a1b_00000001.\x00"), "vol0a1b_00000001."},
		{"inner spaces", descriptor(t, 36, " a  b \x00"), "a  b"},
		{"tabs are not spaces", descriptor(t, 36, "\tx\x00"), "\tx"},
		{"not ended", descriptor(t, 36, "abc"), "abc"},
		{"empty", descriptor(t, 36, "\x00abc"), ""},
		{"not UTF-8", descriptor(t, 36, "\xe9\xff1\x00"), "éÿ1"},
		{"no offset", descriptor(t, 0, texts), ""},
		{"no offset, another way", descriptor(t, 0xFFFFFFFF, texts), ""},
		{"the last byte", descriptor(t, 36+uint32(len(texts))-1, texts), ""},
		{"just behind", descriptor(t, 36+uint32(len(texts)), texts), ""},
		{"far behind", descriptor(t, 0xFFFFFFFE, texts), ""},
		{"behind the size it admits", claim(descriptor(t, 45, texts), 40), ""},
		{"size too large", claim(descriptor(t, 45, texts), 0xFFFFFFFF), "6001405a1b2c"},
	} {
		got, err := winlayout.DecodeDeviceDescriptor(c.b)
		if want := (win.DeviceDescriptor{BusType: win.BusTypeSAS, Serial: c.want}); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, want)
		}
		truncate(t, c.b, 36, winlayout.DecodeDeviceDescriptor)
	}
	for _, size := range []uint32{0, 8, 35} {
		if got, err := winlayout.DecodeDeviceDescriptor(claim(descriptor(t, 0, ""), size)); !errors.Is(err, winlayout.ErrTruncated) {
			t.Errorf("descriptor that admits %d bytes: %+v, %v", size, got, err)
		}
	}
}

func TestDecodeDeviceDescriptor_Model(t *testing.T) {
	const texts = "NVMe    \x00MSFT NVMe Accelerator v1.0              \x00SN: 000001\x00"
	for _, c := range []struct {
		name string
		b    []byte
		want win.DeviceDescriptor
	}{
		{"all", named(t, 36, 45, 86, texts), win.DeviceDescriptor{Vendor: "NVMe", Product: "MSFT NVMe Accelerator v1.0", Serial: "SN: 000001"}},
		{"no vendor", named(t, 0, 45, 0, texts), win.DeviceDescriptor{Product: "MSFT NVMe Accelerator v1.0"}},
		{"no product", named(t, 36, 0xFFFFFFFF, 0, texts), win.DeviceDescriptor{Vendor: "NVMe"}},
		{"outside", named(t, 1000, 36+uint32(len(texts)), 0, texts), win.DeviceDescriptor{}},
		{"behind the size it admits", claim(named(t, 36, 45, 86, texts), 45), win.DeviceDescriptor{Vendor: "NVMe"}},
		{"cut off", claim(named(t, 36, 45, 86, texts), 49), win.DeviceDescriptor{Vendor: "NVMe", Product: "MSFT"}},
		{"the fixed part", named(t, 8, 28, 0, texts), win.DeviceDescriptor{Product: "\n"}}, // the bus type
		{"removable", append(named(t, 0, 0, 0, "")[:10], append([]byte{1}, named(t, 0, 0, 0, "")[11:]...)...), win.DeviceDescriptor{Removable: true}},
		{"not UTF-8", named(t, 36, 38, 0, "\xff\x00\xe9"), win.DeviceDescriptor{Vendor: "ÿ", Product: "é"}},
	} {
		c.want.BusType = win.BusTypeSAS
		if got, err := winlayout.DecodeDeviceDescriptor(c.b); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
}

func TestDescriptorSize(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want int
	}{
		{nil, 0},
		{pack(t, uint32(40), uint16(1)), 0},
		{pack(t, uint32(40), uint32(5000)), 5000},
		{pack(t, uint32(40), uint32(0xFFFFFFFF)), 0xFFFFFFFF},
	} {
		if got := winlayout.DescriptorSize(c.b); got != c.want {
			t.Errorf("% x: %d, want %d", c.b, got, c.want)
		}
	}
}

// identifier is a STORAGE_IDENTIFIER.
func identifier(t testing.TB, codeSet, association uint32, size, next uint16, value string) []byte {
	t.Helper()
	return pack(t, codeSet, uint32(1), size, next, association, value)
}

// identifiers is a STORAGE_DEVICE_ID_DESCRIPTOR.
func identifiers(t testing.TB, count uint32, chain ...[]byte) []byte {
	t.Helper()
	var all []byte
	for _, one := range chain {
		all = append(all, one...)
	}
	return pack(t, uint32(20), uint32(12+len(all)), count, all)
}

func TestDecodeDeviceIdentifiers(t *testing.T) {
	port := identifier(t, 1, 1, 4, 20, "\x00\x00\x00\x01")
	google := identifier(t, 2, 0, 16, 32, "Google  pvc-1234")
	last := identifier(t, 1, 0, 2, 0, "\xab\xcd\x00\x00")
	wantPort := win.DeviceIdentifier{CodeSet: win.CodeSetBinary, Type: win.IdentifierVendorID, Association: 1, Value: []byte{0, 0, 0, 1}}
	wantGoogle := win.DeviceIdentifier{CodeSet: win.CodeSetASCII, Type: win.IdentifierVendorID, Value: []byte("Google  pvc-1234")}
	wantLast := win.DeviceIdentifier{CodeSet: win.CodeSetBinary, Type: win.IdentifierVendorID, Value: []byte{0xab, 0xcd}}
	for _, c := range []struct {
		name string
		b    []byte
		want []win.DeviceIdentifier
	}{
		{"none", identifiers(t, 0), nil},
		{"none, with garbage", identifiers(t, 0, google), nil},
		{"three", identifiers(t, 3, port, google, last), []win.DeviceIdentifier{wantPort, wantGoogle, wantLast}},
		{"fewer than there are", identifiers(t, 2, port, google, last), []win.DeviceIdentifier{wantPort, wantGoogle}},
		{"more than there are", identifiers(t, 0xFFFFFFFF, port, google, last), []win.DeviceIdentifier{wantPort, wantGoogle, wantLast}},
		{"an early end", identifiers(t, 3, port, identifier(t, 2, 0, 16, 0, "Google  pvc-1234"), last), []win.DeviceIdentifier{wantPort, wantGoogle}},
		{"in circles", identifiers(t, 3, port, identifier(t, 2, 0, 16, 15, "Google  pvc-1234"), last), []win.DeviceIdentifier{wantPort, wantGoogle}},
		{"next outside", identifiers(t, 3, port, identifier(t, 2, 0, 16, 0xFFFF, "Google  pvc-1234"), last), []win.DeviceIdentifier{wantPort, wantGoogle}},
		{"next at the end", identifiers(t, 2, last[:18:18], nil), []win.DeviceIdentifier{wantLast}},
		{"value outside", identifiers(t, 2, port, identifier(t, 2, 0, 17, 0, "Google  pvc-1234")), []win.DeviceIdentifier{wantPort}},
		{"value behind the size it admits", claim(identifiers(t, 2, port, google), 12+20+31), []win.DeviceIdentifier{wantPort}},
	} {
		got, err := winlayout.DecodeDeviceIdentifiers(c.b)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
		}
		truncate(t, c.b, 12, winlayout.DecodeDeviceIdentifiers)
	}
}

// TestDecodeDeviceIdentifiers_Copies: the caller owns the buffer and reuses it.
func TestDecodeDeviceIdentifiers_Copies(t *testing.T) {
	b := identifiers(t, 1, identifier(t, 2, 0, 3, 0, "abc"))
	got, err := winlayout.DecodeDeviceIdentifiers(b)
	clear(b)
	if err != nil || len(got) != 1 || string(got[0].Value) != "abc" {
		t.Errorf("after the buffer was used again: %+v, %v", got, err)
	}
}

func TestDecodeDeviceLocation(t *testing.T) {
	const where = "PCI Slot 0 : Bus 9 : Device 0 : Function 0 : Adapter 3 : Port 0 : Target 0 : LUN 0"
	wide := func(text string) string {
		return strings.Join(strings.Split(text, ""), "\x00") + "\x00"
	}
	location := func(offset uint32, text string) []byte {
		return pack(t, uint32(36), uint32(36+len(text)), make([]byte, 24), offset, text)
	}
	for _, c := range []struct {
		name, want string
		b          []byte
	}{
		{"ASCII", where, location(36, where+"\x00")},
		{"ASCII, not ended", where, location(36, where)},
		{"UTF-16", where, location(36, wide(where)+"\x00\x00garbage")},
		{"UTF-16, not ended", where, location(36, wide(where))},
		{"UTF-16, odd", "PC", location(36, wide("PC")+"I")},
		{"one letter", "C", location(36, "C\x00")},
		{"one byte", "C", location(36, "C")},
		{"behind other things", where, location(38, "\xff\xff"+where)},
		{"empty", "", location(36, "\x00")},
		{"none", "", location(0, where)},
		{"none, another way", "", location(0xFFFFFFFF, where)},
		{"outside", "", location(36, "")},
	} {
		if got, err := winlayout.DecodeDeviceLocation(c.b); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
		truncate(t, c.b, 36, winlayout.DecodeDeviceLocation)
	}
}

func TestDecodeSCSIAddress(t *testing.T) {
	b := []byte{8, 0, 0, 0, 3, 1, 2, 63}
	want := win.SCSIAddress{Port: 3, Path: 1, Target: 2, LUN: 63}
	if got, err := winlayout.DecodeSCSIAddress(b); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if len(b) != winlayout.SCSIAddressSize {
		t.Errorf("SCSIAddressSize is %d, want %d", winlayout.SCSIAddressSize, len(b))
	}
	truncate(t, b, len(b), winlayout.DecodeSCSIAddress)
}
