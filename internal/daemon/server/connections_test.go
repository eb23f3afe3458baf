package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
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
func (c *connections) join(t *testing.T, pid int, heard int64) (conn, loser *connection, reason string) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	conn = newConnection(ours, c, pid, time.Unix(0, heard))
	loser, reason = conn.enter()
	if loser != nil {
		loser.end(reason)
	}
	return conn, loser, reason
}

// call begins a call of a connection, and answers it if asked to.
func (c *connection) call(t *testing.T, answer bool) {
	t.Helper()
	before := c.lock()
	c.lastStream += 2
	c.streams = append(c.streams, stream{id: c.lastStream})
	c.arriving++
	c.arrive(&c.streams[len(c.streams)-1])
	if answer {
		c.out.header = [frameHeader]byte{3: byte(http2.FrameHeaders), 4: byte(http2.FlagHeadersEndStream), 8: byte(c.lastStream)}
		c.answer()
	}
	c.unlock(before)
}

// TestPlaces_Strangers: connections that never had an answer go first, the oldest first, however many
// processes have them, and even if a client has more connections than any of them.
func TestPlaces_Strangers(t *testing.T) {
	c := testCrowd(t, 40, 1<<30)
	var clients []*connection
	for i := range int64(8) {
		conn, _, _ := c.join(t, 1, i)
		conn.call(t, i < 4) // some wait for their first answer
		clients = append(clients, conn)
	}
	strangers := map[*connection]bool{}
	for i := range 200 {
		conn, loser, reason := c.join(t, 100+i, int64(100+i))
		strangers[conn] = true
		if i < 32 {
			if loser != nil {
				t.Fatalf("connection %d goes, and there is room", loser.pid)
			}
			continue
		}
		if want := 100 + i - 32; loser == nil || loser.pid != want || reason != reasonSilent {
			t.Fatalf("after %d strangers %v goes, %q, want that of process %d", i, loser, reason, want)
		}
	}
	for i, conn := range clients {
		if conn.ended.Load() != nil {
			t.Errorf("client %d has lost its connection", i)
		}
	}
	if n := len(c.places.open); n != 40 {
		t.Errorf("%d connections are open", n)
	}
}

// TestPlaces_FewStrangers: if clients have nearly all places, a newcomer takes that of a client that waits
// for no answer, and not that of another newcomer.
func TestPlaces_FewStrangers(t *testing.T) {
	c := testCrowd(t, 40, 1<<30)
	var clients []*connection
	for i := range 40 {
		conn, _, _ := c.join(t, 1+i, int64(i))
		conn.call(t, i != 0)
		clients = append(clients, conn)
	}
	for i := range 10 {
		if _, loser, reason := c.join(t, 100+i, int64(100+i)); loser != clients[1+i] || reason != reasonSilent {
			t.Errorf("newcomer %d: %v goes, %q", i, loser, reason)
		}
	}
	if clients[0].ended.Load() != nil {
		t.Error("a client that waits for an answer has lost its connection")
	}
}

// TestPlaces_Hoarder: a process with very many connections loses its own, whether it is a stranger, a
// client or waits for answers. If it waits, it gets no more itself.
func TestPlaces_Hoarder(t *testing.T) {
	for name, act := range map[string]func(*connection){
		"strangers": func(*connection) {},
		"clients":   func(c *connection) { c.call(t, true) },
		"working":   func(c *connection) { c.call(t, false) },
	} {
		c := testCrowd(t, 40, 1<<30)
		add := func(pid int, heard int64) *connection {
			conn, loser, reason := c.join(t, pid, heard)
			if loser != nil && loser.pid != 7 {
				t.Errorf("%s: a connection of process %d goes, %q", name, loser.pid, reason)
			}
			act(conn)
			return conn
		}
		for i := range 3 {
			add(1+i, int64(i)) // the oldest
		}
		for i := range 50 {
			add(7, int64(10+i))
		}
		for i := range 3 {
			add(4+i, int64(100+i))
		}
		if n := c.places.connections(7); n != 34 {
			t.Errorf("%s: process 7 has %d connections", name, n)
		}
		for i := range 6 {
			if n := c.places.connections(1 + i); n != 1 {
				t.Errorf("%s: process %d has %d connections", name, 1+i, n)
			}
		}
		conn, loser, _ := c.join(t, 7, 200)
		if refused := loser == conn; refused != (name == "working") {
			t.Errorf("%s: it has another connection: %v", name, !refused)
		}
	}
}

// TestPlaces_Bounded: the places forget who has left.
func TestPlaces_Bounded(t *testing.T) {
	c := testCrowd(t, 40, 1<<30)
	for i := range 500 {
		conn, _, _ := c.join(t, 1+i/30, int64(i))
		if i%3 == 0 {
			conn.call(t, i%2 == 0)
		}
	}
	for _, conn := range c.places.all() {
		_ = conn.Close()
	}
	c.crowd.sweep()
	p := c.places
	if len(p.open)+len(p.tenants)+len(p.hoarders)+p.strangers.Len()+len(c.crowd.processes) > 0 || c.crowd.total.Load() != 0 {
		t.Errorf("without connections there are %d, %d, %d, %d, %d, %d", len(p.open), len(p.tenants), len(p.hoarders), p.strangers.Len(), len(c.crowd.processes), c.crowd.total.Load())
	}
}

// TestCrowd_Held: if clients make the server hold too much, the process that holds most loses its most
// expensive connections, and only as many as needed.
func TestCrowd_Held(t *testing.T) {
	c := testCrowd(t, 100, 4<<20)
	victim, _, _ := c.join(t, 1, 1)
	victim.call(t, true)
	c.crowd.charge(victim, 1000<<10)
	var greedy []*connection
	for i := range int64(8) {
		conn, _, _ := c.join(t, 2, i)
		conn.call(t, true)
		c.crowd.charge(conn, i*60<<10)
		greedy = append(greedy, conn)
	}
	c.crowd.charge(greedy[0], 1700<<10)
	for i, conn := range append(greedy, victim) {
		if ended := conn.ended.Load() != nil; ended != (i == 0) {
			t.Errorf("connection %d: ended %v", i, ended)
		}
	}
	if held := c.crowd.total.Load(); held > 4<<20 {
		t.Errorf("clients still hold %d bytes", held)
	}
	for _, conn := range c.places.all() {
		_ = conn.Close()
	}
	if held := c.crowd.total.Load(); held != 0 {
		t.Errorf("without clients, %d bytes are held", held)
	}
}

// TestCrowd_HeldByStrangers: if many processes hold a little each, those go that never had an answer, the
// oldest first, and not the client that holds more than each of them.
func TestCrowd_HeldByStrangers(t *testing.T) {
	c := testCrowd(t, 1000, 8<<20)
	client, _, _ := c.join(t, 1, 1)
	client.call(t, true)
	c.crowd.charge(client, 200<<10)
	var strangers []*connection
	for i := range 300 {
		conn, _, _ := c.join(t, 100+i, int64(100+i))
		c.crowd.charge(conn, 32<<10)
		strangers = append(strangers, conn)
	}
	if client.ended.Load() != nil {
		t.Error("a client has lost its connection to strangers")
	}
	var ended []int
	for i, conn := range strangers {
		if conn.ended.Load() != nil {
			ended = append(ended, i)
		}
	}
	if n := len(ended); n == 0 || ended[n-1] != n-1 || n > 250 {
		t.Errorf("not the oldest had to go: %v", ended)
	}
}

// TestCrowd_HeldMeanwhile: while the server ends connections of the client that holds most, that client opens
// others. The rest do not pay for it, and do not wait when they come back.
func TestCrowd_HeldMeanwhile(t *testing.T) {
	c := testCrowd(t, 1000, 8<<20)
	var greedy, others []*connection
	for i := range 20 {
		conn, _, _ := c.join(t, 1, int64(i))
		conn.received.Store(greeting)
		greedy = append(greedy, conn)
		other, _, _ := c.join(t, 100+i, int64(i))
		other.call(t, true)
		others = append(others, other)
	}
	c.crowd.observer = goesOn(func() { c.crowd.total.Add(1 << 20) })
	for _, conn := range greedy {
		c.crowd.charge(conn, 512<<10)
	}
	if greedy[0].ended.Load() == nil {
		t.Error("the client that holds most keeps all its connections")
	}
	for i, conn := range others {
		if conn.ended.Load() != nil {
			t.Errorf("client %d has lost its connection: %s", i, *conn.ended.Load())
		}
	}
	if c.crowd.wait(1) <= 0 {
		t.Error("the client that holds most comes back at once")
	}
	c.crowd.note(others[0], reasonFull)
	if c.crowd.wait(others[0].pid) > 0 {
		t.Error("a client that held little has to wait")
	}
}

// goesOn is an observer that calls a function when a connection is ended.
type goesOn func()

func (goesOn) ConnectionOpened(string)           {}
func (goesOn) ConnectionClosed(string)           {}
func (do goesOn) ConnectionEnded(string, string) { do() }

// TestConnections_Wait: connections of a process that broke a limit wait, and are let in one by one. They are
// not refused: a client that is refused comes back at once.
func TestConnections_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testCrowd(t, 1024, 1<<30)
		culprit, _, _ := c.join(t, 1, 1)
		culprit.end(reasonArriving)
		const number = 100
		begin := time.Now()
		for range number {
			conn, loser, reason := c.join(t, 1, 1)
			if loser != nil {
				t.Fatalf("%v has to go: %s", loser, reason)
			}
			conn.greetWith(t, c)
		}
		for i := range number {
			next := <-c.accepted
			if want, got := penalty+time.Duration(i)*penaltyPace, time.Since(begin); got != want || next.conn == nil {
				t.Errorf("connection %d is let in after %v, want %v", i, got, want)
			}
		}
		if other, _, _ := c.join(t, 2, 1); c.crowd.wait(other.pid) > 0 {
			t.Error("another process has to wait")
		}
	})
}

// TestConnections_WaitTooMany: the number of those that wait has a limit, and so has their time.
func TestConnections_WaitTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testCrowd(t, 1024, 1<<30)
		culprit, _, _ := c.join(t, 1, 1)
		culprit.end(reasonArriving)
		begin := time.Now()
		for range maxWaiting {
			conn, _, _ := c.join(t, 1, 1)
			conn.greetWith(t, c)
		}
		synctest.Wait()
		conn, loser, reason := c.join(t, 1, 1)
		if loser != conn || reason != reasonRefused {
			t.Errorf("with %d that wait, %v goes: %q", maxWaiting, loser, reason)
		}
		for range maxWaiting {
			<-c.accepted
		}
		if took := time.Since(begin); took > maxPenalty {
			t.Errorf("the last one has waited for %v", took)
		}
		if _, loser, _ := c.join(t, 1, 1); loser != nil {
			t.Error("a connection is refused when none waits any more")
		}
	})
}

// greetWith lets a client greet the server.
func (c *connection) greetWith(t *testing.T, owner *connections) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	c.Conn = ours
	go owner.welcome(c)
	if _, err := theirs.Write(make([]byte, greeting)); err != nil {
		t.Fatal(err)
	}
}

// TestCrowd_HeldByWorking: if all wait for an answer and hold a little, the newest go. A call that takes long
// is not to blame.
func TestCrowd_HeldByWorking(t *testing.T) {
	c := testCrowd(t, 1000, 8<<20)
	var conns []*connection
	for i := range 300 {
		conn, _, _ := c.join(t, 100+i, int64(100+i))
		conn.call(t, false)
		c.crowd.charge(conn, 32<<10)
		conns = append(conns, conn)
	}
	ended := slices.IndexFunc(conns, func(conn *connection) bool { return conn.ended.Load() != nil })
	if ended < 150 { // 8 MiB are enough for 204
		t.Errorf("the first connection that had to go is %d of %d", ended, len(conns))
	}
}

// TestCrowd_Notes: the line in the log names the process with most connections since the line before.
func TestCrowd_Notes(t *testing.T) {
	c := testCrowd(t, 1000, 1<<30)
	n := &note{by: map[culprit]int{}}
	for i := range 3 * maxCulprits {
		n.add(culprit{pid: i})
		n.add(culprit{pid: 7})
	}
	if worst := n.worst(); worst.pid != 7 || len(n.by) > maxCulprits || n.connections != 6*maxCulprits {
		t.Errorf("%v of %d clients, %d connections", worst, len(n.by), n.connections)
	}
	for pid, waits := range map[int]bool{0: false, 5: true} { // clients without a number may all be different
		conn, _, _ := c.join(t, pid, 1)
		c.crowd.note(conn, reasonArriving)
		if got := c.crowd.wait(pid) > 0; got != waits {
			t.Errorf("the next connection of process %d waits: %v", pid, got)
		}
	}
}

// TestProcess_Cancel: the count begins again with each second, and a late call does not turn time back.
func TestProcess_Cancel(t *testing.T) {
	var p process
	for _, step := range []struct{ second, want int64 }{{100, 3}, {100, 6}, {101, 3}, {100, 6}, {101, 9}, {103, 3}} {
		if got := p.cancel(3, time.Unix(step.second, 5)); got != step.want {
			t.Errorf("second %d: %d, want %d", step.second, got, step.want)
		}
	}
}

// TestConnection_Unsent: an answer counts until it is sent, or the request is over.
func TestConnection_Unsent(t *testing.T) {
	conn, _, _ := testCrowd(t, 1, 1<<30).join(t, 1, 1)
	before := conn.cost.Load()
	conn.holdAnswer(1 << 20)
	if held := conn.cost.Load(); held != before {
		t.Errorf("without a request, an answer costs %d", held-before)
	}
	conn.call(t, false)
	conn.holdAnswer(1 << 20)
	if held := conn.cost.Load(); held != before+1<<20 {
		t.Errorf("an answer costs %d", held-before)
	}
	locked := conn.lock()
	conn.out.header = [frameHeader]byte{0: 1, 3: byte(http2.FrameData), 8: byte(conn.lastStream)} // 64 KiB
	conn.answer()
	conn.unlock(locked)
	if held := conn.cost.Load(); held != before+1<<20-1<<16 {
		t.Errorf("a part of an answer costs %d", held-before)
	}
	locked = conn.lock()
	conn.finish(conn.lastStream)
	conn.unlock(locked)
	if held := conn.cost.Load(); held != before {
		t.Errorf("an answer that is over costs %d", held-before)
	}
}

// TestConnection_Write: an answer is counted before the client can have it. Otherwise a client that makes its
// next request at once would have one more than it has.
func TestConnection_Write(t *testing.T) {
	conn, _, _ := testCrowd(t, 1, 1<<30).join(t, 1, 1)
	conn.call(t, false)
	var answer bytes.Buffer
	if err := http2.NewFramer(&answer, nil).WriteHeaders(http2.HeadersFrameParam{StreamID: conn.lastStream, EndStream: true, EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	open := int64(-1)
	conn.Conn = writeFunc{conn.Conn, func() { open = conn.client.open.Load() }}
	if _, err := conn.Write(answer.Bytes()); err != nil {
		t.Fatal(err)
	}
	if open != 0 {
		t.Errorf("while the answer is written, %d requests are open", open)
	}
}

// writeFunc is a connection that calls a function when something is written.
type writeFunc struct {
	net.Conn
	written func()
}

func (w writeFunc) Write(b []byte) (int, error) {
	w.written()
	return len(b), nil
}

// TestConnection_SayWhy: a client learns why its connection ends, also if the server has sent nothing else.
func TestConnection_SayWhy(t *testing.T) {
	for _, written := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			c := testCrowd(t, 1, 1<<30)
			conn := newConnection(ours, c, 1, time.Now())
			conn.enter()
			conn.received.Store(greeting)
			client := http2.NewFramer(io.Discard, theirs)
			if written {
				go func() { _ = http2.NewFramer(conn, nil).WriteSettings() }()
			} else {
				conn.end(reasonArriving)
			}
			if frame, err := client.ReadFrame(); err != nil || frame.Header().Type != http2.FrameSettings {
				t.Fatalf("the first frame: %v, %v", frame, err)
			}
			synctest.Wait()
			conn.end(reasonArriving)
			frame, err := client.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if away, ok := frame.(*http2.GoAwayFrame); !ok || string(away.DebugData()) != reasonArriving || away.ErrCode != http2.ErrCodeEnhanceYourCalm {
				t.Errorf("got %v", frame)
			}
			if _, err := client.ReadFrame(); !errors.Is(err, io.EOF) {
				t.Errorf("then %v", err)
			}
		})
	}
}

// TestConnection_FarTooManyArriving: a process that begins far too many requests loses the connections that
// begin more, before gRPC looks at the headers. Its other connections stay.
func TestConnection_FarTooManyArriving(t *testing.T) {
	c := testCrowd(t, 1024, 1<<30)
	begin := func(conn *connection, number int) string {
		var sent bytes.Buffer
		framer := http2.NewFramer(&sent, nil)
		for n := range number {
			if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*n + 1), EndHeaders: true}); err != nil {
				t.Fatal(err)
			}
		}
		return conn.observe(sent.Bytes(), 1)
	}
	good, _, _ := c.join(t, 1, 1)
	good.preface = 0
	for begun := 0; begun < farTooManyArriving; begun += 128 {
		conn, _, _ := c.join(t, 1, 1)
		conn.preface = 0
		if problem := begin(conn, 128); problem != "" {
			t.Fatalf("with %d requests: %s", begun+128, problem)
		}
	}
	if problem := begin(good, 1); problem != reasonArriving {
		t.Errorf("one more: %q", problem)
	}
	other, _, _ := c.join(t, 2, 1)
	other.preface = 0
	if problem := begin(other, 128); problem != "" {
		t.Errorf("another process: %s", problem)
	}
	idle, _, _ := c.join(t, 1, 1)
	idle.preface = 0
	if problem := begin(idle, 0); problem != "" {
		t.Errorf("a connection of the same process that begins none: %s", problem)
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
