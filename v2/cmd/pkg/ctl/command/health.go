package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
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
		node, err := s.source.Check(ctx, volumeID(args[0]))
		if status.Code(err) == codes.Unimplemented { // as of the original
			err = status.Error(codes.Unimplemented, "check volume: this server cannot; upgrade csi-proxy")
		}
		if err != nil {
			return err
		}
		if err := s.Value(node, func() string { return conditionText(s.Printer, node) }); err != nil || len(node.Problems) == 0 {
			return err
		}
		return errProblems
	})
}

func conditionText(p *output.Printer, node inventory.Node) string {
	var b strings.Builder
	for _, found := range node.Problems {
		fmt.Fprintf(&b, "%s: %s\n→ %s\n", found.Name(), p.Paint(output.Warning, output.Printable(found.Text)), found.Advice)
	}
	for _, v := range node.GetVolumes() {
		if b.Len() == 0 {
			fmt.Fprintf(&b, "volume %s: %s\n", inventory.ShortID(v.GetId()), p.Paint(output.Good, v.GetFileSystem()+" and its disks are well"))
		}
	}
	return b.String()
}
