package winapi_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// TestControlCodes has the numbers as a C compiler printed them from winioctl.h and
// ntddscsi.h, and those of mountmgr.h as others have listed them.
func TestControlCodes(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want winapi.ControlCode
	}{
		{"IOCTL_SCSI_GET_ADDRESS", winapi.SCSIGetAddress, 0x00041018},
		{"IOCTL_DISK_GET_DRIVE_LAYOUT_EX", winapi.DiskGetDriveLayoutEx, 0x00070050},
		{"IOCTL_DISK_SET_DRIVE_LAYOUT_EX", winapi.DiskSetDriveLayoutEx, 0x0007C054},
		{"IOCTL_DISK_CREATE_DISK", winapi.DiskCreateDisk, 0x0007C058},
		{"IOCTL_DISK_GET_DRIVE_GEOMETRY_EX", winapi.DiskGetDriveGeometryEx, 0x000700A0},
		{"IOCTL_DISK_UPDATE_DRIVE_SIZE", winapi.DiskUpdateDriveSize, 0x0007C0C8},
		{"IOCTL_DISK_GROW_PARTITION", winapi.DiskGrowPartition, 0x0007C0D0},
		{"IOCTL_DISK_GET_DISK_ATTRIBUTES", winapi.DiskGetDiskAttributes, 0x000700F0},
		{"IOCTL_DISK_SET_DISK_ATTRIBUTES", winapi.DiskSetDiskAttributes, 0x0007C0F4},
		{"IOCTL_DISK_UPDATE_PROPERTIES", winapi.DiskUpdateProperties, 0x00070140},
		{"FSCTL_LOCK_VOLUME", winapi.LockVolume, 0x00090018},
		{"FSCTL_DISMOUNT_VOLUME", winapi.DismountVolume, 0x00090020},
		{"FSCTL_GET_REFS_VOLUME_DATA", winapi.GetReFSVolumeData, 0x000902D8},
		{"FSCTL_IS_VOLUME_DIRTY", winapi.IsVolumeDirty, 0x00090078},
		{"FSCTL_GET_NTFS_VOLUME_DATA", winapi.GetNTFSVolumeData, 0x00090064},
		{"FSCTL_EXTEND_VOLUME", winapi.ExtendVolume, 0x000900F0},
		{"IOCTL_STORAGE_GET_DEVICE_NUMBER", winapi.StorageGetDeviceNumber, 0x002D1080},
		{"IOCTL_STORAGE_QUERY_PROPERTY", winapi.StorageQueryProperty, 0x002D1400},
		{"IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS", winapi.VolumeGetVolumeDiskExtents, 0x00560000},
		{"IOCTL_VOLUME_ONLINE", winapi.VolumeOnline, 0x0056C008},
		{"IOCTL_MOUNTMGR_VOLUME_MOUNT_POINT_CREATED", winapi.MountManagerMountPointCreated, 0x006DC018},
		{"IOCTL_MOUNTMGR_VOLUME_MOUNT_POINT_DELETED", winapi.MountManagerMountPointDeleted, 0x006DC01C},
	} {
		if c.got != c.want {
			t.Errorf("%s is %#08x, want %#08x", c.name, uint32(c.got), uint32(c.want))
		}
	}
}
