package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

func (a *app) volumeCheck() *cobra.Command {
	return a.leaf(page{
		use:   "check VOLUME",
		short: "Show whether a volume and its disks are well",
		long: `Show what Windows knows of a volume: its dirty bit, damage that NTFS has noted, and the
health of its disks. It changes nothing, and prints the commands of Windows that mend the
volume.

The exit code is 4 if something is wrong or not known.`,
		example: "  csi-proxyctl volume check " + exampleVolume,
	}, 1, func(ctx context.Context, s *session, args []string) error {
		found := &extensionv1.VolumeCondition{}
		err := s.client.Private(ctx, "volume", extensionv1.VolumeHealth_CheckVolume_FullMethodName, &extensionv1.Volume{Id: volumeID(args[0])}, found)
		if status.Code(err) == codes.Unimplemented && strings.Contains(err.Error(), "unknown service") { // as of the original
			err = status.Error(codes.Unimplemented, "check volume: this server cannot; upgrade csi-proxy")
		}
		if err != nil {
			return err
		}
		return checked(s, found)
	})
}

func checked(s *session, found *extensionv1.VolumeCondition) error {
	remedy := problem.RepairAdvice(found.GetVolume())
	err := s.Value(append(output.Message(found), output.Member{Name: "remedy", Value: remedy}), func() string { return conditionText(s.Printer, found, remedy) })
	if err == nil && len(found.GetProblems())+len(found.GetUnknown()) > 0 {
		return errProblems
	}
	return err
}

func conditionText(p *output.Printer, found *extensionv1.VolumeCondition, remedy string) string {
	var b strings.Builder
	name := "volume " + inventory.ShortID(found.GetVolume().GetId())
	for _, text := range found.GetProblems() {
		fmt.Fprintf(&b, "%s: %s\n", name, p.Paint(output.Warning, text))
	}
	for _, text := range found.GetUnknown() {
		fmt.Fprintf(&b, "%s: not known: %s\n", name, text)
	}
	if remedy != "" {
		fmt.Fprintf(&b, "→ %s\n", remedy)
	}
	if b.Len() == 0 {
		fmt.Fprintf(&b, "%s: %s\n", name, p.Paint(output.Good, found.GetVolume().GetFileSystem()+" and its disks are well"))
	}
	return b.String()
}
