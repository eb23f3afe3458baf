package winlayout_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// The structures as ntifs.h, winbase.h, mountmgr.h, winioctl.h and ntddscsi.h declare them; Go lays these
// out as C does on 64-bit Windows. Of a union only one member is declared per structure.
type (
	symbolicLinkReparseBuffer struct {
		ReparseTag                                                                               uint32
		ReparseDataLength, Reserved, SubstituteNameOffset, SubstituteNameLength, PrintNameOffset uint16
		PrintNameLength                                                                          uint16
		Flags                                                                                    uint32
		Buffer                                                                                   [1]uint16
	}
	mountPointReparseBuffer struct {
		ReparseTag                                                                               uint32
		ReparseDataLength, Reserved, SubstituteNameOffset, SubstituteNameLength, PrintNameOffset uint16
		PrintNameLength                                                                          uint16
		Buffer                                                                                   [1]uint16
	}
	fileFullDirInfo struct {
		NextEntryOffset, FileIndex                                                         uint32
		CreationTime, LastAccessTime, LastWriteTime, ChangeTime, EndOfFile, AllocationSize int64
		FileAttributes, FileNameLength, EaSize                                             uint32
		FileName                                                                           [1]uint16
	}
	volumeMountPoint struct { // MOUNTMGR_VOLUME_MOUNT_POINT of mountmgr.h
		SourceVolumeNameOffset, SourceVolumeNameLength, TargetVolumeNameOffset, TargetVolumeNameLength uint16
	}
	guid struct {
		Data1        uint32
		Data2, Data3 uint16
		Data4        [8]byte
	}
	storageDeviceNumber  struct{ DeviceType, DeviceNumber, PartitionNumber uint32 }
	storagePropertyQuery struct {
		PropertyID, QueryType uint32
		AdditionalParameters  [1]byte
	}
	storageDescriptorHeader struct{ Version, Size uint32 }
	storageDeviceDescriptor struct {
		Version, Size                                                                       uint32
		DeviceType, DeviceTypeModifier, RemovableMedia, CommandQueueing                     byte
		VendorIDOffset, ProductIDOffset, ProductRevisionOffset, SerialNumberOffset, BusType uint32
		RawPropertiesLength                                                                 uint32
		RawDeviceProperties                                                                 [1]byte
	}
	storageDeviceIDDescriptor struct {
		Version, Size, NumberOfIdentifiers uint32
		Identifiers                        [1]byte
	}
	storageIdentifier struct {
		CodeSet, Type              uint32
		IdentifierSize, NextOffset uint16
		Association                uint32
		Identifier                 [1]byte
	}
	storageDeviceLocationDescriptor struct{ Version, Size, Socket, Slot, Adapter, Port, Target, Lun, StringOffset uint32 }
	scsiAddress                     struct {
		Length                            uint32
		PortNumber, PathID, TargetID, Lun byte
	}
	diskGeometry struct {
		Cylinders                                                     int64
		MediaType, TracksPerCylinder, SectorsPerTrack, BytesPerSector uint32
	}
	diskGeometryEx struct {
		Geometry diskGeometry
		DiskSize int64
		Data     [1]byte
	}
	getDiskAttributes struct {
		Version, Reserved1 uint32
		Attributes         uint64
	}
	setDiskAttributes struct {
		Version                    uint32
		Persist                    byte
		Reserved1                  [3]byte
		Attributes, AttributesMask uint64
		Reserved2                  [4]uint32
	}
	createDisk struct {
		PartitionStyle    uint32
		DiskID            guid
		MaxPartitionCount uint32
	}
	partitionInformationGPT struct {
		PartitionStyle                       uint32
		StartingOffset, PartitionLength      int64
		PartitionNumber                      uint32
		RewritePartition, IsServicePartition byte
		PartitionType, PartitionID           guid
		Attributes                           uint64
		Name                                 [36]uint16
	}
	partitionInformationMBR struct {
		PartitionStyle                                    uint32
		StartingOffset, PartitionLength                   int64
		PartitionNumber                                   uint32
		RewritePartition, IsServicePartition              byte
		_                                                 [0]uint64 // the union is aligned as its largest member
		PartitionType, BootIndicator, RecognizedPartition byte
		HiddenSectors                                     uint32
		PartitionID                                       guid
	}
	driveLayoutGPT struct {
		PartitionStyle, PartitionCount     uint32
		DiskID                             guid
		StartingUsableOffset, UsableLength int64
		MaxPartitionCount                  uint32
		PartitionEntry                     [1]partitionInformationGPT
	}
	driveLayoutMBR    struct{ PartitionStyle, PartitionCount, Signature uint32 }
	diskGrowPartition struct {
		PartitionNumber uint32
		BytesToGrow     int64
	}
	diskExtent struct {
		DiskNumber                   uint32
		StartingOffset, ExtentLength int64
	}
	volumeDiskExtents struct {
		NumberOfDiskExtents uint32
		Extents             [1]diskExtent
	}
	ntfsVolumeData struct {
		VolumeSerialNumber, NumberSectors, TotalClusters, FreeClusters, TotalReserved            int64
		BytesPerSector, BytesPerCluster, BytesPerFileRecordSegment, ClustersPerFileRecordSegment uint32
		MftValidDataLength, MftStartLcn, Mft2StartLcn, MftZoneStart, MftZoneEnd                  int64
	}
)

// The structures as iscsidsc.h declares them. Pointers are those of 64-bit Windows.
type (
	iscsiTargetPortal struct {
		SymbolicName, Address [256]uint16
		Socket                uint16
	}
	iscsiTargetPortalInfo struct {
		InitiatorName         [256]uint16
		InitiatorPortNumber   uint32
		SymbolicName, Address [256]uint16
		Socket                uint16
	}
	iscsiLoginOptions struct {
		Version, InformationSpecified, LoginFlags, AuthType, HeaderDigest, DataDigest            uint32
		MaximumConnections, DefaultTime2Wait, DefaultTime2Retain, UsernameLength, PasswordLength uint32
		Username, Password                                                                       uint64
	}
	iscsiUniqueSessionID struct{ AdapterUnique, AdapterSpecific uint64 }
	iscsiSessionInfo     struct {
		SessionID                                 iscsiUniqueSessionID
		InitiatorName, TargetNodeName, TargetName uint64
		ISID                                      [6]byte
		TSID                                      [2]byte
		ConnectionCount                           uint32
		Connections                               uint64
	}
	iscsiConnectionInfo struct {
		ConnectionID                    iscsiUniqueSessionID
		InitiatorAddress, TargetAddress uint64
		InitiatorSocket, TargetSocket   uint16
		CID                             [2]byte
	}
	iscsiDeviceOnSession struct {
		InitiatorName                   [256]uint16
		TargetName                      [224]uint16
		ScsiAddress                     scsiAddress
		DeviceInterfaceType             guid
		DeviceInterfaceName, LegacyName [260]uint16
		StorageDeviceNumber             storageDeviceNumber
		DeviceInstance                  uint32
	}
	persistentLoginInfo struct {
		TargetName              [224]uint16
		IsInformationalSession  byte
		InitiatorInstance       [256]uint16
		InitiatorPortNumber     uint32
		TargetPortal            iscsiTargetPortal
		SecurityFlags, Mappings uint64
		LoginOptions            iscsiLoginOptions
	}
)

// layouts are the offsets and sizes as written down from the documentation, or from what a C compiler printed.
var layouts = []struct {
	structure  string
	declared   any
	documented string
}{
	{"REPARSE_DATA_BUFFER", symbolicLinkReparseBuffer{}, "ReparseTag=0 ReparseDataLength=4 SubstituteNameOffset=8"},
	{"REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer", symbolicLinkReparseBuffer{}, "Flags=16 Buffer=20"},
	{"REPARSE_DATA_BUFFER.MountPointReparseBuffer", mountPointReparseBuffer{}, "Buffer=16"},
	{"FILE_FULL_DIR_INFO", fileFullDirInfo{}, "NextEntryOffset=0 FileAttributes=56 FileNameLength=60 EaSize=64 FileName=68"},
	{"STORAGE_DEVICE_NUMBER", storageDeviceNumber{}, "size=12 DeviceType=0 DeviceNumber=4 PartitionNumber=8"},
	{"STORAGE_PROPERTY_QUERY", storagePropertyQuery{}, "size=12 PropertyId=0"},
	{"STORAGE_DESCRIPTOR_HEADER", storageDescriptorHeader{}, "size=8 Size=4"},
	{"STORAGE_DEVICE_DESCRIPTOR", storageDeviceDescriptor{}, "VendorIdOffset=12 ProductIdOffset=16 SerialNumberOffset=24 BusType=28 RawDeviceProperties=36"},
	{"STORAGE_DEVICE_ID_DESCRIPTOR", storageDeviceIDDescriptor{}, "NumberOfIdentifiers=8 Identifiers=12"},
	{"STORAGE_IDENTIFIER", storageIdentifier{}, "CodeSet=0 Type=4 IdentifierSize=8 NextOffset=10 Association=12 Identifier=16"},
	{"STORAGE_DEVICE_LOCATION_DESCRIPTOR", storageDeviceLocationDescriptor{}, "size=36 StringOffset=32"},
	{"SCSI_ADDRESS", scsiAddress{}, "size=8 PortNumber=4 PathId=5 TargetId=6 Lun=7"},
	{"DISK_GEOMETRY_EX", diskGeometryEx{}, "Geometry.BytesPerSector=20 DiskSize=24 Data=32"},
	{"GET_DISK_ATTRIBUTES", getDiskAttributes{}, "size=16 Attributes=8"},
	{"SET_DISK_ATTRIBUTES", setDiskAttributes{}, "size=40 Version=0 Persist=4 Attributes=8 AttributesMask=16"},
	{"CREATE_DISK", createDisk{}, "size=24 PartitionStyle=0"},
	{"CREATE_DISK.Gpt", createDisk{}, "DiskId=4 MaxPartitionCount=20"},
	{"DRIVE_LAYOUT_INFORMATION_EX", driveLayoutGPT{}, "PartitionStyle=0 PartitionCount=4 PartitionEntry=48"},
	{"DRIVE_LAYOUT_INFORMATION_EX.Gpt", driveLayoutGPT{}, "DiskId=8 StartingUsableOffset=24 UsableLength=32 MaxPartitionCount=40"},
	{"DRIVE_LAYOUT_INFORMATION_EX.Mbr", driveLayoutMBR{}, "Signature=8"},
	{"PARTITION_INFORMATION_EX", partitionInformationGPT{}, "size=144 PartitionStyle=0 StartingOffset=8 PartitionLength=16 PartitionNumber=24 RewritePartition=28"},
	{"PARTITION_INFORMATION_EX.Gpt", partitionInformationGPT{}, "PartitionType=32 PartitionId=48 Attributes=64 Name=72"},
	{"PARTITION_INFORMATION_EX.Mbr", partitionInformationMBR{}, "PartitionType=32 BootIndicator=33 RecognizedPartition=34 HiddenSectors=36"},
	{"DISK_GROW_PARTITION", diskGrowPartition{}, "size=16 PartitionNumber=0 BytesToGrow=8"},
	{"VOLUME_DISK_EXTENTS", volumeDiskExtents{}, "NumberOfDiskExtents=0 Extents=8"},
	{"DISK_EXTENT", diskExtent{}, "size=24 DiskNumber=0 StartingOffset=8 ExtentLength=16"},
	{"NTFS_VOLUME_DATA_BUFFER", ntfsVolumeData{}, "size=96 NumberSectors=8 TotalClusters=16 FreeClusters=24 BytesPerSector=40 BytesPerCluster=44"},
	{"ISCSI_TARGET_PORTALW", iscsiTargetPortal{}, "size=1026 SymbolicName=0 Address=512 Socket=1024"},
	{"ISCSI_TARGET_PORTAL_INFOW", iscsiTargetPortalInfo{}, "size=1544 InitiatorName=0 InitiatorPortNumber=512 SymbolicName=516 Address=1028 Socket=1540"},
	{"ISCSI_LOGIN_OPTIONS", iscsiLoginOptions{}, "size=64 Version=0 InformationSpecified=4 AuthType=12 UsernameLength=36 PasswordLength=40 Username=48 Password=56"},
	{"ISCSI_UNIQUE_SESSION_ID", iscsiUniqueSessionID{}, "size=16 AdapterUnique=0 AdapterSpecific=8"},
	{"ISCSI_SESSION_INFOW", iscsiSessionInfo{}, "size=64 SessionId=0 TargetNodeName=24 TargetName=32 ConnectionCount=48 Connections=56"},
	{"ISCSI_CONNECTION_INFOW", iscsiConnectionInfo{}, "size=40"},
	{"ISCSI_DEVICE_ON_SESSIONW", iscsiDeviceOnSession{}, "size=2040 ScsiAddress=960 LegacyName=1504 StorageDeviceNumber=2024"},
	{"PERSISTENT_ISCSI_LOGIN_INFOW", persistentLoginInfo{}, "size=2080 TargetName=0 InitiatorInstance=450 InitiatorPortNumber=964 TargetPortal=968"},
	{"MOUNTMGR_VOLUME_MOUNT_POINT", volumeMountPoint{}, "size=8 SourceVolumeNameOffset=0 SourceVolumeNameLength=2 TargetVolumeNameOffset=4 TargetVolumeNameLength=6"},
}

// offsetOf computes what a field, or "size", is in a structure as declared. Names differ in case.
func offsetOf(structure reflect.Type, field string) (offset uintptr) {
	if field == "size" {
		return structure.Size()
	}
	for name := range strings.SplitSeq(field, ".") {
		found, ok := structure.FieldByNameFunc(func(other string) bool { return strings.EqualFold(other, name) })
		if !ok {
			panic("no field " + field)
		}
		offset += found.Offset
		structure = found.Type
	}
	return offset
}

// TestOffsets compares what the codecs use with what is documented, and with what the compiler computes.
func TestOffsets(t *testing.T) {
	left := maps.Clone(winlayout.Offsets)
	maps.Copy(left, winlayout.ISCSIOffsets)
	for _, s := range layouts {
		for entry := range strings.FieldsSeq(s.documented) {
			field, want, _ := strings.Cut(entry, "=")
			name := strings.TrimSuffix(s.structure+"."+field, ".size")
			got, known := left[name]
			declared := offsetOf(reflect.TypeOf(s.declared), field)
			if !known || fmt.Sprint(got) != want || fmt.Sprint(declared) != want {
				t.Errorf("%s at %d, want %s as documented and %d as declared", name, got, want, declared)
			}
			delete(left, name)
		}
	}
	if len(left) > 0 {
		t.Errorf("the table lacks %v", left)
	}
	// MAXIMUM_REPARSE_DATA_BUFFER_SIZE of ntifs.h
	if winlayout.MaxReparseData != 16384 {
		t.Errorf("MaxReparseData is %d, want 16384", winlayout.MaxReparseData)
	}
}
