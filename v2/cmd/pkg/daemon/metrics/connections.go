package metrics

import (
	"cmp"
	"sync"
)

// maxProcesses is the number of names of processes in metrics. It is limited, because a process chooses its name.
const maxProcesses = 16

// processes are the names that have series: the first ones.
type processes struct {
	mu    sync.Mutex
	named map[string]struct{}
}

// label returns the name of a process, or what stands for one that has no name or no room.
func (p *processes) label(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	name = cmp.Or(name, unknown)
	if _, known := p.named[name]; known || name == unknown {
		return name
	}
	if len(p.named) >= maxProcesses {
		return other
	}
	if p.named == nil {
		p.named = map[string]struct{}{}
	}
	p.named[name] = struct{}{}
	return name
}

// ConnectionOpened implements server.ConnectionObserver.
func (m *Metrics) ConnectionOpened(process string) {
	m.connections.WithLabelValues(m.processes.label(process)).Inc()
}

// ConnectionClosed implements server.ConnectionObserver.
func (m *Metrics) ConnectionClosed(process string) {
	m.connections.WithLabelValues(m.processes.label(process)).Dec()
}

// LimitReached implements server.ConnectionObserver.
func (m *Metrics) LimitReached(process, reason string) {
	m.limits.WithLabelValues(m.processes.label(process), reason).Inc()
}
