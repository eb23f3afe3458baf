package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/webpage"
)

// kubeletPath is the daemon's default for -kubelet-path.
const kubeletPath = `C:\var\lib\kubelet`

const pathsHelp = "path whose volume to show, such as a mount; repeatable"

func (a *app) node() *cobra.Command {
	var paths []string
	var askShares bool
	c := a.leaf(page{
		use:   "node",
		short: "Show disks, partitions, volumes, mounts and shares as a tree, with warnings",
		long: `Show the node's storage as a tree: disks, partitions and volumes, how full they are, where
they are mounted, and the links to them in the working directories; and the SMB shares that
the node has mapped. Lines with ! are warnings: disks that are offline, read-only or do not
answer, volumes without a file system or locked, file systems smaller than their partition,
stale mounts.

Windows' status of a share stays ok when its server is gone or the password has changed. To
find out, use --ask-shares: the server then opens every share, as pods do.

The information comes from the server's inspector. If the server has none, or with
--api-version, it comes from the published API; a warning then says what is missing, and
--path shows the volume of a path. On a terminal, long paths and ids are shortened;
-o wide shows them in full.

-o html writes one web page with everything, which needs no network.`,
		example: `  csi-proxyctl node
  csi-proxyctl node -o html > node.html
  csi-proxyctl node --path 'C:\var\lib\kubelet\plugins\x\globalmount'
  csi-proxyctl node --ask-shares
  csi-proxyctl node -o json`,
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		node, err := s.source.Node(ctx, paths, askShares)
		if err != nil {
			return err
		}
		if a.format == output.HTML {
			return webpage.Write(a.env.Out, node, time.Now())
		}
		return a.draw(s, node)
	})
	c.Flags().StringArrayVar(&paths, "path", nil, pathsHelp)
	c.Flags().BoolVar(&askShares, "ask-shares", false, "open every share to find out whether it answers")
	c.AddCommand(a.heal())
	return c
}

// draw prints a node in the width of the terminal.
func (a *app) draw(s *session, node inventory.Node) error {
	return s.Value(node, func() string { return node.Draw(s.Printer, a.width()) })
}

// width returns the width of the terminal, 0 if unknown.
func (a *app) width() int {
	if a.env.Width == nil {
		return 0
	}
	return a.env.Width()
}
