package server

import (
	"cmp"
	"container/list"
	"sync"
)

const (
	// fewConnections to an endpoint make no process a hoarder: up to this number, processes count as equal.
	fewConnections = 16
	// strangersShare is the part of all places, and of all memory, that strangers can take before they go
	// first: one in four.
	strangersShare = 4
	// littleShare is the part of all memory that makes no process a hoarder.
	littleShare = 64
)

// places are the connections of one endpoint. If there is no place for another one, they decide who goes.
//
// A stranger is a connection that has never had an answer and waits for none: it is silent, idle, sends no
// whole request, or only watches. If strangers have more than their share, the oldest one goes. So it does
// not help to use many processes. Otherwise a client goes that waits for no answer: the one that was silent
// for longest. In both cases a process with very many connections goes before others.
type places struct {
	most int

	mu        sync.Mutex
	open      map[*connection]struct{}
	tenants   map[int]*tenant // by process
	hoarders  map[*tenant]struct{}
	strangers list.List // of *connection, the oldest first
}

// tenant is a process with connections to an endpoint.
type tenant struct {
	connections int
	strangers   list.List
}

func newPlaces(most int) *places {
	return &places{most: most, open: map[*connection]struct{}{}, tenants: map[int]*tenant{}, hoarders: map[*tenant]struct{}{}}
}

// enter gives a connection a place. It returns the one that loses its place, which may be itself.
func (p *places) enter(conn *connection) (loser *connection, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) >= p.most {
		if loser = p.loser(conn.pid); loser == nil {
			return conn, reasonRefused
		}
		reason = reasonDisplaced
		if !loser.greeted() {
			reason = reasonSilent
		}
		p.remove(loser)
	}
	t := p.tenants[conn.pid]
	if t == nil {
		t = &tenant{}
		if conn.pid != 0 { // unknown processes may all be different
			p.tenants[conn.pid] = t
		}
	}
	if t.connections++; t.connections > fewConnections {
		p.hoarders[t] = struct{}{}
	}
	conn.tenant = t
	p.open[conn] = struct{}{}
	p.arrange(conn)
	return loser, reason
}

// loser returns the connection that makes room for one of a process, or nil.
func (p *places) loser(pid int) *connection {
	if p.strangers.Len() > p.most/strangersShare {
		return p.oldestStranger()
	}
	client := p.leastClient()
	switch {
	case client != nil && client.working.Load() == 0:
		return client
	case p.strangers.Len() > 0:
		return p.oldestStranger()
	case client != nil && p.connections(pid)+1 < client.tenant.connections:
		return client
	default:
		return nil
	}
}

// connections returns how many a process has.
func (p *places) connections(pid int) int {
	if t := p.tenants[pid]; t != nil {
		return t.connections
	}
	return 0
}

// oldestStranger returns the oldest one of the hoarder with the most connections, or of all.
func (p *places) oldestStranger() *connection {
	var hoarder *tenant
	for t := range p.hoarders {
		if t.strangers.Len() > 0 && (hoarder == nil || t.connections > hoarder.connections) {
			hoarder = t
		}
	}
	if hoarder != nil {
		return hoarder.strangers.Front().Value.(*connection)
	}
	return p.strangers.Front().Value.(*connection)
}

// leastClient returns the client that goes before all others: one that waits for no answer, of the process
// with the most connections, silent for longest.
func (p *places) leastClient() (least *connection) {
	for conn := range p.open {
		if conn.asStranger == nil && (least == nil || conn.before(least)) {
			least = conn
		}
	}
	return least
}

// before orders clients.
func (c *connection) before(other *connection) bool {
	return cmp.Or(
		cmp.Compare(min(1, c.working.Load()), min(1, other.working.Load())),
		cmp.Compare(max(fewConnections, other.tenant.connections), max(fewConnections, c.tenant.connections)),
		cmp.Compare(c.heard.Load(), other.heard.Load()),
	) < 0
}

// settle is called when a connection has become a stranger or a client.
func (p *places) settle(conn *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, open := p.open[conn]; open {
		p.arrange(conn)
	}
}

// arrange puts a connection among the strangers, or takes it out.
func (p *places) arrange(conn *connection) {
	switch stranger := conn.stranger.Load(); {
	case stranger && conn.asStranger == nil:
		conn.asStranger, conn.asItsStranger = p.strangers.PushBack(conn), conn.tenant.strangers.PushBack(conn)
	case !stranger && conn.asStranger != nil:
		p.strangers.Remove(conn.asStranger)
		conn.tenant.strangers.Remove(conn.asItsStranger)
		conn.asStranger, conn.asItsStranger = nil, nil
	}
}

// leave takes a connection's place; it can be called again.
func (p *places) leave(conn *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(conn)
}

// remove is leave for callers that hold p.mu.
func (p *places) remove(conn *connection) {
	if _, open := p.open[conn]; !open {
		return
	}
	conn.stranger.Store(false)
	p.arrange(conn)
	delete(p.open, conn)
	t := conn.tenant
	if t.connections--; t.connections <= fewConnections {
		delete(p.hoarders, t)
	}
	if t.connections == 0 {
		delete(p.tenants, conn.pid)
	}
}

// all returns the connections.
func (p *places) all() []*connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := make([]*connection, 0, len(p.open))
	for conn := range p.open {
		conns = append(conns, conn)
	}
	return conns
}
