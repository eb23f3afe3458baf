package machine

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/original/powershell"
)

// virtualDisk is the file of a disk, which may be attached.
type virtualDisk struct {
	size     winsim.Size
	attached bool
	number   uint32
}

func (m *machine) diskCommands() powershell.Commands {
	return powershell.Commands{
		"new-vhd":         {Parameters: []string{"Path", "SizeBytes"}, Run: m.newVHD},
		"mount-vhd":       {Parameters: []string{"Path"}, Run: m.mountVHD},
		"dismount-vhd":    {Parameters: []string{"Path"}, Run: m.dismountVHD},
		"resize-vhd":      {Parameters: []string{"Path", "SizeBytes"}, Run: m.resizeVHD},
		"get-vhd":         {Parameters: []string{"Path"}, Run: m.getVHD},
		"get-disk":        {Parameters: []string{"Number"}, Run: m.getDisk},
		"set-disk":        {Parameters: []string{"IsOffline"}, Run: m.setDisk},
		"initialize-disk": {Parameters: []string{"Number", "PartitionStyle"}, Run: m.initializeDisk},
		"new-partition":   {Parameters: []string{"DiskNumber", "UseMaximumSize"}, Run: m.newPartition},
		"get-partition":   {Parameters: []string{"DriveLetter"}, Run: m.getPartition},
		"get-volume":      {Run: func(c powershell.Call) ([]any, error) { return c.Input, nil }},
	}
}

func (m *machine) newVHD(c powershell.Call) ([]any, error) {
	path := c.Text("Path")
	size, err := c.Int("SizeBytes")
	if err != nil {
		return nil, err
	}
	if m.node.Exists(path) {
		return nil, fmt.Errorf("%s exists", path)
	}
	if err := m.node.WriteFile(path, "vhdxfile"); err != nil {
		return nil, err
	}
	m.virtualDisks[path] = &virtualDisk{size: winsim.Size(size)}
	return nil, nil
}

func (m *machine) virtualDisk(c powershell.Call) (*virtualDisk, error) {
	if d := m.virtualDisks[c.Text("Path")]; d != nil && m.node.Exists(c.Text("Path")) {
		return d, nil
	}
	return nil, fmt.Errorf("there is no virtual disk %s", c.Text("Path"))
}

// mountVHD attaches a disk with the identifier that Windows gives such disks: "MSFT" and a GUID.
func (m *machine) mountVHD(c powershell.Call) ([]any, error) {
	d, err := m.virtualDisk(c)
	if err != nil {
		return nil, err
	}
	d.number, err = m.node.AttachDisk(winsim.Disk{
		Size: d.size, Bus: winsim.BusFileBacked, Vendor: "Msft", Product: "Virtual Disk", Location: c.Text("Path"),
		Page83: []winsim.Identifier{{Hex: "4d53465420202020" + strings.ReplaceAll(win.NewGUID().String(), "-", ""), CodeSet: winsim.Binary, Type: winsim.VendorID}},
	})
	d.attached = err == nil
	return nil, err
}

func (m *machine) dismountVHD(c powershell.Call) ([]any, error) {
	d, err := m.virtualDisk(c)
	if err != nil {
		return nil, err
	}
	if !d.attached {
		return nil, fmt.Errorf("%s is not attached", c.Text("Path"))
	}
	d.attached = false
	return nil, m.node.DetachDisk(d.number)
}

func (m *machine) resizeVHD(c powershell.Call) ([]any, error) {
	d, err := m.virtualDisk(c)
	if err != nil {
		return nil, err
	}
	size, err := c.Int("SizeBytes")
	if err != nil {
		return nil, err
	}
	return nil, m.node.GrowDisk(d.number, winsim.Size(size))
}

func (m *machine) getVHD(c powershell.Call) ([]any, error) {
	d, err := m.virtualDisk(c)
	if err != nil {
		return nil, err
	}
	object := powershell.Object{"Path": c.Text("Path"), "Size": int64(d.size)}
	if d.attached {
		object["DiskNumber"] = int64(d.number)
	}
	return []any{object}, nil
}

func (m *machine) getDisk(c powershell.Call) ([]any, error) {
	ctx := background()
	var numbers []uint32
	if c.Has("Number") {
		number, err := c.Int("Number")
		if err != nil {
			return nil, err
		}
		numbers = []uint32{uint32(number)}
	} else {
		devices, err := m.node.DiskDevices(ctx)
		if err != nil {
			return nil, err
		}
		for _, device := range devices {
			d, err := m.node.DeviceNumber(ctx, device)
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, d.Number)
		}
	}
	var disks []any
	for _, number := range numbers {
		disk, err := m.describeDisk(ctx, number)
		if err != nil {
			return nil, err
		}
		disks = append(disks, disk)
	}
	return disks, nil
}

func (m *machine) describeDisk(ctx context.Context, number uint32) (powershell.Object, error) {
	info, err := m.node.DiskInfo(number)
	if err != nil {
		return nil, err
	}
	descriptor, err := m.node.DeviceDescriptor(ctx, win.PhysicalDrive(number))
	if err != nil {
		return nil, err
	}
	bus := powershell.Enum{Name: "Other", Number: int(descriptor.BusType)}
	if descriptor.BusType == win.BusTypeISCSI {
		bus.Name = "iSCSI"
	}
	return powershell.Object{"Number": int64(number), "IsOffline": info.Offline, "IsReadOnly": info.ReadOnly, "BusType": bus}, nil
}

// setDisk changes the disks from the pipeline.
func (m *machine) setDisk(c powershell.Call) ([]any, error) {
	for _, disk := range c.Input {
		number, ok := disk.(powershell.Object).Get("Number").(int64)
		if !ok {
			return nil, fmt.Errorf("%q is not a disk", powershell.Text(disk))
		}
		attributes := win.DiskAttributes{Offline: c.Switch("IsOffline")}
		if err := m.node.SetDiskAttributes(background(), win.PhysicalDrive(uint32(number)), attributes, win.DiskAttributes{Offline: true}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (m *machine) initializeDisk(c powershell.Call) ([]any, error) {
	number, err := c.Int("Number")
	if err != nil {
		return nil, err
	}
	if c.Text("PartitionStyle") != "GPT" {
		return nil, fmt.Errorf("-PartitionStyle %s is not possible here", c.Text("PartitionStyle"))
	}
	return nil, m.node.CreateDisk(background(), win.PhysicalDrive(uint32(number)), win.NewGUID())
}

// newPartition makes the partitions that an empty disk has after New-Partition: 16 MB that are
// reserved, and the rest.
func (m *machine) newPartition(c powershell.Call) ([]any, error) {
	const mib = 1 << 20
	number, err := c.Int("DiskNumber")
	if err != nil {
		return nil, err
	}
	device := win.PhysicalDrive(uint32(number))
	table, err := m.node.DriveLayout(background(), device)
	if err != nil {
		return nil, err
	}
	if len(table.Partitions) > 0 || !c.Switch("UseMaximumSize") {
		return nil, fmt.Errorf("disk %d is not empty, or the size is not the maximum", number)
	}
	table.Partitions = []win.Partition{
		{Number: 1, Type: win.PartitionMSR, ID: win.NewGUID(), Offset: table.UsableOffset, Length: 16*mib - table.UsableOffset},
		{Number: 2, Type: win.PartitionBasicData, ID: win.NewGUID(), Offset: 16 * mib, Length: table.UsableEnd()/mib*mib - 16*mib},
	}
	return nil, m.node.SetDriveLayout(background(), device, table)
}

// getPartition returns the volume of a drive in place of its partition, for Get-Volume.
func (m *machine) getPartition(c powershell.Call) ([]any, error) {
	id, err := m.node.VolumeOfDrive(background(), c.Text("DriveLetter")+`:\`)
	return []any{powershell.Object{"UniqueId": string(id)}}, err
}
