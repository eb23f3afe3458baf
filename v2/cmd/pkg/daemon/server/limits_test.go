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
	"google.golang.org/grpc/status"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
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
	for _, conn := range silent { // the stop waits for them
		_ = conn.Close()
	}
	r.mustStop()
	if !strings.Contains(logged(r.logger), `reason="too many connections"`) {
		t.Errorf("the operator does not know:\n%s", logged(r.logger))
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

// TestLimits_Canceled: a client that cancels calls without end is served.
func TestLimits_Canceled(t *testing.T) {
	r := start(t, always)
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
			if !enough {
				cfg.MaxMemory = 1
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
