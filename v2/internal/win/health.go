package win

import "fmt"

// VolumeHealth is HealthStatus and OperationalStatus of MSFT_Volume: what a file system has noted about itself, and what
// would mend it. The first page has HealthStatus of Server 2012. The other is the class of Server 2016 and later, where
// HealthStatus is like that of a disk. Q-volume-health in test/windows asks.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-volume
// https://github.com/microsoft/wmi/blob/master/server2019/root/microsoft/windows/storage/MSFT_Volume.go
type VolumeHealth struct {
	Status      DiskStatus // on Server 2012, 1 to 3 are the repairs below, in their order
	Operational []uint16   // the repair, among others; nil on Server 2012
}

// Values of OperationalStatus of a volume.
const (
	ScanNeeded       uint16 = 0xD00D // something looks wrong, and a scan finds out what
	SpotFixNeeded    uint16 = 0xD00E // the damage is known, and mended in seconds
	FullRepairNeeded uint16 = 0xD00F
)

// DiskHealth is HealthStatus and OperationalStatus of MSFT_PhysicalDisk.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-physicaldisk
type DiskHealth struct {
	Status DiskStatus
	// Operational has reasons, such as PredictiveFailure. It may be empty.
	Operational []uint16
}

// DiskStatus is HealthStatus, of disks and of volumes.
type DiskStatus uint16

// The values.
const (
	DiskHealthy   DiskStatus = 0
	DiskWarning   DiskStatus = 1 // it works, but reports errors or expects to fail
	DiskUnhealthy DiskStatus = 2
	DiskUnknown   DiskStatus = 5
)

// Values of OperationalStatus.
const (
	PredictiveFailure uint16 = 5
	LostCommunication uint16 = 13
	IOError           uint16 = 0xD005
)

var operational = map[uint16]string{
	2: "OK", 3: "degraded", 4: "stressed", PredictiveFailure: "expects to fail", 6: "error", 7: "error that cannot be mended",
	12: "no contact", LostCommunication: "lost communication", 0xD002: "failed media", 0xD004: "stale metadata", IOError: "I/O errors",
	0xD00A: "hardware error", 0xD00C: "transient errors",
}

// Reason is why a disk is not healthy, in a few words, or empty.
func (h DiskHealth) Reason() (reason string) {
	for _, status := range h.Operational {
		if status == 2 {
			continue
		}
		text, known := operational[status]
		if !known {
			text = fmt.Sprintf("status %d", status)
		}
		if reason != "" {
			reason += ", "
		}
		reason += text
	}
	return reason
}
