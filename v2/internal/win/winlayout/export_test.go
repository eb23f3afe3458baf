package winlayout

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win"

// Structures are those that the codecs read and write as a whole, by their names in C.
var Structures = map[string]any{
	"STORAGE_DEVICE_NUMBER":              storageDeviceNumber{},
	"STORAGE_PROPERTY_QUERY":             storagePropertyQuery{},
	"STORAGE_DESCRIPTOR_HEADER":          storageDescriptorHeader{},
	"STORAGE_DEVICE_DESCRIPTOR":          storageDeviceDescriptor{},
	"STORAGE_DEVICE_ID_DESCRIPTOR":       storageDeviceIDDescriptor{},
	"STORAGE_IDENTIFIER":                 storageIdentifier{},
	"STORAGE_DEVICE_LOCATION_DESCRIPTOR": storageDeviceLocation{},
	"SCSI_ADDRESS":                       scsiAddress{},
	"DISK_GEOMETRY_EX":                   diskGeometryEx{},
	"GET_DISK_ATTRIBUTES":                getDiskAttributes{},
	"SET_DISK_ATTRIBUTES":                setDiskAttributes{},
	"CREATE_DISK":                        createDisk{},
	"DRIVE_LAYOUT_INFORMATION_EX":        driveLayout{},
	"PARTITION_INFORMATION_EX":           partitionInformation{},
	"PARTITION_INFORMATION_GPT":          partitionInformationGPT{},
	"PARTITION_INFORMATION_MBR":          partitionInformationMBR{},
	"DISK_GROW_PARTITION":                diskGrowPartition{},
	"VOLUME_DISK_EXTENTS":                volumeDiskExtents{},
	"DISK_EXTENT":                        diskExtent{},
	"NTFS_VOLUME_DATA_BUFFER":            ntfsVolumeData{},
	"ISCSI_TARGET_PORTALW":               targetPortal{},
	"ISCSI_TARGET_PORTAL_INFOW":          targetPortalInfo{},
	"ISCSI_LOGIN_OPTIONS":                loginOptions{},
	"ISCSI_UNIQUE_SESSION_ID":            win.SessionID{},
	"ISCSI_SESSION_INFOW":                sessionInfo{},
	"ISCSI_CONNECTION_INFOW":             connectionInfo{},
	"ISCSI_DEVICE_ON_SESSIONW":           deviceOnSession{},
	"PERSISTENT_ISCSI_LOGIN_INFOW":       persistentLogin{},
	"MOUNTMGR_VOLUME_MOUNT_POINT":        volumeMountPoint{},
}

// Offsets are those that the codecs of the other structures use.
var Offsets = map[string]int{
	"REPARSE_DATA_BUFFER.ReparseTag":                       reparseTag,
	"REPARSE_DATA_BUFFER.ReparseDataLength":                reparseDataLength,
	"REPARSE_DATA_BUFFER.SubstituteNameOffset":             reparseNames,
	"REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer.Flags":  reparseSymlinkFlags,
	"REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer.Buffer": reparseSymlinkBuffer,
	"REPARSE_DATA_BUFFER.MountPointReparseBuffer.Buffer":   reparseMountBuffer,
	"FILE_FULL_DIR_INFO.NextEntryOffset":                   dirNext,
	"FILE_FULL_DIR_INFO.FileAttributes":                    dirAttributes,
	"FILE_FULL_DIR_INFO.FileNameLength":                    dirNameLength,
	"FILE_FULL_DIR_INFO.EaSize":                            dirEaSize,
	"FILE_FULL_DIR_INFO.FileName":                          dirName,

	"VOLUME_DISK_EXTENTS.Extents":                firstExtent,
	"DISK_EXTENT":                                extentSize,
	"STORAGE_DEVICE_ID_DESCRIPTOR.Identifiers":   firstIdentifier,
	"STORAGE_IDENTIFIER.Identifier":              identifierValue,
	"DRIVE_LAYOUT_INFORMATION_EX.PartitionEntry": layoutPartitions,
	"PARTITION_INFORMATION_EX.Gpt":               partitionUnion,
	"PARTITION_INFORMATION_EX":                   partitionSize,
	"MOUNTMGR_VOLUME_MOUNT_POINT":                mountSize,
}
