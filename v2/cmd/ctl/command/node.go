package command

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/webpage"
)

// kubeletPath is the daemon's default for -kubelet-path.
const kubeletPath = `C:\var\lib\kubelet`

const pathsHelp = "path whose volume to show, such as a mount; repeatable"

func (a *app) node() *cobra.Command {
	var paths []string
	var askShares, exitCode, problems bool
	var filter inventory.Filter
	var disks []string
	c := a.leaf(page{
		use:   "node",
		short: "Show problems, disks, volumes, mounts, shares and iSCSI sessions as a tree",
		long: `Show the node's storage as a tree. Problems come first, the most urgent on top, each with the
pods that it affects and what to do. The tree below has disks, partitions and volumes, how
full they are, where they are mounted, and the links to them in the working directories; the
SMB shares that the node has mapped or that links need; and iSCSI sessions. For paths of
kubelet it shows driver, persistent volume and the UID of the pod.

--disk, --pod, --pv and --driver show only what belongs to them, with its problems. The exit
code is 1 if nothing does. --problems shows only problems. With --exit-code the exit code
is 4 if there is a problem, or something that the server does not report.

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
  csi-proxyctl node --problems --ask-shares --exit-code
  csi-proxyctl node --pod 6f9619ff-8b86
  csi-proxyctl node --pv pvc-1 -o wide
  csi-proxyctl node -o name
  csi-proxyctl node -o json`,
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		for _, text := range disks {
			number, err := parseDisk(text)
			if err != nil {
				return err
			}
			filter.Disks = append(filter.Disks, number)
		}
		node, err := s.source.Node(ctx, paths, askShares)
		if err != nil {
			return err
		}
		node, found := node.Select(filter)
		if !found {
			return errors.New("nothing on this node matches --disk, --pod, --pv and --driver")
		}
		switch bad, _ := node.Select(inventory.Filter{Problems: true}); {
		case a.format == output.HTML && problems:
			err = webpage.Write(a.env.Out, bad, time.Now())
		case a.format == output.HTML:
			err = webpage.Write(a.env.Out, node, time.Now())
		case problems && a.format == output.Name:
			err = a.draw(s, bad)
		case problems:
			err = s.Value(bad, func() string { return node.DrawProblems(s.Printer, a.width()) })
		default:
			err = a.draw(s, node)
		}
		if err == nil && exitCode && len(node.Problems) > 0 {
			return errFindings
		}
		return err
	})
	c.Flags().BoolVar(&problems, "problems", false, "show only problems")
	c.Flags().StringSliceVar(&disks, "disk", nil, "show only these disks; repeatable")
	c.Flags().StringSliceVar(&filter.Pods, "pod", nil, "show only what the pod with this UID uses; the beginning of the UID is enough; repeatable")
	c.Flags().StringSliceVar(&filter.PVs, "pv", nil, "show only this persistent volume; repeatable")
	c.Flags().StringSliceVar(&filter.Drivers, "driver", nil, "show only the volumes of this CSI driver; repeatable")
	c.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 4 if there is a problem")
	c.Flags().StringArrayVar(&paths, "path", nil, pathsHelp)
	c.Flags().BoolVar(&askShares, "ask-shares", false, "open every share to find out whether it answers")
	c.AddCommand(a.heal())
	return c
}

// draw prints a node in the width of the terminal.
func (a *app) draw(s *session, node inventory.Node) error {
	return s.Value(node, func() string {
		if s.Format == output.Name {
			return strings.Join(append(node.Names(), ""), "\n")
		}
		return node.Draw(s.Printer, a.width())
	})
}

// width returns the width of the terminal, 0 if unknown.
func (a *app) width() int {
	if a.env.Width == nil {
		return 0
	}
	return a.env.Width()
}
