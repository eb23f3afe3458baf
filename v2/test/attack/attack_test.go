//go:build linux

package attack

import (
	"bytes"
	"context"
	"errors"
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
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var (
	program    = flag.String("attack.sim", "", "the `file` of csi-proxy-sim; without it there is no attack")
	attackTime = flag.Duration("attack.time", 5*time.Second, "`time` of each attack")
	tableFile  = flag.String("attack.table", "", "`file` for the table of results")
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

// attackVariable says to the test's own program which attack it is to be, driverVariable that it is a driver.
const (
	attackVariable = "CSI_PROXY_ATTACK"
	driverVariable = "CSI_PROXY_ATTACK_DRIVER"
)

func TestMain(m *testing.M) {
	if name, asked := os.LookupEnv(attackVariable); asked {
		runAttacker(name)
		return
	}
	if dir, asked := os.LookupEnv(driverVariable); asked {
		runDriver(dir)
		return
	}
	m.Run()
}

// runDriver is a driver that calls each of its endpoints once.
func runDriver(dir string) {
	for _, d := range drivers {
		conn, err := connect(filepath.Join(dir, d.socket))
		if err == nil {
			err = d.call(context.Background(), conn)
			_ = conn.Close()
		}
		if err != nil {
			fmt.Println(err) //nolint:forbidigo // for the test that has started it
		}
	}
}

// runAttacker is the attacker: a process of its own.
func runAttacker(name string) {
	i := slices.IndexFunc(Attacks, func(a Attack) bool { return a.Name == name })
	dir := os.Getenv(attackVariable + "_DIR")
	d, err := time.ParseDuration(os.Getenv(attackVariable + "_TIME"))
	if i < 0 || err != nil {
		panic("there is no such attack")
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var dialer net.Dialer
	dial := func(ctx context.Context) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", filepath.Join(dir, drivers[0].socket))
	}
	fmt.Print(Attacks[i].Run(ctx, dial)) //nolint:forbidigo // for the test that has started it
}

// sockets returns the endpoints of a server.
func sockets(dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.sock")) // the pattern is good
	return paths
}

// drivers are what calls the server beside the attacker. The first one's endpoint is attacked.
var drivers = []struct {
	socket string
	call   func(context.Context, *grpc.ClientConn) error
}{
	{"csi-proxy-filesystem-v1.sock", func(ctx context.Context, conn *grpc.ClientConn) error {
		answer, err := filesystemv1.NewFilesystemClient(conn).PathExists(ctx, &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet`})
		if err == nil && !answer.Exists {
			err = fmt.Errorf("wrong answer: %v", answer)
		}
		return err
	}},
	{"csi-proxy-disk-v1.sock", func(ctx context.Context, conn *grpc.ClientConn) error {
		answer, err := diskv1.NewDiskClient(conn).ListDiskIDs(ctx, &diskv1.ListDiskIDsRequest{})
		if err == nil && len(answer.DiskIDs) == 0 {
			err = fmt.Errorf("wrong answer: %v", answer)
		}
		return err
	}},
	{"csi-proxy-system-v1alpha1.sock", func(ctx context.Context, conn *grpc.ClientConn) error {
		answer, err := systemv1alpha1.NewSystemClient(conn).GetBIOSSerialNumber(ctx, &systemv1alpha1.GetBIOSSerialNumberRequest{})
		if err == nil && answer.SerialNumber == "" {
			err = fmt.Errorf("wrong answer: %v", answer)
		}
		return err
	}},
}

// connect is what drivers do. There is no retry: each connection that is refused is an error.
func connect(path string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// TestAttacks lets each attack loose on a server of its own. The server must keep its bounds, and serve
// its other clients: one that was there before, those that connect for each call, and those that are
// started for it. How long they wait is shown, not judged, beside the wait for a server without an attack.
func TestAttacks(t *testing.T) {
	if *program == "" {
		t.Skip("make attack runs this")
	}
	var table strings.Builder
	fmt.Fprintln(&table, "| Attack | How often | Memory before, peak, after | Goroutines before, peak, after | Descriptors before, peak, after | Calls of others | Errors | p50 | p99 | p99 without attack |")
	fmt.Fprintln(&table, "|---|---|---|---|---|---|---|---|---|---|")
	for i, a := range Attacks {
		t.Run(a.Name, func(t *testing.T) {
			// A short run waits for the memory once.
			r := measure(t, a, i == 0 || *attackTime >= 3*time.Second)
			t.Log(r)
			fmt.Fprintln(&table, r)
		})
	}
	if *tableFile != "" {
		require.NoError(t, os.WriteFile(*tableFile, []byte(table.String()), 0o600))
	}
}

// figures are the sizes of the server, seen from outside.
type figures struct{ memory, goroutines, descriptors int }

// result is what an attack did.
type result struct {
	name                string
	count               string
	before, peak, after figures
	drivers             int // that were started

	mu          sync.Mutex
	waits       []time.Duration // for the server that is attacked
	undisturbed []time.Duration // for the other one
	errors      []error
}

func (r *result) String() string {
	mb := func(bytes int) int { return (bytes + 1<<19) >> 20 }
	at := func(waits []time.Duration, share float64) string {
		slices.Sort(waits)
		return fmt.Sprintf("%.1f ms", waits[int(share*float64(len(waits)-1))].Seconds()*1000)
	}
	return fmt.Sprintf("| %s | %s | %d, %d, %d MB | %d, %d, %d | %d, %d, %d | %d | %d | %s | %s | %s |", r.name, r.count,
		mb(r.before.memory), mb(r.peak.memory), mb(r.after.memory), r.before.goroutines, r.peak.goroutines, r.after.goroutines,
		r.before.descriptors, r.peak.descriptors, r.after.descriptors, len(r.waits)+r.drivers*len(drivers), len(r.errors),
		at(r.waits, 0.5), at(r.waits, 0.99), at(r.undisturbed, 0.99))
}

// server is a running csi-proxy-sim.
type server struct {
	pid     int
	dir     string // of the sockets
	metrics string
}

func start(t *testing.T) *server {
	t.Helper()
	dir := serve.SocketDir(t)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), *program, "-socket-dir", dir, "-metrics-bind-address", "127.0.0.1:0", "-stop-timeout", "1s")
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	s := &server{pid: cmd.Process.Pid, dir: dir}
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
	require.NoError(t, err)
	f.memory = number(regexp.MustCompile(`VmRSS:\s+([0-9]+)`), status) << 10
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.pid))
	require.NoError(t, err)
	f.descriptors = len(descriptors)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.metrics+"/metrics", http.NoBody)
	require.NoError(t, err)
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
	require.NoError(t, err)
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
func measure(t *testing.T, a Attack, andMemory bool) *result {
	t.Helper()
	s, other := start(t), start(t)
	r := &result{name: a.Name}
	old, calm := s.client(t, drivers[0].socket), other.client(t, drivers[0].socket)
	for range warmUp {
		r.ask(t, old, 0, nil)
	}
	r.ask(t, calm, 0, nil)
	for _, path := range sockets(s.dir) { // an endpoint that was never used is smaller
		conn := s.client(t, filepath.Base(path))
		if _, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	r.before = s.figures(t)

	attacker := exec.CommandContext(t.Context(), os.Args[0])
	attacker.Env = append(os.Environ(), attackVariable+"="+a.Name, attackVariable+"_DIR="+s.dir, attackVariable+"_TIME="+attackTime.String())
	var count bytes.Buffer
	attacker.Stdout, attacker.Stderr = &count, os.Stderr
	require.NoError(t, attacker.Start())
	stop := make(chan struct{})
	var lasting sync.WaitGroup
	repeat := func(pause time.Duration, do func()) {
		lasting.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(pause):
					do()
				}
			}
		})
	}
	repeat(200*time.Millisecond, func() {
		f := s.figures(t)
		r.peak.goroutines, r.peak.descriptors = max(r.peak.goroutines, f.goroutines), max(r.peak.descriptors, f.descriptors)
	})
	repeat(time.Millisecond, func() {
		r.ask(t, old, 0, &r.waits)
		r.ask(t, calm, 0, &r.undisturbed)
	})
	next := 0
	repeat(5*time.Millisecond, func() {
		newcomer := s.client(t, drivers[next].socket)
		r.ask(t, newcomer, next, &r.waits)
		_ = newcomer.Close()
		next = (next + 1) % len(drivers)
	})
	repeat(50*time.Millisecond, func() {
		driver := exec.CommandContext(t.Context(), os.Args[0])
		driver.Env = append(os.Environ(), driverVariable+"="+s.dir)
		output, err := driver.CombinedOutput()
		if err == nil && len(output) > 0 {
			err = errors.New(string(output))
		}
		if err != nil {
			r.fail(fmt.Errorf("a new process: %w", err))
		}
		r.drivers++
	})
	require.NoError(t, attacker.Wait(), "the attacker:")
	close(stop)
	lasting.Wait()
	r.ask(t, old, 0, &r.waits)
	r.count, r.peak.memory = count.String(), s.highest(t)

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
		if a.Name != flooding || !strings.Contains(err.Error(), syscall.EAGAIN.Error()) {
			t.Errorf("another client: %v", err)
		}
	}
	return r
}

// client returns another client of the server.
func (s *server) client(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := connect(filepath.Join(s.dir, socket))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask makes the call of a driver, and adds how long it takes.
func (r *result) ask(t *testing.T, conn *grpc.ClientConn, driver int, waits *[]time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	start := time.Now()
	err := drivers[driver].call(ctx, conn)
	wait := time.Since(start)
	if err != nil {
		r.fail(err)
	}
	if waits != nil {
		r.mu.Lock()
		*waits = append(*waits, wait)
		r.mu.Unlock()
	}
}

func (r *result) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, err)
}
