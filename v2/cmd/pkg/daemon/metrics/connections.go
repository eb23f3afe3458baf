package metrics

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxProcesses is the number of names of processes in a metric. Their number is limited, because a process
// chooses its name.
const maxProcesses = 16

// What stands for a process that has no name, and for those whose names have no room.
const (
	unknownProcess = "unknown"
	otherProcess   = "other"
)

var openConnections = prometheus.NewDesc(namespace+"_connections", "Open connections of clients, by the name of their process.", []string{"process"}, nil)

// connections are the metrics of connections, by the names of processes.
type connections struct {
	limits *prometheus.CounterVec

	mu    sync.Mutex
	open  map[string]int      // by name; some of those that have left are here with 0
	named map[string]struct{} // names with a series in limits: the first ones
}

// ConnectionOpened implements server.ConnectionObserver.
func (m *Metrics) ConnectionOpened(process string) { m.connections.add(process, 1) }

// ConnectionClosed implements server.ConnectionObserver.
func (m *Metrics) ConnectionClosed(process string) { m.connections.add(process, -1) }

// LimitReached implements server.ConnectionObserver. Names keep their series, because a counter must not go back.
func (m *Metrics) LimitReached(process, reason string) {
	c := &m.connections
	process = cmp.Or(process, unknownProcess)
	c.mu.Lock()
	if _, known := c.named[process]; !known && process != unknownProcess {
		if len(c.named) < maxProcesses {
			c.named[process] = struct{}{}
		} else {
			process = otherProcess
		}
	}
	c.mu.Unlock()
	c.limits.WithLabelValues(process, reason).Inc()
}

func (c *connections) add(process string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[cmp.Or(process, unknownProcess)] += n
	if len(c.open) > maxProcesses {
		maps.DeleteFunc(c.open, func(_ string, n int) bool { return n == 0 })
	}
}

func (c *connections) Describe(descs chan<- *prometheus.Desc) { descs <- openConnections }

// Collect gives a series to the processes with most connections, and one to all others.
func (c *connections) Collect(metrics chan<- prometheus.Metric) {
	c.mu.Lock()
	open := maps.Clone(c.open)
	c.mu.Unlock()
	show := func(name string) {
		metrics <- prometheus.MustNewConstMetric(openConnections, prometheus.GaugeValue, float64(open[name]), name)
		delete(open, name)
	}
	show(unknownProcess)
	others := open[otherProcess]
	delete(open, otherProcess)
	names := slices.SortedFunc(maps.Keys(open), func(a, b string) int { return cmp.Or(open[b]-open[a], cmp.Compare(a, b)) })
	for _, name := range names[:min(len(names), maxProcesses)] {
		show(name)
	}
	for _, n := range open {
		others += n
	}
	open[otherProcess] = others
	show(otherProcess)
}
