package local

import "fmt"

// SANPolicy says what Windows does with disks that are new to it. It is why a disk that was
// just attached may be offline. We never change it: it is the machine's.
// https://learn.microsoft.com/windows-hardware/drivers/storage/ioctl-disk-set-san-settings
type SANPolicy uint32

// sanPolicies are the policies by number; 0 is what Windows chooses.
var sanPolicies = [...]string{"default of Windows", "online all", "offline shared", "offline all", "offline internal"}

func (p SANPolicy) String() string {
	if int(p) < len(sanPolicies) {
		return sanPolicies[p]
	}
	return fmt.Sprintf("unknown (%d)", uint32(p))
}
