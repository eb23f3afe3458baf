package metrics_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/metrics"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/bounds"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

var update = flag.Bool("update", false, "write testdata/names.txt")

var (
	_ server.Observer           = (*metrics.Metrics)(nil)
	_ server.ConnectionObserver = (*metrics.Metrics)(nil)
	_ bounds.Observer           = (*metrics.Metrics)(nil).WindowsCall
)

// newMetrics has a source for everything.
func newMetrics() *metrics.Metrics {
	return metrics.New(metrics.Config{
		Version:   "v2.0.0",
		Abandoned: func() int64 { return 3 },
		Stuck:     func() int { return 2 },
		Storage:   true,
	})
}

// get asks for a path and returns the status and the body.
func get(t *testing.T, m *metrics.Metrics, method, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
	return w.Code, w.Body.String()
}

// scrape returns the lines of /metrics.
func scrape(t *testing.T, m *metrics.Metrics) []string {
	t.Helper()
	code, body := get(t, m, http.MethodGet, "/metrics")
	if code != http.StatusOK {
		t.Errorf("/metrics answers %d", code)
	}
	return strings.Split(body, "\n")
}

// call is a request that is answered.
func call(m *metrics.Metrics, method string, code codes.Code, elapsed time.Duration) {
	m.RequestStarted(method)
	m.RequestDone(method, code, elapsed)
}

// TestNames: names, types and labels of all that is ours are promised. The last column explains them.
func TestNames(t *testing.T) {
	m := newMetrics()
	call(m, "/v1.Disk/Rescan", codes.OK, time.Second)
	m.ConnectionOpened("driver.exe")
	m.LimitReached("driver.exe", "too many connections")
	m.WindowsCall("ask a disk", time.Second, nil)
	m.StaleMounts([]node.StaleMount{{Driver: "disk.csi", State: node.Kept}, {Driver: "disk.csi", State: node.Removed}})
	m.Storage(brokenNode())
	var got strings.Builder
	lines := scrape(t, m)
	for _, line := range lines {
		name, kind, found := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " ")
		if !found || !strings.HasPrefix(line, "# TYPE csi_proxy_") {
			continue
		}
		help := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "# HELP "+name+" ") })
		fmt.Fprintln(&got, name, kind, labelsOf(lines, name), strings.TrimPrefix(lines[help], "# HELP "+name+" "))
	}
	require.File(t, "testdata/names.txt", got.String(), *update)
	for _, name := range []string{"go_goroutines", "go_info", "process_start_time_seconds", "process_resident_memory_bytes"} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "# TYPE "+name+" ") }) {
			t.Errorf("%s is missing", name)
		}
	}
}

// labelsOf returns the names of the labels of a metric, but for that of a histogram's buckets.
func labelsOf(lines []string, name string) string {
	for _, line := range lines {
		rest, found := strings.CutPrefix(line, name)
		if !found || rest == "" {
			continue
		}
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, "_sum"), "_count")
		switch rest[0] {
		case ' ':
			return "{}"
		case '{':
			var names []string
			for pair := range strings.SplitSeq(rest[1:strings.IndexByte(rest, '}')], `",`) {
				label, _, _ := strings.Cut(pair, "=")
				names = append(names, label)
			}
			return "{" + strings.Join(names, ",") + "}"
		}
	}
	return "?"
}

// TestMetrics_Processes: processes choose their names, and cannot make the metrics grow. Every connection is counted once.
func TestMetrics_Processes(t *testing.T) {
	m := newMetrics()
	for i := range 100 {
		for _, name := range []string{"driver.exe", "", fmt.Sprintf("throwaway-%d.exe", i)} {
			m.ConnectionOpened(name)
		}
	}
	for i := range 90 {
		m.ConnectionClosed(fmt.Sprintf("throwaway-%d.exe", i))
	}
	var got []string
	for _, line := range scrape(t, m) {
		if rest, found := strings.CutPrefix(line, `csi_proxy_connections{process=`); found && !strings.HasSuffix(line, " 0") {
			got = append(got, rest)
		}
	}
	if want := []string{`"driver.exe"} 100`, `"other"} 10`, `"unknown"} 100`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestMetrics_StaleMounts: the gauge is of the last look, the counter of all.
func TestMetrics_StaleMounts(t *testing.T) {
	m := newMetrics()
	m.StaleMounts([]node.StaleMount{
		{Driver: "disk.csi", State: node.Kept}, {Driver: "disk.csi", State: node.Kept}, {Driver: "smb.csi", State: node.Removable},
	})
	m.StaleMounts([]node.StaleMount{{Driver: "disk.csi", State: node.Kept}, {Driver: "disk.csi", State: node.Removed}})
	m.StaleMounts([]node.StaleMount{{Driver: "disk.csi", State: node.Kept}, {Driver: "disk.csi", State: node.Removed}})
	m.Storage(brokenNode())
	var got []string
	for _, line := range scrape(t, m) {
		if strings.HasPrefix(line, "csi_proxy_stale_mounts") {
			got = append(got, line)
		}
	}
	want := []string{`csi_proxy_stale_mounts{driver="disk.csi",state="kept"} 1`, `csi_proxy_stale_mounts_removed_total{driver="disk.csi"} 2`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestMetrics_Count(t *testing.T) {
	m := newMetrics()
	call(m, "/v1beta1.Disk/DiskStats", codes.OK, 300*time.Microsecond)
	call(m, "/v1beta1.Disk/DiskStats", codes.NotFound, 2*time.Minute)
	call(m, "/grpc.health.v1.Health/Check", codes.OK, time.Microsecond)
	m.RequestStarted("/v1.Volume/FormatVolume")
	m.LimitReached("", "too many watches")
	for _, err := range []error{
		nil, winerr.NotReady, fmt.Errorf("wrapped: %w", winerr.IODevice), winerr.FVELocked,
		context.DeadlineExceeded, context.Canceled, fmt.Errorf("%w: stuck", winerr.Unavailable), errors.New("?"),
	} {
		m.WindowsCall("ask a disk", 20*time.Millisecond, err)
	}
	lines := scrape(t, m)
	for _, want := range []string{
		`csi_proxy_requests_total{code="OK",group="disk",method="DiskStats",version="v1beta1"} 1`,
		`csi_proxy_requests_total{code="NotFound",group="disk",method="DiskStats",version="v1beta1"} 1`,
		`csi_proxy_requests_total{code="OK",group="health",method="Check",version="v1"} 1`,
		`csi_proxy_requests_in_flight{group="disk",method="DiskStats",version="v1beta1"} 0`,
		`csi_proxy_requests_in_flight{group="volume",method="FormatVolume",version="v1"} 1`,
		`csi_proxy_request_duration_seconds_bucket{group="disk",method="DiskStats",version="v1beta1",le="0.00025"} 0`,
		`csi_proxy_request_duration_seconds_bucket{group="disk",method="DiskStats",version="v1beta1",le="0.0005"} 1`,
		`csi_proxy_request_duration_seconds_bucket{group="disk",method="DiskStats",version="v1beta1",le="120"} 2`,
		`csi_proxy_request_duration_seconds_count{group="disk",method="DiskStats",version="v1beta1"} 2`,
		`csi_proxy_windows_calls_total{code="0",kind="ask a disk"} 1`,
		`csi_proxy_windows_calls_total{code="21",kind="ask a disk"} 1`,
		`csi_proxy_windows_calls_total{code="1117",kind="ask a disk"} 1`,
		`csi_proxy_windows_calls_total{code="0x80310000",kind="ask a disk"} 1`,
		`csi_proxy_windows_calls_total{code="abandoned",kind="ask a disk"} 2`,
		`csi_proxy_windows_calls_total{code="refused",kind="ask a disk"} 1`,
		`csi_proxy_windows_calls_total{code="other",kind="ask a disk"} 1`,
		`csi_proxy_windows_call_duration_seconds_count{kind="ask a disk"} 8`,
		`csi_proxy_windows_calls_abandoned_total 3`,
		`csi_proxy_windows_calls_stuck 2`,
		`csi_proxy_limits_reached_total{process="unknown",reason="too many watches"} 1`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("there is no line %s", want)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(lines, "\n"))
	}
}

// TestMetrics_OriginalNames: the lines are those that go-grpc-prometheus writes, which the original's
// dashboards and its own test read.
func TestMetrics_OriginalNames(t *testing.T) {
	m := newMetrics()
	call(m, "/v1beta1.Disk/DiskStats", codes.OK, 300*time.Microsecond)
	call(m, "/v1beta1.Disk/DiskStats", codes.OK, 7*time.Millisecond)
	call(m, "/v1beta1.Disk/DiskStats", codes.NotFound, 2*time.Minute)
	call(m, "/v1beta1.Disk/DiskStats", codes.Code(99), 0)
	m.RequestStarted("/v1.Volume/FormatVolume")
	var got []string
	for _, line := range scrape(t, m) {
		if strings.HasPrefix(line, "grpc_server_") {
			got = append(got, line)
		}
	}
	const stats = `grpc_method="DiskStats",grpc_service="v1beta1.Disk",grpc_type="unary"`
	const format = `grpc_method="FormatVolume",grpc_service="v1.Volume",grpc_type="unary"`
	for _, want := range []string{
		`grpc_server_started_total{` + stats + `} 4`,
		`grpc_server_started_total{` + format + `} 1`,
		`grpc_server_handled_total{grpc_code="OK",` + stats + `} 2`,
		`grpc_server_handled_total{grpc_code="NotFound",` + stats + `} 1`,
		`grpc_server_handled_total{grpc_code="Unknown",` + stats + `} 1`,
		`grpc_server_handling_seconds_bucket{` + stats + `,le="0.005"} 2`,
		`grpc_server_handling_seconds_bucket{` + stats + `,le="0.01"} 3`,
		`grpc_server_handling_seconds_bucket{` + stats + `,le="10"} 3`,
		`grpc_server_handling_seconds_bucket{` + stats + `,le="+Inf"} 4`,
		`grpc_server_handling_seconds_sum{` + stats + `} 120.0073`,
		`grpc_server_handling_seconds_count{` + stats + `} 4`,
		`grpc_server_handling_seconds_count{` + format + `} 0`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no line %s", want)
		}
	}
	const buckets = 11 + 1 // prometheus.DefBuckets and +Inf
	if want := 2 + 3 + 2*(buckets+2); len(got) != want {
		t.Errorf("%d lines, want %d:\n%s", len(got), want, strings.Join(got, "\n"))
	}
}

func TestHandler(t *testing.T) {
	m := newMetrics()
	type answer struct {
		method, path string
		code         int
		body         string
	}
	check := func(answers ...answer) {
		t.Helper()
		for _, want := range answers {
			if code, body := get(t, m, want.method, want.path); code != want.code || want.body != "" && body != want.body {
				t.Errorf("%s %s answers %d %q, want %d %q", want.method, want.path, code, body, want.code, want.body)
			}
		}
	}
	check(
		answer{"GET", "/healthz", 200, "ok\n"},
		answer{"HEAD", "/healthz", 200, ""},
		answer{"GET", "/readyz", 503, "not all endpoints listen\n"},
		answer{"POST", "/healthz", 405, ""},
		answer{"GET", "/", 404, ""},
		answer{"GET", "/debug/pprof/", 404, ""},
		answer{"GET", "/metrics/x", 404, ""},
	)
	m.Ready()
	check(answer{"GET", "/readyz", 200, "ok\n"})
}

func TestRun(t *testing.T) {
	m := newMetrics()
	ctx, cancel := context.WithCancel(t.Context())
	done := errors.New("work has ended")
	err := m.Run(ctx, "127.0.0.1:0", func(context.Context) error { return done })
	if !errors.Is(err, done) {
		t.Errorf("Run returned %v, want what work returned", err)
	}

	// A port that is known to be free a moment ago, since Run does not report.
	probe := httptest.NewServer(http.NotFoundHandler())
	address := probe.Listener.Addr().String()
	if err := m.Run(ctx, address, func(context.Context) error { t.Error("work has begun"); return nil }); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("on an address that is taken Run returned %v", err)
	}
	probe.Close()
	status := func(path string) int {
		response, err := http.Get("http://" + address + path) //nolint:noctx // a test
		if err != nil {
			t.Error(err)
			return 0
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode
	}
	err = m.Run(ctx, address, func(ctx context.Context) error {
		m.Ready()
		if got := status("/readyz"); got != 200 {
			t.Errorf("/readyz answers %d while it works", got)
		}
		cancel()
		<-ctx.Done()
		for began := time.Now(); status("/readyz") == 200; { // it takes a goroutine to notice
			if time.Since(began) > 10*time.Second {
				t.Error("/readyz answers 200 while it stops")
				break
			}
		}
		if got := status("/healthz"); got != 200 {
			t.Errorf("/healthz answers %d while it stops", got)
		}
		return nil
	})
	require.NoError(t, err)
	if _, err := http.Get("http://" + address + "/healthz"); err == nil { //nolint:noctx,bodyclose // a test
		t.Error("it is served after Run")
	}
}

// TestRun_Warns: the log says if others can read the metrics.
func TestRun_Warns(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:0": false, "localhost:0": false, "0.0.0.0:0": true, ":0": true} {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		err := newMetrics().Run(klog.NewContext(t.Context(), logger), address, func(context.Context) error { return nil })
		log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		if got := strings.Contains(log, "no password"); got != want || err != nil {
			t.Errorf("%s: it warns: %v, %v, want %v\n%s", address, got, err, want, log)
		}
	}
}
