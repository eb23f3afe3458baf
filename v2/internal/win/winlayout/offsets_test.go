package winlayout_test

import (
	"encoding/binary"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// layouts are the offsets and sizes as written down from the documentation, or from what a C compiler printed. The size
// of a structure whose last field varies is where that begins.
var layouts = map[string]string{
	"STORAGE_DEVICE_NUMBER":              "size=12 DeviceType=0 DeviceNumber=4 PartitionNumber=8",
	"STORAGE_PROPERTY_QUERY":             "size=12 PropertyId=0 QueryType=4 AdditionalParameters=8",
	"STORAGE_DESCRIPTOR_HEADER":          "size=8 Size=4",
	"STORAGE_DEVICE_DESCRIPTOR":          "VendorIdOffset=12 ProductIdOffset=16 SerialNumberOffset=24 BusType=28 size=36",
	"STORAGE_DEVICE_ID_DESCRIPTOR":       "NumberOfIdentifiers=8 size=12",
	"STORAGE_IDENTIFIER":                 "CodeSet=0 Type=4 IdentifierSize=8 NextOffset=10 Association=12 size=16",
	"STORAGE_DEVICE_LOCATION_DESCRIPTOR": "size=36 StringOffset=32",
	"SCSI_ADDRESS":                       "size=8 PortNumber=4 PathId=5 TargetId=6 Lun=7",
	"DISK_GEOMETRY_EX":                   "BytesPerSector=20 DiskSize=24 size=32",
	"GET_DISK_ATTRIBUTES":                "size=16 Attributes=8",
	"SET_DISK_ATTRIBUTES":                "size=40 Version=0 Persist=4 Attributes=8 AttributesMask=16",
	"CREATE_DISK":                        "size=24 PartitionStyle=0 DiskId=4 MaxPartitionCount=20",
	"DRIVE_LAYOUT_INFORMATION_EX":        "PartitionStyle=0 PartitionCount=4 DiskId=8 StartingUsableOffset=24 UsableLength=32 MaxPartitionCount=40 size=48",
	"PARTITION_INFORMATION_EX":           "PartitionStyle=0 StartingOffset=8 PartitionLength=16 PartitionNumber=24 RewritePartition=28 size=32",
	"PARTITION_INFORMATION_GPT":          "PartitionType=0 PartitionId=16 Attributes=32 Name=40 size=112",
	"PARTITION_INFORMATION_MBR":          "PartitionType=0 BootIndicator=1 RecognizedPartition=2 HiddenSectors=4 size=112",
	"DISK_GROW_PARTITION":                "size=16 PartitionNumber=0 BytesToGrow=8",
	"VOLUME_DISK_EXTENTS":                "NumberOfDiskExtents=0 size=8",
	"DISK_EXTENT":                        "size=24 DiskNumber=0 StartingOffset=8 ExtentLength=16",
	"NTFS_VOLUME_DATA_BUFFER":            "size=96 NumberSectors=8 TotalClusters=16 FreeClusters=24 BytesPerSector=40 BytesPerCluster=44",
	"ISCSI_TARGET_PORTALW":               "size=1026 SymbolicName=0 Address=512 Socket=1024",
	"ISCSI_TARGET_PORTAL_INFOW":          "size=1544 InitiatorName=0 InitiatorPortNumber=512 Portal.SymbolicName=516 Portal.Address=1028 Portal.Socket=1540",
	"ISCSI_LOGIN_OPTIONS":                "size=64 Version=0 InformationSpecified=4 AuthType=12 UsernameLength=36 PasswordLength=40 Username=48 Password=56",
	"ISCSI_UNIQUE_SESSION_ID":            "size=16 AdapterUnique=0 AdapterSpecific=8",
	"ISCSI_SESSION_INFOW":                "size=64 SessionId=0 TargetNodeName=24 TargetName=32 ConnectionCount=48 Connections=56",
	"ISCSI_CONNECTION_INFOW":             "size=40",
	"ISCSI_DEVICE_ON_SESSIONW":           "size=2040 ScsiAddress=960 LegacyName=1504 StorageDeviceNumber=2024",
	"PERSISTENT_ISCSI_LOGIN_INFOW":       "size=2080 TargetName=0 InitiatorInstance=450 InitiatorPortNumber=964 TargetPortal=968",
	"MOUNTMGR_VOLUME_MOUNT_POINT":        "size=8 SourceVolumeNameOffset=0 SourceVolumeNameLength=2 TargetVolumeNameOffset=4 TargetVolumeNameLength=6",
}

// offsetOf computes what a field, or "size", is in the bytes of a structure. Names differ in case.
func offsetOf(t *testing.T, structure reflect.Type, field string) int {
	t.Helper()
	if field == "size" {
		return binary.Size(reflect.Zero(structure).Interface())
	}
	first, rest, nested := strings.Cut(field, ".")
	offset := 0
	for i := range structure.NumField() {
		found := structure.Field(i)
		switch {
		case !strings.EqualFold(found.Name, first):
			offset += binary.Size(reflect.Zero(found.Type).Interface())
		case nested:
			return offset + offsetOf(t, found.Type, rest)
		default:
			return offset
		}
	}
	t.Fatalf("%v has no field %s", structure, field)
	return 0
}

// TestOffsets compares what the codecs use with what is documented.
func TestOffsets(t *testing.T) {
	for name, structure := range winlayout.Structures {
		for entry := range strings.FieldsSeq(layouts[name] + " ") {
			field, want, _ := strings.Cut(entry, "=")
			if got := strconv.Itoa(offsetOf(t, reflect.TypeOf(structure), field)); got != want {
				t.Errorf("%s.%s at %s, want %s", name, field, got, want)
			}
		}
		if layouts[name] == "" {
			t.Errorf("the table lacks %s", name)
		}
	}
	want := map[string]int{
		"REPARSE_DATA_BUFFER.ReparseTag": 0, "REPARSE_DATA_BUFFER.ReparseDataLength": 4, "REPARSE_DATA_BUFFER.SubstituteNameOffset": 8,
		"REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer.Flags": 16, "REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer.Buffer": 20,
		"REPARSE_DATA_BUFFER.MountPointReparseBuffer.Buffer": 16,
		"FILE_FULL_DIR_INFO.NextEntryOffset":                 0, "FILE_FULL_DIR_INFO.FileAttributes": 56, "FILE_FULL_DIR_INFO.FileNameLength": 60,
		"FILE_FULL_DIR_INFO.EaSize": 64, "FILE_FULL_DIR_INFO.FileName": 68,
		"STORAGE_DEVICE_ID_DESCRIPTOR.Identifiers": 12, "STORAGE_IDENTIFIER.Identifier": 16,
		"VOLUME_DISK_EXTENTS.Extents": 8, "DISK_EXTENT": 24, "MOUNTMGR_VOLUME_MOUNT_POINT": 8,
		"DRIVE_LAYOUT_INFORMATION_EX.PartitionEntry": 48, "PARTITION_INFORMATION_EX.Gpt": 32, "PARTITION_INFORMATION_EX": 144,
	}
	if !maps.Equal(winlayout.Offsets, want) {
		t.Errorf("%v, want %v", winlayout.Offsets, want)
	}
	// MAXIMUM_REPARSE_DATA_BUFFER_SIZE of ntifs.h
	if winlayout.MaxReparseData != 16384 {
		t.Errorf("MaxReparseData is %d, want 16384", winlayout.MaxReparseData)
	}
}
