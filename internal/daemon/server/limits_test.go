package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/server"
)

// Each test here fails without the limit it is about. docs/reliability.md says what the limits are for.

// answerTimeout is longer than any answer takes here, and shorter than what a missing limit costs.
const answerTimeout = 10 * time.Second

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
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		r.t.Fatal(err)
	}
	if err := c.WriteSettings(); err != nil {
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
	for setting, want := range map[http2.SettingID]uint32{http2.SettingMaxConcurrentStreams: 1000, http2.SettingMaxHeaderListSize: 16 << 10} {
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
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the server takes 64 KiB of headers")
		}
		switch frame.(type) {
		case nil, *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return
		}
	}
}

// TestLimits_Streams: the server refuses calls beyond the limit of a connection.
func TestLimits_Streams(t *testing.T) {
	r := start(t, always)
	c := r.greet()
	block := callHeaders()
	for i := range uint32(1001) { // without a message each call stays open
		if err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: block, EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
	}
	frame, err := until[*http2.RSTStreamFrame](c)
	if err != nil || frame.StreamID != 2*1000+1 {
		t.Errorf("call 1001 was not refused: %v, %v", frame, err)
	}
	r.mustServe()
}

// TestLimits_Message: the server refuses 100 MB before it reads them.
func TestLimits_Message(t *testing.T) {
	r := start(t, always)
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
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
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
