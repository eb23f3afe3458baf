package win

import "fmt"

// SANPolicy says what Windows does with disks that are new to it. It is why a disk that was
// just attached may be offline. We never change it: it belongs to the machine.
// https://learn.microsoft.com/windows-hardware/drivers/storage/ioctl-disk-set-san-settings
type SANPolicy uint64

// The policies. Windows chooses one if none was set.
const (
	SANDefault         SANPolicy = 0
	SANOnlineAll       SANPolicy = 1
	SANOfflineShared   SANPolicy = 2
	SANOfflineAll      SANPolicy = 3
	SANOfflineInternal SANPolicy = 4
)

func (p SANPolicy) String() string {
	switch p {
	case SANDefault:
		return "default of Windows"
	case SANOnlineAll:
		return "online all"
	case SANOfflineShared:
		return "offline shared"
	case SANOfflineAll:
		return "offline all"
	case SANOfflineInternal:
		return "offline internal"
	default:
		return fmt.Sprintf("unknown (%d)", uint64(p))
	}
}
