package winsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// SystemVolume is the ID of drive C: in the presets.
const SystemVolume = `\\?\Volume{0c51a9e0-0000-0000-0000-100000000000}\`

var presets = map[string]func() Model{
	"broken":     Broken,
	"busy":       Busy,
	"default":    Default,
	"azure":      Azure,
	"azure-nvme": AzureNVMe,
	"ebs-nvme":   EBSNVMe,
	"gce":        GCE,
	"gce-nvme":   GCENVMe,
	"vsphere":    VSphere,
}

// Default is a plain node: drive C: with the kubelet's directories on disk 0, the blank disks 1 to 3 of 10 GiB, 1 GiB and
// 20 GiB, of which the last has 4096-byte sectors and grows to 24 GiB when it is formatted, two targets at the iSCSI
// portal 10.0.0.10:3260, and the share \\files\data of the user csi with the password "csi-Pa55".
func Default() Model {
	model := node(Firmware{Manufacturer: "winsim", Product: "Emulated node", Serial: "WINSIM-NODE-1"},
		Disk{Vendor: "WINSIM", Product: "Disk", Serial: "SYSTEM", Page83: []Identifier{{Text: "WINSIM  system"}}, Location: scsiLocation(0, 0), SCSI: &SCSI{BusNumber: "0"}})
	for i, data := range []Disk{{Size: 10 * GiB}, {Size: GiB}, {Size: 20 * GiB, SectorSize: 4096, GrowsTo: 24 * GiB}} {
		data.Page83 = []Identifier{{Text: fmt.Sprintf("WINSIM  disk-%d", i+1)}}
		model.Disks = append(model.Disks, dataDisk(i+1, data))
	}
	model.ISCSI = demoTargets()
	initiator := slices.IndexFunc(model.Services, func(s Service) bool { return s.Name == iscsiService })
	model.Services[initiator].StartType = StartAutomatic
	model.SMBServers = []SMBServer{{
		Name:     "files",
		Shares:   []SMBShare{{Name: "data"}},
		Accounts: []SMBAccount{{User: "csi", Password: "csi-Pa55"}},
	}}
	return model
}

// dataDisk completes a disk of the backend, which counts from 1.
func dataDisk(number int, d Disk) Disk {
	lun := uint8(number - 1)
	d.Vendor, d.Product, d.Serial = "WINSIM", "Disk", fmt.Sprintf("WINSIM%04d", number)
	d.Location, d.SCSI = scsiLocation(1, lun), &SCSI{Port: 1, LUN: lun, BusNumber: "0"}
	return d
}

// Busy is Default with two volumes in use by pods, on disks 4 and 5. The second is almost full, and its disk has grown.
// A third volume is gone and has left its mount behind.
func Busy() Model {
	model := Default()
	for i, volume := range []struct {
		name, id         string
		disk, size, used Size
	}{
		{"web", "b0570000-0000-0000-0000-000000000004", 5 * GiB, 0, 2 * GiB},
		{"db", "b0570000-0000-0000-0000-000000000005", 20 * GiB, 10 * GiB, 9500 * MiB},
	} {
		model.Disks = append(model.Disks, dataDisk(4+i, Disk{
			Size: volume.disk, Layout: LayoutGPT,
			Partitions: []Partition{
				{Type: "msr", Size: 16 * MiB},
				{Size: volume.size, Volume: &Volume{ID: volume.id, Used: volume.used}},
			},
		}))
		staged := staging(volume.name)
		model.Files = append(model.Files,
			File{Path: staged, Volume: volume.id},
			File{Path: `C:\var\lib\kubelet\pods\` + volume.name + `-0\volumes\kubernetes.io~csi\` + volume.name + `\mount`, Symlink: staged},
		)
	}
	model.Files = append(model.Files, File{Path: staging("old"), Junction: `\\?\Volume{b0570000-0000-0000-0000-000000000006}\`})
	return model
}

// Broken is a node with one of each trouble: volumes that are full, locked or gone, disks that are offline, hang or die,
// a link that leads nowhere, a server that does not answer, and 99% of drive C: in use.
func Broken() Model {
	model := Default()
	system := model.Disks[0].Partitions
	system[len(system)-1].Volume.Used = 64930 * MiB
	model.Disks = model.Disks[:1]
	for i, disk := range []Disk{
		{Size: 5 * GiB, Partitions: []Partition{{Volume: &Volume{Used: 2 * GiB}}}},
		{Size: 5 * GiB, Partitions: []Partition{{Volume: &Volume{Used: 5 * GiB}}}},
		{Size: 5 * GiB, Partitions: []Partition{{Volume: &Volume{State: Locked}}}},
		{Size: 10 * GiB, Partitions: []Partition{{Volume: &Volume{}}}, Offline: true},
		{Size: 10 * GiB, Partitions: []Partition{{Volume: &Volume{}}}, Hanging: true},
		{Size: 10 * GiB, Dying: true},
	} {
		number := i + 1
		if len(disk.Partitions) > 0 {
			disk.Layout = LayoutGPT
			disk.Partitions[0].Volume.ID = brokenVolume(number)
			model.Files = append(model.Files, inUse("disk.csi.example.com", number, File{Volume: brokenVolume(number)})...)
		}
		model.Disks = append(model.Disks, dataDisk(number, disk))
	}
	model.Files = append(model.Files, inUse("disk.csi.example.com", 7, File{Junction: `\\?\Volume{` + brokenVolume(7) + `}\`})...)
	model.Files = append(model.Files, inUse("smb.csi.example.com", 8, File{Symlink: `\\archive\media`})...)
	model.Files = append(model.Files, podLink(9, staging("removed")))
	model.SMBServers = append(model.SMBServers, SMBServer{
		Name: "archive", Shares: []SMBShare{{Name: "media", MappedFor: "csi"}}, Accounts: []SMBAccount{{User: "csi", Password: "csi-Pa55"}}, Down: true,
	})
	return model
}

func brokenVolume(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) }

// inUse is a volume that kubelet has staged, with the link of a pod to it.
func inUse(driver string, n int, staged File) []File {
	staged.Path = fmt.Sprintf(`C:\var\lib\kubelet\plugins\kubernetes.io\csi\%s\%064x\globalmount`, driver, n)
	return []File{staged, podLink(n, staged.Path)}
}

func podLink(n int, target string) File {
	return File{Path: fmt.Sprintf(`C:\var\lib\kubelet\pods\00000000-0000-4000-a000-%012d\volumes\kubernetes.io~csi\pvc-%d\mount`, n, n), Symlink: target}
}

// staging is the directory where a driver mounts a volume.
func staging(volume string) string {
	return `C:\var\lib\kubelet\plugins\kubernetes.io\csi\csi.example.com\` + volume + `\globalmount`
}

// demoTargets is a portal with two targets, one of which requires CHAP. Their disks appear
// after a login.
func demoTargets() ISCSI {
	return ISCSI{
		PnPDelay: 200 * time.Millisecond,
		Portals:  []ISCSIPortal{{Address: "10.0.0.10", Port: 3260}},
		Targets: []ISCSITarget{
			{IQN: "iqn.2025-01.com.example:open", LUNs: []Disk{{Size: 5 * GiB, Serial: "WINSIM-OPEN-0"}}},
			{
				IQN:  "iqn.2025-01.com.example:guarded",
				CHAP: &CHAP{User: "winsim", Secret: "winsim-secret-1", MutualSecret: "winsim-mutual-1"},
				LUNs: []Disk{{Size: 2 * GiB, Serial: "WINSIM-GUARDED-0"}, {Size: GiB, Serial: "WINSIM-GUARDED-1"}},
			},
		},
	}
}

// Azure is a node with two data disks at LUN 0 and 1 of the second adapter, by which drivers find them.
func Azure() Model {
	hyperV := func(digits string) []Identifier { return []Identifier{{Hex: "60022480" + digits}} }
	model := node(azureFirmware, Disk{Bus: BusSAS, Vendor: "Msft", Product: "Virtual Disk", Page83: hyperV("5a1bd4d05f4e7dbb0e6c1b49"), Location: azureLocation(0, 0), SCSI: &SCSI{BusNumber: "0"}})
	for lun := range uint8(2) {
		model.Disks = append(model.Disks, Disk{
			Size: 32 * GiB, SectorSize: 512, Bus: BusSAS, Vendor: "Msft", Product: "Virtual Disk",
			Page83:   hyperV(fmt.Sprintf("c1f0a2b3d4e5f60718293a%02x", lun)),
			Location: azureLocation(1, lun),
			SCSI:     &SCSI{Port: 1, LUN: lun, BusNumber: "0"},
		})
	}
	return model
}

var azureFirmware = Firmware{Manufacturer: "Microsoft Corporation", Product: "Virtual Machine", Serial: "0000-0005-4413-3846-5230-9047-47"}

// azureLocation is the location on a generation 2 machine. The odd numbers are those of the
// VMBus.
func azureLocation(adapter, lun uint8) string {
	return fmt.Sprintf("Integrated : Bus 0 : Device 63667 : Function 30747 : Adapter %d : Port 0 : Target 0 : LUN %d", adapter, lun)
}

// AzureNVMe is a node of a v7 size with two data disks at LUN 0 and 1, and a local one, all NVMe. The end of the device
// interface is the LUN plus one; texts are those of azuredisk-csi-driver#3632 and #2365.
func AzureNVMe() Model {
	return node(azureFirmware, azureNVMeDisk(0), azureNVMeDisk(1), azureNVMeDisk(2), Disk{
		Size: 110 * GiB, SectorSize: 512, Bus: BusNVMe, Vendor: "NVMe", Product: "Microsoft NVMe Direct Disk v2",
		Serial:   "0000_0000_0000_0001_6479_A700_0000_0001.",
		Path:     `\\?\scsi#disk&ven_nvme&prod_microsoft_nvme_d#5&2a3b4c5d&0&000000` + diskInterface,
		Location: "Integrated : Bus 35655680 : Device 0 : Function 0 : Adapter 1",
		SCSI:     &SCSI{Port: 1, BusNumber: "35655680"},
	})
}

func azureNVMeDisk(unit uint8) Disk {
	return Disk{
		Size: 100 * GiB, SectorSize: 512, Bus: BusNVMe, Vendor: "NVMe", Product: "MSFT NVMe Accelerator v1.0",
		Serial:   fmt.Sprintf("371B_BE56_2601_463D_8419_338D_66A0_%04X.", unit+1),
		Page83:   []Identifier{{Hex: fmt.Sprintf("371bbe562601463d8419338d66a0%04x", unit+1), Type: "eui64"}},
		Path:     fmt.Sprintf(`\\?\scsi#disk&ven_nvme&prod_msft_nvme_accele#6&ca10229&0&%06x`, unit) + diskInterface,
		Location: "Integrated : Bus 12606208 : Device 0 : Function 0 : Adapter 0",
		SCSI:     &SCSI{BusNumber: "12606208"},
	}
}

// diskInterface is GUID_DEVINTERFACE_DISK, with which the paths of disks end.
const diskInterface = "#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}"

// GCE is a Compute Engine node with two persistent disks, whose name is the last word of page 83.
func GCE() Model {
	return node(gceFirmware, gceDisk("system", 1), gceDisk("pvc-data-1", 2), gceDisk("pvc-data-2", 3))
}

var gceFirmware = Firmware{Manufacturer: "Google", Product: "Google Compute Engine", Serial: "GoogleCloud-0A1B2C3D4E5F60718293A4B5C6D7E8F9"}

func gceDisk(name string, target uint8) Disk {
	return Disk{
		Size: 10 * GiB, Bus: BusSCSI, Vendor: "Google", Product: "PersistentDisk", Serial: name,
		Page83:   []Identifier{{Text: "Google  " + name}},
		Location: fmt.Sprintf("PCI Slot 3 : Bus 0 : Device 3 : Function 0 : Adapter 2 : Port 0 : Target %d : LUN 0", target),
		SCSI:     &SCSI{Port: 2, Target: target, BusNumber: "0"},
	}
}

// GCENVMe is a Compute Engine node with two hyperdisks. The first 16 digits of the serial number are an EUI-64, which
// the metadata server reports in decimal (gcp-compute-persistent-disk-csi-driver#2114).
func GCENVMe() Model {
	return node(gceFirmware, gceNVMeDisk("5D1F0A5FC6D9E0B2", 1), gceNVMeDisk("10CC9636B6E3CE3B", 2), gceNVMeDisk("2B6E1F90A4C35D78", 3))
}

func gceNVMeDisk(eui64 string, namespace uint8) Disk {
	groups := []string{eui64[0:4], eui64[4:8], eui64[8:12], eui64[12:16], "0000", "0000", "0000", "0000"}
	return Disk{
		Size: 10 * GiB, SectorSize: 512, Bus: BusNVMe, Vendor: "NVMe", Product: "nvme_card-pd",
		Serial:   strings.Join(groups, "_") + ".",
		Page83:   []Identifier{{Hex: eui64, Type: "eui64"}},
		Path:     fmt.Sprintf(`\\?\scsi#disk&ven_nvme&prod_nvme_card-pd#5&1f8d6c0e&0&%06x`, namespace-1) + diskInterface,
		Location: "PCI Slot 4 : Bus 0 : Device 4 : Function 0 : Adapter 0",
		SCSI:     &SCSI{BusNumber: "0"},
	}
}

// EBSNVMe is an EC2 node with two EBS volumes, whose id, without its dash, is in the serial number.
func EBSNVMe() Model {
	return node(Firmware{Manufacturer: "Amazon EC2", Product: "m5.large", Serial: "ec2a1b2c-3d4e-5f60-7182-93a4b5c6d7e8"},
		ebsDisk("vol0a1b2c3d4e5f60718", 0), ebsDisk("vol0123456789abcdef0", 1), ebsDisk("vol0fedcba9876543210", 2))
}

func ebsDisk(volume string, adapter uint8) Disk {
	return Disk{
		Size: 16 * GiB, Bus: BusNVMe, Vendor: "NVMe", Product: "Amazon Elastic Block Store", Serial: volume + "_00000001.",
		Page83:   []Identifier{{CodeSet: "utf8", Text: "nvme.1d0f-" + volume}},
		Location: fmt.Sprintf("PCI Slot %d : Bus 0 : Device %d : Function 0 : Adapter %d", 16+adapter, 30-adapter, adapter),
		SCSI:     &SCSI{Port: adapter, BusNumber: "0"},
	}
}

// VSphere is a virtual machine with two disks that arrive offline and read-only. Drivers find them by page 83, the
// disk's UUID, and the machine by the serial number of its firmware.
func VSphere() Model {
	model := node(Firmware{Manufacturer: "VMware, Inc.", Product: "VMware7,1", Serial: "VMware-42 1a 3b 5c 7d 9e b0 c1-d2 e3 f4 05 16 27 38 49"},
		vmdk("6000c2900000000000000000000000a0", 0), vmdk("6000c29b1e5c4f7d8a90b1c2d3e4f5a1", 1), vmdk("6000c29b1e5c4f7d8a90b1c2d3e4f5a2", 2))
	model.Storage.SANPolicy = OfflineShared
	return model
}

func vmdk(uuid string, target uint8) Disk {
	return Disk{
		Size: 10 * GiB, Bus: BusSAS, Vendor: "VMware", Product: "Virtual disk", Serial: uuid,
		Page83:   []Identifier{{Hex: uuid}},
		Location: fmt.Sprintf("PCI Slot 160 : Bus 3 : Device 0 : Function 0 : Adapter 1 : Port 0 : Target %d : LUN 0", target),
		SCSI:     &SCSI{Port: 1, Target: target, BusNumber: "3"},
	}
}

// node is a machine with a system disk and others that are attached as given, and with the delays of
// an idle machine.
func node(firmware Firmware, system Disk, data ...Disk) Model {
	system.Size, system.System, system.Layout = 64*GiB, true, LayoutGPT
	system.Partitions = []Partition{
		{Type: "efi", Size: 100 * MiB, Volume: &Volume{FileSystem: FAT32}},
		{Type: "msr", Size: 16 * MiB},
		{Volume: &Volume{ID: SystemVolume, Letter: "C", Used: 20 * GiB}},
	}
	return Model{
		Storage: Storage{
			VolumeArrival: 150 * time.Millisecond,
			ServiceDelay:  300 * time.Millisecond,
			FormatTime:    800 * time.Millisecond,
			CreateDiskMSR: MSRNever,
		},
		Disks: append([]Disk{system}, data...),
		Files: []File{
			{Path: `C:\Windows\System32\drivers\etc\hosts`, Content: "127.0.0.1 localhost\r\n"},
			{Path: `C:\var\lib\kubelet\plugins`},
			{Path: `C:\var\lib\kubelet\pods`},
		},
		Firmware: firmware,
		Services: nodeServices(),
	}
}

// nodeServices are those of the services of a Windows node that storage uses, that the node
// depends on, and that show what depends on them.
func nodeServices() []Service {
	list := []Service{
		{Name: "RpcEptMapper", DisplayName: "RPC Endpoint Mapper", StartType: StartAutomatic},
		{Name: "DcomLaunch", DisplayName: "DCOM Server Process Launcher", StartType: StartAutomatic},
		{Name: "RpcSs", DisplayName: "Remote Procedure Call (RPC)", StartType: StartAutomatic, DependsOn: []string{"RpcEptMapper", "DcomLaunch"}},
		{Name: "nsi", DisplayName: "Network Store Interface Service", StartType: StartAutomatic},
		{Name: "mrxsmb20", DisplayName: "SMB 2.0 MiniRedirector", StartType: StartManual},
		{Name: "LanmanWorkstation", DisplayName: "Workstation", StartType: StartAutomatic, DependsOn: []string{"mrxsmb20", "nsi"}},
		{Name: "SessionEnv", DisplayName: "Remote Desktop Configuration", StartType: StartManual, State: ServiceRunning, DependsOn: []string{"RpcSs", "LanmanWorkstation"}},
		{Name: iscsiService, DisplayName: "Microsoft iSCSI Initiator Service", StartType: StartManual},
		{Name: "vds", DisplayName: "Virtual Disk", StartType: StartManual, DependsOn: []string{"RpcSs"}},
		{Name: "smphost", DisplayName: "Microsoft Storage Spaces SMP", StartType: StartManual, DependsOn: []string{"RpcSs"}},
		{Name: "defragsvc", DisplayName: "Optimize drives", StartType: StartManual, DependsOn: []string{"RpcSs"}},
		{Name: "vmcompute", DisplayName: "Hyper-V Host Compute Service", StartType: StartAutomatic, DependsOn: []string{"RpcSs"}},
		{Name: "hns", DisplayName: "Host Network Service", StartType: StartAutomatic, DependsOn: []string{"nsi", "RpcSs"}},
		{Name: "containerd", DisplayName: "containerd", StartType: StartAutomatic},
		{Name: "kubelet", DisplayName: "kubelet", StartType: StartAutomatic, DependsOn: []string{"containerd"}},
		{Name: "csi-proxy", DisplayName: "CSI Proxy", StartType: StartAutomatic, Proxy: true},
	}
	for i := range list {
		list[i].StartTime, list[i].StopTime = 200*time.Millisecond, 100*time.Millisecond
	}
	return list
}

// scsiLocation is the text that most drivers of SCSI adapters give.
func scsiLocation(adapter, lun uint8) string {
	return fmt.Sprintf("Integrated : Bus 0 : Device 3 : Function 0 : Adapter %d : Port 0 : Target 0 : LUN %d", adapter, lun)
}

// Presets lists the names that Preset takes.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// Preset returns the model of that name, for the caller to adjust.
func Preset(name string) (Model, bool) {
	preset, ok := presets[name]
	if !ok {
		return Model{}, false
	}
	return preset(), true
}
