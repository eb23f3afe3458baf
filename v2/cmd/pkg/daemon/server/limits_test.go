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
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Each test here fails without the limit it is about. docs/status.md says what the limits are for.

// answerTimeout is longer than any answer takes here, and shorter than what a missing limit costs.
const answerTimeout = time.Minute

// rawClient is a client that sends any frame it likes.
type rawClient struct {
	net.Conn
	*http2.Framer
}

// greet opens a connection as an HTTP/2 client does.
func (r *running) greet() rawClient {
	r.t.Helper()
	conn := r.rawConn()
	c := rawClient{conn, http2.NewFramer(conn, conn)}
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		r.t.Fatal(err)
	}
	require.NoError(r.t, c.WriteSettings())
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

// TestLimits_Announced: the server announces its limits of headers and streams.
func TestLimits_Announced(t *testing.T) {
	settings, err := until[*http2.SettingsFrame](start(t, always).greet())
	require.NoError(t, err)
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

// TestLimits_Burst: as many callers as drivers have can begin at once, also with the longest request that is legal.
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
	})
	client := filesystemv1.NewFilesystemClient(r.conn("v1"))
	for _, length := range []int{100, 1000, 30_000, 2 * 98 << 10} {
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
	require.NoError(t, err)
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
			require.NoError(t, err)
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

// TestLimits_AllConnectionsAtWork: if every connection has a call, the server refuses new ones of the same process.
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
		require.NoError(t, <-answers, "a call lost its connection:")
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
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: callHeaders(), EndHeaders: true}); err != nil {
		return err
	}
	return writeData(framer, stream, message, ends)
}

func writeData(framer *http2.Framer, stream uint32, data []byte, ends bool) (err error) {
	for len(data) > 0 && err == nil {
		n := min(len(data), 16<<10)
		err = framer.WriteData(stream, ends && n == len(data), data[:n])
		data = data[n:]
	}
	return err
}

// answered waits for the end of an answer, and returns its status.
func (c rawClient) answered(stream uint32) (string, error) {
	for {
		frame, err := until[*http2.MetaHeadersFrame](c)
		if err != nil {
			return "", err
		}
		if frame.StreamID != stream || !frame.StreamEnded() {
			continue
		}
		for _, field := range frame.Fields {
			if field.Name == "grpc-status" {
				return field.Value, nil
			}
		}
		return "", errors.New("the answer has no status")
	}
}

// mustEnd waits for the end of a connection.
func (r *running) mustEnd(c rawClient) {
	r.t.Helper()
	var err error
	for err == nil {
		_, err = c.next()
	}
	if os.IsTimeout(err) {
		r.t.Error("the connection is still open")
	}
}

// tick is the time between two looks of a server for requests that do not arrive.
const tick = 20 * time.Millisecond

func hasty(cfg *server.Config) { cfg.ArrivalTimeout, cfg.IdleTimeout = 6*tick, 10*tick }

// short makes memory short.
func short(cfg *server.Config) { cfg.MaxMemory = 1 }

// passTicks waits for longer than requests have to arrive: until an idle connection ends.
func (r *running) passTicks() {
	r.t.Helper()
	c := r.greet()
	defer c.Close()
	if _, err := until[*http2.GoAwayFrame](c); err != nil {
		r.t.Fatal(err)
	}
}

// TestLimits_Arrival: a connection ends whose requests do not arrive in time. Others do not, not even with calls that
// take long, watches, or answers whose header was sent long ago.
func TestLimits_Arrival(t *testing.T) {
	called, finish := make(chan struct{}, 2), make(chan struct{})
	r := start(t, func(ctx context.Context, path string) (bool, error) {
		if path == "header" {
			if err := grpc.SendHeader(ctx, metadata.Pairs("waits-for", "disk 3")); err != nil {
				t.Error(err)
			}
		}
		if path != "" {
			called <- struct{}{}
			<-finish
		}
		return true, nil
	}, hasty, short)
	watch, err := healthv1.NewHealthClient(r.conn("v1")).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	require.NoError(t, err)
	answers := make(chan error, 2)
	for _, path := range []string{"slow", "header"} {
		go func() {
			_, err := filesystemv1.NewFilesystemClient(r.conn("v1")).PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: path})
			answers <- err
		}()
		<-called
	}
	for _, part := range []int{0, 3, 100} {
		c := r.greet()
		require.NoError(t, c.half(1, 1000, part))
		r.mustEnd(c)
	}
	close(finish)
	for range cap(answers) {
		require.NoError(t, <-answers, "a call that takes long:")
	}
	r.stop()
	if last, err := watch.Recv(); err != nil || last.Status != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("the watch: %v, %v", last, err)
	}
	if want := `reason="requests do not arrive"`; !strings.Contains(logged(r.logger), want) {
		t.Errorf("no %s in the log:\n%s", want, logged(r.logger))
	}
}

// gate is a connection of a client that reads only while it is open.
type gate struct {
	net.Conn
	closed *sync.RWMutex
}

func (g gate) Read(b []byte) (int, error) {
	g.closed.RLock()
	defer g.closed.RUnlock()
	return g.Conn.Read(b)
}

// TestLimits_Pause: a client that pauses, with more answers to come than the connection can hold, gets all of them.
func TestLimits_Pause(t *testing.T) {
	long := winerr.New(winerr.NotFound, "look up", "x", "%s", strings.Repeat("long", 300))
	const callers = 200
	var closed sync.RWMutex
	var called sync.WaitGroup
	called.Add(callers)
	r := start(t, func(_ context.Context, path string) (bool, error) {
		if path == "pause" {
			called.Done()
			called.Wait()
		}
		return false, long
	}, hasty)
	conn, err := grpc.NewClient("passthrough:///pause", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := dialEndpoint(ctx, r.path("v1"))
			return gate{conn, &closed}, err
		}))
	require.NoError(t, err)
	defer conn.Close()
	client := filesystemv1.NewFilesystemClient(conn)
	ask := func(path string) {
		_, err := client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: path})
		if status.Code(err) != codes.NotFound {
			t.Errorf("%s: %v", path, err)
		}
	}
	ask("connect")
	var answered sync.WaitGroup
	// The reader takes what is there once more before it meets the gate, so this answer opens it.
	locked := make(chan struct{})
	go func() {
		closed.Lock()
		close(locked)
	}()
	for range callers {
		answered.Go(func() { ask("pause") })
	}
	<-locked
	called.Wait()
	r.passTicks()
	closed.Unlock()
	answered.Wait()
	ask("afterwards")
	r.mustStop()
	if strings.Contains(logged(r.logger), "A client has reached a limit") {
		t.Errorf("the log blames the client:\n%s", logged(r.logger))
	}
}

// TestLimits_Canceled: a client that cancels calls without end is served.
func TestLimits_Canceled(t *testing.T) {
	r := start(t, always, hasty)
	c := r.greet()
	id := uint32(1)
	for range 50 {
		var frames bytes.Buffer
		framer := http2.NewFramer(&frames, nil)
		for range 100 {
			require.NoError(t, errors.Join(writeCall(framer, id, make([]byte, 5), true), framer.WriteRSTStream(id, http2.ErrCodeCancel)))
			id += 2
		}
		if _, err := c.Write(frames.Bytes()); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, c.whole(id))
		if got, err := c.answered(id); got != "0" {
			t.Fatalf("after %d canceled calls: status %q, %v", id/2, got, err)
		}
		id += 2
	}
	_ = c.Close()
	r.mustStop()
	if strings.Contains(logged(r.logger), "A client has reached a limit") {
		t.Errorf("the log blames the client:\n%s", logged(r.logger))
	}
}

// TestLimits_HalfAHeader: a client that sends half of a header, which says that it is the end of the request, is no
// client that waits for an answer. It makes room for others.
func TestLimits_HalfAHeader(t *testing.T) {
	r := start(t, always, func(cfg *server.Config) { cfg.MaxConnections = 2 })
	c := r.greet()
	require.NoError(t, c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: callHeaders()[:10], EndStream: true}))
	r.mustServe()
	r.mustEnd(c)
}

// TestLimits_Requests: a process has a limited number of requests at once. Further ones are refused, and served when
// others have ended.
func TestLimits_Requests(t *testing.T) {
	finish := make(chan struct{})
	r := start(t, func(context.Context, string) (bool, error) {
		<-finish
		return true, nil
	})
	const connections = 6
	refused := make(chan string, connections)
	var sent sync.WaitGroup
	for range connections {
		c := r.greet()
		sent.Go(func() {
			for n := range uint32(200) {
				if err := c.whole(2*n + 1); err != nil {
					t.Error(err)
				}
			}
		})
		go func() {
			frame, _ := until[*http2.MetaHeadersFrame](c)
			if frame != nil {
				refused <- fmt.Sprint(frame.Fields)
			}
		}()
	}
	if got := <-refused; !strings.Contains(got, `grpc-status" = "8"`) {
		t.Errorf("the first of 1200 answers: %s", got)
	}
	close(finish)
	sent.Wait()
	r.mustServe()
}

// TestLimits_Memory: if memory is short, a client that holds most loses its connection, and others keep theirs. While
// there is enough, it can send the rest of its requests whenever it likes.
func TestLimits_Memory(t *testing.T) {
	const requests, size = 190, 64 << 10
	for _, enough := range []bool{true, false} {
		r := start(t, always, func(cfg *server.Config) {
			if enough {
				hasty(cfg)
			} else {
				short(cfg)
			}
		})
		good := filesystemv1.NewFilesystemClient(r.conn("v1"))
		call := func() {
			t.Helper()
			if _, err := good.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: "x"}); err != nil {
				t.Error(err)
			}
		}
		call()
		c := r.greet()
		var err error
		for i := range uint32(requests) {
			if err = c.half(2*i+1, size, size/2); err != nil {
				break // the connection is closed
			}
			call()
		}
		if enough {
			r.passTicks()
		}
		for i := uint32(0); i < requests && err == nil && enough; i++ {
			err = writeData(c.Framer, 2*i+1, make([]byte, size/2+5), true)
		}
		if err == nil {
			_, err = c.answered(2*requests - 1)
		}
		if (err == nil) != enough {
			t.Errorf("with enough memory %v: %v", enough, err)
		}
		call()
		_ = c.Close()
		r.mustStop()
		if said := strings.Contains(logged(r.logger), `reason="too much memory"`); said == enough {
			t.Errorf("with enough memory %v, the log says that there is too much in use: %v", enough, said)
		}
	}
}

// TestLimits_Message: a request that is too large is refused, and does not hurt the connection.
func TestLimits_Message(t *testing.T) {
	r := start(t, always)
	client := filesystemv1.NewFilesystemClient(r.conn("v1"))
	for size, want := range map[int]codes.Code{2 * 98 << 10: codes.OK, 256 << 10: codes.ResourceExhausted, 2 << 20: codes.ResourceExhausted, 100 << 20: codes.ResourceExhausted} {
		if _, err := client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: strings.Repeat("x", size)}); status.Code(err) != want {
			t.Errorf("%d bytes: %v, want %v", size, err, want)
		}
	}
	if _, err := client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: "x"}); err != nil {
		t.Errorf("the same connection afterwards: %v", err)
	}
}

// TestLimits_Watches: a connection has few watches; its other calls go on.
func TestLimits_Watches(t *testing.T) {
	r := start(t, always)
	conn := r.conn("v1")
	health := healthv1.NewHealthClient(conn)
	for i := range 300 {
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
	r.mustStop()
	if n := strings.Count(logged(r.logger), `reason="too many watches"`); n != 1 {
		t.Errorf("%d lines, want one:\n%s", n, logged(r.logger))
	}
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
	if !strings.Contains(logged(r.logger), `reason="too many connections"`) {
		t.Errorf("the operator does not know:\n%s", logged(r.logger))
	}
}
