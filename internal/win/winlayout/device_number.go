package winlayout

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win"

// STORAGE_DEVICE_NUMBER
//
//	typedef struct _STORAGE_DEVICE_NUMBER {
//	  DEVICE_TYPE DeviceType;
//	  DWORD       DeviceNumber;
//	  DWORD       PartitionNumber;
//	} STORAGE_DEVICE_NUMBER;
//
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_device_number
const (
	numberType      = 0
	numberDevice    = 4
	numberPartition = 8
	numberSize      = 12
)

// DeviceNumberSize is how much IOCTL_STORAGE_GET_DEVICE_NUMBER answers.
const DeviceNumberSize = numberSize

// DecodeDeviceNumber reads a STORAGE_DEVICE_NUMBER.
func DecodeDeviceNumber(b []byte) (win.DeviceNumber, error) {
	if err := need(b, numberSize, "STORAGE_DEVICE_NUMBER"); err != nil {
		return win.DeviceNumber{}, err
	}
	return win.DeviceNumber{
		Type:      win.DeviceType(uint32At(b, numberType)),
		Number:    uint32At(b, numberDevice),
		Partition: uint32At(b, numberPartition),
	}, nil
}
