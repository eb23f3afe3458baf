package server

import (
	"bytes"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/klog/v2"
)

// testCrowd is a crowd with one endpoint that has room for a number of connections.
func testCrowd(t *testing.T, most int, held int64) *connections {
	t.Helper()
	cfg := Config{MaxConnections: most, MaxHeldBytes: held, ArrivalTimeout: time.Hour, ConnectionTimeout: time.Hour}
	crowd := newCrowd(klog.Background(), cfg)
	t.Cleanup(crowd.stop)
	return track(nil, "test", cfg, crowd)
}

// join adds a connection of a process, and returns the one that has to go.
func (c *connections) join(t *testing.T, pid int, heard int64) (conn, surplus *connection, reason string) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	conn = &connection{Conn: ours, owner: c, pid: pid, preface: len(http2.ClientPreface)}
	conn.heard.Store(heard)
	surplus, reason = c.crowd.enter(conn)
	if surplus != nil {
		c.crowd.leave(surplus)
	}
	return conn, surplus, reason
}

// TestCrowd_Fair: a process with very many connections loses its own, however much they
// are worth, and not an idle one of another process.
func TestCrowd_Fair(t *testing.T) {
	c := testCrowd(t, 8, 1<<30)
	c.join(t, 1, 10)
	c.join(t, 2, 20)
	first, _, _ := c.join(t, 3, 30)
	first.useful.Store(true)
	for i := range int64(5) {
		conn, _, _ := c.join(t, 3, 40+i)
		conn.useful.Store(true)
	}
	if _, surplus, _ := c.join(t, 1, 99); surplus != first {
		t.Errorf("a connection of process %d, heard of at %d, has to go", surplus.pid, surplus.heard.Load())
	}
}

// TestCrowd_Hoarder: a process whose connections are all at work loses one to a process with fewer,
// and gets none itself.
func TestCrowd_Hoarder(t *testing.T) {
	c := testCrowd(t, 4, 1<<30)
	for i := range int64(4) {
		conn, _, _ := c.join(t, 1, i)
		conn.calls.Store(1)
	}
	if conn, surplus, reason := c.join(t, 1, 9); surplus != conn || reason != reasonRefused {
		t.Errorf("its own connection: %v goes, %q", surplus, reason)
	}
	for i, want := range []int{1, 1} { // until both have as many
		conn, surplus, reason := c.join(t, 2, 10)
		conn.calls.Store(1)
		if surplus == nil || surplus.pid != want || reason != reasonDisplaced {
			t.Errorf("connection %d of another process: %v goes, %q", i, surplus, reason)
		}
	}
	if conn, surplus, reason := c.join(t, 2, 11); surplus != conn || reason != reasonRefused {
		t.Errorf("one more than the first: %v goes, %q", surplus, reason)
	}
}

// TestCrowd_Held: if clients make the server hold too much, the process that holds most loses its most
// expensive connections, and only as many as needed.
func TestCrowd_Held(t *testing.T) {
	c := testCrowd(t, 100, 1<<20)
	victim, _, _ := c.join(t, 1, 1)
	victim.charge(250 << 10)
	var greedy []*connection
	for i := range int64(8) {
		conn, _, _ := c.join(t, 2, i)
		conn.charge(i * 20 << 10)
		greedy = append(greedy, conn)
	}
	greedy[0].charge(300 << 10)
	if victim.ended.Load() || !greedy[0].ended.Load() || greedy[1].ended.Load() || greedy[7].ended.Load() {
		t.Error("not the most expensive connection of the greediest process had to go")
	}
	if held := c.crowd.total.Load(); held > 1<<20 {
		t.Errorf("clients still hold %d bytes", held)
	}
	for conn := range c.crowd.open {
		c.crowd.leave(conn)
	}
	if held := c.crowd.total.Load(); held != 0 {
		t.Errorf("without clients, %d bytes are held", held)
	}
}

// TestConnection_Observe: however the bytes of a request come, the connection knows when it has
// arrived, and forgets it when it is over.
func TestConnection_Observe(t *testing.T) {
	var sent bytes.Buffer
	framer := http2.NewFramer(&sent, nil)
	framer.AllowIllegalWrites = true
	mark := []int{}
	step := func(write func() error) {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		mark = append(mark, sent.Len())
	}
	sent.WriteString(http2.ClientPreface)
	step(func() error { return framer.WriteSettings() })
	step(func() error { return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true}) })
	step(func() error { return framer.WriteData(1, false, make([]byte, 300)) })
	step(func() error { return framer.WriteData(1, true, make([]byte, 20)) })
	step(func() error {
		return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, EndStream: true, EndHeaders: true})
	})
	step(func() error { return framer.WriteRSTStream(3, http2.ErrCodeCancel) })
	want := []struct{ streams, arriving int }{{0, 0}, {1, 1}, {1, 1}, {1, 0}, {2, 0}, {1, 0}}
	for _, size := range []int{1, 2, 7, 100, 1 << 20} {
		conn, _, _ := testCrowd(t, 1, 1<<30).join(t, 1, 1)
		at := 0
		for i, end := range mark {
			for at < end {
				part := sent.Bytes()[at:min(at+size, end)]
				if problem := conn.observe(part, 1); problem != "" {
					t.Fatal(problem)
				}
				at += len(part)
			}
			if len(conn.streams) != want[i].streams || conn.arriving != want[i].arriving {
				t.Errorf("parts of %d, frame %d: %d requests, %d arriving, want %v", size, i, len(conn.streams), conn.arriving, want[i])
			}
		}
		if conn.arrivingBytes != 0 || conn.cost.Load() <= silentCost+streamCost {
			t.Errorf("parts of %d: %d bytes arrive, %d are held", size, conn.arrivingBytes, conn.cost.Load())
		}
		conn.finish(1)
		if conn.spent != 0 {
			t.Errorf("parts of %d: %d bytes are held without a request", size, conn.spent)
		}
	}
}
