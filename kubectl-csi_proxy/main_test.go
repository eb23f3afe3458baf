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
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/utils/exec"
)

// apiServer lists pods and passes exec on to the code that the kubelet serves it with.
type apiServer struct {
	nodes map[string]func(args []string, in io.Reader, out, errs io.Writer) int // by their name; the exit code
	pods  []corev1.Pod
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutSuffix(r.URL.Path, "/exec"); ok {
		// The API server has other words for them than the kubelet.
		options := &remotecommand.Options{Stdin: r.FormValue("stdin") == "true", Stdout: r.FormValue("stdout") == "true", Stderr: r.FormValue("stderr") == "true"}
		remotecommand.ServeExec(w, r, s, filepath.Base(name), "", r.FormValue("container"), r.URL.Query()["command"], options, time.Minute, time.Minute,
			remotecommand.SupportedStreamingProtocols)
		return
	}
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for _, pod := range s.pods {
		node, _ := strings.CutPrefix(r.FormValue("fieldSelector"), "spec.nodeName=")
		if r.FormValue("labelSelector") == "app.kubernetes.io/name=csi-proxy" && (node == "" || node == pod.Spec.NodeName) &&
			(r.URL.Path == "/api/v1/pods" || r.URL.Path == "/api/v1/namespaces/"+pod.Namespace+"/pods") {
			list.Items = append(list.Items, pod)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// ExecInContainer implements remotecommand.Executor.
func (s *apiServer) ExecInContainer(_ context.Context, name, _, container string, cmd []string, in io.Reader, out, errs io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	if container != "csi-proxy" || cmd[0] != `%CONTAINER_SANDBOX_MOUNT_POINT%\csi-proxyctl.exe` {
		return fmt.Errorf("no program %q in container %q", cmd[0], container)
	}
	if code := s.nodes[strings.TrimPrefix(name, "csi-proxy-")](cmd[1:], in, out, errs); code != 0 {
		return exec.CodeExitError{Err: fmt.Errorf("exit code %d", code), Code: code}
	}
	return nil
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
	build := osexec.Command("go", "build", "-buildvcs=false", "-o", programs, "./csi-proxyctl", "./csi-proxy-sim")
	build.Dir, build.Env = "../v2/cmd", append(os.Environ(), "GOWORK=")
	if text, err := build.CombinedOutput(); err != nil {
		panic(string(text))
	}
	sim := osexec.Command(filepath.Join(programs, "csi-proxy-sim"), "-preset", "broken", "-socket-dir", programs)
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

// newServer has a node with a note, a broken one that is real, one whose daemon does not answer, and one whose pod does not start.
func newServer(t *testing.T) (kubeconfig string) {
	t.Helper()
	say := func(text string) func([]string, io.Reader, io.Writer, io.Writer) int {
		return func(args []string, _ io.Reader, out, errs io.Writer) int {
			if strings.Join(args, " ") != "node -o json" {
				fmt.Fprintf(errs, "unexpected %q\n", args)
				return 2
			}
			fmt.Fprint(out, text)
			return 0
		}
	}
	s := &apiServer{nodes: map[string]func([]string, io.Reader, io.Writer, io.Writer) int{
		"a": say(`{"version":"v2.1.0","problems":[{"severity":"note","text":"full\u001b[31m","pods":["7d0e"]}]}`),
		"b": func(args []string, in io.Reader, out, errs io.Writer) int {
			program := osexec.CommandContext(t.Context(), filepath.Join(programs, "csi-proxyctl"), append(args, "--endpoint-dir", programs)...)
			program.Stdin, program.Stdout, program.Stderr = in, out, errs
			_ = program.Run() // the exit code says it
			return program.ProcessState.ExitCode()
		},
		"c": func(args []string, _ io.Reader, out, errs io.Writer) int {
			fmt.Fprintf(out, "%q\n", args)
			fmt.Fprint(errs, "csi-proxyctl: no endpoint answers\n")
			return 4
		},
	}}
	for _, node := range []string{"c", "a", "b", "d"} {
		phase := corev1.PodRunning
		if node == "d" {
			phase = corev1.PodPending
		}
		s.pods = append(s.pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "csi-proxy-" + node},
			Spec:       corev1.PodSpec{NodeName: "win-" + node},
			Status:     corev1.PodStatus{Phase: phase},
		})
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{"token":"t"}}],
		"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// run runs the plugin, and returns what it prints and why it fails.
func run(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestList(t *testing.T) {
	config := newServer(t)
	out, _, err := run(t, "--kubeconfig", config)
	const want = `NODE    VERSION   PROBLEMS   PODS HURT   SEVERITY   WORST
win-a   v2.1.0    1          0           note       full?[31m
win-b   devel     9          5           hurts      disk 4: offline: 2 paths lead to it
win-c   -         ?          ?           ?          csi-proxyctl: no endpoint answers
win-d   -         ?          ?           ?          its pod csi-proxy-d is Pending
`
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if err == nil || err.Error() != "2 of 4 nodes did not say what problems they have" {
		t.Errorf("got %v", err)
	}
	if out, _, _ := run(t, "--kubeconfig", config, "--problems", "-n", "storage"); !strings.Contains(out, "win-b") {
		t.Errorf("with problems: %s", out)
	}
	out, _, err = run(t, "--kubeconfig", config, "-o", "json")
	var states []nodeState
	if err == nil || json.Unmarshal([]byte(out), &states) != nil || len(states) != 4 || len(states[1].PodsHurt) == 0 || states[2].Error == "" {
		t.Errorf("got %v, %s", err, out)
	}
	if _, _, err := run(t, "--kubeconfig", config, "-n", "elsewhere"); err == nil || !strings.Contains(err.Error(), "--namespace") {
		t.Errorf("in a namespace without pods: %v", err)
	}
}

// TestRun: a command runs on the node that is named, with its arguments, flags included, and its exit code.
func TestRun(t *testing.T) {
	config := newServer(t)
	out, errs, err := run(t, "--kubeconfig", config, "doctor", "win-c", "-o", "json", "--log-file", `C:\a b\log`)
	if out != `["doctor" "-o" "json" "--log-file" "C:\\a b\\log"]`+"\n" || errs != "csi-proxyctl: no endpoint answers\n" || !errors.Is(err, exitError{4}) {
		t.Errorf("got %q, %q, %v", out, errs, err)
	}
	if out, _, _ := run(t, "--kubeconfig", config, "ctl", "win-c", "volume", "list"); out != `["volume" "list"]`+"\n" {
		t.Errorf("ctl: %q", out)
	}
	if _, _, err := run(t, "--kubeconfig", config, "node", "win-x"); err == nil || !strings.Contains(err.Error(), "no pod of CSI Proxy runs on node win-x") {
		t.Errorf("on a node without CSI Proxy: %v", err)
	}
	if _, _, err := run(t, "--kubeconfig", config, "node", "win-d"); err == nil || !strings.Contains(err.Error(), "win-d") {
		t.Errorf("where its pod does not run: %v", err)
	}
}

func TestSupportBundle(t *testing.T) {
	config := newServer(t)
	file := filepath.Join(t.TempDir(), "bundle.zip")
	if _, errs, err := run(t, "--kubeconfig", config, "support-bundle", "-f", file, "win-b", "--service-name=csi-proxy"); err != nil || !strings.Contains(errs, file) || !strings.Contains(errs, "Not in the bundle:") {
		t.Fatal(err, errs)
	}
	if archive, err := zip.OpenReader(file); err != nil || len(archive.File) < 5 {
		t.Errorf("got %v, %v", archive, err)
	}
	if _, _, err := run(t, "--kubeconfig", config, "support-bundle", "-f", file, "win-b"); err == nil {
		t.Error("it replaces a file")
	}
	other := filepath.Join(t.TempDir(), "other.zip")
	if _, _, err := run(t, "--kubeconfig", config, "support-bundle", "-f", other, "win-a"); err == nil {
		t.Error("a node without a bundle has one")
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("half a bundle is left")
	}
}
