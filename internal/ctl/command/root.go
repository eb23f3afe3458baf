package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/machine"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
)

// defaultTimeout is enough to format a large volume, and short enough to notice that the
// server hangs.
const defaultTimeout = 2 * time.Minute

// app is one run of the program: its flags, and how far it has come.
type app struct {
	env Environment

	format     output.Format
	noHeaders  bool
	dir        string
	apiVersion string
	timeout    time.Duration

	current *cobra.Command // the command that runs, or was meant to
	started bool           // the command line was right so far
}

func (a *app) path() string {
	if a.current == nil {
		return name
	}
	return a.current.CommandPath()
}

// Root returns the whole command tree, for the reference in docs/cli.
func Root() *cobra.Command { return (&app{}).root() }

func (a *app) root() *cobra.Command {
	a.format = output.Table
	root := a.group(page{
		use:   name,
		short: "See and drive the storage of a Windows node through CSI Proxy",
		long: `csi-proxyctl talks to CSI Proxy on this node: to the daemon on its named pipes, or to
csi-proxy-sim on Unix sockets. It shows the node's storage at a glance, makes every
call of the API by hand, finds what is wrong, and installs the daemon as a service.

Exit codes: 0 done; 1 a call has failed; 2 the command line is wrong; 3 nobody answers
at the endpoint; 4 doctor has found something; 130 interrupted.`,
		example: `  csi-proxyctl node
  csi-proxyctl doctor
  csi-proxyctl disk list -o json`,
	})
	root.Version = version.String()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(a.env.In)
	root.SetOut(a.env.Out)
	root.SetErr(a.env.Err)
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		a.current = c
		return usageError{err}
	})
	flags := root.PersistentFlags()
	flags.VarP(&a.format, "output", "o", "how to print: table, wide, json, yaml")
	flags.BoolVar(&a.noHeaders, "no-headers", false, "print tables without the line of headings")
	flags.StringVar(&a.dir, "endpoint-dir", "", "directory of the sockets (default: $CSI_PROXY_SOCKET_DIR, else where all clients look)")
	flags.StringVar(&a.apiVersion, "api-version", "", "version of the API group to speak, such as v1beta2 (default: the newest)")
	flags.DurationVar(&a.timeout, "timeout", defaultTimeout, "how long the command may take; 0 is without end")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(toCompletions(output.Formats()), cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(a.node(), a.watch(), a.versions(), a.doctor(), a.disk(), a.volume(), a.filesystem(), a.smb(), a.iscsi(), a.system(), a.service())
	root.InitDefaultCompletionCmd()
	return root
}

func toCompletions(words []string) []cobra.Completion {
	completions := make([]cobra.Completion, len(words))
	copy(completions, words)
	return completions
}

// page is what the help of a command says.
type page struct{ use, short, long, example string }

func (p page) command() *cobra.Command {
	return &cobra.Command{Use: p.use, Short: p.short, Long: p.long, Example: p.example, DisableFlagsInUseLine: true}
}

// group makes a command that only holds others. Without one of them it prints its help.
func (a *app) group(p page, commands ...*cobra.Command) *cobra.Command {
	c := p.command()
	c.AddCommand(commands...)
	c.Args = func(c *cobra.Command, args []string) error {
		a.current = c
		if len(args) > 0 {
			return usagef("%s has no command %q", c.CommandPath(), args[0])
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return c
}

// leaf makes a command that does something, with the number of arguments that its usage
// line shows.
func (a *app) leaf(p page, arguments int, run func(ctx context.Context, s *session, args []string) error) *cobra.Command {
	c := p.command()
	c.Use += " [flags]"
	c.Args = func(c *cobra.Command, args []string) error {
		a.current = c
		if len(args) != arguments {
			return usagef("%s takes %s, and was given %d", c.CommandPath(), arity(arguments), len(args))
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		a.started = true
		if a.timeout < 0 {
			return usagef("--timeout %s is negative", a.timeout)
		}
		ctx := c.Context()
		if a.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.timeout)
			defer cancel()
		}
		s := a.session()
		defer s.client.Close()
		return run(ctx, s, args)
	}
	return c
}

func arity(n int) string {
	switch n {
	case 0:
		return "no arguments"
	case 1:
		return "one argument"
	default:
		return "two arguments"
	}
}

// session is what a command works with.
type session struct {
	*output.Printer
	err    io.Writer
	client *call.Client
	node   endpoint.Node
	source inventory.Source
}

func (a *app) session() *session {
	node := endpoint.Node{Dir: a.dir}
	client := call.New(node, a.apiVersion)
	return &session{
		Printer: &output.Printer{
			Out: a.env.Out, Format: a.format, NoHeaders: a.noHeaders,
			Colour: a.env.Terminal && a.env.Getenv("NO_COLOR") == "",
		},
		err:    a.env.Err,
		client: client,
		node:   node,
		source: inventory.Source{Client: client, Mounts: machine.MountPaths},
	}
}

// done prints that something was done.
func (s *session) done(object, what string) error {
	return s.Value(struct {
		Object string `json:"object"`
		Done   string `json:"done"`
	}{object, what}, func() string { return object + ": " + what + "\n" })
}

// warn says on standard error what a table has no room for.
func (s *session) warn(format string, args ...any) {
	fmt.Fprintf(s.err, "%s: %s\n", name, fmt.Sprintf(format, args...))
}

// word prints an answer that is one word.
func (s *session) word(v any, word string) error {
	return s.Value(v, func() string { return word + "\n" })
}
