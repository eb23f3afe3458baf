// Package attack has clients that do their worst: they speak HTTP/2 frame by frame and keep no rule that
// a client of gRPC keeps. Its tests measure what that does to csi-proxy-sim and to its other clients, and
// those of test/wine do the same to csi-proxy.exe on pipes.
package attack

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
)

// Attack is what a hostile or broken client does until ctx ends.
type Attack struct {
	Name string
	do   func(ctx context.Context, t target)
}

// Dial connects to an endpoint.
type Dial func(context.Context) (net.Conn, error)

// Run attacks the endpoint that dial connects to, and returns how often it did what its name says.
func (a Attack) Run(ctx context.Context, dial Dial) int64 {
	var count atomic.Int64
	a.do(ctx, target{dial, &count})
	return count.Load()
}

// Attacks are what a faulty driver can do. The last one attacks nothing, for comparison.
var Attacks = []Attack{
	{"1 connection, 1000 requests that declare 250 KiB and send 240 KiB", halfSent},
	{"200 connections with 1000 headers without a message each", headersOnly},
	{"1024 connections that begin 10 health watches each", watch},
	{"6000 connections that send nothing", silent},
	{"100 connections that never read their answers", neverRead},
	{flooding, flood},
	{"none", func(ctx context.Context, _ target) { <-ctx.Done() }},
}

// flooding fills the queue of connections that the system has not handed to the server. While it is full,
// the system refuses others, and no server can help it. Named pipes have no such queue.
const flooding = "connections opened and closed"

type target struct {
	dial  Dial
	count *atomic.Int64
}

// several does something from a number of goroutines until ctx ends.
func several(ctx context.Context, number int, do func()) {
	var all sync.WaitGroup
	for range number {
		all.Go(func() {
			for ctx.Err() == nil {
				do()
			}
		})
	}
	all.Wait()
}

// client is a connection that sends any frame it likes.
type client struct {
	net.Conn
	*http2.Framer
	buffer *bytes.Buffer // frames that are not sent
}

// open opens a connection that is closed when ctx ends.
func (t target) open(ctx context.Context) (client, bool) {
	conn, err := t.dial(ctx)
	if err != nil {
		pause(ctx, 10*time.Millisecond)
		return client{}, false
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	buffer := &bytes.Buffer{}
	return client{conn, http2.NewFramer(buffer, nil), buffer}, true
}

// greet opens a connection and sends what an HTTP/2 client sends first. Answers are read and ignored, from
// the start: the pipes of the original have no buffer, and its server sends before it reads.
func (t target) greet(ctx context.Context) (client, bool) {
	c, ok := t.open(ctx)
	if !ok {
		return c, false
	}
	go func() { _, _ = io.Copy(io.Discard, c.Conn) }() // until it is closed
	return c, c.greet()
}

func (c client) greet() bool {
	c.buffer.WriteString(http2.ClientPreface)
	_ = c.WriteSettings() // a buffer takes everything
	return c.send()
}

func (c client) send() bool {
	_, err := c.buffer.WriteTo(c.Conn)
	return err == nil
}

// begin begins a call without its message.
func (c client) begin(stream uint32, method string) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: method},
		{Name: ":authority", Value: "localhost"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	} {
		_ = encoder.WriteField(field) // a buffer takes everything
	}
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
}

const pathExists = filesystemv1.Filesystem_PathExists_FullMethodName

// declare is the beginning of a message of a number of bytes.
func declare(size uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0}, size) }

// streamID is the number of a client's nth stream.
func streamID(n int) uint32 { return uint32(2*n + 1) }

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// halfSent sends much of many messages and finishes none. A server opens the window of a stream to the
// length that its message declares.
func halfSent(ctx context.Context, t target) {
	const declared, sent, part = 250 << 10, 240 << 10, 16 << 10
	several(ctx, 1, func() {
		c, ok := t.greet(ctx)
		if !ok {
			return
		}
		defer c.Close()
		for n := range 1000 {
			c.begin(streamID(n), pathExists)
			_ = c.WriteData(streamID(n), false, declare(declared))
			if !c.send() {
				return
			}
			t.count.Add(1)
		}
		for range sent / part {
			for n := range 1000 {
				_ = c.WriteData(streamID(n), false, make([]byte, part))
				if !c.send() {
					return
				}
			}
		}
		<-ctx.Done()
	})
}

func headersOnly(ctx context.Context, t target) {
	several(ctx, 200, func() {
		c, ok := t.greet(ctx)
		if !ok {
			return
		}
		defer c.Close()
		for n := range 1000 {
			c.begin(streamID(n), pathExists)
			if !c.send() {
				return
			}
			t.count.Add(1)
		}
		_, _ = c.Read(make([]byte, 1)) // until the server closes it
	})
}

// watch begins more watches than a connection can have, and holds what it gets.
func watch(ctx context.Context, t target) {
	var all sync.WaitGroup
	for range 1024 {
		all.Go(func() {
			c, ok := t.greet(ctx)
			for n := 0; ok && n < 10; n++ {
				c.begin(streamID(n), healthv1.Health_Watch_FullMethodName)
				_ = c.WriteData(streamID(n), true, declare(0))
				if ok = c.send(); ok {
					t.count.Add(1)
				}
			}
		})
	}
	all.Wait()
	<-ctx.Done()
}

func silent(ctx context.Context, t target) {
	several(ctx, 16, func() {
		if t.count.Load() >= 6000 {
			<-ctx.Done()
		} else if _, ok := t.open(ctx); ok {
			t.count.Add(1)
		}
	})
}

func neverRead(ctx context.Context, t target) {
	several(ctx, 100, func() {
		c, ok := t.open(ctx)
		if !ok {
			return
		}
		defer c.Close()
		ok = c.greet()
		for n := 0; ok && ctx.Err() == nil; n++ {
			c.begin(streamID(n), pathExists)
			_ = c.WriteData(streamID(n), true, declare(0))
			if ok = c.send(); ok {
				t.count.Add(1)
			}
		}
	})
}

func flood(ctx context.Context, t target) {
	several(ctx, 4, func() {
		if conn, err := t.dial(ctx); err == nil {
			_ = conn.Close()
			t.count.Add(1)
		}
	})
}
