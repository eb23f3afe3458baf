package metrics

import (
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

// connections are the metrics of connections, by the names of processes.
type connections struct {
	open   *prometheus.GaugeVec
	limits *prometheus.CounterVec

	mu        sync.Mutex
	processes map[string]*clientProcess // with connections, or with a series of their own
	series    int                       // of processes
	turn      int                       // counts what was left
	named     map[string]struct{}       // names with a series in limits: the first ones
}

// clientProcess is the connections of processes with the same name.
type clientProcess struct {
	connections int
	named       bool // it has a series of its own
	left        int  // the turn in which the last connection was closed
}

func newConnections() connections {
	return connections{
		open:      gaugeVec("connections", "Open connections of clients, by the name of their process.", "process"),
		limits:    counterVec("limits_reached_total", "Connections, requests and watches that were refused or ended because of a limit.", "process", "reason"),
		processes: map[string]*clientProcess{},
		named:     map[string]struct{}{},
	}
}

// ConnectionOpened implements server.ConnectionObserver.
func (m *Metrics) ConnectionOpened(process string) { m.connections.add(process) }

// ConnectionClosed implements server.ConnectionObserver.
func (m *Metrics) ConnectionClosed(process string) { m.connections.remove(process) }

// LimitReached implements server.ConnectionObserver.
func (m *Metrics) LimitReached(process, reason string) { m.connections.reach(process, reason) }

// shared returns the series that a process never has for itself: its name is not known, or it is that of
// such a series.
func shared(name string) (series string, found bool) {
	switch name {
	case "", unknownProcess:
		return unknownProcess, true
	case otherProcess:
		return otherProcess, true
	default:
		return "", false
	}
}

func (c *connections) add(name string) {
	if series, found := shared(name); found {
		c.open.WithLabelValues(series).Inc()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.processes[name]
	if p == nil {
		p = &clientProcess{}
		c.processes[name] = p
	}
	p.connections++
	if !p.named && (c.series < maxProcesses || c.makeRoom()) {
		p.named = true
		c.series++
	}
	c.show(name, p)
	if !p.named {
		c.open.WithLabelValues(otherProcess).Inc()
	}
}

func (c *connections) remove(name string) {
	if series, found := shared(name); found {
		c.open.WithLabelValues(series).Dec()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.processes[name]
	p.connections--
	if !p.named {
		c.open.WithLabelValues(otherProcess).Dec()
		if p.connections == 0 {
			delete(c.processes, name)
		}
		return
	}
	c.show(name, p)
	if p.connections > 0 {
		return
	}
	c.turn++
	p.left = c.turn
	if len(c.processes) > c.series { // others have no series
		c.makeRoom()
		c.promote()
	}
}

// show sets the series of a process, if it has one.
func (c *connections) show(name string, p *clientProcess) {
	if p.named {
		c.open.WithLabelValues(name).Set(float64(p.connections))
	}
}

// makeRoom takes the series of the process that has been without connections for longest. It reports false if
// all have some.
func (c *connections) makeRoom() bool {
	oldest := ""
	for name, p := range c.processes {
		if p.named && p.connections == 0 && (oldest == "" || p.left < c.processes[oldest].left) {
			oldest = name
		}
	}
	if oldest == "" {
		return false
	}
	delete(c.processes, oldest)
	c.series--
	c.open.DeleteLabelValues(oldest)
	return true
}

// promote gives a series to the process with most connections among those that have none.
func (c *connections) promote() {
	most := ""
	for name, p := range c.processes {
		if !p.named && (most == "" || p.connections > c.processes[most].connections) {
			most = name
		}
	}
	p := c.processes[most]
	p.named = true
	c.series++
	c.open.WithLabelValues(otherProcess).Sub(float64(p.connections))
	c.show(most, p)
}

// reach counts that a limit was reached. Names keep their series, because a counter must not go back.
func (c *connections) reach(name, reason string) {
	c.limits.WithLabelValues(c.tell(name), reason).Inc()
}

// tell returns the label for a name in limits.
func (c *connections) tell(name string) string {
	if series, found := shared(name); found {
		return series
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.named[name]; !known {
		if len(c.named) >= maxProcesses {
			return otherProcess
		}
		c.named[name] = struct{}{}
	}
	return name
}
