package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/webpage"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

// kubeletPath is the daemon's default for -kubelet-path.
const kubeletPath = `C:\var\lib\kubelet`

// view is what node, watch and web show of the node.
type view struct {
	disks  []string
	filter inventory.Filter
}

func (v *view) flags(c *cobra.Command) {
	c.Flags().StringSliceVar(&v.disks, "disk", nil, "show only these disks; repeatable")
	c.Flags().StringSliceVar(&v.filter.Pods, "pod", nil, "show only what this pod uses: its name, NAMESPACE/NAME, its UID or how that begins; repeatable")
	c.Flags().StringSliceVar(&v.filter.PVs, "pv", nil, "show only this persistent volume; repeatable")
	c.Flags().StringSliceVar(&v.filter.Drivers, "driver", nil, "show only the volumes of this CSI driver; repeatable")
}

func (v *view) look(ctx context.Context, s *session) (inventory.Node, error) {
	filter := v.filter
	for _, text := range v.disks {
		number, err := parseDisk(text)
		if err != nil {
			return inventory.Node{}, err
		}
		filter.Disks = append(filter.Disks, number)
	}
	node, err := s.source.Node(ctx)
	if err != nil {
		return node, err
	}
	node, found := node.Select(filter)
	if !found {
		var asked []string
		for _, f := range []struct {
			flag   string
			values []string
		}{{"disk", v.disks}, {"pod", filter.Pods}, {"pv", filter.PVs}, {"driver", filter.Drivers}} {
			for _, value := range f.values {
				asked = append(asked, "--"+f.flag+" "+value)
			}
		}
		if len(filter.Pods) > 0 {
			return node, fmt.Errorf("nothing on this node matches %s: one that has not started yet is known by its UID only", strings.Join(asked, " and "))
		}
		return node, fmt.Errorf("nothing on this node matches %s", strings.Join(asked, " and "))
	}
	return node, nil
}

func (a *app) node() *cobra.Command {
	var v view
	var exitCode, problems bool
	c := a.leaf(page{
		use:   "node",
		short: "Show problems, disks, volumes, mounts, shares and iSCSI sessions",
		long: `Show the node's storage. Problems come first: those that hurt pods now, those that will, and
notes, each with the pods and what to do. Disks and shares with problems follow as a tree, and
the others with a line per volume: disk, persistent volume, pod, driver and how full it is.
-o wide, and --disk, --pod, --pv and --driver, show all as a tree: disks, partitions and volumes,
where they are mounted, and the links to them in the working directories; the SMB shares that
the node has mapped or that links need; and iSCSI sessions. Pods have names if the kubelet
keeps their logs in C:\var\log\pods, else UIDs.

--disk, --pod, --pv and --driver show only what belongs to them, with its problems and the calls
that failed lately. The exit code is 1 if nothing does; a pod that the node knows and for which
nothing is mounted waits for a volume, or has none. --problems shows only problems. With --exit-code the exit code
is 4 if a problem hurts pods or will, or if something does not answer or is not reported.

Windows' status of a share stays ok when its server is gone or the password has changed. The
daemon opens one share of each server that pods use every minute, and the problems say what it
found; 'csi-proxyctl smb list --ask' opens all of them now.

This needs the csi-proxy of this project, with the groups system, disk and volume.
On a terminal, long paths and ids are shortened; -o wide shows them in full.

-o html writes one web page with everything, which needs no network.`,
		example: `  csi-proxyctl node
  csi-proxyctl node -o html > node.html
  csi-proxyctl node --problems --exit-code
  csi-proxyctl node --pod shop/web-0
  csi-proxyctl node --pv pvc-1 -o wide
  csi-proxyctl node -o name
  csi-proxyctl node -o json`,
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		node, err := v.look(ctx, s)
		if err != nil {
			return err
		}
		switch bad, _ := node.Select(inventory.Filter{Problems: true}); {
		case a.format == output.HTML && problems:
			err = webpage.Write(a.env.Out, bad)
		case a.format == output.HTML:
			err = webpage.Write(a.env.Out, node)
		case problems && a.format == output.Name:
			err = a.draw(s, bad)
		case problems:
			err = s.Value(bad, func() string { return node.DrawProblems(s.Printer, a.width()) })
		default:
			err = a.draw(s, node)
		}
		serious := func(p inventory.Problem) bool {
			return p.Severity != problem.Note || p.Kind == problem.Unseen || p.Kind == problem.NoAnswer
		}
		if err == nil && exitCode && slices.ContainsFunc(node.Problems, serious) {
			return errProblems
		}
		return err
	})
	c.Flags().BoolVar(&problems, "problems", false, "show only problems")
	c.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 4 if a problem hurts pods or will, or something does not answer")
	v.flags(c)
	c.AddCommand(a.heal())
	return c
}

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
