package command

import "github.com/spf13/cobra"

// help replaces cobra's help command, which succeeds for a command that does not exist.
func (a *app) help() *cobra.Command {
	c := page{
		use:     "help [COMMAND...]",
		short:   "Show the help of a command",
		long:    "Show the help of a command, like --help.",
		example: "  csi-proxyctl help disk partition",
	}.command()
	var target *cobra.Command
	c.Args = func(c *cobra.Command, args []string) error {
		a.current = c
		found, rest, err := c.Root().Find(args)
		if err != nil || len(rest) > 0 {
			return noCommand(found, append(rest, args...)...)
		}
		target = found
		return nil
	}
	c.RunE = func(*cobra.Command, []string) error {
		target.InitDefaultHelpFlag() // cobra adds it only when the command runs
		return target.Help()
	}
	return c
}
