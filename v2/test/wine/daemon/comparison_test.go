//go:build windows && wine

package daemon

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	diskclient "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/echo"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var (
	original = flag.String("original", "", "`path` of the original's program; TestComparison compares with it, and is skipped without")
	idle     = flag.String("idle", "", "`path` of a program that does nothing, for its memory")
	figures  = flag.String("figures", "", "`file` that TestComparison writes, in the form of benchmarks")
)

// Each round measures the servers one after the other, so that other load on the machine hits all of
// them. Figures are medians of the rounds.
const (
	rounds  = 3
	period  = 500 * time.Millisecond // of one measurement
	starts  = 5
	settled = 500 * time.Millisecond // from the first answer to the look at the memory
	rest    = 10 * time.Second       // from the load to the next look
)

// echoRole is the flag for a server that only answers, in its own process like the daemon.
const (
	echoRole = "-play-echo"
	echoPipe = `\\.\pipe\csi-proxy-bench-echo`
)

func playEcho() {
	bare, err := winio.ListenPipe(echoPipe, &winio.PipeConfig{InputBufferSize: 64 << 10, OutputBufferSize: 64 << 10})
	if err != nil {
		panic(err)
	}
	panic(echo.NewServer(&filesystemv1.PathExistsRequest{}, &filesystemv1.PathExistsResponse{Exists: true}).Serve(bare))
}

// pods is a directory that drivers ask about.
const pods = kubelet + `\pods`

// server is a program that is measured.
type server struct {
	name, path string
	samples    map[string][]float64 // by name and unit of the figure
	codes      map[string]bool      // the answers to ListDiskIDs
}

func (s *server) note(figure, unit string, value float64) {
	key := fmt.Sprintf("%s %s", figure, unit)
	s.samples[key] = append(s.samples[key], value)
}

// TestComparison measures the daemon and the original on the same calls.
func TestComparison(t *testing.T) {
	if *original == "" {
		t.Skip("make bench asks for it")
	}
	require.NoError(t, os.MkdirAll(pods, 0o700))
	echoes := launch(t, os.Args[0], echoRole)
	echoes.awaitPath(echoPipe)
	servers := []*server{{name: "ours", path: *program}, {name: "original", path: *original}}
	for _, s := range servers {
		s.samples, s.codes = map[string][]float64{}, map[string]bool{}
		info, err := os.Stat(s.path)
		require.NoError(t, err)
		s.note("Process", "binary-MB", float64(info.Size())/1e6)
	}
	for range starts {
		for _, s := range servers {
			s.measureStart(t)
		}
	}
	for range rounds {
		for _, s := range servers {
			s.measureCalls(t)
		}
		slices.Reverse(servers)
	}
	slices.SortFunc(servers, func(a, b *server) int { return -strings.Compare(a.name, b.name) })
	servers = append(servers, nothing(t))
	require.NoError(t, os.WriteFile(*figures, []byte(lines(servers)), 0o600))
}

// nothing is the program that does nothing.
func nothing(t *testing.T) *server {
	t.Helper()
	s := &server{name: "nothing", path: *idle, samples: map[string][]float64{}}
	p := launch(t, s.path)
	time.Sleep(settled)
	s.note("Process", "idle-MB", float64(p.resident())*1024/1e6)
	s.note("Process", "idle-threads", float64(p.threads()))
	p.kill()
	return s
}

// begin starts the program and waits for its pipe.
func (s *server) begin(t *testing.T) *process {
	t.Helper()
	p := launch(t, s.path)
	p.awaitPipe(fsv1.GroupName, fsv1.Version)
	return p
}

func (s *server) measureStart(t *testing.T) {
	t.Helper()
	began := time.Now()
	p := s.begin(t)
	if err := ask(t.Context(), connect(t), patiently); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	s.note("Process", "start-ms", float64(time.Since(began).Microseconds())/1e3)
	p.kill()
}

// load is how many callers ask at once, on how many connections.
type load struct {
	name                 string
	callers, connections int
}

var loads = []load{
	{"connections=shared/callers=1", 1, 1},
	{"connections=shared/callers=8", 8, 1},
	{"connections=shared/callers=64", 64, 1},
	{"connections=own/callers=8", 8, 8},
	{"connections=own/callers=64", 64, 64},
}

// question is a call about a file that changes nothing.
type question struct {
	name, method      string
	request, response proto.Message
}

const removal = "Rmdir-of-nothing"

var questions = []question{
	{"PathExists", filesystemv1.Filesystem_PathExists_FullMethodName, &filesystemv1.PathExistsRequest{Path: pods}, &filesystemv1.PathExistsResponse{}},
	{"IsSymlink", filesystemv1.Filesystem_IsSymlink_FullMethodName, &filesystemv1.IsSymlinkRequest{Path: pods}, &filesystemv1.IsSymlinkResponse{}},
	{"Mkdir-of-what-exists", filesystemv1.Filesystem_Mkdir_FullMethodName, &filesystemv1.MkdirRequest{Path: pods}, &filesystemv1.MkdirResponse{}},
	{removal, filesystemv1.Filesystem_Rmdir_FullMethodName, &filesystemv1.RmdirRequest{Path: kubelet + `\nothing`}, &filesystemv1.RmdirResponse{}},
}

// measureQuestion asks a question next to the echo. PathExists runs next to the health check, too.
func (s *server) measureQuestion(t *testing.T, q question, l load) {
	t.Helper()
	pipe := client.PipePath(fsv1.GroupName, fsv1.Version)
	call := grpcCall(t, pipe, q.method, q.request, q.response, l.connections)
	asked := measure(t, l.callers, func(ctx context.Context, caller int) error {
		err := call(ctx, caller)
		if s.name == "original" && q.name == removal && status.Code(err) == codes.Unknown {
			return nil // to the original it is a failure that nothing is there
		}
		return err
	})
	bare := measure(t, l.callers, grpcCall(t, echoPipe, echo.Method, questions[0].request, questions[0].response, l.connections))
	figure := "call=" + q.name + "/" + l.name
	s.compare(figure, asked, bare)
	if s.name == "ours" && q.name == questions[0].name { // it costs least, and the original does not have it
		figure = "call=Check/" + l.name
		health := measure(t, l.callers, grpcCall(t, pipe, healthv1.Health_Check_FullMethodName, &healthv1.HealthCheckRequest{}, &healthv1.HealthCheckResponse{}, l.connections))
		s.compare(figure, health, bare)
	}
}

// compare notes how a call did next to the echo: how often it was made, and how much processor time it took.
func (s *server) compare(figure string, asked, bare measurement) {
	s.note(figure, "server/s", asked.perSecond)
	s.note(figure, "echo/s", bare.perSecond)
	s.note(figure, "ratio", asked.perSecond/bare.perSecond)
	s.note(figure, "cpu-us", asked.cpu)
	s.note(figure, "echo-cpu-us", bare.cpu)
}

// measureCalls starts the program, makes calls, and measures its memory before and after.
func (s *server) measureCalls(t *testing.T) {
	t.Helper()
	p := s.begin(t)
	defer p.kill()
	time.Sleep(settled)
	s.note("Process", "idle-MB", float64(p.resident())*1024/1e6)
	s.note("Process", "idle-threads", float64(p.threads()))
	for _, l := range loads {
		for i, q := range questions {
			if i == 0 || l.connections == 1 {
				s.measureQuestion(t, q, l)
			}
		}
	}
	s.note("Process", "peak-threads", float64(p.threads()))
	time.Sleep(rest)
	s.note("Process", "loaded-MB", float64(p.resident())*1024/1e6)
	s.note("Process", "loaded-threads", float64(p.threads()))

	c, directory := connect(t), kubelet+`\compared`
	s.note("call=Mkdir+Rmdir/connections=shared/callers=1", "server/s", measure(t, 1, func(ctx context.Context, _ int) error {
		if _, err := c.Mkdir(ctx, &filesystemv1.MkdirRequest{Path: directory}); err != nil {
			return err
		}
		_, err := c.Rmdir(ctx, &filesystemv1.RmdirRequest{Path: directory})
		return err
	}).perSecond)
	p.awaitPipe(diskclient.GroupName, diskclient.Version)
	disks, err := diskclient.New(t.Context(), client.WithWait())
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	defer disks.Close()
	s.note("call=ListDiskIDs/connections=shared/callers=1", "server/s", measure(t, 1, func(ctx context.Context, _ int) error {
		_, err := disks.ListDiskIDs(ctx, &diskv1.ListDiskIDsRequest{})
		s.codes[status.Code(err).String()] = true // Wine has no disks to list
		return nil
	}).perSecond)
	figure(t, "%s answers ListDiskIDs with %v", s.name, slices.Sorted(maps.Keys(s.codes)))
}

// measurement is of calls that callers made for a while.
type measurement struct {
	perSecond float64
	cpu       float64 // of a call, in microseconds: client, server and Wine's own. A busy host changes it less than the rate
}

// measure lets callers make calls for a while, after one call each to warm up.
func measure(t *testing.T, callers int, call func(ctx context.Context, caller int) error) measurement {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	var made atomic.Int64
	all := func(until time.Time) {
		var wg sync.WaitGroup
		for caller := range callers {
			wg.Go(func() {
				for first := true; first || time.Now().Before(until); first = false {
					if err := call(ctx, caller); err != nil {
						t.Error(err)
						return
					}
					made.Add(1)
				}
			})
		}
		wg.Wait()
	}
	all(time.Time{})
	made.Store(0)
	before, began := busy(t), time.Now()
	all(began.Add(period))
	took, after, calls := time.Since(began), busy(t), float64(made.Load())
	return measurement{perSecond: calls / took.Seconds(), cpu: float64((after - before).Microseconds()) / calls}
}

// busy is how long the processors of the machine have worked since it started, by the statistics of the Linux below Wine: what
// Wine does for a call is in none of its processes alone. The columns are in
// https://man7.org/linux/man-pages/man5/proc_stat.5.html
func busy(t *testing.T) (total time.Duration) {
	t.Helper()
	text, err := os.ReadFile(`\\?\unix\proc\stat`)
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(text), "\n")
	columns := strings.Fields(line)
	if len(columns) < 8 || columns[0] != "cpu" {
		t.Fatalf("the statistics of the processors are %q", line)
	}
	for i, column := range columns[1:8] { // user, nice, system, idle, iowait, irq, softirq
		ticks, err := strconv.Atoi(column)
		require.NoError(t, err)
		if i != 3 && i != 4 {
			total += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return total
}

// grpcCall makes a call on one of a number of connections.
func grpcCall(t *testing.T, path, method string, request, response proto.Message, connections int) func(ctx context.Context, caller int) error {
	t.Helper()
	conns := make([]*grpc.ClientConn, connections)
	for i := range conns {
		conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.WaitForReady(true)), // a busy host can use up the time to connect
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return winio.DialPipeContext(ctx, path) }))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		conns[i] = conn
	}
	return func(ctx context.Context, caller int) error {
		return conns[caller%connections].Invoke(ctx, method, request, response.ProtoReflect().New().Interface())
	}
}

// lines writes the figures in the form of benchmarks, which benchstat reads.
func lines(servers []*server) string {
	var b strings.Builder
	for _, s := range servers {
		units := map[string][]string{} // by figure
		for key, samples := range s.samples {
			figure, unit, _ := strings.Cut(key, " ")
			slices.Sort(samples)
			value := samples[len(samples)/2]
			units[figure] = append(units[figure], fmt.Sprintf("%g %s", math.Round(value*1000)/1000, unit))
		}
		for _, figure := range slices.Sorted(maps.Keys(units)) {
			values := units[figure]
			slices.Sort(values)
			fmt.Fprintf(&b, "BenchmarkWine/program=%s/%s\t%d\t%s\n", s.name, figure, rounds, strings.Join(values, "\t"))
		}
	}
	return b.String()
}
