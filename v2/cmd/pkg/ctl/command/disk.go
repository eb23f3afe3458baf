package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

func (a *app) disk() *cobra.Command {
	return a.group(page{
		use:     "disk",
		short:   "List and partition disks, bring them online and take them offline",
		long:    "DISK is the number that Windows gives the disk; 'disk list' shows it. Numbers can change when the machine restarts.",
		example: "  csi-proxyctl disk list\n  csi-proxyctl disk partition 3",
	},
		a.leaf(page{
			use:     "list",
			short:   "List all disks with size, state, ids, and who uses them",
			long:    "List all disks with size, state, ids, and the persistent volumes and pods that use them.",
			example: "  csi-proxyctl disk list\n  csi-proxyctl disk list -o wide\n  csi-proxyctl disk list -o json",
		}, 0, diskList),
		a.leaf(page{
			use:     "ids",
			short:   "List the serial numbers and page 83 ids of all disks",
			long:    "List the serial numbers and page 83 ids of all disks (ListDiskIDs).",
			example: "  csi-proxyctl disk ids",
		}, 0, diskIDs),
		a.leaf(page{
			use:     "locations",
			short:   "List the adapter, bus, target and LUN of all disks",
			long:    "List the adapter, bus, target and LUN of all disks (ListDiskLocations).",
			example: "  csi-proxyctl disk locations",
		}, 0, diskLocations),
		a.simple(simple{
			page:   page{use: "stats DISK", short: "Show the size of a disk", example: "  csi-proxyctl disk stats 3"},
			method: "disk/GetDiskStats",
			text:   func(m proto.Message) string { return output.Size(m.(*diskv1.GetDiskStatsResponse).GetTotalBytes()) },
		}),
		a.simple(simple{
			page:   page{use: "state DISK", short: "Show whether a disk is online", example: "  csi-proxyctl disk state 3"},
			method: "disk/GetDiskState",
			text: func(m proto.Message) string {
				return inventory.StateCell(m.(*diskv1.GetDiskStateResponse).GetIsOnline()).Text
			},
		}),
		a.onDisk(page{
			use:     "online DISK",
			short:   "Bring a disk online",
			long:    "Bring a disk online (SetDiskState). Does nothing if it is online.",
			example: "  csi-proxyctl disk online 3",
		}, setDiskState(true)),
		a.diskOffline(),
		a.onDisk(page{
			use:   "writable DISK",
			short: "Make a read-only disk writable",
			long: `Make a read-only disk writable, for all volumes on it. Refuses the system disk. Does nothing
if the disk is writable. Fails if the platform attached the disk read-only.

The published API has no such call, so this needs a csi-proxy that has its own.`,
			example: "  csi-proxyctl disk writable 3",
		}, func(ctx context.Context, s *session, disk uint32) error { return setDiskReadOnly(ctx, s, disk, false) }),
		a.diskReadOnly(),
		a.simple(simple{page: page{
			use:     "partition DISK",
			short:   "Create a partition table and one partition on a blank disk",
			long:    "Does nothing if the disk has a partition.",
			example: "  csi-proxyctl disk partition 3",
		}, method: "disk/PartitionDisk", object: "disk {1}", done: "partitioned"}),
		a.simple(simple{page: page{
			use:     "rescan",
			short:   "Find new disks and new sizes",
			long:    "Find new disks and new sizes of disks (Rescan).",
			example: "  csi-proxyctl disk rescan",
		}, method: "disk/Rescan", object: "disks", done: "rescanned"}),
	)
}

// onDisk makes a command whose argument is a disk number.
func (a *app) onDisk(p page, run func(ctx context.Context, s *session, disk uint32) error) *cobra.Command {
	return a.leaf(p, 1, onDiskNumber(run))
}

func onDiskNumber(run func(ctx context.Context, s *session, disk uint32) error) runner {
	return func(ctx context.Context, s *session, args []string) error {
		disk, err := parseDisk(args[0])
		if err != nil {
			return err
		}
		return run(ctx, s, disk)
	}
}

func parseDisk(text string) (uint32, error) {
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, usagef("invalid disk number %q; run 'csi-proxyctl disk list' to list the disks", text)
	}
	return uint32(number), nil
}

const noDisks = "no disks"

func diskList(ctx context.Context, s *session, _ []string) error {
	node, err := s.source.Disks(ctx)
	if err != nil {
		return err
	}
	rows := output.Rows{Header: []string{"DISK", "SIZE", "STATE", "SERIAL", "LOCATION", "PV", "POD", "PAGE83", "BYTES"}, Narrow: 7, Empty: noDisks}
	for _, d := range node.GetDisks() {
		users := node.DiskUsers(d)
		state, size, bytes := output.Text(""), "", ""
		if d.Online != nil {
			state = inventory.DiskState(d)
		}
		if d.SizeBytes != nil {
			size, bytes = output.Size(d.GetSizeBytes()), strconv.FormatInt(d.GetSizeBytes(), 10)
		}
		rows.Add(number(d.Number), output.Text(size), state,
			output.Text(d.GetSerialNumber()), output.Text(d.GetLocation()), output.Text(inventory.Several(users.PVs)), output.Text(inventory.Several(node.PodNames(users.Pods))),
			output.Text(d.GetPage83()), output.Text(bytes))
	}
	if err := s.list(inventory.Objects(node, node.GetDisks()), &rows); err != nil || s.Format.ForScripts() {
		return err
	}
	s.warnOf(node.About(problem.Disk), problem.NoAnswer)
	return nil
}

// number returns a number, or ? if it is unknown.
func number(n *uint32) output.Cell {
	if n == nil {
		return output.Text("?")
	}
	return output.Text(strconv.FormatUint(uint64(*n), 10))
}

// warnOf prints problems of the given kinds to standard error; the table shows the others.
func (s *session) warnOf(problems []inventory.Problem, kinds ...problem.Kind) {
	for _, p := range problems {
		if slices.Contains(kinds, p.Kind) {
			s.warn("%s: %s", p.Name(), p.Text)
		}
	}
}

func diskIDs(ctx context.Context, s *session, _ []string) error {
	var response diskv1.ListDiskIDsResponse
	if err := s.client.Do(ctx, "disk", "ListDiskIDs", &diskv1.ListDiskIDsRequest{}, &response); err != nil {
		return err
	}
	return byDisk(s, response.GetDiskIDs(), []string{"DISK", "SERIAL", "PAGE83"}, func(ids *diskv1.DiskIDs) []string {
		return []string{ids.GetSerialNumber(), ids.GetPage83()}
	})
}

func diskLocations(ctx context.Context, s *session, _ []string) error {
	var response diskv1.ListDiskLocationsResponse
	if err := s.client.Do(ctx, "disk", "ListDiskLocations", &diskv1.ListDiskLocationsRequest{}, &response); err != nil {
		return err
	}
	return byDisk(s, response.GetDiskLocations(), []string{"DISK", "ADAPTER", "BUS", "TARGET", "LUN"}, func(at *diskv1.DiskLocation) []string {
		return []string{at.GetAdapter(), at.GetBus(), at.GetTarget(), at.GetLUNID()}
	})
}

// byDisk prints a message per disk.
func byDisk[M proto.Message](s *session, found map[uint32]M, header []string, columns func(M) []string) error {
	list := []output.Object{}
	rows := output.Rows{Header: header, Empty: noDisks}
	for _, number := range slices.Sorted(maps.Keys(found)) {
		list = append(list, append(output.Object{{Name: "disk", Value: number}}, output.Message(found[number])...))
		cells := []output.Cell{output.Text(fmt.Sprint(number))}
		for _, text := range columns(found[number]) {
			cells = append(cells, output.Text(text))
		}
		rows.Add(cells...)
	}
	return s.list(list, &rows)
}

func setDiskState(online bool) func(ctx context.Context, s *session, disk uint32) error {
	return func(ctx context.Context, s *session, disk uint32) error {
		request := &diskv1.SetDiskStateRequest{DiskNumber: disk, IsOnline: online}
		return s.change(ctx, "disk", "SetDiskState", request, &diskv1.SetDiskStateResponse{}, fmt.Sprintf("disk %d", disk), inventory.StateCell(online).Text)
	}
}

func (a *app) diskOffline() *cobra.Command {
	find := onDiskEffect("take it offline", "Take disk %d offline? Its volumes are dismounted, and programs that use them fail.",
		func(d *extensionv1.Disk) bool { return d.Online != nil && !d.GetOnline() })
	return a.dangerous(page{
		use:   "offline DISK",
		short: "Take a disk offline",
		long: `Take a disk offline (SetDiskState) and dismount its volumes. Asks for confirmation; scripts
use --yes. Refuses the system disk, and one that a pod uses. Does nothing if the disk is offline.`,
		example: "  csi-proxyctl disk offline 3 --dry-run\n  csi-proxyctl disk offline 3 --yes",
	}, find, onDiskNumber(setDiskState(false)), nil)
}

func (a *app) diskReadOnly() *cobra.Command {
	find := onDiskEffect("make it read-only", "Make disk %d read-only? Writes to its volumes will fail.",
		(*extensionv1.Disk).GetReadOnly)
	return a.dangerous(page{
		use:   "read-only DISK",
		short: "Make a disk read-only",
		long: `Make a disk read-only: writes to its volumes fail. Asks for confirmation; scripts use --yes. Refuses
the system disk, and one that is mounted at a folder. Does nothing if the disk is read-only.

The published API has no such call, so this needs a csi-proxy that has its own.`,
		example: "  csi-proxyctl disk read-only 3\n  csi-proxyctl disk read-only 3 --yes",
	}, find, onDiskNumber(func(ctx context.Context, s *session, disk uint32) error { return setDiskReadOnly(ctx, s, disk, true) }), nil)
}

// setDiskReadOnly uses a service of csi-proxy that is not published. Without it there is diskpart.
func setDiskReadOnly(ctx context.Context, s *session, disk uint32, readOnly bool) error {
	result, command := "writable", "clear"
	if readOnly {
		result, command = "read-only", "set"
	}
	request := &extensionv1.Disk{Number: &disk, ReadOnly: &readOnly}
	err := s.client.Private(ctx, "disk", extensionv1.DiskReadOnly_SetDiskReadOnly_FullMethodName, request, &emptypb.Empty{})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return status.Errorf(codes.Unimplemented,
			"make disk %d %s: this server cannot; upgrade csi-proxy, or run diskpart with 'select disk %d' and 'attributes disk %s readonly'", disk, result, disk, command)
	case err != nil:
		return err
	}
	return s.done(fmt.Sprintf("disk %d", disk), result)
}
