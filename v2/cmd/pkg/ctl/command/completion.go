package command

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// completion prints cobra's scripts. cobra's own command succeeds for an unknown shell.
func (a *app) completion() *cobra.Command {
	shell := func(shell, how string, write func(root *cobra.Command, out io.Writer) error) *cobra.Command {
		return a.leaf(page{
			use:     shell,
			short:   "Print the completion script for " + shell,
			long:    "Print the script that completes commands and flags in " + shell + ".",
			example: "  " + how,
		}, 0, func(_ context.Context, s *session, _ []string) error { return write(a.current.Root(), s.Out) })
	}
	return a.group(page{
		use:     "completion",
		short:   "Print the completion script for a shell",
		long:    "Print the script that completes commands and flags in a shell.",
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
