package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
)

// completion prints cobra's scripts. cobra's own command succeeds for an unknown shell.
func (a *app) completion() *cobra.Command {
	shell := func(shell, how string, write func(root *cobra.Command, out io.Writer) error) *cobra.Command {
		return a.leaf(page{
			use:     shell,
			short:   "Print the completion script for " + shell,
			long:    "Print the script that completes commands, flags, and the node's disks, volumes and portals in " + shell + ".",
			example: "  " + how,
		}, 0, func(_ context.Context, s *session, _ []string) error { return write(a.current.Root(), s.Out) })
	}
	return a.group(page{
		use:     "completion",
		short:   "Print the completion script for a shell",
		long:    "Print the script that completes commands, flags, and the node's disks, volumes and portals in a shell.",
		example: "  source <(csi-proxyctl completion bash)",
	},
		shell("bash", "source <(csi-proxyctl completion bash)\n  csi-proxyctl completion bash > /etc/bash_completion.d/csi-proxyctl",
			func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, true) }),
		shell("zsh", `csi-proxyctl completion zsh > "${fpath[1]}/_csi-proxyctl"`, (*cobra.Command).GenZshCompletion),
		shell("fish", "csi-proxyctl completion fish > ~/.config/fish/completions/csi-proxyctl.fish",
			func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, true) }),
		shell("powershell", "csi-proxyctl completion powershell | Out-String | Invoke-Expression", (*cobra.Command).GenPowerShellCompletionWithDesc),
	)
}

// completeTimeout bounds how long a shell waits for completions.
const completeTimeout = 2 * time.Second

// completer returns the completions of a word. After an error it returns none, because a shell
// cannot show errors in the middle of a command line.
type completer func(ctx context.Context, s *session, args []string) []cobra.Completion

var placeholders = map[string]completer{
	"DISK": completeDisks, "VOLUME": completeVolumes, "PORTAL": completePortals, "IQN": completeTargets, "NAME": completeServices,
}

// fileFlags take a local file, which the shell completes.
var fileFlags = []string{"password-file", "secret-file", "binary", "log-file"}

// registerCompletions sets the completions of a command and its subcommands. Words without a
// completer get none, because shells would offer local files.
func (a *app) registerCompletions(c *cobra.Command) {
	arguments := []completer{}
	for word := range strings.FieldsSeq(c.Use) {
		if word == strings.ToUpper(word) {
			arguments = append(arguments, placeholders[word])
		}
	}
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = a.completing(func(ctx context.Context, s *session, args []string) []cobra.Completion {
			if len(args) < len(arguments) && arguments[len(args)] != nil {
				return arguments[len(args)](ctx, s, args)
			}
			return nil
		})
	}
	c.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if slices.Contains(fileFlags, flag.Name) {
			return
		}
		complete := cobra.NoFileCompletions
		switch flag.Name {
		case "endpoint-dir":
			complete = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
		case "output":
			complete = cobra.FixedCompletions(slices.Clone(output.Formats()), cobra.ShellCompDirectiveNoFileComp)
		case "disk":
			complete = a.completing(completeDisks)
		case "pod", "pv", "driver":
			complete = a.completing(completeUsers(flag.Name))
		}
		_ = c.RegisterFlagCompletionFunc(flag.Name, complete) // fails if the flag has its own
	})
	for _, child := range c.Commands() {
		a.registerCompletions(child)
	}
}

func (a *app) completing(find completer) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		a.current = c
		ctx, cancel := context.WithTimeout(c.Context(), completeTimeout)
		defer cancel()
		s := a.session()
		defer s.client.Close()
		return find(ctx, s, args), cobra.ShellCompDirectiveNoFileComp
	}
}

func completeDisks(ctx context.Context, s *session, _ []string) (found []cobra.Completion) {
	ids := diskNumbers(ctx, s)
	for _, number := range slices.Sorted(maps.Keys(ids)) {
		found = append(found, cobra.CompletionWithDesc(strconv.FormatUint(uint64(number), 10), strings.TrimSpace(ids[number].GetSerialNumber())))
	}
	return found
}

// completeUsers completes names of pods, persistent volumes or drivers that use volumes or shares.
func completeUsers(kind string) completer {
	return func(ctx context.Context, s *session, _ []string) (found []cobra.Completion) {
		node, err := s.source.Node(ctx, nil)
		if err != nil {
			return nil
		}
		users := node.AllUsers()
		switch kind {
		case "pod":
			return node.PodNames(users.Pods)
		case "pv":
			return users.PVs
		default:
			return users.Drivers
		}
	}
}

func diskNumbers(ctx context.Context, s *session) map[uint32]*diskv1.DiskIDs {
	var response diskv1.ListDiskIDsResponse
	if err := s.client.Do(ctx, "disk", "ListDiskIDs", &diskv1.ListDiskIDsRequest{}, &response); err != nil {
		return nil
	}
	return response.GetDiskIDs()
}

func completeVolumes(ctx context.Context, s *session, _ []string) (found []cobra.Completion) {
	for _, number := range slices.Sorted(maps.Keys(diskNumbers(ctx, s))) {
		ids, err := s.source.VolumeIDs(ctx, number, 0)
		if err != nil {
			continue // for example, the disk is offline
		}
		for _, id := range ids {
			found = append(found, cobra.CompletionWithDesc(inventory.ShortID(id), fmt.Sprintf("on disk %d", number)))
		}
	}
	return found
}

func completePortals(ctx context.Context, s *session, _ []string) (found []cobra.Completion) {
	var response iscsiv1alpha2.ListTargetPortalsResponse
	if err := s.client.Do(ctx, "iscsi", "ListTargetPortals", &iscsiv1alpha2.ListTargetPortalsRequest{}, &response); err != nil {
		return nil
	}
	for _, p := range response.GetTargetPortals() {
		found = append(found, p.GetTargetAddress())
	}
	return found
}

// completeTargets returns the targets of the portal in the first argument.
func completeTargets(ctx context.Context, s *session, args []string) []cobra.Completion {
	at, err := parsePortal(args[0])
	if err != nil {
		return nil
	}
	var response iscsiv1alpha2.DiscoverTargetPortalResponse
	if err := s.client.Do(ctx, "iscsi", "DiscoverTargetPortal", &iscsiv1alpha2.DiscoverTargetPortalRequest{TargetPortal: at}, &response); err != nil {
		return nil
	}
	return response.GetIqns()
}

// completeServices returns the services that the daemon allows by default; the API cannot
// list the services of the node.
func completeServices(context.Context, *session, []string) []cobra.Completion {
	return servicelist.Default()
}
