// Command kubectl-csi_proxy is a plugin of kubectl for clusters with Windows nodes: it lists the nodes on which CSI Proxy
// runs in a container, with the problems of their storage, and runs csi-proxyctl on any of them.
//
//	kubectl csi-proxy
//	kubectl csi-proxy doctor win-node-7
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var stamped string // the version, set by the linker

// runTimeout is more than csi-proxyctl takes by itself.
const runTimeout = 3 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if code := exitCode(newCommand().ExecuteContext(ctx), os.Stderr); code != 0 {
		os.Exit(code)
	}
}

// exitCode returns that of the plugin, and says why it fails if there is more to say than csi-proxyctl has said.
func exitCode(err error, to io.Writer) int {
	if err == nil {
		return 0
	}
	failed := exitError{1}
	if !errors.As(err, &failed) || err != error(failed) { //nolint:errorlint // with nothing around it
		fmt.Fprintln(to, "kubectl csi-proxy:", err)
	}
	return failed.code
}

// both is errors.Join, but leaves one error as it is, for exitCode.
func both(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return errors.Join(a, b)
}

func newCommand() *cobra.Command {
	var (
		rules     = clientcmd.NewDefaultClientConfigLoadingRules()
		overrides clientcmd.ConfigOverrides
		c         cluster
		list      listOptions
	)
	root := &cobra.Command{
		Use:   "kubectl-csi_proxy",
		Short: "List the Windows nodes on which CSI Proxy runs, with the problems of their storage",
		Long: `List the Windows nodes on which CSI Proxy runs in a container: its version, the problems of the
node's storage and the pods that they hurt. 'node', 'doctor', 'support-bundle' and 'ctl' run
csi-proxyctl on one of them. On a terminal 'ctl' shows its commands as they are there: type
'kubectl csi-proxy ctl NODE' for 'csi-proxyctl'.

A node has one line as soon as it answers. Those with problems follow once more, the most
urgent first. With --exit-code the exit code is 4 if there are any.

You need the right to list pods, and to create pods/exec, in the namespace of CSI Proxy: the value
plugin.role of the chart makes such a Role. CSI Proxy is LocalSystem, so who may create pods/exec
there can do everything on these nodes.`,
		Example:       "  kubectl csi-proxy\n  kubectl csi-proxy -o json\n  kubectl csi-proxy node win-node-7 --problems\n  kubectl csi-proxy ctl win-node-7 volume list",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl csi-proxy"},
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			c.config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &overrides).ClientConfig()
			if err != nil {
				return err
			}
			c.client, err = kubernetes.NewForConfig(c.config)
			c.in, c.out, c.err = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			cmd.Flags().Visit(func(f *pflag.Flag) {
				if f.Name != "timeout" && cmd.Root().PersistentFlags().Lookup(f.Name) != nil {
					c.flags += "--" + f.Name + " " + quoted(f.Value.String()) + " "
				}
			})
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return c.list(cmd.Context(), list) },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&rules.ExplicitPath, "kubeconfig", "", "file with the address and credentials of the cluster")
	flags.StringVar(&overrides.CurrentContext, "context", "", "context of the kubeconfig")
	flags.StringVarP(&c.namespace, "namespace", "n", defaultNamespace, "namespace of CSI Proxy")
	flags.StringVarP(&c.selector, "selector", "l", "app.kubernetes.io/name=csi-proxy", "labels of its pods")
	flags.StringVarP(&c.container, "container", "c", "csi-proxy", "container of its pods")
	flags.StringVar(&c.program, "program", `%CONTAINER_SANDBOX_MOUNT_POINT%\csi-proxyctl.exe`, "csi-proxyctl in the container")
	flags.DurationVar(&c.timeout, "timeout", 0, fmt.Sprintf("how long a node may take (default: %s in the list, %s for a command)", askTimeout, runTimeout))
	root.Flags().StringVarP(&list.format, "output", "o", "", "json, or a table")
	root.Flags().BoolVar(&list.exitCode, "exit-code", false, "exit with 4 if a problem hurts pods or will, or a node does not answer")
	root.Flags().BoolVar(&list.problems, "problems", false, "only nodes with problems, and those that do not answer")
	for _, sub := range []struct{ use, short, example string }{
		{"node NODE [ARGS...]", "Show the storage of a node: csi-proxyctl node", "  kubectl csi-proxy node win-node-7 --problems"},
		{"doctor NODE [ARGS...]", "Check a node: csi-proxyctl doctor", "  kubectl csi-proxy doctor win-node-7"},
		{"ctl NODE COMMAND [ARGS...]", "Run any command of csi-proxyctl on a node", "  kubectl csi-proxy ctl win-node-7 volume list -o json"},
	} {
		name, _, _ := strings.Cut(sub.use, " ")
		root.AddCommand(onNode(&cobra.Command{
			Use: sub.use, Short: sub.short, Example: sub.example,
			RunE: func(cmd *cobra.Command, args []string) (err error) {
				node, command := args[0], args[1:]
				streams, done := c.plain(node, command)
				switch {
				case name != "ctl":
					command = append([]string{name}, command...)
				case len(command) == 0:
					return errors.New("name a command of csi-proxyctl, such as 'volume list'")
				default:
					if streams, done, err = c.terminal(cmd.Context(), node, command); err != nil {
						return err
					}
				}
				err = c.on(cmd.Context(), node, streams, command...)
				return both(err, done())
			},
		}))
	}
	root.AddCommand(bundleCommand(&c), &cobra.Command{
		Use: "version", Short: "Print the version of this plugin; the list has those of the nodes", Args: cobra.NoArgs,
		PersistentPreRun: func(*cobra.Command, []string) {}, // it needs no cluster
		Run: func(cmd *cobra.Command, _ []string) {
			version := stamped
			if info, ok := debug.ReadBuildInfo(); ok && version == "" {
				version = info.Main.Version
			}
			fmt.Fprintln(cmd.OutOrStdout(), "kubectl csi-proxy", cmp.Or(version, "devel"))
		},
	})
	return root
}

// onNode is for commands that begin with the name of a node. What follows it is for csi-proxyctl, flags included.
func onNode(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("name a node, as in '%s'; 'kubectl csi-proxy' lists them", strings.TrimSpace(cmd.Example))
		}
		if problems := validation.IsDNS1123Subdomain(args[0]); len(problems) > 0 {
			return fmt.Errorf("%q is not the name of a node; flags of the plugin go before the name", args[0])
		}
		return nil
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func bundleCommand(c *cluster) *cobra.Command {
	var file string
	cmd := onNode(&cobra.Command{
		Use:     "support-bundle NODE [ARGS...]",
		Short:   "Write the support bundle of a node, with the logs and events of its pod, to a file here",
		Example: "  kubectl csi-proxy support-bundle win-node-7\n  kubectl csi-proxy support-bundle -f ticket-4711.zip win-node-7",
	})
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write (default: csi-proxy-support-NODE-TIME.zip)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := cmp.Or(file, fmt.Sprintf("csi-proxy-support-%s-%s.zip", args[0], time.Now().UTC().Format("20060102-150405")))
		return c.bundle(cmd.Context(), args[0], name, args[1:])
	}
	return cmd
}
