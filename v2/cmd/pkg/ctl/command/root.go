package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// defaultTimeout is enough to format a large volume.
const defaultTimeout = 2 * time.Minute

// app is one run of the program: its flags and its progress.
type app struct {
	env Environment

	format        output.Format
	noHeaders     bool
	dir           string
	trustedOwners []string
	timeout       time.Duration
	control       string // of sim

	meter   *meter         // nil without a terminal
	client  *call.Client   // of the session
	current *cobra.Command // the command that the arguments select
	started bool           // the command line was valid
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
		short: "Show and manage the storage of a Windows node through CSI Proxy",
		long: `csi-proxyctl talks to CSI Proxy on this node: to the daemon through its named pipes, or to
csi-proxy-sim through Unix sockets. It shows the node's storage, makes every API call by
hand, diagnoses problems, and installs the daemon as a service.

Exit codes: 0 success; 1 a call failed; 2 invalid command line; 3 the endpoint does not
answer; 4 doctor or node --exit-code found a problem; 130 interrupted.`,
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
		return usagef("%s", output.Printable(err.Error()))
	})
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.checkFlags() }
	flags := root.PersistentFlags()
	flags.VarP(&a.format, "output", "o", "output format: table, wide, json, yaml, name; html of node")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(output.Formats(), cobra.ShellCompDirectiveNoFileComp))
	flags.BoolVar(&a.noHeaders, "no-headers", false, "omit the header line of tables")
	flags.StringVar(&a.dir, "endpoint-dir", "", "directory of the sockets (default: $CSI_PROXY_SOCKET_DIR, $XDG_RUNTIME_DIR/csi-proxy or csi-proxy-UID in the temporary directory)")
	flags.StringSliceVar(&a.trustedOwners, "trusted-owner", nil, "accept endpoints of this account, too: a SID on Windows, the number of a user on other systems (default: LocalSystem or root, Administrators, this user)")
	flags.DurationVar(&a.timeout, "timeout", defaultTimeout, "time limit of the command; 0 means no limit")
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"See the node:", []*cobra.Command{a.node(), a.watch(), a.web(), a.doctor(), a.supportBundle()}},
		{"Change its storage:", []*cobra.Command{a.disk(), a.volume(), a.filesystem(), a.smb(), a.iscsi(), a.system()}},
		{"The daemon:", []*cobra.Command{a.service(), a.versions()}},
		{"The emulated node:", []*cobra.Command{a.sim()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.InitDefaultHelpCmd() // now, so that docs/cli has them
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = func(_ *cobra.Command, words []string) error {
				if c, unknown, err := root.Find(words); err == nil && len(unknown) > 0 {
					return noCommand(c, unknown...)
				}
				return nil
			}
		}
	}
	root.InitDefaultCompletionCmd()
	suggestNames(root)
	return root
}

type page struct{ use, short, long, example string }

func (p page) command() *cobra.Command {
	return &cobra.Command{Use: p.use, Short: p.short, Long: p.long, Example: p.example, DisableFlagsInUseLine: true}
}

// group makes a command that only holds others. Run alone, it prints its help.
func (a *app) group(p page, commands ...*cobra.Command) *cobra.Command {
	c := p.command()
	c.AddCommand(commands...)
	c.Args = func(c *cobra.Command, args []string) error {
		a.current = c
		if len(args) > 0 {
			return noCommand(c, args...)
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return c
}

type runner func(ctx context.Context, s *session, args []string) error

// leaf makes a command that runs within --timeout and takes that many arguments.
func (a *app) leaf(p page, arguments int, run runner) *cobra.Command {
	return a.interactive(p, arguments, func(ctx context.Context, s *session, args []string) error {
		return a.bounded(ctx, func(ctx context.Context) error { return run(ctx, s, args) })
	})
}

// interactive makes a command that prompts the user. --timeout does not include the time for
// the answer, so run calls bounded itself.
func (a *app) interactive(p page, arguments int, run runner) *cobra.Command {
	c := p.command()
	c.Use += " [flags]"
	c.ValidArgsFunction = cobra.NoFileCompletions // files of this machine are not what commands take
	c.Args = func(c *cobra.Command, args []string) error {
		a.current = c
		if len(args) != arguments {
			return usagef("'%s' takes %s, got %d", strings.TrimPrefix(c.CommandPath(), name+" "), arity(arguments), len(args))
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		a.started = true
		s := a.session()
		defer s.client.Close()
		for i := range args {
			args[i] = windowsPath(args[i])
		}
		return run(c.Context(), s, args)
	}
	return c
}

// windowsPath turns C:/dir and //server/share into what Windows calls them. Such a path needs no quotes in any shell. A path
// without a drive is on that of Windows.
func windowsPath(text string) string {
	if winpath.IsRooted(text) {
		return cmp.Or(os.Getenv("SystemDrive"), "C:") + strings.ReplaceAll(text, "/", `\`)
	}
	if strings.HasPrefix(text, "//") || len(text) > 2 && text[1:3] == ":/" {
		return strings.ReplaceAll(text, "/", `\`)
	}
	return text
}

// bounded applies --timeout.
func (a *app) bounded(ctx context.Context, run func(ctx context.Context) error) error {
	defer a.meter.watch(ctx, a.client)()
	if a.timeout == 0 {
		return run(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	err := run(limited)
	if err == nil || ctx.Err() != nil {
		return err
	}
	// The server knows the deadline and may report it before we do.
	if limited.Err() != nil || status.Code(err) == codes.DeadlineExceeded {
		return timeoutError{err}
	}
	return err
}

// checkFlags refuses invalid values of global flags.
func (a *app) checkFlags() error {
	if a.timeout < 0 {
		return usagef("--timeout must not be negative, got %s", a.timeout)
	}
	if a.format == output.HTML && (a.current == nil || a.current.CommandPath() != name+" node") {
		return usagef("only 'csi-proxyctl node' has -o html")
	}
	return nil
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

type session struct {
	*output.Printer
	err    io.Writer
	client *call.Client
	node   endpoint.Node
	source inventory.Source
}

func (a *app) session() *session {
	node := endpoint.Node{Dir: a.dir, ControlPath: a.control, TrustedOwners: a.trustedOwners}
	client := call.New(node, a.env.Now)
	a.client = client
	return &session{
		Printer: &output.Printer{
			Out: a.meter.before(a.env.Out), Format: a.format, NoHeaders: a.noHeaders,
			Colour: a.env.Terminal && a.env.Getenv("NO_COLOR") == "",
			Note:   func(text string) { fmt.Fprintf(a.env.Err, "%s: %s\n", name, text) },
		},
		err:    a.env.Err,
		client: client,
		node:   node,
		source: inventory.Source{Client: client, Host: a.env.Host, Now: a.env.Now},
	}
}

func (s *session) change(ctx context.Context, group, method string, request, response proto.Message, object, result string) error {
	if err := s.client.Do(ctx, group, method, request, response); err != nil {
		return err
	}
	return s.done(object, result)
}

func (s *session) done(object, what string) error {
	return s.Value(struct {
		Object string `json:"object"`
		Done   string `json:"done"`
	}{object, what}, func() string { return object + ": " + what + "\n" })
}

// warn prints to standard error what does not fit into a table.
func (s *session) warn(format string, args ...any) {
	fmt.Fprintf(s.err, "%s: %s\n", name, fmt.Sprintf(format, args...))
}

func (s *session) list(v any, rows *output.Rows) error {
	return s.Value(v, func() string { return s.Table(rows) })
}
