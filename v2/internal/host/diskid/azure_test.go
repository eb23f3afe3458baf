package diskid_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskid"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

const (
	premium     = "Virtual_Disk NVME Premium"
	accelerator = "MSFT NVMe Accelerator v1.0"
	local       = "Microsoft NVMe Direct Disk v2"
)

// at is the device interface of azuredisk-csi-driver#3632 with another SCSI address.
func at(address string) win.Device {
	return win.Device(`\\?\scsi#disk&ven_nvme&prod_msft_nvme_accele#6&ca10229&0&` + address + `#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`)
}

func v7(address string) diskid.AzureDisk {
	return diskid.AzureDisk{Model: accelerator, Device: at(address)}
}

// v6 is a disk with a SCSI address, and a device interface without one.
func v6(port, lun uint8) diskid.AzureDisk {
	return diskid.AzureDisk{
		Model: premium, Address: &win.SCSIAddress{Port: port, LUN: lun},
		Device: win.Device(fmt.Sprintf(`\\?\scsi#disk&ven_virtual_&prod_disk#%d&%d#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`, port, lun)),
	}
}

// both has a SCSI address and a device interface of the accelerator.
func both(address string, lun uint8) diskid.AzureDisk {
	return diskid.AzureDisk{Model: "Virtual_Disk NVMe Premium", Device: at(address), Address: &win.SCSIAddress{LUN: lun}}
}

func system(d diskid.AzureDisk) diskid.AzureDisk { d.System = true; return d }

func named(d diskid.AzureDisk, model string) diskid.AzureDisk { d.Model = model; return d }

func on(d diskid.AzureDisk, device win.Device) diskid.AzureDisk { d.Device = device; return d }

func TestAzureLUNs(t *testing.T) {
	const elsewhere = `#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`
	for _, c := range []struct {
		name  string
		disks []diskid.AzureDisk
		want  []string
	}{
		{"none", nil, []string{}},
		{"v7", []diskid.AzureDisk{system(v7("000000")), v7("000001"), v7("000002"), v7("000009"), named(v7("000000"), local)}, []string{"", "0", "1", "8", ""}},
		{"v7, unit 0 is never a data disk", []diskid.AzureDisk{v7("000000")}, []string{""}},
		{"v7, the system disk elsewhere", []diskid.AzureDisk{system(v7("000001")), v7("000002")}, []string{"", "1"}},
		{"v7, letters are hexadecimal", []diskid.AzureDisk{v7("00000a"), v7("00000F")}, []string{"9", "14"}},
		{"v7, 10 is 10 or 16", []diskid.AzureDisk{v7("000009"), v7("000010"), v7("000064")}, []string{"8", "", ""}},
		{"v7, a letter proves that 10 is 16", []diskid.AzureDisk{v7("00000f"), v7("000010"), v7("000040")}, []string{"14", "15", "63"}},
		{"v7, but not on another controller", []diskid.AzureDisk{
			on(v7(""), `\\?\scsi#disk&ven_nvme&prod_msft_nvme_accele#6&0&0&00000f`+elsewhere), v7("000010"),
		}, []string{"14", ""}},
		{"v7, the same unit on two controllers", []diskid.AzureDisk{
			on(v7(""), `\\?\scsi#disk&ven_nvme&prod_msft_nvme_accele#6&0&0&000001`+elsewhere), v7("000001"), v7("000002"),
		}, []string{"", "", "1"}},
		{"v7, another path or target", []diskid.AzureDisk{v7("010001"), v7("000101")}, []string{"", ""}},
		{"v7, a SCSI address does not matter", []diskid.AzureDisk{{Model: accelerator, Device: at("000003"), Address: &win.SCSIAddress{LUN: 9}}}, []string{"2"}},
		{"v7, case does not matter", []diskid.AzureDisk{on(named(v7(""), "msft nvme accelerator V1.0"),
			`\\?\SCSI#DISK&VEN_NVME&PROD_MSFT_NVME_ACCELE#6&CA10229&0&000003#{53F56307-B6BF-11D0-94F2-00A0C91EFB8B}`)}, []string{"2"}},
		{"hostile device interfaces", []diskid.AzureDisk{
			on(v7(""), ""),
			on(v7(""), win.PhysicalDrive(3)),
			v7(""), v7("1"), v7("00001"), v7("0000001"), v7("-00001"), v7("+00001"), v7(" 00001"), v7("0x0001"), v7("00000g"), v7("０００００１"),
			v7("000001&000002"), v7("000001#000002"), v7("000001\x00"), v7("000001\n"),
			on(v7(""), `\\?\scsi#disk&ven_nvme&prod_msft_nvme_accele#6&ca10229&0&000001`),
			on(v7(""), `\\?\scsi#disk&ven_nvme&prod_msft_nvme_accele#6&ca10229&1&000001`+elsewhere),
			on(v7(""), `\\?\scsi#disk&ven_nvme&prod_microsoft_nvme_d#6&ca10229&0&000001`+elsewhere),
			on(v7(""), `\\?\scsi#disk&ven_msft&prod_virtual_disk#6&ca10229&0&000001`+elsewhere),
			on(v7(""), `x\\?\scsi#disk&ven_nvme&prod_msft_nvme_accele#6&ca10229&0&000001`+elsewhere),
			on(v7(""), `\\?\scsi#disk&ven_nvme&prod_msft_nvme_accele#6&ca10229&0&000001`+elsewhere+`\x`),
			on(v7(""), `\\?\scsi#disk&ven_nvme&prod_msft_nvme_accele\#6&ca10229&0&000001`+elsewhere),
		}, slices.Repeat([]string{""}, 23)},
		{"models that are almost right", []diskid.AzureDisk{
			named(v7("000001"), local), named(v7("000002"), "Microsoft NVMe Direct Disk"), named(v7("000003"), "MSFT NVMe Accelerator v1.1"),
			named(v7("000004"), "MSFT NVMe Accelerator"), named(v7("000005"), accelerator+" "), named(v7("000006"), ""),
			named(v6(1, 1), "Virtual_Disk NVME"), named(v6(1, 2), "Virtual Disk NVME Premium"), named(v6(1, 3), "Msft Virtual Disk"),
		}, slices.Repeat([]string{""}, 9)},

		{"v6", []diskid.AzureDisk{system(v6(0, 0)), v6(1, 0), v6(1, 1), v6(1, 63)}, []string{"", "0", "1", "63"}},
		{"v6, the same LUN on two adapters", []diskid.AzureDisk{v6(1, 0), v6(2, 0), v6(1, 1)}, []string{"", "", "1"}},
		{"v6, the address of the system disk", []diskid.AzureDisk{system(v6(0, 0)), v6(0, 0), v6(0, 1)}, []string{"", "", "1"}},
		{"v6, no address", []diskid.AzureDisk{named(diskid.AzureDisk{Device: win.PhysicalDrive(1)}, premium)}, []string{""}},

		{"v6 of #3632", []diskid.AzureDisk{system(both("000000", 0)), both("000001", 0), both("000002", 0)}, []string{"", "0", "1"}},
		{"v6, both rules agree", []diskid.AzureDisk{system(both("000000", 0)), both("000003", 2)}, []string{"", "2"}},
		{"v6, the rules disagree", []diskid.AzureDisk{both("000003", 3), both("000004", 0), both("000000", 1)}, []string{"", "3", ""}},
		{"v6, the unit is in doubt", []diskid.AzureDisk{both("000010", 9), both("010000", 1)}, []string{"", ""}},
		{"v6, an odd device interface of the accelerator", []diskid.AzureDisk{both("1", 1)}, []string{""}},
		{"v6 and v7", []diskid.AzureDisk{v6(1, 1), v7("000002"), v7("000003")}, []string{"", "", "2"}},
	} {
		if diff := cmp.Diff(c.want, diskid.AzureLUNs(c.disks)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestIsAzure(t *testing.T) {
	for _, c := range []struct {
		descriptor      win.DeviceDescriptor
		disk, byAddress bool
	}{
		{win.DeviceDescriptor{BusType: win.BusTypeNVMe, Vendor: "NVMe", Product: accelerator}, true, false},
		{win.DeviceDescriptor{BusType: win.BusTypeNVMe, Product: premium}, true, true},
		{win.DeviceDescriptor{BusType: win.BusTypeNVMe, Vendor: "Virtual_Disk", Product: "NVMe Premium"}, true, true},
		{win.DeviceDescriptor{BusType: win.BusTypeNVMe, Vendor: "NVMe", Product: local}, false, false},
		{win.DeviceDescriptor{BusType: win.BusTypeSAS, Product: accelerator}, false, false},
	} {
		if disk, byAddress := diskid.IsAzure(c.descriptor); disk != c.disk || disk && byAddress != c.byAddress {
			t.Errorf("%+v: %v, %v", c.descriptor, disk, byAddress)
		}
	}
}

func TestAzureNamespaces(t *testing.T) {
	got := diskid.AzureNamespaces([]win.Device{at("000000"), at("000001"), at("000010"), win.PhysicalDrive(0)})
	if diff := cmp.Diff([]uint32{1, 2, 0, 0}, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzAzureLUNs: whatever two disks tell, no two have the same LUN, the system disk has none, and
// a LUN is what one of the rules gives.
func FuzzAzureLUNs(f *testing.F) {
	f.Add(accelerator, string(at("000001")), uint8(0), premium, string(at("000002")), uint8(0))
	f.Add(premium, string(at("00000a")), uint8(9), accelerator, string(at("000010")), uint8(3))
	f.Add(local, `\\?\scsi#x`, uint8(1), premium, "", uint8(1))
	f.Fuzz(func(t *testing.T, model, device string, lun uint8, model2, device2 string, lun2 uint8) {
		disks := []diskid.AzureDisk{
			{Model: model, Device: win.Device(device), Address: &win.SCSIAddress{LUN: lun}},
			{Model: model2, Device: win.Device(device2), Address: &win.SCSIAddress{LUN: lun2}},
			{Model: model, Device: win.Device(device), Address: &win.SCSIAddress{Port: 1, LUN: lun}, System: true},
		}
		luns := diskid.AzureLUNs(disks)
		if luns[2] != "" || luns[0] != "" && luns[0] == luns[1] {
			t.Fatalf("%+v: %q", disks, luns)
		}
		for i, text := range luns[:2] {
			if text == "" {
				continue
			}
			n, err := strconv.Atoi(text)
			isAzure, _ := diskid.IsAzure(win.DeviceDescriptor{BusType: win.BusTypeNVMe, Product: disks[i].Model})
			if err != nil || n < 0 || n > 254 && n != int(disks[i].Address.LUN) || !isAzure {
				t.Fatalf("%+v: %q", disks[i], text)
			}
		}
	})
}
