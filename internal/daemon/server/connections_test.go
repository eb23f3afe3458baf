package server

import "testing"

// TestConnections_Fair: a process with very many connections loses its own, however much they
// were worth, and not an idle one of another process.
func TestConnections_Fair(t *testing.T) {
	c := &connections{open: map[*connection]struct{}{}}
	add := func(pid int, heard int64) *connection {
		conn := &connection{pid: pid}
		conn.heard.Store(heard)
		c.open[conn] = struct{}{}
		return conn
	}
	add(1, 10)
	add(2, 20)
	first := add(3, 30)
	for i := range int64(5) {
		add(3, 40+i).useful.Store(true)
	}
	first.useful.Store(true)
	if got := c.longestSilent(); got != first {
		t.Errorf("a connection of process %d, heard of at %d, has to go", got.pid, got.heard.Load())
	}
}
