//go:build amd64 || arm64

package virtdisk

import (
	"testing"
	"unsafe"
)

// TestLayout compares our structures with those of virtdisk.h on 64-bit Windows.
func TestLayout(t *testing.T) {
	var (
		kind   virtualStorageType
		create createParameters
		open   openParameters
		attach attachParameters
		expand expandParameters
	)
	for _, test := range []struct {
		name      string
		got, want uintptr
	}{
		{"VIRTUAL_STORAGE_TYPE", unsafe.Sizeof(kind), 20},
		{"VIRTUAL_STORAGE_TYPE.VendorId", unsafe.Offsetof(kind.vendorID), 4},

		{"CREATE_VIRTUAL_DISK_PARAMETERS", unsafe.Sizeof(create), 128},
		{"CREATE_VIRTUAL_DISK_PARAMETERS.Version2.UniqueId", unsafe.Offsetof(create.uniqueID), 8},
		{"CREATE_VIRTUAL_DISK_PARAMETERS.Version2.MaximumSize", unsafe.Offsetof(create.maximumSize), 24},
		{"CREATE_VIRTUAL_DISK_PARAMETERS.Version2.BlockSizeInBytes", unsafe.Offsetof(create.blockSize), 32},
		{"CREATE_VIRTUAL_DISK_PARAMETERS.Version2.SectorSizeInBytes", unsafe.Offsetof(create.sectorSize), 36},
		{"CREATE_VIRTUAL_DISK_PARAMETERS.Version2.PhysicalSectorSizeInBytes", unsafe.Offsetof(create.physicalSectorSize), 40},
		{"CREATE_VIRTUAL_DISK_PARAMETERS.Version2.ParentPath", unsafe.Offsetof(create.parentPath), 48},
		{"CREATE_VIRTUAL_DISK_PARAMETERS.Version2.SourcePath", unsafe.Offsetof(create.sourcePath), 56},
		{"CREATE_VIRTUAL_DISK_PARAMETERS.Version2.OpenFlags", unsafe.Offsetof(create.openFlags), 64},
		{"CREATE_VIRTUAL_DISK_PARAMETERS.Version2.ParentVirtualStorageType", unsafe.Offsetof(create.parentType), 68},
		{"CREATE_VIRTUAL_DISK_PARAMETERS.Version2.SourceVirtualStorageType", unsafe.Offsetof(create.sourceType), 88},
		{"CREATE_VIRTUAL_DISK_PARAMETERS.Version2.ResiliencyGuid", unsafe.Offsetof(create.resiliencyGUID), 108},

		{"OPEN_VIRTUAL_DISK_PARAMETERS, version 2", unsafe.Sizeof(open), 28},
		{"OPEN_VIRTUAL_DISK_PARAMETERS.Version2.GetInfoOnly", unsafe.Offsetof(open.getInfoOnly), 4},
		{"OPEN_VIRTUAL_DISK_PARAMETERS.Version2.ReadOnly", unsafe.Offsetof(open.readOnly), 8},
		{"OPEN_VIRTUAL_DISK_PARAMETERS.Version2.ResiliencyGuid", unsafe.Offsetof(open.resiliencyGUID), 12},

		{"ATTACH_VIRTUAL_DISK_PARAMETERS", unsafe.Sizeof(attach), 24},
		{"ATTACH_VIRTUAL_DISK_PARAMETERS.Version1.Reserved", unsafe.Offsetof(attach.reserved), 8},

		{"EXPAND_VIRTUAL_DISK_PARAMETERS", unsafe.Sizeof(expand), 16},
		{"EXPAND_VIRTUAL_DISK_PARAMETERS.Version1.NewSize", unsafe.Offsetof(expand.newSize), 8},
	} {
		if test.got != test.want {
			t.Errorf("%s: %d, want %d", test.name, test.got, test.want)
		}
	}
}
