package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/controlv1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const attachOp = "attach disk"

// maxText limits texts of a new disk. Devices have far shorter ones.
const maxText = 255

// AttachDisk attaches a new disk.
func (c *control) AttachDisk(_ context.Context, in *controlv1.AttachDiskRequest) (*controlv1.AttachDiskResponse, error) {
	c.attaching.Lock() // or two disks get the same free LUN
	defer c.attaching.Unlock()
	disk, err := c.newDisk(in)
	if err != nil {
		return nil, err
	}
	attach := c.node.AttachDisk
	if in.Content == controlv1.Content_CONTENT_CLONE {
		if _, err := c.find("clone disk", in.GetCloneOf()); err != nil {
			return nil, err
		}
		attach = func(disk winsim.Disk) (uint32, error) { return c.node.CloneDisk(in.GetCloneOf(), disk) }
	}
	number, err := attach(disk)
	if err != nil {
		return nil, err
	}
	return &controlv1.AttachDiskResponse{DiskNumber: number}, nil
}

// newDisk returns the disk that a request describes.
func (c *control) newDisk(in *controlv1.AttachDiskRequest) (winsim.Disk, error) {
	if err := checkAttach(in); err != nil {
		return winsim.Disk{}, err
	}
	disk := winsim.Disk{
		Number: in.DiskNumber, Size: winsim.Size(in.SizeBytes), SectorSize: in.SectorSize,
		Bus: winsim.Bus(in.Bus), Vendor: "WINSIM", Product: "Disk", Serial: in.Serial,
		Offline: in.IsOffline, ReadOnly: in.IsReadOnly,
	}
	port, location := uint8(1), "Integrated : Bus 0 : Device 63667 : Function 30747 : Adapter 1 : Port 0 : Target 0 : LUN 0"
	bus := "0"
	if in.LikeDisk != nil {
		like, err := c.find("attach a disk like disk", in.GetLikeDisk())
		if err != nil {
			return winsim.Disk{}, err
		}
		disk.Bus, disk.SectorSize = cmp.Or(disk.Bus, like.Bus), cmp.Or(disk.SectorSize, like.SectorSize)
		disk.Vendor, disk.Product = like.Vendor, like.Product
		if like.SCSI != nil {
			port, bus, location = like.SCSI.Port, like.SCSI.BusNumber, like.Location
		}
	}
	if in.Page83Text != "" || in.Page83Hex != "" {
		disk.Page83 = []winsim.Identifier{{Text: in.Page83Text, Hex: in.Page83Hex}}
	}
	if disk.Bus != winsim.BusNVMe || in.Lun != nil {
		lun, err := c.freeLUN(port, in.Lun)
		if err != nil {
			return winsim.Disk{}, err
		}
		disk.SCSI = &winsim.SCSI{Port: port, LUN: lun, BusNumber: bus}
		disk.Location = lastNumber.ReplaceAllString(location, fmt.Sprintf("LUN %d", lun))
	}
	fill(&disk, in)
	return disk, nil
}

// lastNumber is the LUN at the end of a location.
var lastNumber = regexp.MustCompile(`LUN \d+$`)

// checkAttach refuses what the emulator would accept although it makes no sense.
func checkAttach(in *controlv1.AttachDiskRequest) error {
	wrong := func(format string, args ...any) error {
		return winerr.New(winerr.Invalid, attachOp, "", format, args...)
	}
	for name, text := range map[string]string{"serial": in.Serial, "page83_text": in.Page83Text, "page83_hex": in.Page83Hex, "file_path": in.FilePath} {
		if len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			return wrong("%s: use at most %d printable ASCII characters", name, maxText)
		}
	}
	hasVolume := in.Content == controlv1.Content_CONTENT_NTFS || in.Content == controlv1.Content_CONTENT_MBR
	isClone := in.Content == controlv1.Content_CONTENT_CLONE
	switch {
	case controlv1.Content_name[int32(in.Content)] == "":
		return wrong("content: %d is unknown", in.Content)
	case in.DiskNumber > maxDisk:
		return wrong("disk_number: %d is too large; use at most %d", in.DiskNumber, maxDisk)
	case in.Page83Text != "" && in.Page83Hex != "":
		return wrong("page83_text and page83_hex exclude each other")
	case in.Lun != nil && in.GetLun() > 255:
		return wrong("lun: %d is too large; use at most 255", in.GetLun())
	case isClone != (in.CloneOf != nil):
		return wrong("clone_of: set it for a clone, and only then")
	case in.FilePath != "" && !hasVolume:
		return wrong("file_path needs the content ntfs or mbr")
	case in.FileText != "" && in.FilePath == "":
		return wrong("file_text needs file_path")
	}
	return nil
}

// maxDisk limits disk numbers. Windows gives low ones.
const maxDisk = 1 << 16

// freeLUN returns the wanted LUN, or a free one.
func (c *control) freeLUN(port uint8, wanted *uint32) (uint8, error) {
	if wanted == nil {
		lun, ok := c.node.FreeLUN(port)
		if !ok {
			return 0, winerr.New(winerr.NoSpace, attachOp, "", "adapter %d has no free LUN; detach a disk", port)
		}
		return lun, nil
	}
	lun := uint8(*wanted)
	for _, d := range c.node.Disks() {
		if d.SCSI != nil && *d.SCSI == (winsim.SCSI{Port: port, LUN: lun, BusNumber: d.SCSI.BusNumber}) {
			return 0, winerr.New(winerr.Exists, attachOp, "", "LUN %d of adapter %d is disk %d; choose another LUN or detach the disk", lun, port, d.Number)
		}
	}
	return lun, nil
}

// fill sets the content of a disk.
func fill(disk *winsim.Disk, in *controlv1.AttachDiskRequest) {
	volume := &winsim.Volume{}
	if in.FilePath != "" {
		path := `\` + strings.TrimLeft(strings.ReplaceAll(in.FilePath, "/", `\`), `\`)
		volume.Files = []winsim.File{{Path: path, Content: in.FileText, EmptyFile: in.FileText == ""}}
	}
	switch in.Content {
	case controlv1.Content_CONTENT_NTFS:
		disk.Layout = winsim.LayoutGPT
		disk.Partitions = []winsim.Partition{{Type: "msr", Size: 16 * winsim.MiB}, {Volume: volume}}
	case controlv1.Content_CONTENT_MBR:
		disk.Layout = winsim.LayoutMBR
		disk.Partitions = []winsim.Partition{{Volume: volume}}
	case controlv1.Content_CONTENT_LINUX_GPT:
		disk.Layout = winsim.LayoutGPT
		disk.Partitions = []winsim.Partition{{Type: "linux", Bytes: ext4}}
	case controlv1.Content_CONTENT_EXT4:
		disk.Bytes = ext4
	case controlv1.Content_CONTENT_BLANK, controlv1.Content_CONTENT_CLONE:
	}
}

// ext4 is what is written where an ext4 file system begins: the magic number in its superblock.
// https://docs.kernel.org/filesystems/ext4/globals.html#super-block
var ext4 = []winsim.Bytes{{Offset: 1024 + 0x38, Hex: "53ef"}}

// DetachDisk removes a disk.
func (c *control) DetachDisk(_ context.Context, in *controlv1.DetachDiskRequest) (*controlv1.DetachDiskResponse, error) {
	if err := c.findData("detach disk", in.DiskNumber); err != nil {
		return nil, err
	}
	if err := c.node.DetachDisk(in.DiskNumber); err != nil {
		return nil, err
	}
	return &controlv1.DetachDiskResponse{}, nil
}

// find describes a disk, or returns an error of the operation.
func (c *control) find(op string, number uint32) (winsim.DiskInfo, error) {
	info, err := c.node.DiskInfo(number)
	if err != nil {
		return info, winerr.New(winerr.NotFound, op, fmt.Sprint(number), "disk not found; DescribeNode lists the disks")
	}
	return info, nil
}

// findData is find without the system disk, without which there is no node.
func (c *control) findData(op string, number uint32) error {
	info, err := c.find(op, number)
	if err == nil && info.System {
		err = winerr.New(winerr.InUse, op, fmt.Sprint(number), "it is the system disk of the node; choose a data disk")
	}
	return err
}

// ReattachDisk attaches a detached disk again.
func (c *control) ReattachDisk(_ context.Context, in *controlv1.ReattachDiskRequest) (*controlv1.ReattachDiskResponse, error) {
	number, err := c.node.ReattachDisk(in.DiskNumber)
	if errors.Is(err, winerr.NotFound) {
		err = winerr.New(winerr.NotFound, "reattach disk", fmt.Sprint(in.DiskNumber), "no detached disk had this number; DescribeNode lists them")
	}
	if err != nil {
		return nil, err
	}
	return &controlv1.ReattachDiskResponse{DiskNumber: number}, nil
}

// GrowDisk enlarges a disk.
func (c *control) GrowDisk(_ context.Context, in *controlv1.GrowDiskRequest) (*controlv1.GrowDiskResponse, error) {
	if _, err := c.find("grow disk", in.DiskNumber); err != nil {
		return nil, err
	}
	if err := c.node.GrowDisk(in.DiskNumber, winsim.Size(in.SizeBytes)); err != nil {
		return nil, err
	}
	return &controlv1.GrowDiskResponse{}, nil
}

// FailDisk makes a disk fail.
func (c *control) FailDisk(_ context.Context, in *controlv1.FailDiskRequest) (*controlv1.FailDiskResponse, error) {
	if err := c.findData("fail disk", in.DiskNumber); err != nil {
		return nil, err
	}
	if err := c.node.FailDisk(in.DiskNumber); err != nil {
		return nil, err
	}
	return &controlv1.FailDiskResponse{}, nil
}

// HangDisk makes a disk hang.
func (c *control) HangDisk(_ context.Context, in *controlv1.HangDiskRequest) (*controlv1.HangDiskResponse, error) {
	if err := c.findData("hang disk", in.DiskNumber); err != nil {
		return nil, err
	}
	if err := c.node.HangDisk(in.DiskNumber); err != nil {
		return nil, err
	}
	return &controlv1.HangDiskResponse{}, nil
}

// HealDisk ends a failure or a hang.
func (c *control) HealDisk(_ context.Context, in *controlv1.HealDiskRequest) (*controlv1.HealDiskResponse, error) {
	if _, err := c.find("heal disk", in.DiskNumber); err != nil {
		return nil, err
	}
	if err := c.node.HealDisk(in.DiskNumber); err != nil {
		return nil, err
	}
	return &controlv1.HealDiskResponse{}, nil
}

// DescribeNode describes the node.
func (c *control) DescribeNode(context.Context, *controlv1.DescribeNodeRequest) (*controlv1.DescribeNodeResponse, error) {
	out := &controlv1.DescribeNodeResponse{DetachedDisks: c.node.DetachedDisks()}
	for _, d := range c.node.Disks() {
		disk := described(d)
		// A disk that was detached since is described without it.
		disk.Fingerprint, _ = c.node.DiskFingerprint(d.Number)
		out.Disks = append(out.Disks, disk)
	}
	for _, s := range c.node.SMBServers() {
		server := &controlv1.Server{Name: s.Name, IsDown: s.Down}
		for _, share := range s.Shares {
			server.Shares = append(server.Shares, share.Name)
		}
		for _, account := range s.Accounts {
			server.Users = append(server.Users, account.User)
		}
		out.Servers = append(out.Servers, server)
	}
	for _, m := range c.node.SMBMappingInfos() {
		out.Mappings = append(out.Mappings, &controlv1.Mapping{RemotePath: m.Remote, IsConnected: m.Connected})
	}
	return out, nil
}

func described(d winsim.DiskInfo) *controlv1.Disk {
	disk := &controlv1.Disk{
		DiskNumber: d.Number, SizeBytes: int64(d.Size), VisibleSizeBytes: int64(d.Visible), Serial: d.Serial, Layout: string(d.Layout),
		IsSystem: d.System, IsOffline: d.Offline, IsReadOnly: d.ReadOnly, IsFailing: d.Dying, IsHanging: d.Hanging,
	}
	if d.SCSI != nil {
		disk.Lun = new(uint32(d.SCSI.LUN))
	}
	for _, p := range d.Partitions {
		disk.Partitions = append(disk.Partitions, &controlv1.Partition{
			PartitionNumber: p.Number, Type: p.Type, SizeBytes: int64(p.Size), VolumeId: p.VolumeID, FileSystem: string(p.FileSystem), Label: p.Label,
		})
	}
	return disk
}
