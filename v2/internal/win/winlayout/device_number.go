package winlayout

import (
	"encoding/binary"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// storageDeviceNumber is STORAGE_DEVICE_NUMBER.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_device_number
type storageDeviceNumber struct{ DeviceType, DeviceNumber, PartitionNumber uint32 }

// DeviceNumberSize is how much IOCTL_STORAGE_GET_DEVICE_NUMBER answers.
var DeviceNumberSize = binary.Size(storageDeviceNumber{})

// DecodeDeviceNumber reads a STORAGE_DEVICE_NUMBER.
func DecodeDeviceNumber(b []byte) (win.DeviceNumber, error) {
	n, err := decode[storageDeviceNumber](b, "STORAGE_DEVICE_NUMBER")
	return n.value(), err
}

func (n storageDeviceNumber) value() win.DeviceNumber {
	return win.DeviceNumber{Type: win.DeviceType(n.DeviceType), Number: n.DeviceNumber, Partition: n.PartitionNumber}
}
