package diskid

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// The models of Azure's remote NVMe disks, among them the one that Windows runs from. Reports spell
// the first one with "NVME" and with "NVMe". Local disks are "Microsoft NVMe Direct Disk" and
// "Microsoft NVMe Direct Disk v2"; they have no LUN.
const (
	azurePremium     = "Virtual_Disk NVME Premium"
	azureAccelerator = "MSFT NVMe Accelerator v1.0"
)

// AzureDisk is what AzureLUNs needs to know of an NVMe disk.
type AzureDisk struct {
	Model   string
	Device  win.Device
	Address *win.SCSIAddress // nil if unknown
	System  bool             // Windows or its boot files are on it
}

// IsAzure reports whether a disk is one of Azure's remote NVMe disks, by its descriptor.
func IsAzure(d win.DeviceDescriptor) (disk, byAddress bool) {
	model := Model(d)
	byAddress = strings.EqualFold(model, azurePremium)
	return d.BusType == win.BusTypeNVMe && (byAddress || strings.EqualFold(model, azureAccelerator)), byAddress
}

// AzureLUNs returns the LUN that each disk has in Azure, as text, or nothing. A driver mounts what
// it finds by the LUN, and a wrong disk is the worst that can happen to it
// (azuredisk-csi-driver#2661), so a LUN is filled in only by a reported rule, and only if nothing
// contradicts it:
//
//   - "MSFT NVMe Accelerator v1.0", of v7 sizes: the unit in the device interface, less one
//     (azuredisk-csi-driver#3632). It agrees with azure-vm-utils#11: the disk of Windows is namespace
//     1, a data disk is namespace LUN + 2, and units count from 0.
//   - "Virtual_Disk NVME Premium", of v6 sizes: the LUN of the SCSI address
//     (azuredisk-csi-driver#2671). But azuredisk-csi-driver#3632 shows this model, too, with a device
//     interface of the accelerator, to which the first rule applies; the LUN of the SCSI address is
//     0 for all disks there. If the address has another LUN than the first rule gives, neither
//     counts. Nor does an address that two disks have.
//   - The system disk has none. Two disks with the same LUN have none. So the caller must pass every
//     disk, and not call it while one of them does not report its model or address.
//
// Disks on other buses do not count. The driver compares the LUN and nothing else, so it finds a SCSI
// or iSCSI disk with the same LUN anyway. If the NVMe disk had none, that would be the only match.
func AzureLUNs(disks []AzureDisk) []string {
	devices := make([]win.Device, len(disks))
	for i, disk := range disks {
		devices[i] = disk.Device
	}
	units := azureUnits(devices)
	luns := make([]string, len(disks))
	for i, disk := range disks {
		if lun := disk.lun(units[i], disks); lun >= 0 && !disk.System {
			luns[i] = strconv.Itoa(lun)
		}
	}
	times := map[string]int{}
	for _, lun := range luns {
		times[lun]++
	}
	for i, lun := range luns {
		if times[lun] > 1 {
			luns[i] = ""
		}
	}
	return luns
}

// noLUN is the LUN of a disk of which it is unknown, and less than any other.
const noLUN = -1

func (d AzureDisk) lun(unit azureUnit, all []AzureDisk) int {
	switch {
	case strings.EqualFold(d.Model, azureAccelerator):
		return unit.lun()
	case !strings.EqualFold(d.Model, azurePremium):
		return noLUN
	case unit.present:
		if lun := unit.lun(); d.Address == nil || d.Address.LUN == 0 || int(d.Address.LUN) == lun {
			return lun
		}
		return noLUN
	case d.Address == nil:
		return noLUN
	}
	same := 0
	for _, other := range all {
		if other.Address != nil && *other.Address == *d.Address {
			same++
		}
	}
	if same != 1 {
		return noLUN
	}
	return int(d.Address.LUN)
}

// AzureNamespaces returns the NVMe namespace ids that the device interfaces of Azure's accelerator
// tell, or 0: the unit and one, see AzureLUNs.
func AzureNamespaces(devices []win.Device) []uint32 {
	namespaces := make([]uint32, len(devices))
	for i, unit := range azureUnits(devices) {
		if unit.known {
			namespaces[i] = uint32(unit.number) + 1
		}
	}
	return namespaces
}

// azureUnit is the last field of a device interface of the accelerator.
type azureUnit struct {
	present bool // it is such an interface
	known   bool // and number is the unit
	number  uint8
}

func (u azureUnit) lun() int {
	if !u.known {
		return noLUN
	}
	return int(u.number) - 1 // unit 0 is the disk of Windows
}

// accelerator matches device interfaces as azuredisk-csi-driver#3632 shows them:
// \\?\scsi#disk&ven_nvme&prod_msft_nvme_accele#6&ca10229&0&000001#{53f56307-...}.
// It finds the controller, and the SCSI address: path, target and unit, two digits each.
var accelerator = regexp.MustCompile(`(?i)^\\\\\?\\scsi#disk&ven_nvme&prod_msft_nvme_accele[^#&\\]*#([^#\\]*&0)&([0-9a-f]{6})#\{[0-9a-f-]{36}\}$`)

// azureUnits reads the units of device interfaces. Windows writes them in hexadecimal: target 10 of
// a VMware disk is "000a00". azuredisk-csi-driver#3632 reads them as decimal. Both agree up to 9.
// "10" and more count only if another disk of the same controller has a letter in its unit, which
// proves that they are hexadecimal.
func azureUnits(devices []win.Device) []azureUnit {
	units := make([]azureUnit, len(devices))
	isHex := map[string]bool{}
	for _, device := range devices {
		if m := accelerator.FindStringSubmatch(string(device)); m != nil && strings.ContainsAny(m[2], "abcdefABCDEF") {
			isHex[strings.ToLower(m[1])] = true
		}
	}
	for i, device := range devices {
		m := accelerator.FindStringSubmatch(string(device))
		if m == nil {
			units[i].present = strings.Contains(strings.ToLower(string(device)), "prod_msft_nvme_accele")
			continue
		}
		units[i].present = true
		digits, ok := strings.CutPrefix(m[2], "0000") // path and target
		if !ok || (digits[0] != '0' && !isHex[strings.ToLower(m[1])]) {
			continue
		}
		number, err := strconv.ParseUint(digits, 16, 8)
		units[i].number, units[i].known = uint8(number), err == nil
	}
	return units
}
