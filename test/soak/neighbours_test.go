//go:build unix

package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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
	"google.golang.org/grpc/status"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// attack is what a bad neighbour does until ctx ends. It counts what it did. It does so in a
// process of its own, with which the system shares the processor.
type attack struct {
	name string
	do   func(ctx context.Context, path string, count *atomic.Int64)
}

var attacks = []attack{
	{"none", func(ctx context.Context, _ string, _ *atomic.Int64) { <-ctx.Done() }},
	{"connections opened and closed", flood},
	{"3000 connections that greet and then idle", idle},
	{"300 requests that arrive byte by byte", slowLoris},
	{"headers of 1 MiB", hugeHeaders},
	{"messages of 100 MB", hugeMessages},
	{"1000 concurrent calls that never send a request", halfCalls},
}

// TestNeighbours measures how long a good client waits for its answers while others on the
// same endpoint do their worst, and wants every answer to be right. How long is printed, not
// judged: it says as much about the machine.
func TestNeighbours(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	before := resourcesNow(t)
	s := &server{t: t, node: node, dir: dir}
	s.start()
	path := filepath.Join(dir, "csi-proxy-filesystem-v1.sock")
	each := max(*soakTime/time.Duration(len(attacks)), 200*time.Millisecond)
	t.Logf("%-52s %8s %8s %9s %9s %9s %8s", "attack", "done", "calls", "p50", "p99", "most", "memory")
	for _, a := range attacks {
		if t.Failed() {
			break
		}
		t.Log(measure(t, a, path, each))
	}
	s.stop()
	if !t.Failed() {
		before.wait(t)
	}
}

// measure lets a good client work next to an attack.
func measure(t *testing.T, a attack, path string, d time.Duration) string {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	good := filesystemv1.NewFilesystemClient(conn)
	ask := func() time.Duration {
		start := time.Now()
		r, err := good.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: workDir}, grpc.WaitForReady(true))
		if err != nil || !r.Exists {
			t.Errorf("next to %s: %v, %v", a.name, r, err)
		}
		return time.Since(start)
	}
	ask() // which connects
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	neighbour := exec.CommandContext(t.Context(), os.Args[0])
	neighbour.Env = append(os.Environ(), attackVariable+"="+a.name, attackVariable+"_PATH="+path, attackVariable+"_TIME="+d.String())
	var count bytes.Buffer
	neighbour.Stdout, neighbour.Stderr = &count, os.Stderr
	if err := neighbour.Start(); err != nil {
		t.Fatal(err)
	}
	var waits []time.Duration
	var most uint64
	for ctx.Err() == nil && !t.Failed() {
		waits = append(waits, ask())
		if len(waits)%1000 == 0 {
			most = max(most, memory())
		}
	}
	most = max(most, memory())
	if err := neighbour.Wait(); err != nil {
		t.Error(err)
	}
	ask() // afterwards, too
	slices.Sort(waits)
	at := func(share float64) string {
		return fmt.Sprintf("%.2fms", waits[int(share*float64(len(waits)-1))].Seconds()*1000)
	}
	return fmt.Sprintf("%-52s %8s %8d %9s %9s %9s %5d MB", a.name, count.String(), len(waits), at(0.5), at(0.99), at(1), most>>20)
}

// attackVariable tells the test's own program which attack it is to be.
const attackVariable = "CSI_PROXY_SOAK_ATTACK"

// attackIfAsked is the bad neighbour: it does what the environment says, and prints how much.
func attackIfAsked() (asked bool) {
	name, asked := os.LookupEnv(attackVariable)
	if !asked {
		return false
	}
	d, err := time.ParseDuration(os.Getenv(attackVariable + "_TIME"))
	i := slices.IndexFunc(attacks, func(a attack) bool { return a.name == name })
	if err != nil || i < 0 {
		panic("there is no such attack")
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var count atomic.Int64
	attacks[i].do(ctx, os.Getenv(attackVariable+"_PATH"), &count)
	fmt.Print(count.Load()) //nolint:forbidigo // for the test that has started it
	return true
}

// memory is what this process, the server and its good client, has in use.
func memory() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}

// several does something from a number of goroutines until ctx ends.
func several(ctx context.Context, number int, do func(i int)) {
	var all sync.WaitGroup
	for i := range number {
		all.Go(func() {
			for ctx.Err() == nil {
				do(i)
			}
		})
	}
	all.Wait()
}

// dial opens a connection that is closed when ctx ends, or nil.
func dial(ctx context.Context, path string) net.Conn {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return conn
}

// greet sends what an HTTP/2 client sends first.
func greet(conn net.Conn) error {
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	return http2.NewFramer(conn, nil).WriteSettings()
}

// headers is a block of header fields.
func headers(fields ...hpack.HeaderField) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range fields {
		_ = encoder.WriteField(field) // a buffer takes everything
	}
	return block.Bytes()
}

// callHeaders is the header block that begins a call.
func callHeaders() []byte {
	return headers(
		hpack.HeaderField{Name: ":method", Value: "POST"},
		hpack.HeaderField{Name: ":scheme", Value: "http"},
		hpack.HeaderField{Name: ":path", Value: filesystemv1.Filesystem_PathExists_FullMethodName},
		hpack.HeaderField{Name: ":authority", Value: "localhost"},
		hpack.HeaderField{Name: "content-type", Value: "application/grpc"},
		hpack.HeaderField{Name: "te", Value: "trailers"},
	)
}

func flood(ctx context.Context, path string, count *atomic.Int64) {
	several(ctx, 4, func(int) {
		var dialer net.Dialer
		if conn, err := dialer.DialContext(ctx, "unix", path); err == nil {
			_ = conn.Close()
			count.Add(1)
		}
	})
}

func idle(ctx context.Context, path string, count *atomic.Int64) {
	for range 3000 {
		if conn := dial(ctx, path); conn != nil {
			if err := greet(conn); err == nil {
				count.Add(1)
			}
		}
	}
	<-ctx.Done()
}

func slowLoris(ctx context.Context, path string, count *atomic.Int64) {
	var frame bytes.Buffer
	_ = http2.NewFramer(&frame, nil).WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: callHeaders(), EndHeaders: true})
	request := frame.Bytes()
	several(ctx, 300, func(int) {
		conn := dial(ctx, path)
		if conn == nil {
			return
		}
		defer conn.Close()
		if err := greet(conn); err != nil {
			return
		}
		for i := range request {
			if _, err := conn.Write(request[i : i+1]); err != nil {
				return
			}
			count.Add(1)
			pause(ctx, 10*time.Millisecond)
		}
	})
}

func hugeHeaders(ctx context.Context, path string, count *atomic.Int64) {
	padding := headers(hpack.HeaderField{Name: "x-padding", Value: strings.Repeat("X", 16000)})
	several(ctx, 4, func(int) {
		conn := dial(ctx, path)
		if conn == nil {
			return
		}
		defer conn.Close()
		go func() { _, _ = io.Copy(io.Discard, conn) }() // until it is closed
		if err := greet(conn); err != nil {
			return
		}
		framer := http2.NewFramer(conn, nil)
		err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: padding})
		for i := 1; i < 64 && err == nil; i++ {
			err = framer.WriteContinuation(1, false, padding)
		}
		count.Add(1)
	})
}

func hugeMessages(ctx context.Context, path string, count *atomic.Int64) {
	huge := &filesystemv1.PathExistsRequest{Path: strings.Repeat("x", 100<<20)}
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return
	}
	defer conn.Close()
	client := filesystemv1.NewFilesystemClient(conn)
	several(ctx, 2, func(int) {
		if _, err := client.PathExists(ctx, huge); status.Code(err) == codes.ResourceExhausted {
			count.Add(1)
		}
	})
}

func halfCalls(ctx context.Context, path string, count *atomic.Int64) {
	block := callHeaders()
	conn := dial(ctx, path)
	if conn == nil {
		return
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }() // until it is closed
	if err := greet(conn); err != nil {
		return
	}
	framer := http2.NewFramer(conn, nil)
	for stream := uint32(1); ctx.Err() == nil; stream += 2 {
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndHeaders: true}); err != nil {
			return
		}
		if count.Add(1)%1000 == 0 {
			pause(ctx, 100*time.Millisecond)
		}
	}
}
