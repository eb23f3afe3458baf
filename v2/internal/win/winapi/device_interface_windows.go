package winapi

import (
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

//sys	setupDiEnumDeviceInterfaces(set windows.DevInfo, device *deviceInfoData, class *windows.GUID, index uint32, data *deviceInterfaceData) (err error) = setupapi.SetupDiEnumDeviceInterfaces
//sys	setupDiGetDeviceInterfaceDetail(set windows.DevInfo, data *deviceInterfaceData, detail *deviceInterfaceDetail, size uint32, required *uint32, device *deviceInfoData) (err error) = setupapi.SetupDiGetDeviceInterfaceDetailW
//sys	setupDiGetDeviceInstanceID(set windows.DevInfo, device *deviceInfoData, id *uint16, size uint32, required *uint32) (err error) = setupapi.SetupDiGetDeviceInstanceIdW
//sys	setupDiOpenDeviceInterface(set windows.DevInfo, path *uint16, flags uint32, data *deviceInterfaceData) (err error) = setupapi.SetupDiOpenDeviceInterfaceW

// DeviceClass is a device interface class: a set of devices that do the same.
type DeviceClass struct{ guid windows.GUID }

// The classes we list.
// https://learn.microsoft.com/windows-hardware/drivers/install/guid-devinterface-disk
// https://learn.microsoft.com/windows-hardware/drivers/install/guid-devinterface-storageport
// GUID_DEVINTERFACE_HIDDEN_DISK is only in winioctl.h: "devices that are not reported through conventional APIs".
var (
	DiskClass        = DeviceClass{windows.GUID{Data1: 0x53f56307, Data2: 0xb6bf, Data3: 0x11d0, Data4: [8]byte{0x94, 0xf2, 0x00, 0xa0, 0xc9, 0x1e, 0xfb, 0x8b}}}
	HiddenDiskClass  = DeviceClass{windows.GUID{Data1: 0x7fccc86c, Data2: 0x228a, Data3: 0x40ad, Data4: [8]byte{0x8a, 0x58, 0xf5, 0x90, 0xaf, 0x7b, 0xfd, 0xce}}}
	StoragePortClass = DeviceClass{windows.GUID{Data1: 0x2accfe60, Data2: 0xc130, Data3: 0x11d2, Data4: [8]byte{0xb0, 0x82, 0x00, 0xa0, 0xc9, 0x1e, 0xfb, 0x8b}}}
)

// DeviceInterface is a device as a member of a class.
type DeviceInterface struct {
	Path       string // what Open takes
	InstanceID string // the name of its node in the device tree
	Node       DeviceNode
}

// deviceInterfaceData is SP_DEVICE_INTERFACE_DATA.
// https://learn.microsoft.com/windows/win32/api/setupapi/ns-setupapi-sp_device_interface_data
type deviceInterfaceData struct {
	size     uint32
	class    windows.GUID
	flags    uint32
	reserved uintptr
}

// deviceInfoData is SP_DEVINFO_DATA.
// https://learn.microsoft.com/windows/win32/api/setupapi/ns-setupapi-sp_devinfo_data
type deviceInfoData struct {
	size     uint32
	class    windows.GUID
	node     DeviceNode
	reserved uintptr
}

// deviceInterfaceDetail is SP_DEVICE_INTERFACE_DETAIL_DATA_W with room for the longest
// path of an interface, which the registry limits to the length of a key's name. The
// size it has to carry is that of the declaration, with a path of one character.
// https://learn.microsoft.com/windows/win32/api/setupapi/ns-setupapi-sp_device_interface_detail_data_w
type deviceInterfaceDetail struct {
	size uint32
	path [1024]uint16
}

const deviceInterfaceDetailSize = 8 // on 64-bit Windows

// errNoMoreItems is ERROR_NO_MORE_ITEMS, the end of a list.
const errNoMoreItems winerr.Code = 259

// DeviceInterfaces lists the devices of a class that are present, in no particular order.
// A device that leaves meanwhile is not in the list.
// https://learn.microsoft.com/windows/win32/api/setupapi/nf-setupapi-setupdigetclassdevsw
func DeviceInterfaces(class DeviceClass) ([]DeviceInterface, error) {
	// cfgmgr32's CM_Get_Device_Interface_List does the same with less code, but is the
	// one of both that Wine lacks, on which we test.
	set, err := windows.SetupDiGetClassDevsEx(&class.guid, "", 0, windows.DIGCF_PRESENT|windows.DIGCF_DEVICEINTERFACE, 0, "")
	if err != nil {
		return nil, Error(err)
	}
	defer set.Close()
	var devices []DeviceInterface
	for index := uint32(0); ; index++ {
		data := deviceInterfaceData{size: uint32(unsafe.Sizeof(deviceInterfaceData{}))}
		err := Error(setupDiEnumDeviceInterfaces(set, nil, &class.guid, index, &data))
		if winerr.CodeOf(err) == errNoMoreItems {
			return devices, nil
		}
		if err != nil {
			return nil, err
		}
		if device, err := describe(set, &data); err == nil {
			devices = append(devices, device)
		}
	}
}

// InterfaceNode finds the node in the device tree of an interface, by its path.
// https://learn.microsoft.com/windows/win32/api/setupapi/nf-setupapi-setupdiopendeviceinterfacew
func InterfaceNode(path string) (DeviceNode, error) {
	p, err := utf16Ptr(path)
	if err != nil {
		return 0, err
	}
	set, err := windows.SetupDiCreateDeviceInfoListEx(nil, 0, "")
	if err != nil {
		return 0, Error(err)
	}
	defer set.Close()
	data := deviceInterfaceData{size: uint32(unsafe.Sizeof(deviceInterfaceData{}))}
	if err := setupDiOpenDeviceInterface(set, p, 0, &data); err != nil {
		return 0, Error(err)
	}
	device, err := describe(set, &data)
	return device.Node, err
}

func describe(set windows.DevInfo, data *deviceInterfaceData) (DeviceInterface, error) {
	detail := deviceInterfaceDetail{size: deviceInterfaceDetailSize}
	info := deviceInfoData{size: uint32(unsafe.Sizeof(deviceInfoData{}))}
	if err := setupDiGetDeviceInterfaceDetail(set, data, &detail, uint32(unsafe.Sizeof(detail)), nil, &info); err != nil {
		return DeviceInterface{}, Error(err)
	}
	const maxDeviceID = 200 // MAX_DEVICE_ID_LEN
	var id [maxDeviceID + 1]uint16
	if err := setupDiGetDeviceInstanceID(set, &info, &id[0], uint32(len(id)), nil); err != nil {
		return DeviceInterface{}, Error(err)
	}
	device := DeviceInterface{
		Path:       windows.UTF16ToString(detail.path[:]),
		InstanceID: windows.UTF16ToString(id[:]),
		Node:       info.node,
	}
	if device.Path == "" {
		return DeviceInterface{}, winerr.NoSuchDevice
	}
	return device, nil
}
