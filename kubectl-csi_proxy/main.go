// Command kubectl-csi_proxy is a plugin of kubectl for clusters with Windows nodes: it lists the nodes on which CSI Proxy
// runs in a container, with the problems of their storage, and runs csi-proxyctl on any of them.
//
//	go install github.com/kubernetes-csi/csi-proxy/kubectl-csi_proxy@latest
//	kubectl csi-proxy
//	kubectl csi-proxy doctor win-node-7
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newCommand().ExecuteContext(ctx)
	if failed := (exitError{}); errors.As(err, &failed) {
		os.Exit(failed.code) // csi-proxyctl has said why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubectl csi-proxy:", err)
		os.Exit(1)
	}
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
csi-proxyctl on one of them.

You need the right to list pods, and to create pods/exec in the namespace of CSI Proxy.`,
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
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return c.list(cmd.Context(), list) },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&rules.ExplicitPath, "kubeconfig", "", "file with the address and credentials of the cluster")
	flags.StringVar(&overrides.CurrentContext, "context", "", "context of the kubeconfig")
	flags.StringVarP(&c.namespace, "namespace", "n", "", "namespace of CSI Proxy (default: all namespaces are searched)")
	flags.StringVarP(&c.selector, "selector", "l", "app.kubernetes.io/name=csi-proxy", "labels of its pods")
	flags.StringVarP(&c.container, "container", "c", "csi-proxy", "container of its pods")
	flags.StringVar(&c.program, "program", `%CONTAINER_SANDBOX_MOUNT_POINT%\csi-proxyctl.exe`, "csi-proxyctl in the container")
	root.Flags().StringVarP(&list.format, "output", "o", "", "json, or a table")
	root.Flags().DurationVar(&list.timeout, "timeout", 30*time.Second, "how long a node may take to answer")
	root.Flags().BoolVar(&list.problems, "problems", false, "only nodes with problems, and those that do not answer")
	for _, sub := range []struct{ use, short, example string }{
		{"node NODE [ARGS...]", "Show the storage of a node: csi-proxyctl node", "  kubectl csi-proxy node win-node-7 --problems"},
		{"doctor NODE [ARGS...]", "Check a node: csi-proxyctl doctor", "  kubectl csi-proxy doctor win-node-7"},
		{"ctl NODE COMMAND [ARGS...]", "Run any command of csi-proxyctl on a node", "  kubectl csi-proxy ctl win-node-7 volume list -o json"},
	} {
		name, _, _ := strings.Cut(sub.use, " ")
		root.AddCommand(onNode(&cobra.Command{
			Use: sub.use, Short: sub.short, Example: sub.example,
			RunE: func(cmd *cobra.Command, args []string) error {
				command := args[1:]
				if name != "ctl" {
					command = append([]string{name}, command...)
				} else if len(command) == 0 {
					return errors.New("name a command of csi-proxyctl, such as 'volume list'")
				}
				return c.runOn(cmd.Context(), args[0], c.out, command...)
			},
		}))
	}
	root.AddCommand(bundleCommand(&c))
	return root
}

// onNode is for commands that begin with the name of a node. What follows it is for csi-proxyctl, flags included.
func onNode(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func bundleCommand(c *cluster) *cobra.Command {
	var file string
	cmd := onNode(&cobra.Command{
		Use:     "support-bundle NODE [ARGS...]",
		Short:   "Write the support bundle of a node to a file here",
		Example: "  kubectl csi-proxy support-bundle win-node-7\n  kubectl csi-proxy support-bundle -f ticket-4711.zip win-node-7",
	})
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write (default: csi-proxy-support-NODE-TIME.zip)")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		name := file
		if name == "" {
			name = fmt.Sprintf("csi-proxy-support-%s-%s.zip", args[0], time.Now().UTC().Format("20060102-150405"))
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer func() {
			if err = errors.Join(err, f.Close()); err != nil {
				_ = os.Remove(name) // half a bundle
			}
		}()
		if err := c.runOn(cmd.Context(), args[0], f, append([]string{"support-bundle", "--file=-"}, args[1:]...)...); err != nil {
			return err
		}
		fmt.Fprintln(c.err, "Wrote", name)
		return nil
	}
	return cmd
}
