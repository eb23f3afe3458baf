package winapi

import (
	"encoding/binary"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

//sys	cmLocateDevNode(node *DeviceNode, id *uint16, flags uint32) (ret configRet) = cfgmgr32.CM_Locate_DevNodeW
//sys	cmReenumerateDevNode(node DeviceNode, flags uint32) (ret configRet) = cfgmgr32.CM_Reenumerate_DevNode
//sys	cmGetParent(parent *DeviceNode, node DeviceNode, flags uint32) (ret configRet) = cfgmgr32.CM_Get_Parent
//sys	cmGetDevNodeProperty(node DeviceNode, key *windows.DEVPROPKEY, propertyType *windows.DEVPROPTYPE, buffer *byte, size *uint32, flags uint32) (ret configRet) = cfgmgr32.CM_Get_DevNode_PropertyW

// DeviceNode is DEVINST, a device in the device tree.
type DeviceNode uint32

// LocateDeviceNode finds a device by its instance id. The empty id is the root of the
// tree.
// https://learn.microsoft.com/windows/win32/api/cfgmgr32/nf-cfgmgr32-cm_locate_devnodew
func LocateDeviceNode(id string) (DeviceNode, error) {
	var name *uint16
	if id != "" {
		var err error
		if name, err = utf16Ptr(id); err != nil {
			return 0, err
		}
	}
	const normal = 0 // CM_LOCATE_DEVNODE_NORMAL: devices that are present
	var node DeviceNode
	err := cmLocateDevNode(&node, name, normal).err()
	return node, err
}

// Reenumerate makes the device look for devices below it, and waits until those that came
// are there and those that went are gone. It needs LoadDriverPrivilege.
// https://learn.microsoft.com/windows/win32/api/cfgmgr32/nf-cfgmgr32-cm_reenumerate_devnode
func (n DeviceNode) Reenumerate() error {
	// CM_REENUMERATE_SYNCHRONOUS, and never CM_REENUMERATE_RETRY_INSTALLATION, which
	// may ask a user who is not there.
	const synchronous = 1
	return cmReenumerateDevNode(n, synchronous).err()
}

// Parent is the device above, for a disk its controller.
// https://learn.microsoft.com/windows/win32/api/cfgmgr32/nf-cfgmgr32-cm_get_parent
func (n DeviceNode) Parent() (DeviceNode, error) {
	var parent DeviceNode
	err := cmGetParent(&parent, n, 0).err()
	return parent, err
}

// devpkeyBusNumber is DEVPKEY_Device_BusNumber.
// https://learn.microsoft.com/windows-hardware/drivers/install/devpkey-device-busnumber
var devpkeyBusNumber = windows.DEVPROPKEY{
	FmtID: windows.DEVPROPGUID{Data1: 0xa45c254e, Data2: 0xdf1c, Data3: 0x4efd, Data4: [8]byte{0x80, 0x20, 0x67, 0xd1, 0x46, 0xa8, 0x50, 0xe0}},
	PID:   23,
}

// BusNumber is the number of the bus on which the device sits, for a controller that of
// its PCI bus.
// https://learn.microsoft.com/windows/win32/api/cfgmgr32/nf-cfgmgr32-cm_get_devnode_propertyw
func (n DeviceNode) BusNumber() (uint32, error) {
	var (
		propertyType windows.DEVPROPTYPE
		value        [4]byte
		size         = uint32(len(value))
	)
	if err := cmGetDevNodeProperty(n, &devpkeyBusNumber, &propertyType, &value[0], &size, 0).err(); err != nil {
		return 0, err
	}
	if propertyType != windows.DEVPROP_TYPE_UINT32 || size != uint32(len(value)) {
		return 0, winerr.BadLength
	}
	return binary.LittleEndian.Uint32(value[:]), nil
}
