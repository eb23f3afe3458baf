package win

import "fmt"

// VolumeHealth is MSFT_Volume.HealthStatus: what NTFS has noted about itself, and what mends it.
//
// The page below documents the values up to 3. The class of later releases says warning, unhealthy and unknown (5)
// instead; Q-volume-health in test/windows asks. Whatever is not 0 is not well.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-volume
type VolumeHealth uint16

// The values.
const (
	VolumeHealthy    VolumeHealth = 0
	ScanNeeded       VolumeHealth = 1 // something looks wrong, and a scan finds out what
	SpotFixNeeded    VolumeHealth = 2 // the damage is known, and mended in seconds
	FullRepairNeeded VolumeHealth = 3
	HealthUnknown    VolumeHealth = 5
)

// Repair is what MSFT_Volume.Repair does.
// https://learn.microsoft.com/powershell/module/storage/repair-volume
type Repair string

// What it can do.
const (
	RepairScan    Repair = "scan"     // notes all damage while the volume is in use
	RepairSpotFix Repair = "spot fix" // mends what is noted; the volume is away for seconds
	RepairOffline Repair = "offline repair"
)

// DiskHealth is HealthStatus and OperationalStatus of MSFT_PhysicalDisk.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-physicaldisk
type DiskHealth struct {
	Status DiskStatus
	// Operational has reasons, such as PredictiveFailure. It may be empty.
	Operational []uint16
}

// DiskStatus is HealthStatus.
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
	0xD00A: "abnormal latency", 0xD00C: "transient errors",
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
