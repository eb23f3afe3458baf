package server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/google/go-cmp/cmp"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/rawhttp2"
)

// Each of these fails if the limit is taken away. What the limits are for is said in
// docs/reliability.md.

// patience is longer than anything takes here, and shorter than what there is without limits.
const patience = 10 * time.Second

// greet opens a connection as an HTTP/2 client does.
func (r *running) greet() net.Conn {
	r.t.Helper()
	conn := r.rawConn()
	if _, err := conn.Write(rawhttp2.Greeting()); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// until reads frames up to one of a type, or the end of the connection.
func until(conn net.Conn, kind byte) (rawhttp2.Frame, error) {
	for {
		frame, err := rawhttp2.Read(conn, patience)
		if err != nil || frame.Type == kind {
			return frame, err
		}
	}
}

// TestLimits_Announced: headers and streams, of which well-meaning clients ask for no more.
func TestLimits_Announced(t *testing.T) {
	frame, err := until(start(t, always).greet(), rawhttp2.Settings)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := rawhttp2.ParseSettings(frame)
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint16]uint32{}
	for _, setting := range []uint16{rawhttp2.MaxConcurrentStreams, rawhttp2.MaxHeaderListSize} {
		got[setting] = settings[setting]
	}
	want := map[uint16]uint32{rawhttp2.MaxConcurrentStreams: 1000, rawhttp2.MaxHeaderListSize: 16 << 10}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
}

// TestLimits_Headers: a client that sends more headers all the same is told off, and the call
// is not made.
func TestLimits_Headers(t *testing.T) {
	r := start(t, func(context.Context, string) (bool, error) {
		t.Error("the call was made")
		return true, nil
	})
	conn := r.greet()
	block := rawhttp2.Call(filesystemv1.Filesystem_PathExists_FullMethodName)
	for range 8 {
		block = append(block, rawhttp2.Literal("x-padding", strings.Repeat("x", 8<<10))...)
	}
	for at := 0; at < len(block); at += 8 << 10 {
		frame := rawhttp2.Frame{Type: rawhttp2.Continuation, Stream: 1, Payload: block[at:min(at+8<<10, len(block))]}
		if at == 0 {
			frame.Type = rawhttp2.Headers
		}
		if at+8<<10 >= len(block) {
			frame.Flags = rawhttp2.EndHeaders
		}
		if _, err := conn.Write(frame.Bytes()); err != nil {
			break // the server has had enough
		}
	}
	for {
		frame, err := rawhttp2.Read(conn, patience)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("64 KiB of headers are fine")
		}
		if err != nil || frame.Type == rawhttp2.RSTStream || frame.Type == rawhttp2.GoAway {
			return
		}
	}
}

// TestLimits_Streams: calls beyond those that a connection may have at a time are refused.
func TestLimits_Streams(t *testing.T) {
	r := start(t, always)
	conn := r.greet()
	block := rawhttp2.Call(filesystemv1.Filesystem_PathExists_FullMethodName)
	for i := range uint32(1001) { // none of which says what it wants
		frame := rawhttp2.Frame{Type: rawhttp2.Headers, Flags: rawhttp2.EndHeaders, Stream: 2*i + 1, Payload: block}
		if _, err := conn.Write(frame.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	frame, err := until(conn, rawhttp2.RSTStream)
	if err != nil || frame.Stream != 2*1000+1 {
		t.Errorf("call 1001 was not refused: stream %d, %v", frame.Stream, err)
	}
	r.mustServe()
}

// TestLimits_Message: 100 MB are refused before they are read.
func TestLimits_Message(t *testing.T) {
	r := start(t, always)
	client := filesystemv1.NewFilesystemClient(r.conn("v1"))
	_, err := client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: strings.Repeat("x", 100<<20)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("100 MB: %v", err)
	}
	r.mustServe()
}

// TestLimits_Idle: a connection without calls is closed, and its client does not notice.
func TestLimits_Idle(t *testing.T) {
	r := start(t, always, func(cfg *server.Config) { cfg.IdleTimeout = 50 * time.Millisecond })
	conn := r.greet()
	if _, err := until(conn, rawhttp2.GoAway); err != nil {
		t.Errorf("an idle connection stays: %v", err)
	}
	client := filesystemv1.NewFilesystemClient(r.conn("v1"))
	for range 3 {
		if _, err := client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: "x"}, grpc.WaitForReady(true)); err != nil {
			t.Error(err)
		}
		// Until that client's connection was closed, too.
		if _, err := until(r.greet(), rawhttp2.GoAway); err != nil {
			t.Error(err)
		}
	}
}

// TestLimits_Pings: a client that pings without a pause is sent away.
func TestLimits_Pings(t *testing.T) {
	conn := start(t, always).greet()
	for range 20 {
		if _, err := conn.Write(rawhttp2.Frame{Type: rawhttp2.Ping, Payload: make([]byte, 8)}.Bytes()); err != nil {
			break
		}
	}
	frame, err := until(conn, rawhttp2.GoAway)
	if err != nil || !strings.Contains(string(frame.Payload), "too_many_pings") {
		t.Errorf("got %q, %v", frame.Payload, err)
	}
}

// TestLimits_Connections: further connections take the places of those that say nothing, and a
// client at work keeps its own.
func TestLimits_Connections(t *testing.T) {
	r := start(t, always, func(cfg *server.Config) { cfg.MaxConnections = 8 })
	client := filesystemv1.NewFilesystemClient(r.conn("v1"))
	call := func() {
		t.Helper()
		// Without a second attempt: the connection that it has must do.
		if _, err := client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: "x"}); err != nil {
			t.Error(err)
		}
	}
	call()
	var silent []net.Conn
	for range 20 {
		conn := r.greet()
		for acknowledged := false; !acknowledged; { // which is when the greeting was read
			frame, err := until(conn, rawhttp2.Settings)
			if err != nil {
				t.Fatal(err)
			}
			acknowledged = frame.Flags&rawhttp2.ACK != 0
		}
		silent = append(silent, conn)
		call()
	}
	for i, conn := range silent[:12] {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d of 20 is still open, with 8 as the limit", i+1)
		}
	}
}

// TestLimits_ConnectionsAtWork: a client that waits for its answer keeps its connection, however
// busy those are that never ask for anything.
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
		if _, err := until(r.greet(), rawhttp2.Settings); err != nil {
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

// TestLimits_AllConnectionsAtWork: a call is not given up for a connection more; that one is
// turned away until there is room.
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
