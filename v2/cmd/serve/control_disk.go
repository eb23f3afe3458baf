package serve

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/controlv1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const attachOp = "attach disk"

// maxText limits texts of a new disk. Devices have far shorter ones.
const maxText = 255

func (c *control) AttachDisk(_ context.Context, in *controlv1.AttachDiskRequest) (*controlv1.AttachDiskResponse, error) {
	c.attaching.Lock() // or two disks get the same free LUN
	defer c.attaching.Unlock()
	disk, err := c.newDisk(in)
	number := uint32(0)
	switch {
	case err != nil:
	case in.Content == controlv1.Content_CONTENT_CLONE:
		number, err = c.node.CloneDisk(in.GetCloneOf(), disk)
	default:
		number, err = c.node.AttachDisk(disk)
	}
	return answerWith(&controlv1.AttachDiskResponse{DiskNumber: number}, err)
}

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
		like, err := c.node.DiskInfo(in.GetLikeDisk())
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

// freeLUN returns the wanted LUN, or the lowest that has neither a disk nor stored attributes of an earlier one.
func (c *control) freeLUN(port uint8, wanted *uint32) (uint8, error) {
	node := c.node.Describe()
	at := func(d winsim.Disk, lun uint8) bool {
		return d.SCSI != nil && *d.SCSI == winsim.SCSI{Port: port, LUN: lun, BusNumber: d.SCSI.BusNumber}
	}
	if wanted != nil {
		lun := uint8(*wanted)
		for _, d := range attached(node) {
			if at(d, lun) {
				return 0, winerr.New(winerr.Exists, attachOp, "", "LUN %d of adapter %d is disk %d; choose another LUN or detach the disk", lun, port, d.Number)
			}
		}
		return lun, nil
	}
	known := append(node.Disks, node.Running.Attributes...)
	for lun := range 256 {
		if !slices.ContainsFunc(known, func(d winsim.Disk) bool { return at(d, uint8(lun)) }) {
			return uint8(lun), nil
		}
	}
	return 0, winerr.New(winerr.NoSpace, attachOp, "", "adapter %d has no free LUN; detach a disk", port)
}

// attached are the attached disks, by number, including those that Windows does not see yet.
func attached(node winsim.Model) []winsim.Disk {
	all := node.Disks
	for _, t := range node.ISCSI.Targets {
		all = append(all, t.LUNs...)
	}
	all = slices.DeleteFunc(all, func(d winsim.Disk) bool {
		return d.Presence == winsim.DiskDetached || d.Presence == winsim.DiskAway
	})
	slices.SortFunc(all, func(a, b winsim.Disk) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

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

func (c *control) DetachDisk(_ context.Context, in *controlv1.DetachDiskRequest) (*controlv1.DetachDiskResponse, error) {
	return answer[controlv1.DetachDiskResponse](c.onData("detach disk", in.DiskNumber, c.node.DetachDisk))
}

// onData does something to a disk other than the system disk, without which there is no node.
func (c *control) onData(op string, number uint32, do func(uint32) error) error {
	if disk, err := c.node.DiskInfo(number); err == nil && disk.System {
		return winerr.New(winerr.InUse, op, fmt.Sprint(number), "it is the system disk of the node; choose a data disk")
	}
	return do(number)
}

func (c *control) ReattachDisk(_ context.Context, in *controlv1.ReattachDiskRequest) (*controlv1.ReattachDiskResponse, error) {
	number, err := c.node.ReattachDisk(in.DiskNumber)
	return answerWith(&controlv1.ReattachDiskResponse{DiskNumber: number}, err)
}

func (c *control) GrowDisk(_ context.Context, in *controlv1.GrowDiskRequest) (*controlv1.GrowDiskResponse, error) {
	return answer[controlv1.GrowDiskResponse](c.node.GrowDisk(in.DiskNumber, winsim.Size(in.SizeBytes)))
}

func (c *control) FailDisk(_ context.Context, in *controlv1.FailDiskRequest) (*controlv1.FailDiskResponse, error) {
	return answer[controlv1.FailDiskResponse](c.onData("fail disk", in.DiskNumber, c.node.FailDisk))
}

func (c *control) HangDisk(_ context.Context, in *controlv1.HangDiskRequest) (*controlv1.HangDiskResponse, error) {
	return answer[controlv1.HangDiskResponse](c.onData("hang disk", in.DiskNumber, c.node.HangDisk))
}

func (c *control) HealDisk(_ context.Context, in *controlv1.HealDiskRequest) (*controlv1.HealDiskResponse, error) {
	return answer[controlv1.HealDiskResponse](c.node.HealDisk(in.DiskNumber))
}

func (c *control) DescribeNode(context.Context, *controlv1.DescribeNodeRequest) (*controlv1.DescribeNodeResponse, error) {
	node, out := c.node.Describe(), &controlv1.DescribeNodeResponse{}
	for _, d := range node.Disks {
		if d.Presence == winsim.DiskDetached {
			out.DetachedDisks = append(out.DetachedDisks, d.Number)
		}
	}
	for _, d := range attached(node) {
		disk := described(d)
		// A disk that was detached since is described without it.
		disk.Fingerprint, _ = c.node.DiskFingerprint(d.Number)
		out.Disks = append(out.Disks, disk)
	}
	down := map[string]bool{}
	for _, s := range node.SMBServers {
		server := &controlv1.Server{Name: s.Name, IsDown: s.Down}
		for _, share := range s.Shares {
			server.Shares = append(server.Shares, share.Name)
		}
		for _, account := range s.Accounts {
			server.Users = append(server.Users, account.User)
		}
		for _, name := range append([]string{s.Name}, s.Aliases...) {
			down[winpath.Fold(name)] = s.Down
		}
		out.Servers = append(out.Servers, server)
	}
	for _, m := range node.SMBMappings {
		server, _, _ := strings.Cut(strings.TrimPrefix(m.Remote, `\\`), `\`)
		out.Mappings = append(out.Mappings, &controlv1.Mapping{RemotePath: m.Remote, IsConnected: !m.Stale && !m.Idle && !down[winpath.Fold(server)]})
	}
	return out, nil
}

func described(d winsim.Disk) *controlv1.Disk {
	disk := &controlv1.Disk{
		DiskNumber: d.Number, SizeBytes: int64(d.Size), VisibleSizeBytes: int64(d.Visible), Serial: d.Serial, Layout: string(d.Layout),
		IsSystem: d.System, IsOffline: d.Offline, IsReadOnly: d.ReadOnly, IsFailing: d.Dying, IsHanging: d.Hanging,
	}
	if d.SCSI != nil {
		disk.Lun = new(uint32(d.SCSI.LUN))
	}
	for i, p := range d.Partitions {
		partition := &controlv1.Partition{PartitionNumber: uint32(i) + 1, Type: p.Type, SizeBytes: int64(p.Size), FileSystem: string(winsim.FileSystemNone)}
		if v := p.Volume; v != nil {
			partition.FileSystem, partition.Label = string(v.FileSystem), v.Label
			if !v.Absent && !v.Nameless {
				partition.VolumeId = v.ID
			}
		}
		disk.Partitions = append(disk.Partitions, partition)
	}
	return disk
}
