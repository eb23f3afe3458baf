// Package attack has clients that do their worst: they speak HTTP/2 frame by frame and keep no rule that
// a client of gRPC keeps. Its tests measure what that does to csi-proxy-sim and to its other clients, and
// those of test/wine do the same to csi-proxy.exe on pipes.
package attack

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
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

// Run attacks the endpoint that dial connects to, and returns how often it did what its name says. Few
// attacks use the other endpoints, too.
func (a Attack) Run(ctx context.Context, dial Dial, others ...Dial) int64 {
	var count atomic.Int64
	a.do(ctx, target{dial, others, &count})
	return count.Load()
}

// Attacks are all of them. The first three took gigabytes, or every place.
var Attacks = []Attack{
	{"1 connection, 1000 requests that declare 1.9 MB and send 1.8 MB", halfSent},
	{"200 connections with 1000 headers without a message each", headersOnly},
	{"1024 connections with one health watch each", watch(1024, 1)},
	{"none", func(ctx context.Context, _ target) { <-ctx.Done() }},
	{"60 connections with 1000 health watches each", watch(60, 1000)},
	{"1 connection, requests that arrive in frames of 1 byte", tinyFrames},
	{"100 connections that never read their answers", neverRead},
	{"100 connections that never open their window", noWindow},
	{"6000 connections that send nothing", silent},
	{"5000 connections that greet and then idle", idle},
	{flooding, flood},
	{"300 requests that arrive byte by byte", slowLoris},
	{"headers of 1 MiB", hugeHeaders},
	{"messages of 100 MB", hugeMessages},
	{"4 connections that begin and reset requests", rapidReset},
	{"pings and settings without end", pings},
	{"20 connections, requests in frames of 1,025 bytes", wastefulFrames},
	{"1500 connections with a health watch, each of a process of its own", strangers(watching)},
	{"1500 connections that greet, each of a process of its own", strangers(nothing)},
	{"1500 connections with a call and a health watch, each of a process of its own", strangers(callingAndWatching)},
	{"300 connections with one health watch each, to each endpoint, again and again", watchAll},
	{"6000 connections that send nothing, again and again", silentAgain},
	{"1000 connections that leave 4 answers unread each", unread},
	{"1500 connections with 150 requests of as many headers as allowed, each of a process of its own", strangers(laden)},
}

// flooding fills the queue of connections that the system has not handed to the server. While it is full,
// the system refuses others, and no server can help it. Named pipes have no such queue.
const flooding = "connections opened and closed"

// WriteTable replaces the table of a page that a command writes.
func WriteTable(page, command, table string) error {
	begin, end := "<!-- "+command+" writes this table -->\n", "<!-- end of the table -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, foundEnd := strings.Cut(rest, end)
	if !found || !foundEnd {
		return fmt.Errorf("%s has no place for the table of %s", page, command)
	}
	return os.WriteFile(page, []byte(before+begin+table+end+after), 0o600) //nolint:gosec // the caller names the page
}

// target is what is attacked.
type target struct {
	dial   Dial
	others []Dial
	count  *atomic.Int64
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

// each does something once from each of a number of goroutines, and waits for the end of ctx.
func each(ctx context.Context, number int, do func()) {
	var all sync.WaitGroup
	for range number {
		all.Go(do)
	}
	all.Wait()
	<-ctx.Done()
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

func (t target) greetUnread(ctx context.Context, settings ...http2.Setting) (client, bool) {
	c, ok := t.open(ctx)
	return c, ok && c.greet(settings...)
}

func (c client) greet(settings ...http2.Setting) bool {
	c.buffer.WriteString(http2.ClientPreface)
	_ = c.WriteSettings(settings...) // a buffer takes everything
	return c.send()
}

// send sends the frames of the buffer.
func (c client) send() bool {
	_, err := c.buffer.WriteTo(c.Conn)
	return err == nil
}

// begin begins a call without its message.
func (c client) begin(stream uint32, method string, more ...hpack.HeaderField) {
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: method},
		{Name: ":authority", Value: "localhost"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	}, more...)...), EndHeaders: true})
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
	const declared, sent, part = 1900 << 10, 1800 << 10, 16 << 10
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

func watch(connections, watches int) func(context.Context, target) {
	return func(ctx context.Context, t target) {
		each(ctx, connections, func() {
			for ctx.Err() == nil {
				c, ok := t.greet(ctx)
				if !ok {
					continue
				}
				for n := range watches {
					c.begin(streamID(n), healthv1.Health_Watch_FullMethodName)
					_ = c.WriteData(streamID(n), true, declare(0))
					if !c.send() {
						break
					}
					t.count.Add(1)
				}
				return // and hold it
			}
		})
	}
}

// watchAll hoards at every endpoint, and comes back when it is turned away.
func watchAll(ctx context.Context, t target) {
	var all sync.WaitGroup
	for _, dial := range append([]Dial{t.dial}, t.others...) {
		all.Go(func() {
			at := target{dial: dial, count: t.count}
			several(ctx, 300, func() {
				c, ok := at.greetUnread(ctx)
				if !ok {
					return
				}
				defer c.Close()
				c.begin(1, healthv1.Health_Watch_FullMethodName)
				_ = c.WriteData(1, true, declare(0))
				if c.send() {
					t.count.Add(1)
					_, _ = io.Copy(io.Discard, c.Conn)
				}
				pause(ctx, 50*time.Millisecond)
			})
		})
	}
	all.Wait()
}

// frames is what a client sends.
func frames(write func(client)) []byte {
	buffer := &bytes.Buffer{}
	buffer.WriteString(http2.ClientPreface)
	c := client{nil, http2.NewFramer(buffer, nil), buffer}
	_ = c.WriteSettings() // a buffer takes everything
	write(c)
	return buffer.Bytes()
}

func nothing(client) {}

func watching(c client) {
	c.begin(1, healthv1.Health_Watch_FullMethodName)
	_ = c.WriteData(1, true, declare(0))
}

func callingAndWatching(c client) {
	c.begin(1, pathExists)
	_ = c.WriteData(1, true, declare(0))
	c.begin(3, healthv1.Health_Watch_FullMethodName)
	_ = c.WriteData(3, true, declare(0))
}

// Strange opens a connection that seems to be of a process that is gone. It is nil where no process can.
var Strange func(ctx context.Context) (net.Conn, error)

// strangers opens connections, each of a process of its own, and holds the last 1500.
func strangers(write func(client)) func(context.Context, target) {
	first := frames(write)
	return func(ctx context.Context, t target) {
		var held []net.Conn
		for ctx.Err() == nil {
			conn, err := Strange(ctx)
			if err != nil {
				continue
			}
			if _, err := conn.Write(first); err != nil {
				_ = conn.Close()
				continue
			}
			t.count.Add(1)
			go func() { _, _ = io.Copy(io.Discard, conn) }() // until it is closed
			if held = append(held, conn); len(held) > 1500 {
				_ = held[0].Close()
				held = held[1:]
			}
		}
		for _, conn := range held {
			_ = conn.Close()
		}
	}
}

// laden begins requests with many short headers and a long one, and sends nothing else.
func laden(c client) {
	more := []hpack.HeaderField{{Name: "long", Value: strings.Repeat("x", 4<<10)}}
	for range 50 {
		more = append(more, hpack.HeaderField{Name: "ab", Value: "cd"})
	}
	for n := range 150 {
		c.begin(streamID(n), pathExists, more...)
	}
}

// wastefulFrames sends frames for which gRPC takes a buffer of four times their size.
func wastefulFrames(ctx context.Context, t target) {
	const requests, part, parts = 30, 1<<10 + 1, 220
	several(ctx, 20, func() {
		c, ok := t.greet(ctx)
		if !ok {
			return
		}
		defer c.Close()
		for n := range requests {
			c.begin(streamID(n), pathExists)
			_ = c.WriteData(streamID(n), false, declare(1900<<10))
		}
		if !c.send() {
			return
		}
		pause(ctx, 50*time.Millisecond) // the server opens the windows
		for range parts {
			for n := range requests {
				_ = c.WriteData(streamID(n), false, make([]byte, part))
			}
			if !c.send() {
				return
			}
			t.count.Add(requests)
		}
		_, _ = c.Read(make([]byte, 1)) // until the server closes it
	})
}

func tinyFrames(ctx context.Context, t target) {
	several(ctx, 1, func() {
		c, ok := t.greet(ctx)
		if !ok {
			return
		}
		defer c.Close()
		for n := range 900 {
			c.begin(streamID(n), pathExists)
			_ = c.WriteData(streamID(n), false, declare(1<<20))
			for range 60 << 10 {
				_ = c.WriteData(streamID(n), false, []byte{0})
			}
			t.count.Add(60 << 10)
			if !c.send() {
				return
			}
		}
	})
}

// calls makes calls until the server ends the connection.
func (t target) calls(ctx context.Context, c client) {
	for n := 0; ctx.Err() == nil; n++ {
		c.begin(streamID(n), pathExists)
		_ = c.WriteData(streamID(n), true, declare(0))
		if !c.send() {
			return
		}
		t.count.Add(1)
	}
}

func neverRead(ctx context.Context, t target) {
	several(ctx, 100, func() {
		if c, ok := t.greetUnread(ctx); ok {
			t.calls(ctx, c)
			_ = c.Close()
		}
	})
}

func noWindow(ctx context.Context, t target) {
	several(ctx, 100, func() {
		c, ok := t.greetUnread(ctx, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		if !ok {
			return
		}
		go func() { _, _ = io.Copy(io.Discard, c.Conn) }()
		t.calls(ctx, c)
		_ = c.Close()
	})
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

func silentAgain(ctx context.Context, t target) {
	several(ctx, 6000, func() {
		c, ok := t.open(ctx)
		if !ok {
			return
		}
		t.count.Add(1)
		_, _ = io.Copy(io.Discard, c.Conn) // until the server closes it
		_ = c.Close()
		pause(ctx, time.Second)
	})
}

// unread asks for answers and lets the server keep them.
func unread(ctx context.Context, t target) {
	several(ctx, 1000, func() {
		c, ok := t.greetUnread(ctx, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		if !ok {
			return
		}
		defer c.Close()
		for n := range 4 {
			c.begin(streamID(n), pathExists)
			_ = c.WriteData(streamID(n), true, declare(0))
		}
		if c.send() {
			t.count.Add(4)
			_, _ = io.Copy(io.Discard, c.Conn) // until the server closes it
		}
		pause(ctx, 5*time.Millisecond)
	})
}

func idle(ctx context.Context, t target) {
	several(ctx, 16, func() {
		if t.count.Load() >= 5000 {
			<-ctx.Done()
		} else if _, ok := t.greet(ctx); ok {
			t.count.Add(1)
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

func slowLoris(ctx context.Context, t target) {
	several(ctx, 300, func() {
		c, ok := t.greet(ctx)
		if !ok {
			return
		}
		defer c.Close()
		c.begin(1, pathExists)
		for _, b := range bytes.Clone(c.buffer.Bytes()) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			t.count.Add(1)
			pause(ctx, 10*time.Millisecond)
		}
	})
}

func hugeHeaders(ctx context.Context, t target) {
	padding := headers(hpack.HeaderField{Name: "x-padding", Value: strings.Repeat("X", 16000)})
	several(ctx, 4, func() {
		c, ok := t.greet(ctx)
		if !ok {
			return
		}
		defer c.Close()
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: padding})
		for range 64 {
			_ = c.WriteContinuation(1, false, padding)
		}
		_ = c.send() // the server may close it before the end
		t.count.Add(1)
	})
}

func hugeMessages(ctx context.Context, t target) {
	several(ctx, 2, func() {
		c, ok := t.greet(ctx)
		if !ok {
			return
		}
		defer c.Close()
		for n := 0; ctx.Err() == nil; n++ {
			c.begin(streamID(n), pathExists)
			_ = c.WriteData(streamID(n), false, declare(100<<20))
			for range 3 { // what the window allows
				_ = c.WriteData(streamID(n), false, make([]byte, 16<<10))
			}
			if !c.send() {
				return
			}
			t.count.Add(1)
		}
	})
}

func rapidReset(ctx context.Context, t target) {
	several(ctx, 4, func() {
		c, ok := t.greet(ctx)
		if !ok {
			return
		}
		defer c.Close()
		for n := 0; ctx.Err() == nil; n++ {
			c.begin(streamID(n), pathExists)
			_ = c.WriteData(streamID(n), true, declare(0))
			_ = c.WriteRSTStream(streamID(n), http2.ErrCodeCancel)
			if !c.send() {
				return
			}
			t.count.Add(1)
		}
	})
}

func pings(ctx context.Context, t target) {
	several(ctx, 4, func() {
		c, ok := t.greet(ctx)
		if !ok {
			return
		}
		defer c.Close()
		for ctx.Err() == nil {
			_ = c.WritePing(false, [8]byte{})
			_ = c.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 15})
			if !c.send() {
				return
			}
			t.count.Add(2)
		}
	})
}
