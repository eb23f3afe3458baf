package winapi

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"

//sys	getSystemFirmwareTable(provider uint32, table uint32, buffer *byte, size uint32) (needed uint32, err error) [failretval==0] = kernel32.GetSystemFirmwareTable

// SMBIOS returns the tables of the firmware as RawSMBIOSData.
// https://learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-getsystemfirmwaretable
func SMBIOS() ([]byte, error) {
	const provider = 'R'<<24 | 'S'<<16 | 'M'<<8 | 'B'
	return grow(8<<10, nil, func(buffer []byte) (int, error) {
		n, err := getSystemFirmwareTable(provider, 0, &buffer[0], Length(buffer))
		switch {
		case err != nil:
			return 0, Error(err)
		case int(n) > len(buffer): // it returns how much it needs, which is not a failure
			return 0, winerr.InsufficientBuffer
		default:
			return int(n), nil
		}
	})
}
