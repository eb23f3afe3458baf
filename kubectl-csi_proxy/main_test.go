package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/utils/exec"
	"sigs.k8s.io/yaml"
)

// program is csi-proxyctl on a node. It returns its exit code.
type program func(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int

// apiServer lists nodes, pods and events, and passes exec on to the code that the kubelet serves it with.
type apiServer struct {
	programs   map[string]program // by the name of the pod, which is csi-proxy- and this
	pods       []corev1.Pod
	nodes      []string
	hidesNodes bool
	hidesPods  atomic.Bool
	terminal   chan remotecommand.TerminalSize // of the last program that got one
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutSuffix(r.URL.Path, "/exec"); ok {
		// The API server has other words for them than the kubelet.
		options := &remotecommand.Options{Stdin: r.FormValue("stdin") == "true", Stdout: r.FormValue("stdout") == "true", Stderr: r.FormValue("stderr") == "true", TTY: r.FormValue("tty") == "true"}
		remotecommand.ServeExec(w, r, s, filepath.Base(name), "", r.FormValue("container"), r.URL.Query()["command"], options, time.Minute, time.Minute,
			remotecommand.SupportedStreamingProtocols)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/log") {
		fmt.Fprintf(w, "log of %s, previous %q\n", r.URL.Path, r.FormValue("previous"))
		return
	}
	var answer any
	switch r.URL.Path {
	case "/api/v1/nodes":
		if s.hidesNodes {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
		for _, name := range s.nodes {
			list.Items = append(list.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		answer = list
	case "/api/v1/namespaces/kube-system/events":
		answer = corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, Items: []corev1.Event{{Message: "about " + r.FormValue("fieldSelector")}}}
	default:
		if s.hidesPods.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for _, pod := range s.pods {
			node, _ := strings.CutPrefix(r.FormValue("fieldSelector"), "spec.nodeName=")
			if r.FormValue("labelSelector") == "app.kubernetes.io/name=csi-proxy" && (node == "" || node == pod.Spec.NodeName) &&
				r.URL.Path == "/api/v1/namespaces/"+pod.Namespace+"/pods" {
				list.Items = append(list.Items, pod)
			}
		}
		answer = list
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// ExecInContainer implements remotecommand.Executor.
func (s *apiServer) ExecInContainer(ctx context.Context, name, _, container string, cmd []string, in io.Reader, out, errs io.WriteCloser,
	terminal bool, sizes <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	if container != "csi-proxy" || cmd[0] != `%CONTAINER_SANDBOX_MOUNT_POINT%\csi-proxyctl.exe` {
		return fmt.Errorf("no program %q in container %q", cmd[0], container)
	}
	if terminal {
		s.terminal <- <-sizes
	}
	if code := s.programs[strings.TrimPrefix(name, "csi-proxy-")](ctx, cmd[1:], in, out, errs); code != 0 {
		return exec.CodeExitError{Err: fmt.Errorf("exit code %d", code), Code: code}
	}
	return nil
}

// addPod adds a pod on the node win-NAME, as the DaemonSet of CSI Proxy makes it.
func (s *apiServer) addPod(name string, changes ...func(*corev1.Pod)) {
	secret := []corev1.EnvVar{{Name: "PASSWORD", Value: "csi-Pa55"}}
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "csi-proxy-" + name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "csi-proxy", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName:            "win-" + name,
			SecurityContext:     &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}},
			Containers:          []corev1.Container{{Name: "csi-proxy", Env: secret}},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Env: secret}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, change := range changes {
		change(&pod)
	}
	s.pods = append(s.pods, pod)
}

func pending(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending }

// oddContext is the name of a context that sh, JSON and YAML would each read as something else without quotes.
const oddContext = `my "ctx": it's \ #1`

// config serves this, and returns the kubeconfig for it.
func (s *apiServer) config(t *testing.T) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{"token":"t"}}],
		"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}},{"name":%q,"context":{"cluster":"c","user":"u"}}],"current-context":"x"}`, server.URL, oddContext)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	return kubeconfig
}

// programs is a directory with csi-proxyctl, csi-proxy-sim and the endpoints of its broken node. The plugin needs what
// csi-proxyctl prints and takes: a copy of either would not notice a change.
var programs string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if programs, err = os.MkdirTemp("", "kubectl"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(programs)
	build := osexec.Command("go", "build", "-buildvcs=false", "-trimpath", "-tags=grpcnotrace,nethttpomithttp2", "-o", // as the Makefile does
		programs, "./csi-proxyctl", "./csi-proxy-sim")
	build.Dir, build.Env = "../v2/cmd", append(os.Environ(), "GOWORK=", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		panic(string(text))
	}
	// What file servers say comes later than the first list.
	sim := osexec.Command(filepath.Join(programs, "csi-proxy-sim"), "-preset", "broken", "-ask-shares=false", "-socket-dir", programs)
	printed, err := sim.StdoutPipe()
	if err = errors.Join(err, sim.Start()); err != nil {
		panic(err)
	}
	defer func() { _ = errors.Join(sim.Process.Kill(), sim.Wait()) }()
	if ready, err := bufio.NewReader(printed).ReadString('\n'); err != nil {
		panic(ready + err.Error())
	}
	return m.Run()
}

// says is csi-proxyctl that knows only how its node is.
func says(text string) program {
	return func(_ context.Context, args []string, _ io.Reader, out, errs io.Writer) int {
		if strings.Join(args, " ") != "node -o json" {
			fmt.Fprintf(errs, "unexpected %q\n", args)
			return 2
		}
		fmt.Fprint(out, text)
		return 0
	}
}

// newServer has a node with a note, a broken one that is real, one whose daemon does not answer, one whose pod does not start, and
// one without a pod.
func newServer() *apiServer {
	s := &apiServer{terminal: make(chan remotecommand.TerminalSize, 1), nodes: []string{"win-a", "win-x"}, programs: map[string]program{
		"a": says(`{"version":"v2.1.0","problems":[{"severity":"note","text":"full\u001b[31m\u009b31m\u202e","pods":["7d0e"]}]}`),
		"b": func(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
			program := osexec.CommandContext(ctx, filepath.Join(programs, "csi-proxyctl"), append(args, "--endpoint-dir", programs)...)
			program.Stdin, program.Stdout, program.Stderr = in, out, errs
			_ = program.Run() // the exit code says it
			return program.ProcessState.ExitCode()
		},
		"c": func(_ context.Context, args []string, in io.Reader, out, errs io.Writer) int {
			text := "no input"
			if in != nil {
				line, _ := bufio.NewReader(in).ReadString('\n')
				text = strings.TrimSpace(line)
			}
			fmt.Fprintf(out, "%q %s\r\n\x1b]0;owned\ado: csi-proxyctl disk online 4", args, text)
			fmt.Fprint(errs, "csi-proxyctl: no endpoint answers\n")
			return 4
		},
		"e": func(ctx context.Context, _ []string, _ io.Reader, _, _ io.Writer) int {
			<-ctx.Done()
			return 1
		},
	}}
	for _, name := range []string{"c", "a", "b"} {
		s.addPod(name)
	}
	s.addPod("d", pending)
	return s
}

// run runs the plugin, and returns what it prints and why it fails.
func run(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader("a secret\n"))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// TestList: each node has a row, and those with problems follow in order.
func TestList(t *testing.T) {
	s := newServer()
	s.config(t)
	out, _, err := run(t)
	const header = "NODE    VERSION        PROBLEMS   PODS HURT   SEVERITY    WORST\n"
	const sorted = `
The most urgent first:
win-b   devel          9          5           hurts       disk 4: offline: 2 paths lead to it
win-c   -              ?          ?           ?           csi-proxyctl: no endpoint answers
win-d   -              ?          ?           ?           its pod csi-proxy-d is Pending
win-x   -              ?          ?           ?           no pod of CSI Proxy
`
	rows, hasHeader := strings.CutPrefix(out, header)
	rows, isSorted := strings.CutSuffix(rows, sorted)
	if !hasHeader || !isSorted || strings.Count(rows, "\n") != 5 || !strings.Contains(rows, "win-a   v2.1.0         1          0           note        full?[31m?31m?\n") {
		t.Errorf("got\n%s\nwant\n%s", out, sorted)
	}
	if err == nil || err.Error() != "3 of 5 nodes did not say what problems they have" {
		t.Errorf("got %v", err)
	}
	if _, _, err := run(t, "--exit-code"); !errors.Is(err, exitError{4}) {
		t.Errorf("with --exit-code: %v", err)
	}
	out, _, err = run(t, "-o", "json")
	var states []nodeState
	if err == nil || json.Unmarshal([]byte(out), &states) != nil || len(states) != 5 || *states[0].Problems != 9 || len(states[0].PodsHurt) != 5 ||
		states[1].Problems != nil || states[4].Worst != "full?[31m?31m?" || !strings.Contains(out, `"problems": null`) {
		t.Errorf("got %v, %s", err, out)
	}
	s.hidesNodes = true
	if out, errs, _ := run(t); strings.Contains(out, "win-x") || !strings.Contains(errs, "must not list nodes") {
		t.Errorf("without the right to list nodes: %s%s", out, errs)
	}
	if _, _, err := run(t, "-n", "elsewhere"); err == nil || !strings.Contains(err.Error(), "--namespace") {
		t.Errorf("in a namespace without pods: %v", err)
	}
}

// TestList_Healthy: of healthy nodes, only the first rows are there.
func TestList_Healthy(t *testing.T) {
	s := newServer()
	s.pods, s.nodes = nil, nil
	s.addPod("a")
	s.programs["a"] = says(`{"problems":[]}`)
	s.config(t)
	if out, errs, err := run(t, "--exit-code"); err != nil || errs != "" || strings.Count(out, "\n") != 2 {
		t.Errorf("got %s%s, %v", out, errs, err)
	}
	if out, _, err := run(t, "--problems"); err != nil || strings.Count(out, "\n") != 1 {
		t.Errorf("with --problems: %s, %v", out, err)
	}
	s.programs["a"] = says(`{"version":"v1\nwin-b","problems":[{"severity":"note\nwin-b\t","text":"a\nwin-b"}]}`)
	if out, _, _ := run(t); strings.Count(out, "\n") != 2 || strings.Contains(out, "\t") {
		t.Errorf("a node makes rows: %s", out)
	}
}

// rows has seen the row of a node.
type rows struct {
	bytes.Buffer
	seen  chan struct{}
	first chan struct{} // closed then
	once  sync.Once
}

func (r *rows) Write(text []byte) (n int, err error) {
	n, err = r.Buffer.Write(text)
	if bytes.HasPrefix(text, []byte("win-")) {
		r.once.Do(func() { close(r.first) })
		r.seen <- struct{}{}
	}
	return n, err
}

// TestList_Fleet: of 200 nodes the first row comes before the others have answered, and all others while one is silent. With the
// limits that the plugin has by itself, the row of the silent one is the last.
func TestList_Fleet(t *testing.T) {
	const nodes = 200
	s := newServer()
	s.pods, s.nodes = nil, nil
	var out *rows
	var asked atomic.Int32
	list := func(args ...string) error {
		out = &rows{seen: make(chan struct{}, nodes), first: make(chan struct{})}
		asked.Store(0)
		cmd := newCommand()
		cmd.SetArgs(args)
		cmd.SetOut(out)
		return cmd.ExecuteContext(t.Context())
	}
	for i := range nodes {
		name := fmt.Sprint(i)
		s.addPod(name)
		s.programs[name] = func(ctx context.Context, args []string, in io.Reader, to, errs io.Writer) int {
			if asked.Add(1) > 1 {
				select {
				case <-out.first:
				case <-ctx.Done(): // which the list below would show
					return 1
				}
			}
			return says(`{"problems":[]}`)(ctx, args, in, to, errs)
		}
	}
	s.programs["0"] = func(ctx context.Context, _ []string, _ io.Reader, _, _ io.Writer) int {
		for range nodes - 1 { // the rows of all others
			select {
			case <-out.seen:
			case <-ctx.Done():
				return 1
			}
		}
		return 3
	}
	s.config(t)
	if err := list("--timeout=1m"); err == nil || !strings.Contains(err.Error(), "1 of 200 nodes") || strings.Contains(out.String(), "no answer within") {
		t.Errorf("got %v, %s", err, out)
	}
	if testing.Short() {
		return
	}
	s.programs["0"] = func(ctx context.Context, _ []string, _ io.Reader, _, _ io.Writer) int { <-ctx.Done(); return 1 }
	err := list()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; err == nil || len(lines) != 1+nodes || !strings.HasPrefix(last, "win-0 ") || !strings.HasSuffix(last, "no answer within "+askTimeout.String()) {
		t.Errorf("got %v, %s", err, out)
	}
}

// TestRun_Formats: whatever flags the plugin has, scripts can read what a node prints, and sh its remedies.
func TestRun_Formats(t *testing.T) {
	newServer().config(t)
	want := []string{"csi-proxy", "--context", oddContext, "--namespace", "kube-system", "ctl", "win-b", "disk", "online", "4"}
	for format, read := range map[string]func([]byte, any) error{"json": json.Unmarshal, "yaml": func(text []byte, to any) error { return yaml.Unmarshal(text, to) }} {
		for name, flags := range map[string][]string{"odd": {"--context", oddContext, "-n", "kube-system"}, "plain": {"--context=x", "-n=kube-system"}} {
			text, _, err := run(t, append(flags, "node", "win-b", "-o", format)...)
			var node struct {
				Problems []struct{ Run, Advice string }
			}
			if err := errors.Join(err, read([]byte(text), &node)); err != nil || len(node.Problems) != 9 {
				t.Errorf("%s, %s: %v, %+v", format, name, err, node)
				continue
			}
			if name == "plain" {
				if got, want := node.Problems[0].Run, "kubectl csi-proxy --context x --namespace kube-system ctl win-b disk online 4"; got != want {
					t.Errorf("%s: got %s, want %s", format, got, want)
				}
				continue
			}
			printed, err := osexec.Command("sh", "-c", `kubectl() { printf '%s\n' "$@"; }; `+node.Problems[0].Run).Output()
			if got := strings.Split(strings.TrimSpace(string(printed)), "\n"); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %s is %q, %v", format, node.Problems[0].Run, got, err)
			}
		}
	}
}

// TestLines: text in quotes stays what it is.
func TestLines(t *testing.T) {
	const run = `kubectl csi-proxy --context 'a: "b" \ #<' ctl n `
	for _, test := range []struct{ format, text, want string }{
		{"", "run csi-proxyctl node\n", "run " + run + "node\n"},
		{"json", `  "run": "csi-proxyctl node",` + "\n", `  "run": "kubectl csi-proxy --context 'a: \"b\" \\ #\u003c' ctl n node",` + "\n"},
		{"html", "<code>csi-proxyctl node</code>", "<code>kubectl csi-proxy --context &#39;a: &#34;b&#34; \\ #&lt;&#39; ctl n node</code>"},
		{"yaml", "- text: csi-proxyctl is here\n", "- text: csi-proxyctl is here\n"},
		{"yaml", "  - text: csi-proxyctl node\n", `  - text: 'kubectl csi-proxy --context ''a: "b" \ #<'' ctl n node'` + "\n"},
		{"yaml", "  - 'a: csi-proxyctl node'\n", `  - 'a: kubectl csi-proxy --context ''a: "b" \ #<'' ctl n node'` + "\n"},
		{"yaml", `- - "\tcsi-proxyctl node"`, `- - "\tkubectl csi-proxy --context 'a: \"b\" \\ #\u003c' ctl n node"`},
	} {
		var got strings.Builder
		l := &lines{to: &got, run: run, format: test.format}
		_, err := io.WriteString(l, test.text)
		if err := errors.Join(err, l.Close()); err != nil || got.String() != test.want {
			t.Errorf("%s: %s became %s, want %s, %v", test.format, test.text, &got, test.want, err)
		}
	}
	for args, want := range map[string]string{
		"": "", "-o json": "json", "--output=yaml x": "yaml", "-ojson": "json", "--yes -o json": "json", "--disk 3 -o json": "json", "--help -o json": "", "install -- -o json": "",
	} {
		if got := format(strings.Fields(args)); got != want {
			t.Errorf("%s has the format %q, want %q", args, got, want)
		}
	}
}

// TestLines_Commands: each command of csi-proxyctl becomes one of the plugin, and prose stays.
func TestLines_Commands(t *testing.T) {
	names, err := osexec.Command(filepath.Join(programs, "csi-proxyctl"), "__complete", "").Output()
	if err != nil || bytes.Count(names, []byte("\t")) < 10 {
		t.Fatalf("%s, %v", names, err)
	}
	for line := range strings.Lines(string(names)) {
		if name, _, ok := strings.Cut(line, "\t"); ok && (replaceCommands("'csi-proxyctl "+name+"'", "x ") == "'x "+name+"'") == (name == "web") {
			t.Errorf("csi-proxyctl %s", name)
		}
	}
	newServer().config(t)
	out, _, _ := run(t, "doctor", "win-b") // it finds problems
	for _, want := range []string{"server and csi-proxyctl are both devel\n", ", csi-proxyctl devel\n", "→ kubectl csi-proxy ctl win-b disk online 4\n", "ask now: kubectl csi-proxy ctl win-b smb list --ask"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	if out, _, _ := run(t, "ctl", "win-b", "help", "disk"); !strings.Contains(out, `Use "kubectl csi-proxy ctl win-b disk [command] --help"`) {
		t.Errorf("the help has no commands of the plugin: %s", out)
	}
}

// shown is what a terminal gets of texts that a node writes.
func shown(t *testing.T, texts ...string) string {
	t.Helper()
	var got strings.Builder
	s := &screen{to: &got}
	for _, text := range texts {
		if n, err := io.WriteString(s, text); n != len(text) || err != nil {
			t.Error(n, err)
		}
	}
	return got.String()
}

// TestScreen: a terminal gets what draws, and nothing that it would answer or keep, however the text is cut.
func TestScreen(t *testing.T) {
	for text, want := range map[string]string{
		"a\r\n\tb\b\x07\x05\x0e\x00":                           "a\r\n\tb\b",
		"é ▲ 丁 \U0001f600 ß\u0085\u009b6n\u202e":               "é ▲ 丁 \U0001f600 ß??6n?", // whose bytes have those of 8-bit controls
		"\x9b6n \x90q\x9c \x9d0;t\x9c":                         "\ufffd6n \ufffdq\ufffd \ufffd0;t\ufffd",
		"\x1b[1;31mred\x1b[m \x1b[38:2::1:2:3m":                "\x1b[1;31mred\x1b[m \x1b[38:2::1:2:3m",
		"\x1b[H\x1b[2J\x1b[3;4H\x1b[K\x1b[5X\x1b[2d\x1b7\x1b8": "\x1b[H\x1b[2J\x1b[3;4H\x1b[K\x1b[5X\x1b[2d\x1b7\x1b8",
		"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?7l":              "\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?7l",
		"a\x1b[3Jb\x1bcd\x1b[!pe\x1b[4hf\x1b(0g":               "abdefg",  // forget the past, reset, insert, other letters
		"a\x1b[cb\x1b[>cd\x1b[=0ce\x1b[6nf\x1b[?6ng\x1bZh":     "abdefgh", // who are you, where is the cursor
		"a\x1b[21tb\x1b[?2026$pd\x1b[?ue\x1b[xf\x1b[>qg":       "abdefg",  // title, modes, keys, parameters, version
		"a\x1b[?1000hb\x1b[?25;1003hd\x1b[?1004he\x1b[5i":      "abde",    // mouse, focus, printer
		"a\x1b]0;title\ab\x1b]52;c;YQ==\x1b\\d\x1bP$qm\x1b\\e": "abde",    // title, clipboard, state
		"a\x1b_x\x1b\\b\x1b^x\x1b\\d\x1bXx\x1b\\e":             "abde",
		"a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\":            "alink",
		"a\x1b]no end\nb\x1b[1\n2mc\x1b[1\x1b[32md":            "a\nb\n2mc\x1b[32md", // what is not complete ends
		"\x1b[" + strings.Repeat("1;", longestSequence) + "m":  strings.Repeat("1;", longestSequence/2+1) + "m",
		"\x1b": "", "\x1b[1": "", "\xe4\xb8": "",
	} {
		if got := shown(t, text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		for i := range text {
			if got := shown(t, text[:i], text[i:]); got != want {
				t.Errorf("%q, cut at %d, became %q, want %q", text, i, got, want)
			}
		}
	}
}

func FuzzScreen(f *testing.F) {
	for _, seed := range []string{"é\x1b[1;31mred\x1b[m", "\x1b]0;t\a\x1bP\x1b\\\x9b6n", "\x1b[?1049h\x1b[?6n", "\xe4\xb8\x1b[\xc2\x9b"} {
		f.Add(seed, uint(3))
	}
	f.Fuzz(func(t *testing.T, text string, at uint) {
		got := shown(t, text)
		at %= uint(len(text)) + 1
		if cut := shown(t, text[:at], text[at:]); cut != got {
			t.Errorf("%q, cut at %d, became %q, and else %q", text, at, cut, got)
		}
		text = strings.NewReplacer("\x1b", "", "\b", "", "\r", "").Replace(got)
		if !utf8.ValidString(text) || printable(text) != text {
			t.Errorf("got %q", got)
		}
		for _, sequence := range regexp.MustCompile("\x1b(\\[[^@-~]*.?|.?)").FindAllString(got, -1) {
			if !harmless.MatchString(sequence) {
				t.Errorf("%q became %q, with %q", text, got, sequence)
			}
		}
	})
}

// TestRun: a command runs on the node that is named, with its arguments, flags included, and its exit code. What it prints can be
// pasted here, and does nothing to the terminal. Only ctl gets the input.
func TestRun(t *testing.T) {
	config := newServer().config(t)
	out, errs, err := run(t, "--kubeconfig", config, "doctor", "win-c", "-o", "json", "--log-file", `C:\a b\log`)
	want := fmt.Sprintf(`["doctor" "-o" "json" "--log-file" "C:\\a b\\log"] no input`+"\n?]0;owned?do: kubectl csi-proxy --kubeconfig %s ctl win-c disk online 4", quoted(config))
	if out != want || errs != "csi-proxyctl: no endpoint answers\n" || !errors.As(err, new(exitError)) {
		t.Errorf("got %q, %q, %v, want %q", out, errs, err, want)
	}
	if out, _, _ := run(t, "ctl", "win-c", "volume", "list"); !strings.HasPrefix(out, `["volume" "list"] a secret`+"\n") {
		t.Errorf("ctl: %q", out)
	}
	if _, _, err := run(t, "node", "win-x"); err == nil || !strings.Contains(err.Error(), "node win-x: no pod of CSI Proxy; only a pod of a DaemonSet in the namespace kube-system counts") {
		t.Errorf("on a node without CSI Proxy: %v", err)
	}
	if _, _, err := run(t, "node", "win-d"); err == nil || !strings.Contains(err.Error(), "csi-proxy-d is Pending") {
		t.Errorf("where its pod does not run: %v", err)
	}
	if _, _, err := run(t, "node", "--", "--problems"); err == nil || !strings.Contains(err.Error(), "is not the name of a node") {
		t.Errorf("without a node: %v", err)
	}
	if out, _, err := run(t, "version"); err != nil || !strings.HasPrefix(out, "kubectl csi-proxy ") {
		t.Errorf("version: %q, %v", out, err)
	}
}

// TestRun_Trust: a pod that only looks like CSI Proxy gets nothing, and two candidates are an error.
func TestRun_Trust(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"in another namespace":   func(pod *corev1.Pod) { pod.Namespace = "tenant" },
		"of no DaemonSet":        func(pod *corev1.Pod) { pod.OwnerReferences = nil },
		"of a Job":               func(pod *corev1.Pod) { pod.OwnerReferences[0].Kind = "Job" },
		"not of the host":        func(pod *corev1.Pod) { pod.Spec.SecurityContext = nil },
		"with another container": func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "other" },
		"whose container is not of the host": func(pod *corev1.Pod) {
			pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(false)}}
		},
		"that is being deleted": func(pod *corev1.Pod) { pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"x/y"} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			s.addPod("c2", change, func(pod *corev1.Pod) { pod.Spec.NodeName = "win-c" })
			s.config(t)
			if out, _, err := run(t, "ctl", "win-c", "smb", "list"); !errors.As(err, new(exitError)) || !strings.Contains(out, "a secret") {
				t.Errorf("beside the real one: %q, %v", out, err)
			}
			s.pods = s.pods[len(s.pods)-1:]
			if _, _, err := run(t, "ctl", "win-c", "smb", "list"); err == nil || !strings.Contains(err.Error(), "win-c: no pod of CSI Proxy") {
				t.Errorf("alone: %v", err)
			}
		})
	}
	s := newServer()
	s.addPod("c2", func(pod *corev1.Pod) { pod.Spec.NodeName = "win-c" })
	s.config(t)
	if _, _, err := run(t, "ctl", "win-c", "smb", "list"); err == nil || !strings.Contains(err.Error(), "2 pods on node win-c look like CSI Proxy, such as csi-proxy-c and csi-proxy-c2") {
		t.Errorf("two candidates: %v", err)
	}
}

// TestTimeout: a node that does not answer ends with its time.
func TestTimeout(t *testing.T) {
	s := newServer()
	s.addPod("e")
	s.config(t)
	if _, _, err := run(t, "--timeout", "100ms", "doctor", "win-e"); err == nil || !strings.Contains(err.Error(), "no answer from node win-e within 100ms") {
		t.Errorf("doctor: %v", err)
	}
	if out, _, err := run(t, "--timeout", "100ms"); err == nil || !strings.Contains(out, "no answer within 100ms") {
		t.Errorf("list: %s, %v", out, err)
	}
	s = newServer()
	s.addPod("e")
	s.programs["e"] = func(ctx context.Context, _ []string, _ io.Reader, out, errs io.Writer) int {
		for ctx.Err() == nil {
			if _, err := io.WriteString(io.MultiWriter(out, errs), "a line\nand a part"); err != nil {
				break
			}
		}
		return 1
	}
	s.config(t)
	if out, errs, err := run(t, "--timeout", "200ms", "doctor", "win-e"); err == nil || !strings.Contains(out, "a line\n") || !strings.Contains(errs, "a line\n") {
		t.Errorf("of a node that still prints: %d, %d, %v", len(out), len(errs), err)
	}
}

// TestExitCode: what csi-proxyctl has not said, the plugin does.
func TestExitCode(t *testing.T) {
	full, ended := errors.New("disk full"), exitError{4}
	for _, test := range []struct {
		err  error
		code int
		said string
	}{
		{nil, 0, ""},
		{both(ended, nil), 4, ""},
		{both(nil, full), 1, "kubectl csi-proxy: disk full\n"},
		{both(ended, full), 4, "kubectl csi-proxy: csi-proxyctl ended with exit code 4\ndisk full\n"},
		{fmt.Errorf("it has a part: %w", ended), 4, "kubectl csi-proxy: it has a part: csi-proxyctl ended with exit code 4\n"},
	} {
		var said strings.Builder
		if code := exitCode(test.err, &said); code != test.code || said.String() != test.said {
			t.Errorf("%v: %d, %q", test.err, code, &said)
		}
	}
}

// TestSupportBundle: it has what the node has, and what only the cluster knows.
func TestSupportBundle(t *testing.T) {
	newServer().config(t)
	file := filepath.Join(t.TempDir(), "bundle.zip")
	if _, errs, err := run(t, "support-bundle", "-f", file, "win-b", "--service-name=csi-proxy"); err != nil || !strings.Contains(errs, file) || !strings.Contains(errs, "Not in the bundle:") {
		t.Fatal(err, errs)
	}
	archive, err := zip.OpenReader(file)
	if err != nil || len(archive.File) < 9 {
		t.Fatalf("got %v, %v", archive, err)
	}
	defer archive.Close()
	for name, want := range map[string]string{
		"pod.json": `"nodeName": "win-b"`, "log.txt": "csi-proxy-b/log, previous \"\"", "log-previous.txt": `previous "true"`, "events.json": "about involvedObject.name=csi-proxy-b",
	} {
		text, err := fs.ReadFile(archive, "cluster/csi-proxy-b/"+name)
		if err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), "csi-Pa55") {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	if _, _, err := run(t, "support-bundle", "-f", file, "win-b"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("it replaces a file: %v", err)
	}
	part := filepath.Join(t.TempDir(), "part.zip")
	if _, _, err := run(t, "support-bundle", "-f", part, "win-d"); err == nil || !strings.Contains(err.Error(), "only what the cluster knows") || !strings.Contains(err.Error(), "Pending") {
		t.Errorf("of a pod that does not run: %v", err)
	}
	if archive, err := zip.OpenReader(part); err != nil || len(archive.File) != 4 {
		t.Errorf("of a pod that does not run: %v", err)
	}
	none := filepath.Join(t.TempDir(), "none.zip")
	_, _, err = run(t, "support-bundle", "-f", none, "win-x")
	if _, missing := os.Stat(none); err == nil || missing == nil {
		t.Errorf("of a node without a pod: %v, %v", err, missing)
	}
}

// TestSupportBundle_PodGone: what the node has sent stays, although its pod ends meanwhile, or may not be listed any more.
func TestSupportBundle_PodGone(t *testing.T) {
	for name, gone := range map[string]func(*apiServer){
		"":                             func(s *apiServer) { s.pods = nil },
		"has only what the node knows": func(s *apiServer) { s.hidesPods.Store(true) },
	} {
		s := newServer()
		s.addPod("f")
		s.programs["f"] = func(_ context.Context, _ []string, _ io.Reader, out, _ io.Writer) int {
			defer gone(s)
			return sendArchive(out, &zip.FileHeader{Name: "node.json"})
		}
		s.config(t)
		file := filepath.Join(t.TempDir(), "bundle.zip")
		_, errs, err := run(t, "support-bundle", "-f", file, "win-f")
		if (err == nil) != (name == "") || err == nil && !strings.Contains(errs, "Wrote "+file) || err != nil && !strings.Contains(err.Error(), file+" "+name) {
			t.Errorf("%q: %s, %v", name, errs, err)
		}
		if archive, err := zip.OpenReader(file); err != nil || len(archive.File) != 1 || archive.Close() != nil {
			t.Errorf("%q: %v, %v", name, archive, err)
		}
	}
}

// sendArchive sends one with a file, as a node does.
func sendArchive(to io.Writer, file *zip.FileHeader) int {
	archive := zip.NewWriter(to)
	if _, err := archive.CreateHeader(file); errors.Join(err, archive.Close()) != nil {
		return 1
	}
	return 0
}

// TestSupportBundle_Hostile: a node sends no files that would be elsewhere, or something else, after they are unpacked.
func TestSupportBundle_Hostile(t *testing.T) {
	s := newServer()
	s.addPod("f")
	s.config(t)
	try := func(file *zip.FileHeader) (*zip.ReadCloser, error) {
		s.programs["f"] = func(_ context.Context, _ []string, _ io.Reader, out, _ io.Writer) int { return sendArchive(out, file) }
		to := filepath.Join(t.TempDir(), "bundle.zip")
		_, _, err := run(t, "support-bundle", "-f", to, "win-f")
		archive, readErr := zip.OpenReader(to)
		if readErr != nil {
			t.Fatal(err, readErr)
		}
		t.Cleanup(func() { _ = archive.Close() })
		return archive, err
	}
	for _, name := range []string{"../a", "/a", "a/", `a\b`, "c:a", "cluster/x", "a\nb", "a\tb", "a\x1b[2J", "a\u202eb"} {
		if archive, err := try(&zip.FileHeader{Name: name}); err == nil || !strings.Contains(err.Error(), "its bundle has a file") || len(archive.File) != 4 {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, mode := range []fs.FileMode{fs.ModeSymlink | 0o777, fs.ModeNamedPipe, fs.ModeDevice} {
		file := &zip.FileHeader{Name: "a"}
		file.SetMode(mode)
		if archive, err := try(file); err == nil || !strings.Contains(err.Error(), "its bundle has a file") || len(archive.File) != 4 {
			t.Errorf("%s: %v", mode, err)
		}
	}
	file := &zip.FileHeader{Name: "a", Extra: []byte{0x75, 0x70, 6, 0, 1, 0x43, 0xbe, 0xb7, 0xe8, 'b'}} // another name: b
	file.SetMode(fs.ModeSetuid | 0o777)
	if archive, err := try(file); err != nil || archive.File[0].Mode() != 0o666 || len(archive.File[0].Extra) > 0 {
		t.Errorf("got %v, %+v", err, archive.File[0])
	}
}
