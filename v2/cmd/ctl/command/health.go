package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/output"
)

func (a *app) volumeCheck() *cobra.Command {
	var scan bool
	c := a.interactive(page{
		use:   "check VOLUME",
		short: "Show whether a volume and its disks are well",
		long: `Show what Windows knows of a volume: its dirty bit, damage that NTFS has noted, and the
health of its disks. With --scan, NTFS looks at all its structures first, while the volume is
in use. That can take hours: the scan goes on if this command ends, and the next one joins it.

The exit code is 4 if something is wrong or not known.`,
		example: "  csi-proxyctl volume check " + exampleVolume + "\n  csi-proxyctl volume check " + exampleVolume + " --scan",
	}, 1, func(ctx context.Context, s *session, args []string) error {
		request := &extensionv1.CheckVolumeRequest{VolumeId: volumeID(args[0])}
		if scan {
			request.Action = extensionv1.ActionScan
		}
		found, err := a.checkVolume(ctx, s, request)
		if err != nil {
			return err
		}
		return checked(s, found)
	})
	c.Flags().BoolVar(&scan, "scan", false, "let NTFS look for damage first")
	return c
}

func (a *app) volumeRepair() *cobra.Command {
	var offline, dismount bool
	asked := func(args []string) *extensionv1.CheckVolumeRequest {
		request := &extensionv1.CheckVolumeRequest{VolumeId: volumeID(args[0]), Action: extensionv1.ActionRepair, Dismount: dismount}
		if offline {
			request.Action = extensionv1.ActionRepairOffline
		}
		return request
	}
	var c *cobra.Command
	c = a.dangerous(page{
		use:   "repair VOLUME",
		short: "Mend the NTFS of a volume",
		long: `Mend the NTFS of a volume: a scan, unless the damage is known, and a spot fix, which takes
the volume away for seconds. With --offline the volume is away for all of the repair, which
can be hours, and what a spot fix cannot mend is mended. It refuses a volume that is mounted
somewhere, unless --dismount is set, volumes of the system disk, and ReFS, which mends itself.
A repair goes on if this command ends, and the next one joins it.

Asks for confirmation; scripts use --yes. The exit code is 4 if something is still wrong.`,
		example: "  csi-proxyctl volume repair " + exampleVolume + " --dry-run\n  csi-proxyctl volume repair " + exampleVolume + " --offline --yes",
	}, func(ctx context.Context, s *session, args []string) (effect, error) {
		return repairEffect(ctx, s, asked(args))
	}, func(ctx context.Context, s *session, args []string) error {
		found, err := a.checkVolume(c.Context(), s, asked(args)) //nolint:contextcheck // ctx may end with the default --timeout
		if err != nil {
			return err
		}
		return checked(s, found)
	}, nil)
	c.Flags().BoolVar(&offline, "offline", false, "mend also what a spot fix cannot; the volume is away until the end")
	c.Flags().BoolVar(&dismount, "dismount", false, "take the volume away from those who use it")
	return c
}

func repairEffect(ctx context.Context, s *session, request *extensionv1.CheckVolumeRequest) (effect, error) {
	id := request.VolumeId
	e := effect{
		Object: "volume " + inventory.ShortID(id), Action: "scan it, and mend what is damaged in seconds", Changes: true,
		question: "Repair volume " + output.Printable(inventory.ShortID(id)) + "? Pods cannot use it meanwhile.",
	}
	if request.Action == extensionv1.ActionRepairOffline {
		e.Action = "take it away, scan it, and mend all that can be mended"
	}
	node, err := describeFor(ctx, s, &e)
	if err != nil {
		return e, err
	}
	var mounts []string
	for _, v := range node.GetVolumes() {
		if strings.EqualFold(v.GetId(), id) {
			e.touch(node, v)
			mounts = v.GetMountPaths()
		}
	}
	found := &extensionv1.VolumeCondition{}
	if err := s.client.Private(ctx, "volume", extensionv1.VolumeHealth_CheckVolume_FullMethodName, &extensionv1.CheckVolumeRequest{VolumeId: id}, found); err != nil {
		e.fail(status.Convert(err).Message())
		return e, nil
	}
	onSystem := slices.ContainsFunc(node.GetDisks(), func(d *extensionv1.Disk) bool {
		return d.GetSystem() && d.Number != nil && slices.Contains(found.GetVolume().GetDisks(), d.GetNumber())
	})
	switch is := found.GetVolume(); { // what the server refuses
	case found.GetRunning() != "" && found.GetRunningSinceUnix() == 0:
		e.fail("another process has locked it, as a repair does; try again when it is done")
	case onSystem:
		e.fail("it is on the system disk, which csi-proxy does not change")
	case is.GetFileSystem() != "" && !strings.EqualFold(is.GetFileSystem(), "NTFS"):
		e.fail("it has " + is.GetFileSystem() + ", and Windows can repair only NTFS")
	case len(mounts) > 0 && !request.Dismount:
		e.fail("it is in use at " + strings.Join(mounts, ", ") + "; unmount it first, or use --dismount")
	case is.GetDamage() == "offline repair needed" && request.Action == extensionv1.ActionRepair:
		e.fail("a spot fix cannot mend it; use --offline")
	}
	e.Touches = append(e.Touches, found.GetProblems()...)
	e.Unknown = append(e.Unknown, found.GetUnknown()...)
	return e, nil
}

// checkVolume uses an extension, which the original does not have. A scan or repair can take hours, so that only a
// --timeout that was asked for ends the wait.
func (a *app) checkVolume(ctx context.Context, s *session, request *extensionv1.CheckVolumeRequest) (*extensionv1.VolumeCondition, error) {
	response := &extensionv1.VolumeCondition{}
	ask := func(ctx context.Context) error {
		return s.client.Private(ctx, "volume", extensionv1.VolumeHealth_CheckVolume_FullMethodName, request, response)
	}
	var err error
	if request.GetAction() == "" || a.current.Flags().Changed("timeout") {
		err = a.bounded(ctx, ask)
	} else {
		stop := a.meter.watch(ctx, a.client)
		err = ask(ctx)
		stop()
	}
	if status.Code(err) == codes.Unimplemented && strings.Contains(err.Error(), "unknown service") {
		return nil, status.Error(codes.Unimplemented, "check volume: this server cannot; upgrade csi-proxy")
	}
	return response, err
}

func checked(s *session, found *extensionv1.VolumeCondition) error {
	o := output.Fields(found.GetVolume(), "volumeID=id fileSystem readOnly dirty damage disks")
	o = append(o, output.Fields(found, "running problems unknown")...)
	err := s.Value(o, func() string { return conditionText(s.Printer, found) })
	if err == nil && len(found.GetProblems())+len(found.GetUnknown()) > 0 {
		return errFindings
	}
	return err
}

func conditionText(p *output.Printer, found *extensionv1.VolumeCondition) string {
	var b strings.Builder
	name := "volume " + inventory.ShortID(found.GetVolume().GetId())
	if found.GetRunning() != "" {
		fmt.Fprintf(&b, "%s: %s runs", name, found.GetRunning())
		if since := found.GetRunningSinceUnix(); since != 0 {
			b.WriteString(" since " + time.Unix(since, 0).UTC().Format(time.RFC3339))
		}
		b.WriteString("\n")
	}
	for _, text := range found.GetProblems() {
		fmt.Fprintf(&b, "%s: %s\n", name, p.Paint(output.Warning, text))
	}
	for _, text := range found.GetUnknown() {
		fmt.Fprintf(&b, "%s: not known: %s\n", name, text)
	}
	if b.Len() == 0 {
		fmt.Fprintf(&b, "%s: %s\n", name, p.Paint(output.Good, found.GetVolume().GetFileSystem()+" and its disks are well"))
	}
	return b.String()
}
