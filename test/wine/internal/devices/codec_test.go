package devices

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// readBack lets the daemon's side read what this side has written.
func readBack[T any](t *testing.T, value T, encoded []byte, decode func([]byte) (T, error)) {
	t.Helper()
	got, err := decode(encoded)
	if diff := cmp.Diff(value, got); err != nil || diff != "" {
		t.Errorf("%T: %v (-written +read):\n%s", value, err, diff)
	}
}

func TestEncode(t *testing.T) {
	number := win.DeviceNumber{Type: win.DeviceTypeDisk, Number: 7, Partition: 2}
	readBack(t, number, encodeDeviceNumber(number), winlayout.DecodeDeviceNumber)
	for _, descriptor := range []win.DeviceDescriptor{{BusType: win.BusTypeNVMe, Vendor: "NVMe", Product: "Some Disk v1.0", Serial: "vol1 2"}, {BusType: win.BusTypeSCSI}} {
		readBack(t, descriptor, encodeDeviceDescriptor(descriptor), winlayout.DecodeDeviceDescriptor)
	}
	identifiers := []win.DeviceIdentifier{
		{CodeSet: win.CodeSetASCII, Value: []byte("Google  disk-1")},
		{CodeSet: win.CodeSetBinary, Association: 1, Value: []byte{1, 2, 3}},
		{CodeSet: win.CodeSetUTF8, Type: win.IdentifierSCSIName, Value: []byte{}},
	}
	readBack(t, identifiers, encodeDeviceIdentifiers(identifiers), winlayout.DecodeDeviceIdentifiers)
	location := "Integrated : Bus 0 : Device 3 : Function 0 : Adapter 1 : Port 0 : Target 0 : LUN 1"
	readBack(t, location, encodeDeviceLocation(location), winlayout.DecodeDeviceLocation)
	address := win.SCSIAddress{Port: 1, Path: 2, Target: 3, LUN: 4}
	readBack(t, address, encodeSCSIAddress(address), winlayout.DecodeSCSIAddress)
	geometry := win.DiskGeometry{Size: 10 << 30, BytesPerSector: 4096}
	readBack(t, geometry, encodeDiskGeometry(geometry), winlayout.DecodeDiskGeometry)
	for _, attributes := range []win.DiskAttributes{{}, {Offline: true}, {ReadOnly: true}, {Offline: true, ReadOnly: true}} {
		readBack(t, attributes, encodeDiskAttributes(attributes), winlayout.DecodeDiskAttributes)
	}
	extents := []win.Extent{{Disk: 7, Offset: 1 << 20, Length: 1 << 30}, {Disk: 8, Length: 4096}}
	readBack(t, extents, encodeVolumeExtents(extents), winlayout.DecodeVolumeExtents)
	ntfs := win.NTFSVolumeData{Sectors: 1 << 20, TotalClusters: 1 << 17, FreeClusters: 1 << 16, BytesPerSector: 512, BytesPerCluster: 4096}
	readBack(t, ntfs, encodeNTFSVolumeData(ntfs), winlayout.DecodeNTFSVolumeData)
	for _, layout := range []win.DriveLayout{{Style: win.StyleRaw}, gpt} {
		b, err := encodeDriveLayout(layout)
		require.NoError(t, err)
		readBack(t, layout, b, winlayout.DecodeDriveLayout)
	}
}

var gpt = win.DriveLayout{
	Style: win.StyleGPT, DiskID: win.NewGUID(), UsableOffset: 17408, UsableLength: 1 << 30, MaxPartitions: 128,
	Partitions: []win.Partition{{Offset: 1 << 20, Length: 1 << 29, Number: 1, Type: win.PartitionBasicData, ID: win.NewGUID(), Name: "data"}},
}

// TestDecode reads what the daemon's side writes.
func TestDecode(t *testing.T) {
	if id, err := decodePropertyQuery(winlayout.EncodePropertyQuery(winlayout.DeviceLocationProperty)); err != nil || id != winlayout.DeviceLocationProperty {
		t.Errorf("property: %v, %v", id, err)
	}
	attributes, mask := win.DiskAttributes{Offline: true}, win.DiskAttributes{Offline: true, ReadOnly: true}
	if a, m, err := decodeSetDiskAttributes(winlayout.EncodeDiskAttributes(attributes, mask)); err != nil || a != attributes || m != mask {
		t.Errorf("attributes: %v, %v, %v", a, m, err)
	}
	want := win.NewGUID()
	if id, err := decodeCreateDisk(winlayout.EncodeCreateDisk(want)); err != nil || id != want {
		t.Errorf("disk: %v, %v, want %v", id, err, want)
	}
	if partition, bytes, err := decodeGrowPartition(winlayout.EncodeGrowPartition(3, 1<<40)); err != nil || partition != 3 || bytes != 1<<40 {
		t.Errorf("growth: %d, %d, %v", partition, bytes, err)
	}
	if sectors, err := decodeExtendVolume(winlayout.EncodeExtendVolume(1 << 40)); err != nil || sectors != 1<<40 {
		t.Errorf("extension: %d, %v", sectors, err)
	}
	b, err := winlayout.EncodeDriveLayout(gpt)
	require.NoError(t, err)
	readBack(t, gpt, b, decodeSetDriveLayout)
}

// TestDecode_Strict shows that mistakes would be seen.
func TestDecode_Strict(t *testing.T) {
	table, err := winlayout.EncodeDriveLayout(gpt)
	require.NoError(t, err)
	table[48+28] = 0 // RewritePartition
	attributes := winlayout.EncodeDiskAttributes(win.DiskAttributes{}, win.DiskAttributes{Offline: true})
	version := append([]byte{16}, attributes[1:]...)
	for name, err := range map[string]error{
		"query that is too short":         second(decodePropertyQuery(make([]byte, 11))),
		"partition not to be written":     second(decodeSetDriveLayout(table)),
		"attributes with a wrong version": third(decodeSetDiskAttributes(version)),
		"attributes that are too long":    third(decodeSetDiskAttributes(append(attributes, 0))),
		"disk without a style":            second(decodeCreateDisk(make([]byte, 24))),
		"disk that is too short":          second(decodeCreateDisk(make([]byte, 23))),
		"growth without padding":          third(decodeGrowPartition(make([]byte, 12))),
		"extension in 32 bits":            second(decodeExtendVolume(make([]byte, 4))),
	} {
		if code := winerr.CodeOf(err); code != winerr.InvalidParameter && code != winerr.BadLength {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }

func TestMountPoints(t *testing.T) {
	links := []string{`\DosDevices\C:`, `\??\` + driveC, ""}
	if got := decodeMountPoints(encodeMountPoints(links)); !cmp.Equal(got, links) {
		t.Errorf("%q, want %q", got, links)
	}
	for _, b := range [][]byte{nil, {1}, make([]byte, 8), append(make([]byte, 4), 1, 0, 0, 0)} {
		if got := decodeMountPoints(b); got != nil {
			t.Errorf("% x: %q", b, got)
		}
	}
}
