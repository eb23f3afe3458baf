package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/kubelet"
)

func (a *app) heal() *cobra.Command {
	var dryRun, yes bool
	c := a.interactive(page{
		use:   "heal",
		short: "Remove staging links whose volume or share is gone",
		long: `After a restart of the node, kubelet finds the links at which it had staged volumes,
plugins\kubernetes.io\csi\DRIVER\VOLUME\globalmount. If the volume or share is gone, kubelet
fails to create the directory and calls no driver. This command looks for such links twice,
rescans the disks in between, and removes those that are certainly gone. It never removes
files, nor a link that leads somewhere.

With --dry-run it only shows them; otherwise it asks for confirmation. A link is kept while
something that is not ready could bring its volume, and until that has been gone for 10
minutes: since Windows started, if the link is older, or since an earlier look of the daemon.
One look cannot know that, so run it again when it says "gone for 40s of 10m".

The exit code is 4 if stale mounts are left, or if a directory could not be searched.`,
		example: "  csi-proxyctl node heal --dry-run\n  csi-proxyctl node heal --yes",
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		if dryRun || !yes {
			found, err := a.healNode(ctx, s, true)
			if err != nil {
				return err
			}
			removable := 0
			for _, stale := range found.GetStale() {
				if stale.GetState() == extensionv1.StaleRemovable {
					removable++
				}
			}
			if dryRun || removable == 0 {
				return a.healed(s, found)
			}
			fmt.Fprint(s.err, staleText(s.Printer, found))
			if err := a.mustConfirm(ctx, fmt.Sprintf("Remove %d links?", removable), "node"); err != nil {
				return err
			}
		}
		found, err := a.healNode(ctx, s, false)
		if err != nil {
			return err
		}
		return a.healed(s, found)
	})
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be removed, and remove nothing")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return c
}

// healNode uses an extension, which the original does not have.
func (a *app) healNode(ctx context.Context, s *session, dryRun bool) (*extensionv1.HealResponse, error) {
	if a.env.Terminal && !a.format.ForScripts() {
		s.warn("looking twice for stale mounts, with a rescan of the disks in between; this takes some seconds")
	}
	response := &extensionv1.HealResponse{}
	err := a.bounded(ctx, func(ctx context.Context) error {
		return s.client.Private(ctx, "filesystem", extensionv1.Healer_Heal_FullMethodName, &extensionv1.HealRequest{DryRun: dryRun}, response)
	})
	if status.Code(err) == codes.Unimplemented {
		return nil, status.Error(codes.Unimplemented, "heal node: this server cannot; upgrade csi-proxy, or remove stale links with 'csi-proxyctl fs rmdir PATH'")
	}
	return response, err
}

func (a *app) healed(s *session, found *extensionv1.HealResponse) error {
	list := []output.Object{}
	left := len(found.GetProblems()) > 0
	for _, stale := range found.GetStale() {
		left = left || stale.GetState() != extensionv1.StaleRemoved
		staged, _ := kubelet.Parse(stale.GetPath())
		list = append(list, append(output.Message(stale), output.Member{Name: "driver", Value: staged.Driver}, output.Member{Name: "volume", Value: cmp.Or(staged.Handle, staged.PV)}))
	}
	for _, problem := range found.GetProblems() {
		s.warn("not searched: %s", problem.GetText())
	}
	if err := s.Value(list, func() string { return staleText(s.Printer, found) }); err != nil {
		return err
	}
	if left {
		return errProblems
	}
	return nil
}

func changedText(stale *extensionv1.Link) string {
	if stale.GetChangedUnix() == 0 {
		return ""
	}
	return time.Unix(stale.GetChangedUnix(), 0).UTC().Format(time.RFC3339)
}

var healStyles = map[string]output.Style{
	extensionv1.StaleKept: output.Warning, extensionv1.StaleRemovable: output.Bold, extensionv1.StaleRemoved: output.Good,
}

// staleText has a few lines per find, and a summary.
func staleText(p *output.Printer, found *extensionv1.HealResponse) string {
	var b strings.Builder
	for _, stale := range found.GetStale() {
		fmt.Fprintf(&b, "%s  %s\n", p.Paint(healStyles[stale.GetState()], stale.GetState()), output.Printable(stale.GetPath()))
		changed := changedText(stale)
		if changed == "" {
			changed = "an unknown time"
		}
		fmt.Fprintf(&b, "    leads to %s, since %s: %s\n", output.Printable(stale.GetTarget()), changed, stale.GetStale())
		fmt.Fprintf(&b, "    %s\n", stale.GetReason())
	}
	fmt.Fprintf(&b, "%d stale, %d live.\n", len(found.GetStale()), found.GetLive())
	return b.String()
}
