package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/inventory"
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
	root.Version = version.Full()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(a.env.In)
	root.SetOut(a.env.Out)
	root.SetErr(a.env.Err)
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		a.current = c
		return usageError{err}
	})
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.refuse() }
	flags := root.PersistentFlags()
	flags.VarP(&a.format, "output", "o", "how to print: table, wide, json, yaml")
	flags.BoolVar(&a.noHeaders, "no-headers", false, "print tables without the line of headings")
	flags.StringVar(&a.dir, "endpoint-dir", "", "directory of the sockets (default: $CSI_PROXY_SOCKET_DIR, else where all clients look)")
	flags.StringVar(&a.apiVersion, "api-version", "", "version of the command's API group to speak, such as v1beta2 (default: the newest that is served)")
	flags.DurationVar(&a.timeout, "timeout", defaultTimeout, "how long the command may take; 0 is without end")
	root.AddCommand(a.node(), a.watch(), a.versions(), a.doctor(), a.disk(), a.volume(), a.filesystem(), a.smb(), a.iscsi(), a.system(), a.service(), a.completion())
	root.CompletionOptions.DisableDefaultCmd = true // there is one of our own
	root.SetHelpCommand(a.help())
	root.InitDefaultHelpCmd() // now, so that it is documented like all others
	a.offer(root)
	return root
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

// runner is what a command does.
type runner func(ctx context.Context, s *session, args []string) error

// leaf makes a command that does something within --timeout, with the number of arguments
// that its usage line shows.
func (a *app) leaf(p page, arguments int, run runner) *cobra.Command {
	return a.asking(p, arguments, func(ctx context.Context, s *session, args []string) error {
		return a.bounded(ctx, func(ctx context.Context) error { return run(ctx, s, args) })
	})
}

// asking makes a command that asks somebody for something. People may take their time, so
// it begins to count --timeout itself, with bounded.
func (a *app) asking(p page, arguments int, run runner) *cobra.Command {
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
		s := a.session()
		defer s.client.Close()
		return run(c.Context(), s, args)
	}
	return c
}

// bounded runs what --timeout is for.
func (a *app) bounded(ctx context.Context, run func(ctx context.Context) error) error {
	if a.timeout == 0 {
		return run(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	err := run(limited)
	if err == nil || ctx.Err() != nil {
		return err
	}
	// The server, which knows the limit, may be first to find that the time is over.
	if limited.Err() != nil || status.Code(err) == codes.DeadlineExceeded {
		return timeoutError{err}
	}
	return err
}

// refuse returns an error for values of global flags that no command can work with.
func (a *app) refuse() error {
	if a.timeout < 0 {
		return usagef("--timeout %s is negative", a.timeout)
	}
	exists := func(name endpoint.Name) bool { return name.Version == a.apiVersion }
	if a.apiVersion != "" && a.ownGroup() == "" && !slices.ContainsFunc(endpoint.All(), exists) {
		return usagef("no API group has a version %q; 'csi-proxyctl versions' shows which there are", a.apiVersion)
	}
	return nil
}

// ownGroup is the API group of the command that runs, to which --api-version applies; those
// that look at several groups have none.
func (a *app) ownGroup() string {
	for c := a.current; c != nil && c.HasParent(); c = c.Parent() {
		if c.Parent().HasParent() {
			continue
		}
		if c.Name() == "fs" {
			return "filesystem"
		}
		if endpoint.Newest(c.Name()) != "" {
			return c.Name()
		}
	}
	return ""
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
	var groups []string
	if group := a.ownGroup(); group != "" {
		groups = append(groups, group)
	}
	client := call.New(node, a.apiVersion, groups...)
	return &session{
		Printer: &output.Printer{
			Out: a.env.Out, Format: a.format, NoHeaders: a.noHeaders,
			Colour: a.env.Terminal && a.env.Getenv("NO_COLOR") == "",
		},
		err:    a.env.Err,
		client: client,
		node:   node,
		source: a.source(client, node),
	}
}

// source is where inventories come from: from the inspector, unless a certain version of the
// API is to be asked.
func (a *app) source(client *call.Client, node endpoint.Node) inventory.Source {
	if a.apiVersion != "" {
		return inventory.Source{Client: client}
	}
	return inventory.Source{Client: client, Endpoints: &node}
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
