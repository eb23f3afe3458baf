package winlayout_test

import (
	"testing"
	"unsafe"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// The structures as winioctl.h and ntddscsi.h declare them; Go lays these out as C does
// on 64-bit Windows. Of a union only one member is declared per structure.
type (
	guid struct {
		Data1 uint32
		Data2 uint16
		Data3 uint16
		Data4 [8]byte
	}
	storageDeviceNumber struct {
		DeviceType      uint32
		DeviceNumber    uint32
		PartitionNumber uint32
	}
	storagePropertyQuery struct {
		PropertyID           uint32
		QueryType            uint32
		AdditionalParameters [1]byte
	}
	storageDescriptorHeader struct {
		Version uint32
		Size    uint32
	}
	storageDeviceDescriptor struct {
		Version               uint32
		Size                  uint32
		DeviceType            byte
		DeviceTypeModifier    byte
		RemovableMedia        byte
		CommandQueueing       byte
		VendorIDOffset        uint32
		ProductIDOffset       uint32
		ProductRevisionOffset uint32
		SerialNumberOffset    uint32
		BusType               uint32
		RawPropertiesLength   uint32
		RawDeviceProperties   [1]byte
	}
	storageDeviceIDDescriptor struct {
		Version             uint32
		Size                uint32
		NumberOfIdentifiers uint32
		Identifiers         [1]byte
	}
	storageIdentifier struct {
		CodeSet        uint32
		Type           uint32
		IdentifierSize uint16
		NextOffset     uint16
		Association    uint32
		Identifier     [1]byte
	}
	storageDeviceLocationDescriptor struct {
		Version, Size               uint32
		Socket, Slot, Adapter, Port uint32
		Target, Lun                 uint32
		StringOffset                uint32
	}
	scsiAddress struct {
		Length     uint32
		PortNumber byte
		PathID     byte
		TargetID   byte
		Lun        byte
	}
	diskGeometry struct {
		Cylinders         int64
		MediaType         uint32
		TracksPerCylinder uint32
		SectorsPerTrack   uint32
		BytesPerSector    uint32
	}
	diskGeometryEx struct {
		Geometry diskGeometry
		DiskSize int64
		Data     [1]byte
	}
	getDiskAttributes struct {
		Version    uint32
		Reserved1  uint32
		Attributes uint64
	}
	setDiskAttributes struct {
		Version        uint32
		Persist        byte
		Reserved1      [3]byte
		Attributes     uint64
		AttributesMask uint64
		Reserved2      [4]uint32
	}
	createDisk struct {
		PartitionStyle    uint32
		DiskID            guid
		MaxPartitionCount uint32
	}
	partitionInformationGPT struct {
		PartitionStyle     uint32
		StartingOffset     int64
		PartitionLength    int64
		PartitionNumber    uint32
		RewritePartition   byte
		IsServicePartition byte
		PartitionType      guid
		PartitionID        guid
		Attributes         uint64
		Name               [36]uint16
	}
	partitionInformationMBR struct {
		PartitionStyle      uint32
		StartingOffset      int64
		PartitionLength     int64
		PartitionNumber     uint32
		RewritePartition    byte
		IsServicePartition  byte
		_                   [0]uint64 // the union is aligned as its largest member
		PartitionType       byte
		BootIndicator       byte
		RecognizedPartition byte
		HiddenSectors       uint32
		PartitionID         guid
	}
	driveLayoutGPT struct {
		PartitionStyle       uint32
		PartitionCount       uint32
		DiskID               guid
		StartingUsableOffset int64
		UsableLength         int64
		MaxPartitionCount    uint32
		PartitionEntry       [1]partitionInformationGPT
	}
	driveLayoutMBR struct {
		PartitionStyle uint32
		PartitionCount uint32
		Signature      uint32
	}
	diskGrowPartition struct {
		PartitionNumber uint32
		BytesToGrow     int64
	}
	diskExtent struct {
		DiskNumber     uint32
		StartingOffset int64
		ExtentLength   int64
	}
	volumeDiskExtents struct {
		NumberOfDiskExtents uint32
		Extents             [1]diskExtent
	}
	ntfsVolumeData struct {
		VolumeSerialNumber           int64
		NumberSectors                int64
		TotalClusters                int64
		FreeClusters                 int64
		TotalReserved                int64
		BytesPerSector               uint32
		BytesPerCluster              uint32
		BytesPerFileRecordSegment    uint32
		ClustersPerFileRecordSegment uint32
		MftValidDataLength           int64
		MftStartLcn                  int64
		Mft2StartLcn                 int64
		MftZoneStart                 int64
		MftZoneEnd                   int64
	}
)

func TestOffsets_Devices(t *testing.T) {
	var (
		number      storageDeviceNumber
		query       storagePropertyQuery
		header      storageDescriptorHeader
		device      storageDeviceDescriptor
		ids         storageDeviceIDDescriptor
		id          storageIdentifier
		location    storageDeviceLocationDescriptor
		scsi        scsiAddress
		geometry    diskGeometryEx
		get         getDiskAttributes
		set         setDiskAttributes
		create      createDisk
		gpt         partitionInformationGPT
		mbr         partitionInformationMBR
		gptLayout   driveLayoutGPT
		mbrLayout   driveLayoutMBR
		grow        diskGrowPartition
		extent      diskExtent
		extents     volumeDiskExtents
		ntfs        ntfsVolumeData
		bytesPerSec = unsafe.Offsetof(geometry.Geometry) + unsafe.Offsetof(geometry.Geometry.BytesPerSector)
	)
	tested := map[string]bool{}
	for _, want := range []struct {
		field     string
		offset    int     // written down from what a C compiler printed
		structure uintptr // computed from the declaration
	}{
		{"STORAGE_DEVICE_NUMBER", 12, unsafe.Sizeof(number)},
		{"STORAGE_DEVICE_NUMBER.DeviceType", 0, unsafe.Offsetof(number.DeviceType)},
		{"STORAGE_DEVICE_NUMBER.DeviceNumber", 4, unsafe.Offsetof(number.DeviceNumber)},
		{"STORAGE_DEVICE_NUMBER.PartitionNumber", 8, unsafe.Offsetof(number.PartitionNumber)},
		{"STORAGE_PROPERTY_QUERY", 12, unsafe.Sizeof(query)},
		{"STORAGE_PROPERTY_QUERY.PropertyId", 0, unsafe.Offsetof(query.PropertyID)},
		{"STORAGE_DESCRIPTOR_HEADER", 8, unsafe.Sizeof(header)},
		{"STORAGE_DESCRIPTOR_HEADER.Size", 4, unsafe.Offsetof(header.Size)},
		{"STORAGE_DEVICE_DESCRIPTOR.VendorIdOffset", 12, unsafe.Offsetof(device.VendorIDOffset)},
		{"STORAGE_DEVICE_DESCRIPTOR.ProductIdOffset", 16, unsafe.Offsetof(device.ProductIDOffset)},
		{"STORAGE_DEVICE_DESCRIPTOR.SerialNumberOffset", 24, unsafe.Offsetof(device.SerialNumberOffset)},
		{"STORAGE_DEVICE_DESCRIPTOR.BusType", 28, unsafe.Offsetof(device.BusType)},
		{"STORAGE_DEVICE_DESCRIPTOR.RawDeviceProperties", 36, unsafe.Offsetof(device.RawDeviceProperties)},
		{"STORAGE_DEVICE_ID_DESCRIPTOR.NumberOfIdentifiers", 8, unsafe.Offsetof(ids.NumberOfIdentifiers)},
		{"STORAGE_DEVICE_ID_DESCRIPTOR.Identifiers", 12, unsafe.Offsetof(ids.Identifiers)},
		{"STORAGE_IDENTIFIER.CodeSet", 0, unsafe.Offsetof(id.CodeSet)},
		{"STORAGE_IDENTIFIER.Type", 4, unsafe.Offsetof(id.Type)},
		{"STORAGE_IDENTIFIER.IdentifierSize", 8, unsafe.Offsetof(id.IdentifierSize)},
		{"STORAGE_IDENTIFIER.NextOffset", 10, unsafe.Offsetof(id.NextOffset)},
		{"STORAGE_IDENTIFIER.Association", 12, unsafe.Offsetof(id.Association)},
		{"STORAGE_IDENTIFIER.Identifier", 16, unsafe.Offsetof(id.Identifier)},
		{"STORAGE_DEVICE_LOCATION_DESCRIPTOR", 36, unsafe.Sizeof(location)},
		{"STORAGE_DEVICE_LOCATION_DESCRIPTOR.StringOffset", 32, unsafe.Offsetof(location.StringOffset)},
		{"SCSI_ADDRESS", 8, unsafe.Sizeof(scsi)},
		{"SCSI_ADDRESS.PortNumber", 4, unsafe.Offsetof(scsi.PortNumber)},
		{"SCSI_ADDRESS.PathId", 5, unsafe.Offsetof(scsi.PathID)},
		{"SCSI_ADDRESS.TargetId", 6, unsafe.Offsetof(scsi.TargetID)},
		{"SCSI_ADDRESS.Lun", 7, unsafe.Offsetof(scsi.Lun)},
		{"DISK_GEOMETRY_EX.Geometry.BytesPerSector", 20, bytesPerSec},
		{"DISK_GEOMETRY_EX.DiskSize", 24, unsafe.Offsetof(geometry.DiskSize)},
		{"DISK_GEOMETRY_EX.Data", 32, unsafe.Offsetof(geometry.Data)},
		{"GET_DISK_ATTRIBUTES", 16, unsafe.Sizeof(get)},
		{"GET_DISK_ATTRIBUTES.Attributes", 8, unsafe.Offsetof(get.Attributes)},
		{"SET_DISK_ATTRIBUTES", 40, unsafe.Sizeof(set)},
		{"SET_DISK_ATTRIBUTES.Version", 0, unsafe.Offsetof(set.Version)},
		{"SET_DISK_ATTRIBUTES.Persist", 4, unsafe.Offsetof(set.Persist)},
		{"SET_DISK_ATTRIBUTES.Attributes", 8, unsafe.Offsetof(set.Attributes)},
		{"SET_DISK_ATTRIBUTES.AttributesMask", 16, unsafe.Offsetof(set.AttributesMask)},
		{"CREATE_DISK", 24, unsafe.Sizeof(create)},
		{"CREATE_DISK.PartitionStyle", 0, unsafe.Offsetof(create.PartitionStyle)},
		{"CREATE_DISK.Gpt.DiskId", 4, unsafe.Offsetof(create.DiskID)},
		{"CREATE_DISK.Gpt.MaxPartitionCount", 20, unsafe.Offsetof(create.MaxPartitionCount)},
		{"DRIVE_LAYOUT_INFORMATION_EX.PartitionStyle", 0, unsafe.Offsetof(gptLayout.PartitionStyle)},
		{"DRIVE_LAYOUT_INFORMATION_EX.PartitionCount", 4, unsafe.Offsetof(gptLayout.PartitionCount)},
		{"DRIVE_LAYOUT_INFORMATION_EX.Gpt.DiskId", 8, unsafe.Offsetof(gptLayout.DiskID)},
		{"DRIVE_LAYOUT_INFORMATION_EX.Gpt.StartingUsableOffset", 24, unsafe.Offsetof(gptLayout.StartingUsableOffset)},
		{"DRIVE_LAYOUT_INFORMATION_EX.Gpt.UsableLength", 32, unsafe.Offsetof(gptLayout.UsableLength)},
		{"DRIVE_LAYOUT_INFORMATION_EX.Gpt.MaxPartitionCount", 40, unsafe.Offsetof(gptLayout.MaxPartitionCount)},
		{"DRIVE_LAYOUT_INFORMATION_EX.Mbr.Signature", 8, unsafe.Offsetof(mbrLayout.Signature)},
		{"DRIVE_LAYOUT_INFORMATION_EX.PartitionEntry", 48, unsafe.Offsetof(gptLayout.PartitionEntry)},
		{"PARTITION_INFORMATION_EX", 144, unsafe.Sizeof(gpt)},
		{"PARTITION_INFORMATION_EX.PartitionStyle", 0, unsafe.Offsetof(gpt.PartitionStyle)},
		{"PARTITION_INFORMATION_EX.StartingOffset", 8, unsafe.Offsetof(gpt.StartingOffset)},
		{"PARTITION_INFORMATION_EX.PartitionLength", 16, unsafe.Offsetof(gpt.PartitionLength)},
		{"PARTITION_INFORMATION_EX.PartitionNumber", 24, unsafe.Offsetof(gpt.PartitionNumber)},
		{"PARTITION_INFORMATION_EX.RewritePartition", 28, unsafe.Offsetof(gpt.RewritePartition)},
		{"PARTITION_INFORMATION_EX.Gpt.PartitionType", 32, unsafe.Offsetof(gpt.PartitionType)},
		{"PARTITION_INFORMATION_EX.Gpt.PartitionId", 48, unsafe.Offsetof(gpt.PartitionID)},
		{"PARTITION_INFORMATION_EX.Gpt.Attributes", 64, unsafe.Offsetof(gpt.Attributes)},
		{"PARTITION_INFORMATION_EX.Gpt.Name", 72, unsafe.Offsetof(gpt.Name)},
		{"PARTITION_INFORMATION_EX.Mbr.PartitionType", 32, unsafe.Offsetof(mbr.PartitionType)},
		{"PARTITION_INFORMATION_EX.Mbr.BootIndicator", 33, unsafe.Offsetof(mbr.BootIndicator)},
		{"PARTITION_INFORMATION_EX.Mbr.RecognizedPartition", 34, unsafe.Offsetof(mbr.RecognizedPartition)},
		{"PARTITION_INFORMATION_EX.Mbr.HiddenSectors", 36, unsafe.Offsetof(mbr.HiddenSectors)},
		{"DISK_GROW_PARTITION", 16, unsafe.Sizeof(grow)},
		{"DISK_GROW_PARTITION.PartitionNumber", 0, unsafe.Offsetof(grow.PartitionNumber)},
		{"DISK_GROW_PARTITION.BytesToGrow", 8, unsafe.Offsetof(grow.BytesToGrow)},
		{"VOLUME_DISK_EXTENTS.NumberOfDiskExtents", 0, unsafe.Offsetof(extents.NumberOfDiskExtents)},
		{"VOLUME_DISK_EXTENTS.Extents", 8, unsafe.Offsetof(extents.Extents)},
		{"DISK_EXTENT", 24, unsafe.Sizeof(extent)},
		{"DISK_EXTENT.DiskNumber", 0, unsafe.Offsetof(extent.DiskNumber)},
		{"DISK_EXTENT.StartingOffset", 8, unsafe.Offsetof(extent.StartingOffset)},
		{"DISK_EXTENT.ExtentLength", 16, unsafe.Offsetof(extent.ExtentLength)},
		{"NTFS_VOLUME_DATA_BUFFER", 96, unsafe.Sizeof(ntfs)},
		{"NTFS_VOLUME_DATA_BUFFER.NumberSectors", 8, unsafe.Offsetof(ntfs.NumberSectors)},
		{"NTFS_VOLUME_DATA_BUFFER.TotalClusters", 16, unsafe.Offsetof(ntfs.TotalClusters)},
		{"NTFS_VOLUME_DATA_BUFFER.FreeClusters", 24, unsafe.Offsetof(ntfs.FreeClusters)},
		{"NTFS_VOLUME_DATA_BUFFER.BytesPerSector", 40, unsafe.Offsetof(ntfs.BytesPerSector)},
		{"NTFS_VOLUME_DATA_BUFFER.BytesPerCluster", 44, unsafe.Offsetof(ntfs.BytesPerCluster)},
	} {
		got, known := winlayout.Offsets[want.field]
		if !known || got != want.offset || uintptr(got) != want.structure {
			t.Errorf("%s at %d, want %d as written down and %d as declared", want.field, got, want.offset, want.structure)
		}
		tested[want.field] = true
	}
	for field := range winlayout.Offsets {
		if !tested[field] && !testedElsewhere[field[:4]] {
			t.Errorf("%s has no line in this test", field)
		}
	}
}

// testedElsewhere is how the structures begin that TestOffsets and reparse_test.go are about.
var testedElsewhere = map[string]bool{"REPA": true, "FILE": true, "MOUN": true}
