//go:build unix

// The tests serve the node on Unix sockets.

package command_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm/scmtest"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

var update = flag.Bool("update", false, "rewrite testdata")

// node is an emulated node on sockets.
type node struct {
	dir string
	*calls
	emulated *winsim.Node
	groups   []string
	control  string
	stop     func() // idempotent
}

// calls records which methods were called.
type calls struct {
	mu      sync.Mutex
	methods map[string]bool
}

func (c *calls) RequestStarted(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.methods[method] = true
}

func (*calls) RequestDone(string, codes.Code, time.Duration) {}

// startNode serves an emulated node with the given API groups, or all, until the test ends.
func startNode(t *testing.T, model winsim.Model, groups ...string) *node {
	t.Helper()
	emulated, err := winsim.New(model)
	require.NoError(t, err)
	n := &node{dir: serve.SocketDir(t), calls: &calls{methods: map[string]bool{}}, emulated: emulated, groups: groups}
	n.start(t)
	return n
}

// start serves the node, for the first time or after stop.
func (n *node) start(t *testing.T) {
	t.Helper()
	n.stop = serve.StartWith(t, n.emulated, serve.Config{Config: daemon.Config{SocketDir: n.dir, APIGroups: n.groups, Observer: n.calls}, Control: n.control})
}

// asService makes a service serve the node while it runs. The socket directory also has
// programs to install.
func (n *node) asService(t *testing.T) *scmtest.Manager {
	t.Helper()
	for _, name := range []string{"csi-proxy.exe", "csi-proxy-new.exe"} {
		require.NoError(t, os.WriteFile(filepath.Join(n.dir, name), []byte(name), 0o600))
	}
	n.stop()
	services := scmtest.New()
	services.OnStart = func() { n.start(t) }
	services.OnStop = func() { n.stop() }
	return services
}

// inject adds a fault to the node.
func (n *node) inject(t *testing.T, fault winsim.Fault) *winsim.Injection {
	t.Helper()
	injection, err := n.emulated.Inject(fault)
	require.NoError(t, err)
	t.Cleanup(injection.Remove)
	return injection
}

// expect runs a command and compares its one line of output.
func (n *node) expect(t *testing.T, want string, args ...string) {
	t.Helper()
	if r := run(context.WithoutCancel(t.Context()), n.dir, "", args...); r.out != want+"\n" {
		t.Errorf("%s: got %+v, want %s", strings.Join(args, " "), r, want)
	}
}

// result is the result of a run.
type result struct {
	code     int
	out, err string
}

// run runs the program without a terminal.
func run(ctx context.Context, dir, stdin string, args ...string) result {
	return runWith(ctx, nil, dir, stdin, args...)
}

// runWith is run with a service manager, unless it is nil.
func runWith(ctx context.Context, services *scmtest.Manager, dir, stdin string, args ...string) result {
	connect := func() (scm.Manager, error) {
		if services == nil {
			return nil, scm.ErrNotWindows
		}
		return services, nil
	}
	var out, errs bytes.Buffer
	code := command.Run(ctx, append([]string{"--endpoint-dir", dir}, args...), command.Environment{
		In: strings.NewReader(stdin), Out: &out, Err: &errs,
		Getenv:   func(string) string { return "" },
		Host:     "win-1",
		CanAsk:   stdin != "", // what is typed
		Services: connect,
		After:    time.After,
	})
	return result{code, out.String(), errs.String()}
}

// TestTranscripts runs the commands of each file in testdata on a new node and compares the
// output:
//
//	# preset busy, in the first line, if the node is not the default one
//	$ a command with arguments as in a shell; DIR/ is the directory of the sockets
//	$ a command <<< a line of standard input
//	standard output
//	! standard error
//	[the exit code, unless it is 0]
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	ran, called := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			n := startNode(t, presetOf(t, string(want)))
			if filepath.Base(file) == "sim.txt" {
				n.stop()
				n.control = serve.DefaultControl
				n.start(t)
			}
			var services *scmtest.Manager
			if filepath.Base(file) == "service.txt" {
				services = n.asService(t)
			}
			got := replay(t, services, n.dir, string(want), ran)
			compare(t, file, got)
			n.mu.Lock()
			defer n.mu.Unlock()
			for path := range n.methods {
				_, method, _ := strings.Cut(path, ".") // in whichever version
				called[method] = true
			}
		})
	}
	for _, c := range leaves(command.Root()) {
		if path := c.CommandPath(); !ran[path] {
			t.Errorf("no transcript has %q", path)
		}
	}
	for _, method := range newestMethods() {
		if !called[method] {
			t.Errorf("no command has called %s", method)
		}
	}
}

// presetOf returns the model that the first line of a transcript names, as in "# preset busy".
func presetOf(t *testing.T, transcript string) winsim.Model {
	t.Helper()
	first, _, _ := strings.Cut(transcript, "\n")
	name, ok := strings.CutPrefix(first, "# preset ")
	name, noneHangs := strings.CutSuffix(name, ", no disk hangs") // every command waits for one
	if !ok {
		return winsim.Default()
	}
	model, ok := winsim.Preset(name)
	if !ok {
		t.Fatalf("no preset %q", name)
	}
	for i := range model.Disks {
		model.Disks[i].Hanging = model.Disks[i].Hanging && !noneHangs
	}
	return model
}

// compare compares with a golden file, or writes it.
func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
		return
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	want := strings.Split(string(content), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(want) || want[i] != line {
			t.Fatalf("%s, line %d: got\n%s\nwant\n%s\nrun with -update to rewrite it", file, i+1, line, strings.Join(want[min(i, len(want)):min(i+1, len(want))], ""))
		}
	}
	if n := strings.Count(got, "\n") + 1; n != len(want) {
		t.Fatalf("%s: got %d lines, want %d", file, n, len(want))
	}
}

// replay runs the commands of a transcript and returns the new transcript.
func replay(t *testing.T, services *scmtest.Manager, dir, transcript string, ran map[string]bool) string {
	t.Helper()
	var b strings.Builder
	ids := volumeIDs{}
	for line := range strings.SplitSeq(strings.TrimRight(transcript, "\n"), "\n") {
		if strings.HasPrefix(line, "# ") {
			b.WriteString(line + "\n")
			continue
		}
		typed, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		typed, stdin, _ := strings.Cut(typed, " <<< ")
		args := words(ids.real(strings.ReplaceAll(typed, "DIR/", dir+"/")))
		if len(args) == 0 || args[0] != "csi-proxyctl" {
			t.Fatalf("%q is not a command of ours", line)
		}
		if c, _, err := command.Root().Find(args[1:]); err == nil {
			ran[c.CommandPath()] = true
		}
		r := runWith(t.Context(), services, dir, stdin, args[1:]...)
		b.WriteString(line + "\n" + ids.mask(mask(r.out, dir)))
		scanner := bufio.NewScanner(strings.NewReader(ids.mask(mask(r.err, dir))))
		for scanner.Scan() {
			b.WriteString("! " + scanner.Text() + "\n")
		}
		if r.code != 0 {
			fmt.Fprintf(&b, "[%d]\n", r.code)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// volumeIDs are the random volume ids in order of appearance. Transcripts replace them by
// repeated digits: all 1 for the first.
type volumeIDs []string

var guid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func placeholder(n int) string {
	return regexp.MustCompile(`x`).ReplaceAllString("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", strconv.Itoa(n+1))
}

func (ids *volumeIDs) mask(text string) string {
	return guid.ReplaceAllStringFunc(text, func(id string) string {
		for _, known := range []string{"d0000000-", "0c51a9e0-", "00000000-", "53f56307-" /* the class of disks */} {
			if strings.HasPrefix(id, known) {
				return id
			}
		}
		if !slices.Contains(*ids, id) {
			*ids = append(*ids, id)
		}
		return placeholder(slices.Index(*ids, id))
	})
}

func (ids *volumeIDs) real(text string) string {
	for n, id := range *ids {
		text = strings.ReplaceAll(text, placeholder(n), id)
	}
	return text
}

// words splits at spaces outside single quotes.
func words(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// Times, process ids and the widths of their columns vary.
var masks = []struct{ pattern, to string }{
	{`(?m) +[0-9.]+ ms$`, " TIME ms"},
	{`20[0-9-]{8} [0-9:]{8} UTC`, "TIME UTC"},
	{`[0-9:]{8} (v[0-9]|csiproxy)`, "TIME $1"}, // of a call that failed
	{`"unix": "?[0-9]{10}"?`, `"unix": TIME`},
	{`("?time"?): "20[0-9TZ:-]+"`, `$1: "TIME"`},
	{`(?m)^(  [a-z]+\.(?:txt|json|html)) +[0-9.]+ [KM]?i?B  `, "$1  SIZE  "},
	{`(?m)^    bytes: [0-9]+$`, "    bytes: SIZE"},
	{`written, [0-9.]+ [KM]iB`, "written, SIZE"},
	{`All steps took [0-9.]+m?s`, "All steps took TIME"},
	{`  +[0-9.]+(µs|ms|s)  +`, "  TIME  "},
	{`(STATE|VERSION)  +LATENCY  +`, "$1  LATENCY  "},
	{`("latencyMicros"|"micros"|"pid"): [0-9]+`, `$1: 0`},
	{`(SERVER)  +PID +`, "$1  PID  "},
	{`  [0-9]+  +DIR`, "  PID  DIR"},
	{`PID +START`, "PID  START"},
	{`running  [0-9]+ +automatic`, "running  PID  automatic"},
	{`(process|pid:) [0-9]+`, "$1 PID"},
}

func mask(text, dir string) string {
	text = strings.ReplaceAll(text, dir, "DIR")
	for _, m := range masks {
		text = regexp.MustCompile(m.pattern).ReplaceAllString(text, m.to)
	}
	return text
}

// leaves returns the commands without subcommands.
func leaves(c *cobra.Command) []*cobra.Command {
	if c.Name() == "completion" || c.Name() == "help" {
		return nil
	}
	if !c.HasSubCommands() {
		return []*cobra.Command{c}
	}
	var all []*cobra.Command
	for _, child := range c.Commands() {
		all = append(all, leaves(child)...)
	}
	return all
}

// TestHelp requires an example in the help of all commands. What the help says is in docs/cli.
func TestHelp(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "completion" || c.Name() == "help" { // those of cobra
			return
		}
		if !strings.Contains(c.Example, c.CommandPath()) || c.Short == "" || c.Long == "" {
			t.Errorf("%s lacks an example of itself, or an explanation", c.CommandPath())
		}
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		r := run(t.Context(), "/none", "", args...)
		if r.code != 0 || r.err != "" || !strings.Contains(r.out, "Usage:") {
			t.Errorf("%s --help: exit code %d, %s", c.CommandPath(), r.code, r.err)
		}
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(command.Root())
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := run(t.Context(), "/none", "", "completion", shell); r.code != 0 || !strings.Contains(r.out, "csi-proxyctl") {
			t.Errorf("%s: exit code %d, %d bytes, %s", shell, r.code, len(r.out), r.err)
		}
	}
	for args, want := range map[string]string{"disk on": "online\tBring a disk online", "disk online ": ":4\n" /* no files */, "node --output ": "table\nwide\njson\nyaml\n"} {
		if r := run(t.Context(), "/none", "", append([]string{"__complete"}, strings.Split(args, " ")...)...); r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("%s: got %+v, want %q", args, r, want)
		}
	}
}

// TestWrongWords: an unknown word is an error at every position.
func TestWrongWords(t *testing.T) {
	for _, args := range []string{"nope", "completion bash extra", "disk nope"} {
		r := run(t.Context(), "/none", "", strings.Fields(args)...)
		if r.code != command.ExitUsage || r.out != "" || !strings.Contains(r.err, "--help") {
			t.Errorf("%s: got %+v, want exit code 2", args, r)
		}
	}
	for _, args := range []string{"help", "help disk", "help disk list", "disk list --help"} {
		if r := run(t.Context(), "/none", "", strings.Fields(args)...); r.code != command.ExitOK || !strings.Contains(r.out, "Usage:") || r.err != "" {
			t.Errorf("%s: got %+v", args, r)
		}
	}
}

func TestColours(t *testing.T) {
	n := startNode(t, winsim.Default())
	for name, c := range map[string]struct {
		terminal bool
		noColor  string
		term     string
		format   string
		want     bool
	}{
		"terminal":       {true, "", "xterm", "table", true},
		"NO_COLOR":       {true, "1", "xterm", "table", false},
		"no terminal":    {false, "", "xterm", "table", false},
		"dumb terminal":  {true, "", "dumb", "table", false},
		"JSON":           {true, "", "xterm", "json", false},
		"wide, terminal": {true, "", "xterm", "wide", true},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := command.Run(t.Context(), []string{"node", "-o", c.format, "--endpoint-dir", n.dir}, command.Environment{
				Out: &out, Err: &errs, Terminal: c.terminal,
				Getenv: func(name string) string { return map[string]string{"NO_COLOR": c.noColor, "TERM": c.term}[name] },
			})
			if got := strings.Contains(out.String(), "\x1b["); code != 0 || got != c.want {
				t.Errorf("exit code %d, colours %v, want %v: %s%s", code, got, c.want, out.String(), errs.String())
			}
		})
	}
}

// TestSecret_Prompt: without a flag the program prompts for the secret.
func TestSecret_Prompt(t *testing.T) {
	n := startNode(t, winsim.Default())
	ask := func(secret string, err error) result {
		var out, errs bytes.Buffer
		code := command.Run(t.Context(), []string{"smb", "map", `\\files\data`, "--user", "csi", "--endpoint-dir", n.dir}, command.Environment{
			Out: &out, Err: &errs, Getenv: func(string) string { return "" },
			ReadSecret: func(prompt string) (string, error) {
				if !strings.Contains(prompt, "csi") || !strings.Contains(prompt, `\\files\data`) {
					t.Errorf("the prompt %q does not say whose password", prompt)
				}
				return secret, err
			},
		})
		return result{code, out.String(), errs.String()}
	}
	if r := ask("csi-Pa55", nil); r.code != command.ExitOK {
		t.Error(r)
	}
	if r := ask("", nil); r.code != command.ExitUsage {
		t.Error(r)
	}
	if r := ask("", errors.New("the terminal is gone")); r.code != command.ExitFailure {
		t.Error(r)
	}
}

// TestSecret_File: a secret can come from a file, but not from an argument.
func TestSecret_File(t *testing.T) {
	n := startNode(t, winsim.Default())
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("csi-Pa55\r\nnot this\n"), 0o600))
	if r := run(t.Context(), n.dir, "", "smb", "map", `\\files\data`, "--user", "csi", "--password-file", file); r.code != 0 {
		t.Error(r)
	}
	for _, c := range leaves(command.Root()) {
		for _, name := range []string{"password", "secret", "chap-secret"} {
			if c.Flags().Lookup(name) != nil {
				t.Errorf("%s --%s shows a secret in process lists", c.CommandPath(), name)
			}
		}
	}
}

// newestMethods returns all methods of the newest versions, with their services.
func newestMethods() []string {
	var all []string
	for _, service := range newestServices {
		for _, method := range service.Methods {
			_, name, _ := strings.Cut(service.ServiceName, ".")
			all = append(all, name+"/"+method.MethodName)
		}
	}
	slices.Sort(all)
	return all
}

// TestAdvice_Commands: errors advise commands that exist.
func TestAdvice_Commands(t *testing.T) {
	for method, line := range call.Commands {
		found, rest, err := command.Root().Find(strings.Fields(line)[1:])
		if err != nil || len(rest) > 0 || !strings.Contains(found.Long, "("+method+")") {
			t.Errorf("%s: %q does not call it: %v", method, line, err)
		}
	}
}
