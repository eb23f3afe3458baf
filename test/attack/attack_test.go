//go:build linux

package attack

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
)

var (
	program    = flag.String("attack.sim", "", "the `file` of csi-proxy-sim; without it there is no attack")
	attackTime = flag.Duration("attack.time", 5*time.Second, "`time` of each attack")
	page       = flag.String("attack.page", "", "`file` whose table is rewritten")
)

// Bounds of the server.
const (
	maxMemory = 200 << 20
	// recovery is how much more memory than before it may have a minute later.
	recovery     = 1.5
	recoveryTime = time.Minute
	// leftover is how many more goroutines and descriptors it may have then: of endpoints in use.
	leftover = 40
	// warmUp is how many calls a server has had before the attack: one that was never used is smaller.
	warmUp = 3000
)

// attackVariable tells the test's own program which attack it is to be.
const attackVariable = "CSI_PROXY_ATTACK"

func TestMain(m *testing.M) {
	if name, asked := os.LookupEnv(attackVariable); asked {
		attackAsTold(name)
		return
	}
	m.Run()
}

// attackAsTold is the attacker: a process of its own.
func attackAsTold(name string) {
	i := slices.IndexFunc(Attacks, func(a Attack) bool { return a.Name == name })
	path := os.Getenv(attackVariable + "_PATH")
	d, err := time.ParseDuration(os.Getenv(attackVariable + "_TIME"))
	if i < 0 || err != nil {
		panic("there is no such attack")
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var dialer net.Dialer
	fmt.Print(Attacks[i].Run(ctx, func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) })) //nolint:forbidigo // for the test that has started it
}

// TestAttacks lets each attack loose on a server of its own. The server must keep its bounds, and serve
// its other clients: one that was there before, and new ones. How long they wait is shown, not judged.
func TestAttacks(t *testing.T) {
	if *program == "" {
		t.Skip("make attack runs this")
	}
	var table strings.Builder
	fmt.Fprintln(&table, "| Attack | How often | Memory before, peak, after | Goroutines before, peak, after | Descriptors before, peak, after | Calls of others | Errors | p50 | p99 |")
	fmt.Fprintln(&table, "|---|---|---|---|---|---|---|---|---|")
	for i, a := range Attacks {
		t.Run(a.Name, func(t *testing.T) {
			// A short run waits for the memory once.
			r := measure(t, a, i == 0 || *attackTime >= 3*time.Second)
			t.Log(r)
			fmt.Fprintln(&table, r)
		})
	}
	if *page != "" && !t.Failed() {
		write(t, *page, table.String())
	}
}

// figures are the sizes of the server, seen from outside.
type figures struct{ memory, goroutines, descriptors int }

// result is what an attack did.
type result struct {
	name                string
	count               string
	before, peak, after figures
	waits               []time.Duration
	errors              []error
}

func (r result) String() string {
	mb := func(bytes int) int { return (bytes + 1<<19) >> 20 }
	at := func(share float64) string {
		return fmt.Sprintf("%.1f ms", r.waits[int(share*float64(len(r.waits)-1))].Seconds()*1000)
	}
	return fmt.Sprintf("| %s | %s | %d, %d, %d MB | %d, %d, %d | %d, %d, %d | %d | %d | %s | %s |", r.name, r.count,
		mb(r.before.memory), mb(r.peak.memory), mb(r.after.memory), r.before.goroutines, r.peak.goroutines, r.after.goroutines,
		r.before.descriptors, r.peak.descriptors, r.after.descriptors, len(r.waits), len(r.errors), at(0.5), at(0.99))
}

// server is a running csi-proxy-sim.
type server struct {
	pid     int
	path    string // of the socket that is attacked
	metrics string
}

func start(t *testing.T) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "attack") // short, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), *program, "-socket-dir", dir, "-metrics-bind-address", "127.0.0.1:0", "-stop-timeout", "1s")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{pid: cmd.Process.Pid, path: filepath.Join(dir, "csi-proxy-filesystem-v1.sock")}
	var seen bytes.Buffer
	address := regexp.MustCompile(`"Serving metrics" address="([^"]+)"`)
	for buffer := make([]byte, 4096); !bytes.Contains(seen.Bytes(), []byte(`"Serving" `)); {
		n, err := log.Read(buffer)
		seen.Write(buffer[:n])
		if err != nil {
			t.Fatalf("%s does not serve: %v\n%s", *program, err, &seen)
		}
	}
	s.metrics = string(address.FindSubmatch(seen.Bytes())[1])
	var rest sync.WaitGroup
	rest.Go(func() { _, _ = io.Copy(&seen, log) })
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		rest.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
		if t.Failed() {
			t.Logf("its log:\n%s", &seen)
		}
	})
	return s
}

// figures asks the system for memory and descriptors, and the server for its goroutines.
func (s *server) figures(t *testing.T) (f figures) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	f.memory = number(regexp.MustCompile(`VmRSS:\s+([0-9]+)`), status) << 10
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	f.descriptors = len(descriptors)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.metrics+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return f // the peak is seen at another time
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	f.goroutines = number(regexp.MustCompile(`\ngo_goroutines ([0-9]+)`), body)
	return f
}

// highest returns the most memory that the server ever had.
func (s *server) highest(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	return number(regexp.MustCompile(`VmHWM:\s+([0-9]+)`), status) << 10
}

func number(pattern *regexp.Regexp, text []byte) int {
	found := pattern.FindSubmatch(text)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// measure lets clients work next to an attack.
func measure(t *testing.T, a Attack, andMemory bool) result {
	t.Helper()
	s := start(t)
	r := result{name: a.Name}
	old := s.client(t)
	for range warmUp {
		r.ask(t, old)
	}
	r.before = s.figures(t)

	attacker := exec.CommandContext(t.Context(), os.Args[0])
	attacker.Env = append(os.Environ(), attackVariable+"="+a.Name, attackVariable+"_PATH="+s.path, attackVariable+"_TIME="+attackTime.String())
	var count bytes.Buffer
	attacker.Stdout, attacker.Stderr = &count, os.Stderr
	if err := attacker.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- attacker.Wait() }()
	var lasting sync.WaitGroup
	stop := make(chan struct{})
	lasting.Go(func() {
		for done := false; !done; {
			select {
			case <-stop:
				done = true
			case <-time.After(200 * time.Millisecond):
			}
			f := s.figures(t)
			r.peak.goroutines, r.peak.descriptors = max(r.peak.goroutines, f.goroutines), max(r.peak.descriptors, f.descriptors)
		}
	})
	for running := true; running; {
		select {
		case err := <-over:
			if err != nil {
				t.Errorf("the attacker: %v", err)
			}
			running = false
		default:
		}
		r.ask(t, old)
		if len(r.waits)%50 == 0 {
			newcomer := s.client(t)
			r.ask(t, newcomer)
			_ = newcomer.Close()
		}
	}
	close(stop)
	lasting.Wait()
	r.ask(t, old)
	r.count, r.peak.memory = count.String(), s.highest(t)
	r.waits = r.waits[warmUp:]
	slices.Sort(r.waits)

	settled := func() bool {
		r.after = s.figures(t)
		return r.after.goroutines <= r.before.goroutines+leftover && r.after.descriptors <= r.before.descriptors+leftover &&
			(!andMemory || float64(r.after.memory) <= recovery*float64(r.before.memory))
	}
	recovered := settled()
	for end := time.Now().Add(recoveryTime); !recovered && time.Now().Before(end); recovered = settled() {
		time.Sleep(200 * time.Millisecond)
	}
	if !recovered {
		t.Errorf("a minute later the server has %+v, and had %+v", r.after, r.before)
	}
	if r.peak.memory > maxMemory {
		t.Errorf("the server had %d MB", r.peak.memory>>20)
	}
	for _, err := range r.errors {
		t.Errorf("another client: %v", err)
	}
	return r
}

// client returns another client of the server.
func (s *server) client(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+s.path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask makes a call, as a driver does.
func (r *result) ask(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	start := time.Now()
	answer, err := filesystemv1.NewFilesystemClient(conn).PathExists(ctx, &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet`}, grpc.WaitForReady(true))
	if err == nil && !answer.Exists {
		err = fmt.Errorf("wrong answer: %v", answer)
	}
	if err != nil {
		r.errors = append(r.errors, err)
	}
	r.waits = append(r.waits, time.Since(start))
}

// write replaces the table of a page.
func write(t *testing.T, name, table string) {
	t.Helper()
	const begin, end = "<!-- make attack writes this table -->\n", "<!-- end of the table -->\n"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, foundEnd := strings.Cut(rest, end)
	if !found || !foundEnd {
		t.Fatalf("%s has no place for the table", name)
	}
	if err := os.WriteFile(name, []byte(before+begin+table+end+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
