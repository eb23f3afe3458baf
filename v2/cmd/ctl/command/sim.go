package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/controlv1"
)

func (a *app) sim() *cobra.Command {
	c := a.group(page{
		use:   "sim",
		short: "Change the emulated node of csi-proxy-sim while it runs",
		long: `Change the emulated node of csi-proxy-sim while it runs: its disks, the SMB servers in its
network, and the machine. These commands act as the storage backend, a server's
administrator, or a power button do. Windows is not notified, as on a real node.

They need 'csi-proxy-sim -control default'. The daemon has no such service.`,
		example: `  csi-proxy-sim -control default &
  csi-proxyctl sim attach 10GiB --serial disk-7
  csi-proxyctl sim grow 4 20GiB
  csi-proxyctl disk rescan`,
	},
		a.leaf(page{
			use:     "show",
			short:   "Show the disks, servers and mappings of the emulated node",
			long:    "Show the disks, servers and mappings of the emulated node (DescribeNode), as they are outside Windows: sizes on the backend, failures, servers that are down.",
			example: "  csi-proxyctl sim show\n  csi-proxyctl sim show -o json",
		}, 0, simShow),
		a.simAttach(), a.simClone(),
		a.simple(simple{page: page{
			use:     "detach DISK",
			short:   "Detach a disk without notifying Windows",
			long:    "'sim reattach' brings it back with its content. The system disk cannot be detached.",
			example: "  csi-proxyctl sim detach 4",
		}, method: "sim/DetachDisk", object: "disk {1}", done: "detached"}),
		a.onDisk(page{
			use:     "reattach DISK",
			short:   "Attach a detached disk again, with its content",
			long:    "Attach a detached disk again, with its content (ReattachDisk). DISK is the number that it had; it can get another one.",
			example: "  csi-proxyctl sim reattach 4",
		}, func(ctx context.Context, s *session, disk uint32) error {
			var response controlv1.ReattachDiskResponse
			if err := s.client.Do(ctx, "sim", "ReattachDisk", &controlv1.ReattachDiskRequest{DiskNumber: disk}, &response); err != nil {
				return err
			}
			return attached(s, response.GetDiskNumber())
		}),
		a.simple(simple{page: page{
			use:     "grow DISK SIZE",
			short:   "Enlarge a disk on the backend",
			long:    "SIZE is the new size: 20Gi, 20GiB or a number of bytes. Windows may see it only after 'disk rescan'.",
			example: "  csi-proxyctl sim grow 4 20GiB\n  csi-proxyctl disk rescan",
		}, method: "sim/GrowDisk", object: "disk {1}", done: "grown to {2}"}),
		a.simple(simple{page: page{
			use:     "fail DISK",
			short:   "Make a disk fail",
			long:    "All reads and writes of the disk fail with ERROR_IO_DEVICE (1117), until 'sim heal'. Windows still knows the disk and its volumes.",
			example: "  csi-proxyctl sim fail 4",
		}, method: "sim/FailDisk", object: "disk {1}", done: "fails"}),
		a.simple(simple{page: page{
			use:     "hang DISK",
			short:   "Make a disk hang",
			long:    "All reads and writes of the disk, its volumes and their files wait, until 'sim heal'. Windows still knows the disk and its volumes.",
			example: "  csi-proxyctl sim hang 4",
		}, method: "sim/HangDisk", object: "disk {1}", done: "hangs"}),
		a.simple(simple{page: page{
			use:     "heal DISK",
			short:   "End the failure or hang of a disk",
			long:    "Does nothing if the disk is healthy.",
			example: "  csi-proxyctl sim heal 4",
		}, method: "sim/HealDisk", object: "disk {1}", done: "healthy"}),
		a.simServer(), a.simShare(), a.simAccount(),
		a.simple(simple{page: page{
			use:     "end-sessions",
			short:   "End all SMB sessions of the node",
			long:    "End all SMB sessions of the node (EndSessions), as Windows does with idle ones. Mappings stay, and connect again at the next access.",
			example: "  csi-proxyctl sim end-sessions",
		}, method: "sim/EndSessions", object: "SMB sessions", done: "ended"}),
		a.simple(simple{page: page{
			use:     "mkdir PATH",
			short:   "Create a directory on a share or a drive",
			long:    "Create a directory and its missing parents on a share or a drive (MakeDirectory), as another client of the server does. The share need not be mapped. Does nothing if the directory exists.",
			example: `  csi-proxyctl sim mkdir '\\files\data\pvc-1'`,
		}, method: "sim/MakeDirectory", object: "{1}", done: "created"}),
		a.simple(simple{page: page{
			use:   "reboot",
			short: "Restart the emulated node",
			long: `Restart the emulated node (Reboot). Running calls of clients fail. SMB mappings lose their
credentials, iSCSI sessions end unless they are persistent, and automatic services start.
Returns when all endpoints listen again.`,
			example: "  csi-proxyctl sim reboot",
		}, method: "sim/Reboot", object: "node", done: "restarted"}),
	)
	c.PersistentFlags().StringVar(&a.control, "control", "", "address that csi-proxy-sim got with -control (default: beside the other endpoints)")
	return c
}

func attached(s *session, disk uint32) error {
	object := fmt.Sprintf("disk %d", disk)
	return s.Value(struct {
		Object     string `json:"object"`
		Done       string `json:"done"`
		DiskNumber uint32 `json:"diskNumber"`
	}{object, "attached", disk}, func() string { return object + ": attached\n" })
}

// contents are the contents of a new disk by name.
var contents = map[string]controlv1.Content{
	"blank":     controlv1.Content_CONTENT_BLANK,
	"ntfs":      controlv1.Content_CONTENT_NTFS,
	"linux-gpt": controlv1.Content_CONTENT_LINUX_GPT,
	"ext4":      controlv1.Content_CONTENT_EXT4,
	"mbr":       controlv1.Content_CONTENT_MBR,
}

// hardware are the flags of a new disk that do not concern its content.
type hardware struct {
	request *controlv1.AttachDiskRequest
	lun     int32
	like    int32
}

func (h *hardware) register(flags *pflag.FlagSet) {
	flags.Uint32Var(&h.request.DiskNumber, "number", 0, "number that Windows gives the disk (default: the lowest free one)")
	flags.StringVar(&h.request.Serial, "serial", "", "serial number")
	flags.StringVar(&h.request.Page83Text, "page83", "", "page 83 identifier as text, such as 'Google  pvc-1'")
	flags.StringVar(&h.request.Page83Hex, "page83-hex", "", "page 83 identifier in hexadecimal digits")
	flags.Int32Var(&h.lun, "lun", -1, "LUN (default: the lowest free one; NVMe disks have none)")
	flags.Int32Var(&h.like, "like", -1, "number of a disk with the same bus, model, sector size and adapter (default: a SCSI disk on adapter 1)")
	flags.StringVar(&h.request.Bus, "bus", "", "bus: scsi, sas, nvme, ... (default: that of --like, else scsi)")
	flags.BoolVar(&h.request.IsOffline, "offline", false, "the disk arrives offline")
	flags.BoolVar(&h.request.IsReadOnly, "read-only", false, "the disk arrives read-only, as one that was moved from another node")
}

func (h *hardware) attach(ctx context.Context, s *session) error {
	if h.lun >= 0 {
		h.request.Lun = new(uint32(h.lun))
	}
	if h.like >= 0 {
		h.request.LikeDisk = new(uint32(h.like))
	}
	var response controlv1.AttachDiskResponse
	if err := s.client.Do(ctx, "sim", "AttachDisk", h.request, &response); err != nil {
		return err
	}
	return attached(s, response.GetDiskNumber())
}

func (a *app) simAttach() *cobra.Command {
	h := hardware{request: &controlv1.AttachDiskRequest{}}
	var content string
	c := a.leaf(page{
		use:   "attach SIZE",
		short: "Attach a new disk",
		long: `Attach a new disk (AttachDisk), and print its number. SIZE is 20Gi, 20GiB or a number of bytes. The content is
one of:

  blank      nothing
  ntfs       a GPT with an NTFS volume; --file puts a file on it
  linux-gpt  a GPT with one Linux partition, which CSI Proxy must not touch
  ext4       an ext4 file system without a partition table
  mbr        an MBR with an NTFS volume; --file puts a file on it

Windows remembers per LUN whether a disk is offline or read-only. So at the LUN of an earlier
disk the disk can arrive in that disk's state.`,
		example: `  csi-proxyctl sim attach 10GiB --serial disk-7
  csi-proxyctl sim attach 10GiB --like 1 --lun 4
  csi-proxyctl sim attach 1GiB --content ntfs --file '\data.txt' --text hello --offline --read-only
  csi-proxyctl sim attach 1GiB --content linux-gpt --page83 'Google  pvc-9'`,
	}, 1, func(ctx context.Context, s *session, args []string) error {
		size, err := output.ParseSize(args[0])
		if err != nil {
			return usageError{err}
		}
		kind, ok := contents[content]
		if !ok {
			return usagef("--content must be one of %s", strings.Join(slices.Sorted(maps.Keys(contents)), ", "))
		}
		h.request.SizeBytes, h.request.Content = size, kind
		return h.attach(ctx, s)
	})
	h.register(c.Flags())
	c.Flags().Uint32Var(&h.request.SectorSize, "sector-size", 0, "512 or 4096 (default: that of --like, else 512)")
	c.Flags().StringVar(&content, "content", "blank", "content of the disk: blank, ntfs, linux-gpt, ext4, mbr")
	c.Flags().StringVar(&h.request.FilePath, "file", "", `path of a file on the NTFS volume, such as '\data.txt'`)
	c.Flags().StringVar(&h.request.FileText, "text", "", "content of that file")
	return c
}

func (a *app) simClone() *cobra.Command {
	h := hardware{request: &controlv1.AttachDiskRequest{Content: controlv1.Content_CONTENT_CLONE}}
	var size string
	c := a.onDisk(page{
		use:   "clone DISK",
		short: "Attach a copy of a disk, as a restored snapshot",
		long: `Attach a copy of a disk (AttachDisk), as a restored snapshot: the same ids, partitions and files. Windows keeps
the copy offline while the original is online.`,
		example: "  csi-proxyctl sim clone 4 --serial restored-1\n  csi-proxyctl sim clone 4 --size 20GiB",
	}, func(ctx context.Context, s *session, disk uint32) error {
		if size != "" {
			bytes, err := output.ParseSize(size)
			if err != nil {
				return usageError{err}
			}
			h.request.SizeBytes = bytes
		}
		h.request.CloneOf = &disk
		return h.attach(ctx, s)
	})
	h.register(c.Flags())
	c.Flags().StringVar(&size, "size", "", "size of the copy (default: that of the disk)")
	return c
}

func simShow(ctx context.Context, s *session, _ []string) error {
	var node controlv1.DescribeNodeResponse
	if err := s.client.Do(ctx, "sim", "DescribeNode", &controlv1.DescribeNodeRequest{}, &node); err != nil {
		return err
	}
	members := []output.Object{}
	disks := output.Rows{Header: []string{"DISK", "SIZE", "STATE", "LAYOUT", "LUN", "SERIAL", "FILE SYSTEMS"}}
	for _, d := range node.GetDisks() {
		described := output.Fields(d, "number=diskNumber sizeBytes visibleSizeBytes layout serial lun system=isSystem offline=isOffline readOnly=isReadOnly failing=isFailing hanging=isHanging")
		partitions, fileSystems := []output.Object{}, []string{}
		for _, p := range d.GetPartitions() {
			partitions = append(partitions, output.Fields(p, "number=partitionNumber type sizeBytes volumeID fileSystem label"))
			if p.GetFileSystem() != "raw" {
				fileSystems = append(fileSystems, p.GetFileSystem())
			}
		}
		described = append(described, output.Member{Name: "partitions", Value: partitions})
		members = append(members, append(described, output.Fields(d, "fingerprint")...))
		lun := ""
		if d.Lun != nil {
			lun = fmt.Sprint(d.GetLun())
		}
		disks.Add(output.Text(fmt.Sprint(d.GetDiskNumber())), output.Text(output.Size(d.GetSizeBytes())), output.Text(simState(d)),
			output.Text(d.GetLayout()), output.Text(lun), output.Text(d.GetSerial()), output.Text(strings.Join(fileSystems, ",")))
	}
	all := append(output.Object{{Name: "disks", Value: members}}, output.Fields(&node, "detachedDisks")...)
	servers := output.Rows{Header: []string{"SERVER", "STATE", "SHARES", "USERS"}}
	members = []output.Object{}
	for _, v := range node.GetServers() {
		members = append(members, output.Fields(v, "name down=isDown shares users"))
		state := "up"
		if v.GetIsDown() {
			state = "down"
		}
		servers.Add(output.Text(v.GetName()), output.Text(state), output.Text(strings.Join(v.GetShares(), ",")), output.Text(strings.Join(v.GetUsers(), ",")))
	}
	all = append(all, output.Member{Name: "servers", Value: members})
	mappings := output.Rows{Header: []string{"MAPPING", "STATE"}}
	members = []output.Object{}
	for _, m := range node.GetMappings() {
		members = append(members, output.Fields(m, "remotePath connected=isConnected"))
		state := "disconnected"
		if m.GetIsConnected() {
			state = "connected"
		}
		mappings.Add(output.Text(m.GetRemotePath()), output.Text(state))
	}
	all = append(all, output.Member{Name: "mappings", Value: members})
	return s.Value(all, func() string {
		var text strings.Builder
		text.WriteString(s.Table(&disks))
		if numbers := node.GetDetachedDisks(); len(numbers) > 0 {
			fmt.Fprintf(&text, "Detached: %s\n", strings.Trim(fmt.Sprint(numbers), "[]"))
		}
		for _, rows := range []*output.Rows{&servers, &mappings} {
			if len(rows.Cells) > 0 {
				text.WriteString("\n" + s.Table(rows))
			}
		}
		return text.String()
	})
}

// simState is the state of a disk in words.
func simState(d *controlv1.Disk) string {
	words := []string{"online"}
	if d.GetIsOffline() {
		words[0] = "offline"
	}
	for _, word := range []struct {
		text string
		set  bool
	}{
		{"read-only", d.GetIsReadOnly()},
		{"failing", d.GetIsFailing()},
		{"hanging", d.GetIsHanging()},
		{"system", d.GetIsSystem()},
		{"Windows shows " + strings.ReplaceAll(output.Size(d.GetVisibleSizeBytes()), " ", ""), d.GetSizeBytes() != d.GetVisibleSizeBytes()},
	} {
		if word.set {
			words = append(words, word.text)
		}
	}
	return strings.Join(words, ",")
}
