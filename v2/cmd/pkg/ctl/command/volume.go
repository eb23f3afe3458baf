package command

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

// exampleVolume is drive C: of csi-proxy-sim, so that examples work there.
const exampleVolume = "0c51a9e0-0000-0000-0000-100000000000"

func (a *app) volume() *cobra.Command {
	return a.group(page{
		use:   "volume",
		short: "List, format, mount and resize volumes, and find them by path",
		long: `VOLUME is the id that Windows gives a volume, \\?\Volume{GUID}\, or only the GUID, as
tables show it.`,
		example: "  csi-proxyctl volume list\n  csi-proxyctl volume of-path 'C:\\var\\lib\\kubelet\\plugins\\x\\globalmount'",
	},
		a.volumeList(),
		a.simple(simple{page: page{
			use:     "stats VOLUME",
			short:   "Show the size and used space of a volume",
			example: "  csi-proxyctl volume stats " + exampleVolume,
		}, method: "volume/GetVolumeStats", text: func(m proto.Message) string {
			stats := m.(*volumev2alpha1.GetVolumeStatsResponse)
			return output.Size(stats.GetUsedBytes()) + " of " + output.Size(stats.GetTotalBytes())
		}}),
		a.simple(simple{page: page{
			use:     "formatted VOLUME",
			short:   "Show whether a volume has a file system",
			example: "  csi-proxyctl volume formatted " + exampleVolume,
		}, method: "volume/IsVolumeFormatted"}),
		a.dangerous(page{
			use:   "format VOLUME",
			short: "Format a volume with NTFS",
			long: `Format a volume with NTFS (FormatVolume). Asks for confirmation; scripts use --yes. Does
nothing if the volume has a file system, unless the daemon runs with -format-existing. The
original csi-proxy always formats.`,
			example: "  csi-proxyctl volume format " + exampleVolume + " --yes",
		}, formatEffect, func(ctx context.Context, s *session, args []string) error {
			return volumeFormat(ctx, s, volumeID(args[0]))
		}, nil),
		a.volumeCheck(),
		a.simple(simple{page: page{
			use:     "mount VOLUME PATH",
			short:   "Mount a volume at a folder",
			long:    "Does nothing if it is mounted there.",
			example: "  csi-proxyctl volume mount " + exampleVolume + ` 'C:\var\lib\kubelet\plugins\x\globalmount'`,
		}, method: "volume/MountVolume", object: "volume {1}", done: "mounted at {2}"}),
		a.simple(simple{page: page{
			use:     "unmount VOLUME PATH",
			short:   "Write a volume's cache to disk and unmount it",
			long:    "Write a volume's cache to disk and unmount it from a folder (UnmountVolume). Does nothing if it is not mounted there.",
			example: "  csi-proxyctl volume unmount " + exampleVolume + ` 'C:\var\lib\kubelet\plugins\x\globalmount'`,
		}, method: "volume/UnmountVolume", object: "volume {1}", done: "unmounted from {2}"}),
		a.leaf(page{
			use:     "resize VOLUME SIZE",
			short:   "Grow a volume",
			long:    "Grow a volume and its file system (ResizeVolume). SIZE is 20Gi, 20GiB, a number of bytes, or 'max' for all available space.",
			example: "  csi-proxyctl volume resize " + exampleVolume + " max\n  csi-proxyctl volume resize " + exampleVolume + " 20Gi",
		}, 2, volumeResize),
		a.simple(simple{page: page{
			use:     "flush VOLUME",
			short:   "Write a volume's cache to disk",
			example: "  csi-proxyctl volume flush " + exampleVolume,
		}, method: "volume/WriteVolumeCache", object: "volume {1}", done: "flushed"}),
		a.simple(simple{page: page{
			use:     "of-path PATH",
			short:   "Find the volume mounted at a path",
			long:    "Find the volume that is mounted at a path, or that the link at the path points to (GetVolumeIDFromTargetPath).",
			example: `  csi-proxyctl volume of-path 'C:\var\lib\kubelet\plugins\x\globalmount'`,
		}, method: "volume/GetVolumeIDFromTargetPath"}),
		a.simple(simple{page: page{
			use:     "closest PATH",
			short:   "Find the volume that holds a path",
			long:    "Find the volume that holds a path: the one mounted there or at the closest parent folder (GetClosestVolumeIDFromTargetPath).",
			example: `  csi-proxyctl volume closest 'C:\var\lib\kubelet'`,
		}, method: "volume/GetClosestVolumeIDFromTargetPath"}),
		a.simple(simple{page: page{
			use:     "disk VOLUME",
			short:   "Show the disk number of a volume",
			example: "  csi-proxyctl volume disk " + exampleVolume,
		}, method: "volume/GetDiskNumberFromVolumeID"}),
	)
}

var (
	bareGUID  = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
	shellGUID = regexp.MustCompile(`^(Volume)?\{([0-9A-Fa-f-]{36})\}$`)
)

// volumeID completes a bare GUID to an id. The server checks everything else.
func volumeID(text string) string {
	if m := shellGUID.FindStringSubmatch(text); m != nil {
		text = m[2]
	}
	if bareGUID.MatchString(text) {
		return `\\?\Volume{` + text + `}\`
	}
	return text
}

func (a *app) volumeList() *cobra.Command {
	var disk, partition uint32
	var c *cobra.Command
	c = a.leaf(page{
		use:   "list",
		short: "List the volumes of all disks or of one disk",
		long: `List the volumes of all disks, or of one disk (ListVolumesOnDisk), with state, size, use, file
system, and the persistent volume and pod, or the drive; -o wide has all paths. Problems go to
standard error.`,
		example: "  csi-proxyctl volume list\n  csi-proxyctl volume list --disk 3 -o json",
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		onDisk, onPartition := c.Flags().Changed("disk"), c.Flags().Changed("partition")
		switch {
		case onPartition && !onDisk:
			return usagef("--partition needs --disk")
		case onPartition && partition == 0:
			return usagef("--partition must be at least 1")
		case onDisk:
			node, err := s.source.VolumesOn(ctx, disk, partition)
			return listVolumes(s, node, err)
		default:
			node, err := s.source.Volumes(ctx)
			return listVolumes(s, node, err)
		}
	})
	c.Flags().Uint32Var(&disk, "disk", 0, "only volumes on this disk (default: all disks)")
	c.Flags().Uint32Var(&partition, "partition", 0, "only volumes on this partition of --disk (default: all partitions)")
	return c
}

func listVolumes(s *session, node inventory.Node, err error) error {
	if err != nil {
		return err
	}
	rows := output.Rows{Header: []string{"DISK", "PART", "VOLUME", "STATE", "SIZE", "USE", "FS", "PV", "POD", "USED", "PATH"}, Narrow: 9, Name: 2, Empty: "no volumes; a disk has none while it is blank or offline"}
	for _, v := range node.GetVolumes() {
		rows.Add(volumeCells(s, node, v)...)
	}
	if err := s.list(inventory.Objects(node, node.GetVolumes()), &rows); err != nil || s.Format.ForScripts() {
		return err
	}
	s.warnOf(node.About(problem.Node), problem.Unseen)
	for _, p := range node.Problems { // of the volumes, and of what keeps them from answering
		if slices.ContainsFunc(node.GetVolumes(), func(v *extensionv1.Volume) bool {
			return p.Object == problem.Object{Type: problem.Volume, ID: v.GetId()} || slices.Contains(p.Affects, v.GetId())
		}) {
			s.warnOf([]inventory.Problem{p}, problem.NoAnswer, problem.DeadSession, problem.Locked, problem.Offline, problem.ReadOnly)
		}
	}
	return nil
}

func volumeCells(s *session, node inventory.Node, v *extensionv1.Volume) []output.Cell {
	id, disk, used, use, partition := v.GetId(), "", "", "", ""
	if s.Format != output.Wide {
		id = inventory.ShortID(id)
	}
	if len(v.GetDisks()) == 1 {
		disk = fmt.Sprint(v.GetDisks()[0])
	}
	if v.GetPartition() > 0 {
		partition = fmt.Sprint(v.GetPartition())
	}
	state := output.Cell{Text: v.GetState(), Style: output.Warning}
	if v.GetState() == extensionv1.VolumeFormatted {
		state.Style = output.Good
	}
	row := node.Row(nil, v)
	if row.Use >= 0 {
		used, use = output.Size(v.GetUsedBytes()), fmt.Sprintf("%d%%", row.Use)
	}
	return []output.Cell{
		output.Text(disk), output.Text(partition), output.Text(id), state, output.Text(row.Size), output.Text(use), output.Text(v.GetFileSystem()),
		output.Text(inventory.Several(row.Users.PVs)), output.Text(cmp.Or(inventory.Several(node.PodNames(row.Users.Pods)), row.Drive)), output.Text(used), output.Text(strings.Join(v.GetMountPaths(), " ")),
	}
}

func volumeFormat(ctx context.Context, s *session, id string) error {
	request := &volumev2alpha1.FormatVolumeRequest{VolumeId: id}
	return s.change(ctx, "volume", "FormatVolume", request, &volumev2alpha1.FormatVolumeResponse{}, "volume "+inventory.ShortID(id), "formatted")
}

func volumeResize(ctx context.Context, s *session, args []string) error {
	id, size, result := volumeID(args[0]), int64(0), "resized to all available space"
	if args[1] != "max" { // 0 for the API
		var err error
		if size, err = output.ParseSize(args[1]); err != nil {
			return usageError{err}
		}
		if size == 0 {
			return usagef("size 0 is invalid; use max")
		}
		result = "has at least " + args[1] // volumes do not shrink
	}
	request := &volumev2alpha1.ResizeVolumeRequest{VolumeId: id, SizeBytes: size}
	return s.change(ctx, "volume", "ResizeVolume", request, &volumev2alpha1.ResizeVolumeResponse{}, "volume "+inventory.ShortID(id), result)
}
