package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/server"
)

// Each test here fails without the limit it is about. docs/reliability.md says what the limits are for.

// patient gives requests all the time of a busy machine.
func patient(cfg *server.Config) { cfg.ArrivalTimeout = time.Hour }

// answerTimeout is longer than any answer takes here, and shorter than what a missing limit costs.
const answerTimeout = time.Minute

// rawClient is a client that sends any frame it likes.
type rawClient struct {
	net.Conn
	*http2.Framer
}

// greet opens a connection as an HTTP/2 client does.
func (r *running) greet(settings ...http2.Setting) rawClient {
	r.t.Helper()
	conn := r.rawConn()
	c := rawClient{conn, http2.NewFramer(conn, conn)}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		r.t.Fatal(err)
	}
	if err := c.WriteSettings(settings...); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// callHeaders is the header block that begins a call to PathExists, with more fields.
func callHeaders(more ...hpack.HeaderField) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: filesystemv1.Filesystem_PathExists_FullMethodName},
		{Name: ":authority", Value: "localhost"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	}, more...) {
		_ = encoder.WriteField(field) // a buffer takes everything
	}
	return block.Bytes()
}

// next reads a frame.
func (c rawClient) next() (http2.Frame, error) {
	if err := c.SetReadDeadline(time.Now().Add(answerTimeout)); err != nil {
		return nil, err
	}
	return c.ReadFrame()
}

// until reads frames up to the first of type F, or the end of the connection.
func until[F http2.Frame](c rawClient) (F, error) {
	for {
		frame, err := c.next()
		if wanted, ok := frame.(F); ok || err != nil {
			return wanted, err
		}
	}
}

// TestLimits_Announced: the server tells well-behaved clients its limits of headers and streams.
func TestLimits_Announced(t *testing.T) {
	settings, err := until[*http2.SettingsFrame](start(t, always).greet())
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[http2.SettingID]uint32{http2.SettingMaxConcurrentStreams: 200, http2.SettingMaxHeaderListSize: 8 << 10} {
		if got, _ := settings.Value(setting); got != want {
			t.Errorf("%s is %d, want %d", setting, got, want)
		}
	}
}

// TestLimits_Headers: the server refuses a call with more headers, and does not make it.
func TestLimits_Headers(t *testing.T) {
	r := start(t, func(context.Context, string) (bool, error) {
		t.Error("the call was made")
		return true, nil
	})
	c := r.greet()
	padding := hpack.HeaderField{Name: "x-padding", Value: strings.Repeat("X", 8<<10)}
	block := callHeaders(padding, padding, padding, padding, padding, padding, padding, padding)
	const part = 8 << 10
	err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:part]})
	for at := part; at < len(block) && err == nil; at += part { // an error: the server has closed the connection
		end := min(at+part, len(block))
		err = c.WriteContinuation(1, end == len(block), block[at:end])
	}
	for {
		frame, err := c.next()
		if os.IsTimeout(err) {
			t.Fatal("the server takes 64 KiB of headers")
		}
		switch frame.(type) {
		case nil, *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return
		}
	}
}

// TestLimits_Streams: the server refuses calls of a process beyond the limit of those that do not arrive,
// and then ends the connection. A new client waits a little.
func TestLimits_Streams(t *testing.T) {
	r := start(t, always, patient)
	const connections = 8
	answers := make(chan string, connections)
	for range connections {
		c := r.greet()
		c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		go func() {
			frame, err := until[*http2.MetaHeadersFrame](c)
			if err != nil {
				answers <- "" // the connection is closed, because its requests do not arrive
				return
			}
			for _, field := range frame.Fields {
				if field.Name == "grpc-status" {
					answers <- field.Value
				}
			}
		}()
		for i := range uint32(180) { // without a message each call stays open
			if c.half(2*i+1, 0, 0) != nil {
				break
			}
		}
	}
	answer := ""
	for range connections {
		if answer == "" {
			answer = <-answers
		}
	}
	// Connections may end before they have sent the refusal, ResourceExhausted.
	if answer != "8" && !strings.Contains(logged(r.logger), `reason="requests do not arrive"`) {
		t.Errorf("the first answer is %q", answer)
	}
}

// TestLimits_Burst: as many callers as drivers have can begin at once.
func TestLimits_Burst(t *testing.T) {
	var begun sync.WaitGroup
	const atOnce = 200
	begun.Add(atOnce)
	var calls atomic.Int64
	r := start(t, func(context.Context, string) (bool, error) {
		if calls.Add(1) <= atOnce {
			begun.Done()
		}
		begun.Wait()
		return true, nil
	}, patient)
	client := filesystemv1.NewFilesystemClient(r.conn("v1"))
	for _, length := range []int{100, 1000, 30_000} {
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				if _, err := client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: strings.Repeat("x", length)}); err != nil {
					t.Errorf("%d characters: %v", length, err)
				}
			})
		}
		all.Wait()
	}
}

// TestLimits_Message: the server refuses 100 MB before it reads them.
func TestLimits_Message(t *testing.T) {
	r := start(t, always, patient)
	client := filesystemv1.NewFilesystemClient(r.conn("v1"))
	_, err := client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: strings.Repeat("x", 100<<20)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("100 MB: %v", err)
	}
	r.mustServe()
}

// TestLimits_Idle: the server closes a connection without calls, and its client does not notice.
func TestLimits_Idle(t *testing.T) {
	r := start(t, always, func(cfg *server.Config) { cfg.IdleTimeout = 50 * time.Millisecond })
	conn := r.greet()
	if _, err := until[*http2.GoAwayFrame](conn); err != nil {
		t.Errorf("an idle connection stays: %v", err)
	}
	client := filesystemv1.NewFilesystemClient(r.conn("v1"))
	for range 3 {
		if _, err := client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: "x"}, grpc.WaitForReady(true)); err != nil {
			t.Error(err)
		}
		// By now the server has closed that client's connection too.
		if _, err := until[*http2.GoAwayFrame](r.greet()); err != nil {
			t.Error(err)
		}
	}
}

// TestLimits_Pings: the server disconnects a client that pings without a pause.
func TestLimits_Pings(t *testing.T) {
	conn := start(t, always).greet()
	for range 20 {
		if err := conn.WritePing(false, [8]byte{}); err != nil {
			break
		}
	}
	frame, err := until[*http2.GoAwayFrame](conn)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(frame.DebugData()); !strings.Contains(got, "too_many_pings") {
		t.Errorf("got %q", got)
	}
}

// TestLimits_Connections: a new connection replaces one without calls. A working client keeps its
// connection.
func TestLimits_Connections(t *testing.T) {
	r := start(t, always, func(cfg *server.Config) { cfg.MaxConnections = 8 })
	client := filesystemv1.NewFilesystemClient(r.conn("v1"))
	call := func() {
		t.Helper()
		// There is no retry: the call must succeed on the connection that is there.
		if _, err := client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: "x"}); err != nil {
			t.Error(err)
		}
	}
	call()
	var silent []rawClient
	for range 20 {
		conn := r.greet()
		for acknowledged := false; !acknowledged; { // the server has read the greeting
			frame, err := until[*http2.SettingsFrame](conn)
			if err != nil {
				t.Fatal(err)
			}
			acknowledged = frame.IsAck()
		}
		silent = append(silent, conn)
		call()
	}
	for i, conn := range silent[:12] {
		_ = conn.SetReadDeadline(time.Now().Add(answerTimeout))
		if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
			t.Fatalf("connection %d of 20 is still open, with 8 as the limit", i+1)
		}
	}
}

// TestLimits_ConnectionsAtWork: a client that waits for an answer keeps its connection, even if
// others that never call open and close theirs.
func TestLimits_ConnectionsAtWork(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	r := start(t, func(_ context.Context, path string) (bool, error) {
		if path == "slow" {
			close(begun)
			<-finish
		}
		return true, nil
	}, func(cfg *server.Config) { cfg.MaxConnections = 4 })
	slow, quick := filesystemv1.NewFilesystemClient(r.conn("v1")), filesystemv1.NewFilesystemClient(r.conn("v1"))
	ask := func(client filesystemv1.FilesystemClient, path string) error {
		_, err := client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: path})
		return err
	}
	answer := make(chan error, 1)
	go func() { answer <- ask(slow, "slow") }()
	<-begun
	if err := ask(quick, "x"); err != nil {
		t.Error(err)
	}
	for range 20 {
		if _, err := until[*http2.SettingsFrame](r.greet()); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(quick, "x"); err != nil {
		t.Errorf("a client that has been served lost its connection: %v", err)
	}
	close(finish)
	if err := <-answer; err != nil {
		t.Errorf("a call lost its connection: %v", err)
	}
}

// TestLimits_AllConnectionsAtWork: if every connection has a call, the server refuses new ones.
func TestLimits_AllConnectionsAtWork(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	r := start(t, func(_ context.Context, path string) (bool, error) {
		if path == "slow" {
			begun <- struct{}{}
			<-finish
		}
		return true, nil
	}, func(cfg *server.Config) { cfg.MaxConnections = 2 })
	answers := make(chan error, 2)
	for range cap(answers) {
		client := filesystemv1.NewFilesystemClient(r.conn("v1"))
		go func() {
			_, err := client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: "slow"})
			answers <- err
		}()
		<-begun
	}
	for range 5 {
		if _, err := io.Copy(io.Discard, r.rawConn()); err != nil {
			t.Errorf("it is not turned away: %v", err)
		}
	}
	close(finish)
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Errorf("a call lost its connection: %v", err)
		}
	}
	r.mustServe()
}

// half begins a call and sends only a part of its message, which says that it has size bytes.
func (c rawClient) half(stream uint32, size, part int) error {
	message := make([]byte, part)
	copy(message, []byte{0, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)})
	return c.call(stream, message, false)
}

// whole makes a call with an empty message.
func (c rawClient) whole(stream uint32) error { return c.call(stream, make([]byte, 5), true) }

// call sends all frames at once: on a busy machine, time can pass between two writes.
func (c rawClient) call(stream uint32, message []byte, ends bool) error {
	var frames bytes.Buffer
	err := writeCall(http2.NewFramer(&frames, nil), stream, message, ends)
	if err == nil {
		_, err = c.Write(frames.Bytes())
	}
	return err
}

func writeCall(framer *http2.Framer, stream uint32, message []byte, ends bool) error {
	err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: callHeaders(), EndHeaders: true})
	for len(message) > 0 && err == nil {
		n := min(len(message), 16<<10)
		err = framer.WriteData(stream, ends && n == len(message), message[:n])
		message = message[n:]
	}
	return err
}

// mustGoAway waits for the end of a connection and its reason. The server tries to tell the client for 10 ms, which
// can be too short on a busy machine. The log has the reason, too. TestConnection_SayWhy needs no time.
func (r *running) mustGoAway(c rawClient, want string) {
	r.t.Helper()
	frame, err := until[*http2.GoAwayFrame](c)
	if err == nil {
		if got := string(frame.DebugData()); got != want || frame.ErrCode != http2.ErrCodeEnhanceYourCalm {
			r.t.Errorf("got %v, %q, want %q", frame.ErrCode, got, want)
		}
	}
	r.mustEnd(c, want)
}

// mustEnd waits for the end of a connection whose client still sends, and may therefore not get the reason.
// The log has it.
func (r *running) mustEnd(c rawClient, reason string) {
	r.t.Helper()
	var err error
	for err == nil {
		_, err = c.next()
	}
	if os.IsTimeout(err) {
		r.t.Error("the connection is still open")
	}
	if want := fmt.Sprintf("reason=%q", reason); !strings.Contains(logged(r.logger), want) {
		r.t.Errorf("no %s in the log:\n%s", want, logged(r.logger))
	}
}

// TestLimits_Open: a process has a limited number of calls without an answer on all its connections.
func TestLimits_Open(t *testing.T) {
	finish := make(chan struct{})
	r := start(t, func(context.Context, string) (bool, error) {
		<-finish
		return true, nil
	}, patient)
	defer close(finish)
	const connections = 7
	refused := make(chan bool, connections)
	for range connections {
		c := r.greet()
		go func() {
			frame, err := until[*http2.HeadersFrame](c)
			refused <- err == nil && frame.StreamEnded()
		}()
		for n := range uint32(180) {
			if c.whole(2*n+1) != nil {
				break // the connection is closed, because its requests are refused
			}
		}
	}
	if !<-refused && !strings.Contains(logged(r.logger), `reason="too many requests at once"`) {
		t.Error("1260 calls are open, and the first answer is no refusal")
	}
}

// TestLimits_Canceled: a client that cancels some requests gets its other answers. One that begins and
// cancels requests without end loses its connection.
func TestLimits_Canceled(t *testing.T) {
	r := start(t, always, patient)
	c := r.greet()
	id := uint32(1)
	cancel := func() error {
		var frames bytes.Buffer
		framer := http2.NewFramer(&frames, nil)
		for range 100 { // at once: a busy machine cannot write often enough in a second
			if err := errors.Join(writeCall(framer, id, make([]byte, 5), true), framer.WriteRSTStream(id, http2.ErrCodeCancel)); err != nil {
				return err
			}
			id += 2
		}
		_, err := c.Write(frames.Bytes())
		return err
	}
	for range 10 {
		if err := cancel(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.whole(id); err != nil {
		t.Fatal(err)
	}
	for answered := false; !answered; {
		frame, err := until[*http2.HeadersFrame](c)
		if err != nil {
			t.Fatalf("1000 requests were canceled, and the next one: %v", err)
		}
		answered = frame.StreamID == id && frame.StreamEnded()
	}
	id += 2
	ended := make(chan struct{})
	go func() { // a client that does not read is another case
		defer close(ended)
		_, _ = until[*http2.GoAwayFrame](c)
	}()
	for {
		select {
		case <-ended:
			if !strings.Contains(logged(r.logger), `reason="too many requests canceled"`) {
				t.Error("the connection has ended, and the log does not say why")
			}
			r.mustServe()
			return
		default:
			_ = cancel() // it fails when the connection is closed
		}
	}
}

// TestLimits_ManyHeaders: a request with very many headers is refused, however short they are.
func TestLimits_ManyHeaders(t *testing.T) {
	r := start(t, always, patient)
	client := filesystemv1.NewFilesystemClient(r.conn("v1"))
	call := func(headers int) error {
		ctx := t.Context()
		for range headers {
			ctx = metadata.AppendToOutgoingContext(ctx, "a", "b")
		}
		_, err := client.PathExists(ctx, &filesystemv1.PathExistsRequest{Path: "a"})
		return err
	}
	if err := call(50); err != nil {
		t.Error(err)
	}
	if err := call(70); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
}

// TestLimits_ArrivingTime: a request whose message does not follow costs its client the connection.
func TestLimits_ArrivingTime(t *testing.T) {
	r := start(t, always, func(cfg *server.Config) { cfg.ArrivalTimeout = 100 * time.Millisecond })
	for _, part := range []int{0, 3, 100} {
		c := r.greet()
		if err := c.half(1, 1000, part); err != nil {
			t.Fatal(err)
		}
		r.mustGoAway(c, "requests do not arrive")
	}
	r.mustServe()
}

// TestLimits_ArrivingIsNotWorking: a call that has arrived may take longer, and a watch may stay.
func TestLimits_ArrivingIsNotWorking(t *testing.T) {
	const timeout = 2 * time.Second // enough for clients that send whole requests
	called, finish := make(chan struct{}), make(chan struct{})
	r := start(t, func(_ context.Context, path string) (bool, error) {
		if path == "" {
			close(called)
			<-finish
		}
		return true, nil
	}, func(cfg *server.Config) { cfg.ArrivalTimeout = timeout })
	watch, err := healthv1.NewHealthClient(r.conn("v1")).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	c := r.greet()
	if err := c.whole(1); err != nil {
		t.Fatal(err)
	}
	<-called
	slow := r.greet()
	if err := slow.half(1, 10, 5); err != nil {
		t.Fatal(err)
	}
	r.mustGoAway(slow, "requests do not arrive") // by now the others would be gone too
	slow = r.greet()
	if err := slow.half(1, 10, 5); err != nil {
		t.Fatal(err)
	}
	r.mustGoAway(slow, "requests do not arrive")
	close(finish)
	frame, err := until[*http2.HeadersFrame](c)
	if err != nil || frame.StreamID != 1 {
		t.Errorf("the call has no answer: %v, %v", frame, err)
	}
	r.stop()
	if last, err := watch.Recv(); err != nil || last.Status != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("the watch: %v, %v", last, err)
	}
}

// TestLimits_ArrivingBytes: a client that sends parts of many large requests loses its connection. Its
// frames are of the size that costs gRPC most: it keeps 4 KiB for each. So a few dozen requests are too
// much, while gRPC itself would refuse the 201st.
func TestLimits_ArrivingBytes(t *testing.T) {
	r := start(t, always, patient)
	c := r.greet()
	go func() {
		frame := make([]byte, 1<<10+1)
		for i := range uint32(150) {
			id := 2*i + 1
			if c.half(id, 1900<<10, 5) != nil {
				return // the connection is closed
			}
			for range 60 { // less than the window of a stream
				if c.WriteData(id, false, frame) != nil {
					return
				}
			}
		}
	}()
	r.mustEnd(c, "requests do not arrive")
	r.mustServe()
}

// TestLimits_Held: if all clients together make the server hold too much, the one that has most loses its
// connection. Others keep theirs.
func TestLimits_Held(t *testing.T) {
	r := start(t, always, func(cfg *server.Config) { cfg.MaxHeldBytes = 1 << 20 })
	good := filesystemv1.NewFilesystemClient(r.conn("v1"))
	call := func() {
		t.Helper()
		if _, err := good.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: "x"}); err != nil {
			t.Error(err)
		}
	}
	call()
	c := r.greet()
	for i := range uint32(500) {
		if err := c.half(2*i+1, 1000, 0); err != nil {
			break // the connection is closed
		}
	}
	r.mustEnd(c, "requests take too much memory")
	call()
	r.mustStop()
	if n := strings.Count(logged(r.logger), "INFO Ending connections of a client"); n != 1 {
		t.Errorf("%d lines, want one:\n%s", n, logged(r.logger))
	}
}

// TestLimits_Watches: a connection has few watches; its other calls go on.
func TestLimits_Watches(t *testing.T) {
	r := start(t, always)
	conn := r.conn("v1")
	health := healthv1.NewHealthClient(conn)
	for i := range 5 {
		watch, err := health.Watch(t.Context(), &healthv1.HealthCheckRequest{})
		if err == nil {
			_, err = watch.Recv()
		}
		if want := map[bool]codes.Code{true: codes.OK, false: codes.ResourceExhausted}[i < 4]; status.Code(err) != want {
			t.Errorf("watch %d: %v, want %v", i+1, err, want)
		}
	}
	if _, err := filesystemv1.NewFilesystemClient(conn).PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: "x"}); err != nil {
		t.Error(err)
	}
}

// TestLimits_RefusedWatches: a client that goes on to ask for watches loses its connection, and the next
// one has to wait, but is served.
func TestLimits_RefusedWatches(t *testing.T) {
	r := start(t, always)
	conn := r.conn("v1")
	health := healthv1.NewHealthClient(conn)
	for i := range 300 {
		watch, err := health.Watch(t.Context(), &healthv1.HealthCheckRequest{})
		if err == nil {
			_, err = watch.Recv()
		}
		if status.Code(err) == codes.Unavailable {
			break
		}
		if i == 299 {
			t.Error("300 watches, and the connection is still open")
		}
	}
	r.mustServe()
	r.mustStop()
	if !strings.Contains(logged(r.logger), `reason="too many watches"`) {
		t.Errorf("the operator does not know:\n%s", logged(r.logger))
	}
}

// TestLimits_NotReading: a client that never takes its answers loses its connection, whether it does not
// read at all or does not open its window.
func TestLimits_NotReading(t *testing.T) {
	r := start(t, always, func(cfg *server.Config) { cfg.ArrivalTimeout = 100 * time.Millisecond })
	for _, calls := range []uint32{1, 10} {
		t.Run(fmt.Sprintf("window, %d", calls), func(t *testing.T) {
			c := r.greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			for i := range calls {
				if err := c.whole(2*i + 1); err != nil {
					t.Fatal(err)
				}
			}
			r.mustGoAway(c, "answers are not read")
		})
	}
	t.Run("socket", func(t *testing.T) {
		c := r.greet()
		for i := uint32(0); ; i++ {
			_ = c.SetWriteDeadline(time.Now().Add(answerTimeout))
			err := c.whole(2*i + 1)
			if os.IsTimeout(err) {
				t.Fatal("the connection is still open")
			}
			if err != nil {
				return
			}
		}
	})
	r.mustServe()
}

// TestLimits_Silent: connections that never greet do not keep others out, however many there are.
func TestLimits_Silent(t *testing.T) {
	r := start(t, always, func(cfg *server.Config) { cfg.ConnectionTimeout, cfg.MaxConnections = time.Hour, 100 })
	for i := range 600 {
		r.rawConn()
		if i%100 == 0 {
			r.mustServe()
		}
	}
	r.mustStop()
	if !strings.Contains(logged(r.logger), `reason="no greeting"`) {
		t.Errorf("the operator does not know:\n%s", logged(r.logger))
	}
}
