package problem

import (
	"strings"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
)

// The kinds of damage of a Volume.
const (
	scanNeeded    = "scan needed"
	spotFixNeeded = "spot fix needed"
	repairNeeded  = "offline repair needed"
)

func isDamage(damage string) bool {
	return damage == scanNeeded || damage == spotFixNeeded || damage == repairNeeded
}

// RepairAdvice says how an operator mends the file system of a volume. It is empty if nothing is known to be wrong.
// csi-proxy runs none of the commands: an operator decides when pods can be without the volume.
func RepairAdvice(v *extensionv1.Volume) string {
	damage := v.GetDamage()
	switch {
	case !isDamage(damage) && !v.GetDirty():
		return ""
	case !strings.EqualFold(v.GetFileSystem(), "NTFS"):
		return "only NTFS can be repaired: back it up, and restore it to a new volume if files cannot be read; ReFS mends itself"
	case damage == spotFixNeeded:
		return "stop the pods that use it; then " + repairCommand(v, damage)
	case damage == repairNeeded:
		return "back it up, and stop the pods that use it; then " + repairCommand(v, damage)
	default:
		return "while pods use it, " + repairCommand(v, scanNeeded) + "; without pods, " + repairCommand(v, spotFixNeeded)
	}
}

// repairCommand names the commands of Windows for a kind of damage. They take the name of a volume that has no drive
// letter. PowerShell needs the quotes because of the braces, and a backslash before a double quote would escape it.
// https://learn.microsoft.com/powershell/module/storage/repair-volume
// https://learn.microsoft.com/windows-server/administration/windows-commands/chkdsk
func repairCommand(v *extensionv1.Volume, damage string) string {
	option, other := map[string]string{scanNeeded: "-Scan", spotFixNeeded: "-SpotFix", repairNeeded: "-OfflineScanAndFix"}[damage], "/f"
	if damage == scanNeeded {
		other = "/scan"
	}
	return "run Get-Volume -UniqueId '" + v.GetId() + "' | Repair-Volume " + option + ` in PowerShell, or chkdsk "` + strings.TrimSuffix(v.GetId(), `\`) + `" ` + other
}
