// Package metrics serves metrics for Prometheus and the health of a program over HTTP.
//
// Only the programs import it, so that the library and the emulated node in a driver's tests do not
// depend on Prometheus. Operators rely on the names: testdata/names.txt lists them,
// docs/daemon.md lists them.
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

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

const namespace = "csi_proxy"

// buckets range from looking up a file to formatting a volume, in seconds.
var buckets = []float64{
	100e-6, 250e-6, 500e-6,
	1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
	1, 2.5, 5, 10, 30, 60, 120, 300,
}

// Config has the sources of values that are read at a scrape. A nil function has no metric.
type Config struct {
	Version string
	// Abandoned is the number of calls to Windows whose callers gave up.
	Abandoned func() int64
	// Stuck is the number of abandoned calls that have not returned.
	Stuck func() int
	// Storage adds the metrics of the node's storage. Without it, the methods Storage and StorageWanted
	// have no effect.
	Storage bool
}

// Metrics collects the metrics. Its methods may be called concurrently.
type Metrics struct {
	registry *prometheus.Registry
	ready    atomic.Bool

	requests        *prometheus.CounterVec
	requestDuration *prometheus.HistogramVec
	inFlight        *prometheus.GaugeVec
	methods         sync.Map // of *method, by the full name

	connections *prometheus.GaugeVec
	limits      *prometheus.CounterVec
	processes   processes

	windowsCalls        *prometheus.CounterVec
	windowsCallDuration *prometheus.HistogramVec

	staleMu      sync.Mutex
	staleMounts  *prometheus.GaugeVec
	staleRemoved *prometheus.CounterVec
	volumeLosses prometheus.Counter

	storage storage
}

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func gaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogramVec(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// New returns metrics with all counters at zero.
func New(cfg Config) *Metrics {
	ofMethod := []string{"group", "version", "method"}
	m := &Metrics{
		registry:            prometheus.NewRegistry(),
		requests:            counterVec("requests_total", "Answered requests, by the gRPC code of the answer.", append(ofMethod, "code")...),
		requestDuration:     histogramVec("request_duration_seconds", "Time from a decoded request to its answer.", ofMethod...),
		inFlight:            gaugeVec("requests_in_flight", "Requests in progress.", ofMethod...),
		connections:         gaugeVec("connections", "Open connections of clients, by the name of their process; after 16 names, other.", "process"),
		limits:              counterVec("limits_reached_total", "Connections, requests and watches that were refused or ended because of a limit.", "process", "reason"),
		storage:             storage{wanted: make(chan struct{}, 1), now: time.Now, at: time.Now()},
		windowsCalls:        counterVec("windows_calls_total", "Calls to Windows that can hang, by kind and by the error code of Windows; 0 is success.", "kind", "code"),
		windowsCallDuration: histogramVec("windows_call_duration_seconds", "Time that callers waited for a call to Windows that can hang.", "kind"),
		staleMounts:         gaugeVec("stale_mounts", "Links at which kubelet staged a volume or share that cannot be reached, at the last look, by driver and state: kept or removable.", "driver", "state"),
		staleRemoved:        counterVec("stale_mounts_removed_total", "Such links that were removed.", "driver"),
		volumeLosses: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "volumes_unmounted_with_loss_total",
			Help: "Volumes that were unmounted although their disk failed to take what was cached.",
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info",
		Help:        "Always 1; the labels say which build this is.",
		ConstLabels: prometheus.Labels{"version": cfg.Version, "go_version": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.requests, m.requestDuration, m.inFlight, m.connections, m.limits, original{m}, m.windowsCalls, m.windowsCallDuration, m.staleMounts, m.staleRemoved, m.volumeLosses, build,
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
			Help: "Calls to Windows whose callers gave up.",
		}, func() float64 { return float64(cfg.Abandoned()) }))
	}
	if cfg.Stuck != nil {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: "windows_calls_stuck",
			Help: "Abandoned calls to Windows that have not returned; each keeps a thread.",
		}, func() float64 { return float64(cfg.Stuck()) }))
	}
	if cfg.Storage {
		m.registry.MustRegister(&m.storage)
	}
}

type method struct {
	service, name string // as in the full name
	started       atomic.Uint64
	inFlight      prometheus.Gauge
	duration      prometheus.Histogram
	requests      *prometheus.CounterVec // by code
	// byCode are the counters of requests that exist; a code without an answer has none.
	byCode [codes.Unauthenticated + 1]atomic.Pointer[prometheus.Counter]
}

func (s *method) answered(code codes.Code) prometheus.Counter {
	if int(code) >= len(s.byCode) { // a number that gRPC does not define
		code = codes.Unknown
	}
	if known := s.byCode[code].Load(); known != nil {
		return *known
	}
	counter := s.requests.WithLabelValues(code.String())
	s.byCode[code].Store(&counter)
	return counter
}

// of returns the series of a method such as /v1beta1.Disk/DiskStats. Their number is limited: gRPC
// itself answers unknown methods.
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
		service:  service,
		name:     name,
		inFlight: m.inFlight.With(labels),
		duration: m.requestDuration.With(labels).(prometheus.Histogram), // With returns one as an Observer
		requests: m.requests.MustCurryWith(labels),
	})
	return series.(*method)
}

// RequestStarted implements server.Observer.
func (m *Metrics) RequestStarted(fullName string) {
	series := m.of(fullName)
	series.started.Add(1)
	series.inFlight.Inc()
}

// RequestDone implements server.Observer.
func (m *Metrics) RequestDone(fullName string, code codes.Code, elapsed time.Duration) {
	series := m.of(fullName)
	series.inFlight.Dec()
	series.duration.Observe(elapsed.Seconds())
	series.answered(code).Inc()
}

// StaleMounts implements daemon.StaleObserver.
func (m *Metrics) StaleMounts(found []node.StaleMount) {
	m.staleMu.Lock()
	defer m.staleMu.Unlock()
	m.staleMounts.Reset()
	for _, stale := range found {
		if stale.State == node.Removed {
			m.staleRemoved.WithLabelValues(stale.Driver).Inc()
			continue
		}
		m.staleMounts.WithLabelValues(stale.Driver, string(stale.State)).Inc()
	}
}

// VolumeLoss counts a volume that lost what was cached, see volumeapi.OnLoss.
func (m *Metrics) VolumeLoss() { m.volumeLosses.Inc() }

// WindowsCall counts a call to Windows, see bounds.Observer.
func (m *Metrics) WindowsCall(kind win.Kind, elapsed time.Duration, err error) {
	m.windowsCallDuration.WithLabelValues(string(kind)).Observe(elapsed.Seconds())
	m.windowsCalls.WithLabelValues(string(kind), windowsCode(err)).Inc()
}

// windowsCode returns an error as a label: its number, or a word if Windows did not answer.
func windowsCode(err error) string {
	code := winerr.CodeOf(err)
	switch {
	case err == nil:
		return "0"
	case code >= 0x80000000: // an HRESULT, usually written in hexadecimal
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

// Ready notes in the metrics that every endpoint listens.
func (m *Metrics) Ready() { m.ready.Store(true) }
