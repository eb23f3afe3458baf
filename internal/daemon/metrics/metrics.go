// Package metrics shows what a program does to those who watch over it: metrics in the format
// of Prometheus, and its health, over HTTP.
//
// Only the programs import it, so that the library and the emulated node in a driver's tests
// do without Prometheus. Names are promised to operators: testdata/names.txt has all of them,
// docs/operations.md explains them.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc/codes"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/queue"
)

// namespace begins every name that is ours.
const namespace = "csi_proxy"

// buckets reach from a look at a file to formatting a volume, in seconds.
var buckets = []float64{
	100e-6, 250e-6, 500e-6,
	1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
	1, 2.5, 5, 10, 30, 60, 120, 300,
}

// Config says where the values come from that nobody reports. Functions are called when the
// metrics are asked for. Those that are nil have no metric.
type Config struct {
	Version string
	// Abandoned is how many calls to Windows their callers have given up on.
	Abandoned func() int64
	// Stuck is how many of them have not come back.
	Stuck func() int
	// SMBMappings is how many SMB shares this machine has mapped for all its users.
	SMBMappings func(context.Context) (int, error)
}

// Metrics counts. Its methods may be called concurrently.
type Metrics struct {
	registry *prometheus.Registry
	ready    atomic.Bool

	requests        *prometheus.CounterVec
	requestDuration *prometheus.HistogramVec
	inFlight        *prometheus.GaugeVec
	methods         sync.Map // of *method, by the full name

	windowsCalls        *prometheus.CounterVec
	windowsCallDuration *prometheus.HistogramVec
}

// New returns metrics that have counted nothing yet.
func New(cfg Config) *Metrics {
	ofMethod := []string{"group", "version", "method"}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "requests_total",
			Help: "Requests that were answered, by the gRPC code of the answer.",
		}, append(ofMethod, "code")),
		requestDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "request_duration_seconds",
			Help: "Time from a decoded request to its answer.", Buckets: buckets,
		}, ofMethod),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "requests_in_flight",
			Help: "Requests that have not been answered yet.",
		}, ofMethod),
		windowsCalls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "windows_calls_total",
			Help: "Calls to Windows that can hang, by kind and by the error code of Windows; 0 is success.",
		}, []string{"kind", "code"}),
		windowsCallDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "windows_call_duration_seconds",
			Help: "Time callers have waited for such a call.", Buckets: buckets,
		}, []string{"kind"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info",
		Help:        "Always 1; the labels say which build this is.",
		ConstLabels: prometheus.Labels{"version": cfg.Version, "go_version": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.requests, m.requestDuration, m.inFlight, m.windowsCalls, m.windowsCallDuration, build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.registerSources(cfg)
	return m
}

func (m *Metrics) registerSources(cfg Config) {
	if cfg.Abandoned != nil {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: namespace, Name: "windows_calls_abandoned_total",
			Help: "Calls to Windows that their callers have given up on.",
		}, func() float64 { return float64(cfg.Abandoned()) }))
	}
	if cfg.Stuck != nil {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: "windows_calls_stuck",
			Help: "Abandoned calls that have not come back; each keeps a thread.",
		}, func() float64 { return float64(cfg.Stuck()) }))
	}
	if cfg.SMBMappings != nil {
		m.registry.MustRegister(&mappings{count: cfg.SMBMappings})
	}
}

// method is the series of one method of the API.
type method struct {
	inFlight prometheus.Gauge
	duration prometheus.Observer
	requests *prometheus.CounterVec // by code
}

// of returns the series of a method such as /v1beta1.Disk/DiskStats. There are as many as the
// API has methods: gRPC answers unknown ones itself.
func (m *Metrics) of(fullName string) *method {
	if known, ok := m.methods.Load(fullName); ok {
		return known.(*method)
	}
	service, name, _ := strings.Cut(strings.TrimPrefix(fullName, "/"), "/")
	version, group := "", service
	if dot := strings.LastIndexByte(service, '.'); dot >= 0 {
		version, group = service[:dot], service[dot+1:]
		version = version[strings.LastIndexByte(version, '.')+1:] // of grpc.health.v1.Health
	}
	labels := prometheus.Labels{"group": strings.ToLower(group), "version": version, "method": name}
	series, _ := m.methods.LoadOrStore(fullName, &method{
		inFlight: m.inFlight.With(labels),
		duration: m.requestDuration.With(labels),
		requests: m.requests.MustCurryWith(labels),
	})
	return series.(*method)
}

// RequestStarted is of server.Observer.
func (m *Metrics) RequestStarted(fullName string) { m.of(fullName).inFlight.Inc() }

// RequestDone is of server.Observer.
func (m *Metrics) RequestDone(fullName string, code codes.Code, elapsed time.Duration) {
	series := m.of(fullName)
	series.inFlight.Dec()
	series.duration.Observe(elapsed.Seconds())
	series.requests.WithLabelValues(code.String()).Inc()
}

// WindowsCall counts a call to Windows, see local.Observer.
func (m *Metrics) WindowsCall(kind string, elapsed time.Duration, err error) {
	m.windowsCallDuration.WithLabelValues(kind).Observe(elapsed.Seconds())
	m.windowsCalls.WithLabelValues(kind, windowsCode(err)).Inc()
}

// windowsCode is an error as a label: the number, or a word if Windows has not answered.
func windowsCode(err error) string {
	code := winerr.CodeOf(err)
	switch {
	case err == nil:
		return "0"
	case code >= 0x80000000: // an HRESULT, which people write so
		return fmt.Sprintf("%#08x", uint32(code))
	case code != 0:
		return strconv.FormatUint(uint64(code), 10)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "abandoned"
	case errors.Is(err, winerr.Unavailable):
		return "refused" // earlier calls are stuck
	default:
		return "other"
	}
}

// Ready says that every endpoint listens.
func (m *Metrics) Ready() { m.ready.Store(true) }

// mappings is the metric of the SMB mappings. It asks WMI, which may fail or hang; then it is
// missing from the answer, rather than wrong.
//
// Those who scrape share one question, and leave it alone when they give up. Given up itself,
// each would count as a call that is stuck, and a few of those keep drivers from their shares.
type mappings struct {
	count func(context.Context) (int, error)

	mu      sync.Mutex
	current *mappingsQuestion
}

type mappingsQuestion struct {
	*queue.Work
	n int // valid when the work is done
}

// mappingsTimeout is shorter than the ten seconds after which Prometheus gives up.
const mappingsTimeout = 5 * time.Second

var mappingsDesc = prometheus.NewDesc(namespace+"_smb_mappings", "SMB shares that this machine has mapped for all its users.", nil, nil)

// Describe is of prometheus.Collector.
func (m *mappings) Describe(descs chan<- *prometheus.Desc) { descs <- mappingsDesc }

// Collect is of prometheus.Collector, which has no context.
func (m *mappings) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), mappingsTimeout) //nolint:forbidigo // see above
	defer cancel()
	question := m.ask(ctx)
	if err := question.Wait(ctx); err != nil {
		metrics <- prometheus.NewInvalidMetric(mappingsDesc, err)
		return
	}
	metrics <- prometheus.MustNewConstMetric(mappingsDesc, prometheus.GaugeValue, float64(question.n))
}

// ask returns the question that is open, or opens one.
func (m *mappings) ask(ctx context.Context) *mappingsQuestion {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current != nil {
		select {
		case <-m.current.Done():
		default:
			return m.current
		}
	}
	question := &mappingsQuestion{}
	question.Work = queue.Start(ctx, func(ctx context.Context) (err error) {
		question.n, err = m.count(ctx)
		return err
	})
	m.current = question
	return question
}
