package diskid_test

import (
	"regexp"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskid"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

func TestModel(t *testing.T) {
	for _, c := range []struct {
		descriptor win.DeviceDescriptor
		want       string
	}{
		{win.DeviceDescriptor{}, ""},
		{win.DeviceDescriptor{Vendor: "Msft", Product: "Virtual Disk"}, "Msft Virtual Disk"},
		{win.DeviceDescriptor{Product: "QEMU HARDDISK"}, "QEMU HARDDISK"},
		{win.DeviceDescriptor{Vendor: "Vendor"}, "Vendor"},
		{win.DeviceDescriptor{BusType: win.BusTypeNVMe, Vendor: "NVMe", Product: "Amazon Elastic Block Store"}, "Amazon Elastic Block Store"},
		{win.DeviceDescriptor{BusType: win.BusTypeNVMe, Product: "nvme_card-pd"}, "nvme_card-pd"},
		{win.DeviceDescriptor{BusType: win.BusTypeSCSI, Vendor: "NVMe", Product: "x"}, "NVMe x"},
	} {
		if got := diskid.Model(c.descriptor); got != c.want {
			t.Errorf("%+v: %q, want %q", c.descriptor, got, c.want)
		}
	}
}

func TestNVMe(t *testing.T) {
	const google = "10CC_9636_B6E3_CE3B_0000_0000_0000_0000."
	eui := func(value string) win.DeviceIdentifier {
		return win.DeviceIdentifier{CodeSet: win.CodeSetBinary, Type: win.IdentifierEUI64, Value: []byte(value)}
	}
	name := func(value string) win.DeviceIdentifier {
		return win.DeviceIdentifier{CodeSet: win.CodeSetUTF8, Type: win.IdentifierSCSIName, Value: []byte(value)}
	}
	for _, c := range []struct {
		name         string
		bus          win.BusType
		serial       string
		identifiers  []win.DeviceIdentifier
		eui64, nguid string
	}{
		{"nothing", win.BusTypeNVMe, "", nil, "", ""},
		{"Google's serial number", win.BusTypeNVMe, google, nil, "10cc9636b6e3ce3b", ""},
		{"a short serial number", win.BusTypeNVMe, "0025_3858_9150_12D5.", nil, "00253858915012d5", ""},
		{"Azure's serial number", win.BusTypeNVMe, "371B_BE56_2601_463D_8419_338D_66A0_0001.", nil, "", "371bbe562601463d8419338d66a00001"},
		{"zeros", win.BusTypeNVMe, "0000_0000_0000_0000_0000_0000_0000_0000.", nil, "", ""},
		{"EBS", win.BusTypeNVMe, "vol0123456789abcdef0_00000001.", nil, "", ""},
		{"no full stop", win.BusTypeNVMe, "0025_3858_9150_12D5", nil, "", ""},
		{"five groups", win.BusTypeNVMe, "0025_3858_9150_12D5_0000.", nil, "", ""},
		{"another bus", win.BusTypeSCSI, google, []win.DeviceIdentifier{eui("12345678")}, "", ""},
		{"page 83", win.BusTypeNVMe, "", []win.DeviceIdentifier{eui("\x10\xcc\x96\x36\xb6\xe3\xce\x3b")}, "10cc9636b6e3ce3b", ""},
		{"both", win.BusTypeNVMe, google, []win.DeviceIdentifier{eui("0123456789abcdef"), eui("\x01\x02\x03\x04\x05\x06\x07\x08")}, "0102030405060708", "30313233343536373839616263646566"},
		{"the first of a kind", win.BusTypeNVMe, "", []win.DeviceIdentifier{eui("\x00\x00\x00\x00\x00\x00\x00\x01"), eui("\x00\x00\x00\x00\x00\x00\x00\x02")}, "0000000000000001", ""},
		{"another length", win.BusTypeNVMe, "", []win.DeviceIdentifier{eui("123456789012")}, "", ""},
		{"of a port", win.BusTypeNVMe, "", []win.DeviceIdentifier{{CodeSet: win.CodeSetBinary, Type: win.IdentifierEUI64, Association: 1, Value: []byte("12345678")}}, "", ""},
		{"another type", win.BusTypeNVMe, "", []win.DeviceIdentifier{{CodeSet: win.CodeSetBinary, Type: win.IdentifierNAA, Value: []byte("12345678")}}, "", ""},
		{"a name", win.BusTypeNVMe, "", []win.DeviceIdentifier{name("eui.0025385891502ABC")}, "0025385891502abc", ""},
		{"a padded name", win.BusTypeNVMe, "", []win.DeviceIdentifier{name("eui.577f8d0aff944fa3b6e5a7ff4d366001\x00")}, "", "577f8d0aff944fa3b6e5a7ff4d366001"},
		{"names of another kind", win.BusTypeNVMe, "", []win.DeviceIdentifier{name("nvme.1d0f-vol1"), name("eui.12"), name("xeui.0025385891502ABC")}, "", ""},
	} {
		eui64, nguid := diskid.NVMe(win.DeviceDescriptor{BusType: c.bus, Serial: c.serial}, c.identifiers)
		if eui64 != c.eui64 || nguid != c.nguid {
			t.Errorf("%s: %q, %q, want %q, %q", c.name, eui64, nguid, c.eui64, c.nguid)
		}
	}
}

func FuzzNVMe(f *testing.F) {
	f.Add("10CC_9636_B6E3_CE3B_0000_0000_0000_0000.", uint32(1), uint32(2), []byte("12345678"))
	f.Add("", uint32(3), uint32(8), []byte("eui.0025385891502abc"))
	digits := regexp.MustCompile(`^[0-9a-f]*$`)
	f.Fuzz(func(t *testing.T, serial string, set, kind uint32, value []byte) {
		eui64, nguid := diskid.NVMe(win.DeviceDescriptor{BusType: win.BusTypeNVMe, Serial: serial},
			[]win.DeviceIdentifier{{CodeSet: win.CodeSet(set), Type: win.IdentifierType(kind), Value: value}})
		if len(eui64) != 0 && len(eui64) != 16 || len(nguid) != 0 && len(nguid) != 32 || !digits.MatchString(eui64+nguid) {
			t.Errorf("%q, %q: %q, %q", serial, value, eui64, nguid)
		}
	})
}
