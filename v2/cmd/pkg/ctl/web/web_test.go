package web_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/web"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// site is a server whose node the test decides.
type site struct {
	address string
	client  *http.Client
	stop    context.CancelFunc
	ended   <-chan error
	asked   chan struct{} // gets an element before each description
	answer  chan string   // the serial number of the next description, or "!" and an error
	tick    chan time.Time
	clock   *clock
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

const interval = 2 * time.Second

func node(serial string) inventory.Node {
	return inventory.Node{Node: &extensionv1.Node{Disks: []*extensionv1.Disk{{SerialNumber: serial}}}}
}

// start serves a node whose disk has the number first.
func start(t *testing.T) *site {
	t.Helper()
	s := &site{
		asked: make(chan struct{}), answer: make(chan string), tick: make(chan time.Time),
		clock: &clock{now: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}, client: &http.Client{},
	}
	started := false
	server := &web.Server{
		Interval: interval, Now: s.clock.Now,
		After: func(d time.Duration) <-chan time.Time {
			if d == interval {
				return s.tick
			}
			return nil // other limits are never reached
		},
		Describe: func(ctx context.Context) (inventory.Node, error) {
			if !started {
				started = true
				return node("first"), nil
			}
			select {
			case s.asked <- struct{}{}:
			case <-ctx.Done():
				return inventory.Node{}, ctx.Err()
			}
			select {
			case serial := <-s.answer:
				if text, failed := strings.CutPrefix(serial, "!"); failed {
					return inventory.Node{}, errors.New(text)
				}
				return node(serial), nil
			case <-ctx.Done():
				return inventory.Node{}, ctx.Err()
			}
		},
	}
	server.Prepare()
	require.NoError(t, server.Start(t.Context()))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	s.address, s.stop, s.ended = server.Address(listener), cancel, ended
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		cancel()
	})
	return s
}

func (s *site) describe(serial string) {
	<-s.asked
	s.answer <- serial
}

// do makes a request with another method, path or host.
func (s *site) do(t *testing.T, method, url, host string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	require.NoError(t, err)
	request.Host = host
	response, err := s.client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

// stream reads events.
type stream struct {
	t    *testing.T
	body io.Closer
	*bufio.Scanner
}

func (s *site) events(t *testing.T) stream {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.address+"events", http.NoBody)
	require.NoError(t, err)
	response, err := s.client.Do(request)
	require.NoError(t, err)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %s", response.Status, response.Header)
	}
	t.Cleanup(func() { response.Body.Close() })
	return stream{t, response.Body, bufio.NewScanner(response.Body)}
}

// next returns the name and data of an event.
func (s stream) next() (name, data string) {
	s.t.Helper()
	for s.Scan() {
		line := s.Text()
		switch {
		case line == "":
			return name, data
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			data += strings.TrimPrefix(line, "data: ") + "\n"
		default:
			s.t.Errorf("the event has the line %q", line)
		}
	}
	return "end", ""
}

func (s stream) expect(want ...string) {
	s.t.Helper()
	for i := 0; i < len(want); i += 2 {
		if name, data := s.next(); name != want[i] || !strings.Contains(data, want[i+1]) {
			s.t.Fatalf("got %s %q, want %s with %q", name, data, want[i], want[i+1])
		}
	}
}

func TestServer_Token(t *testing.T) {
	s := start(t)
	base, token, _ := strings.Cut(strings.TrimSuffix(s.address, "/"), "//")
	host, token, _ := strings.Cut(token, "/")
	base += "//" + host + "/"
	if len(token) < 43 {
		t.Errorf("the token %s has less than 256 bits", token)
	}
	for name, c := range map[string]struct {
		method, path, host string
		want               int
	}{
		"right":                {http.MethodGet, token + "/", "", http.StatusOK},
		"without the slash":    {http.MethodGet, token, "", http.StatusOK},
		"localhost":            {http.MethodGet, token + "/", "localhost:8080", http.StatusOK},
		"IPv6 loopback":        {http.MethodGet, token + "/", "[::1]:8080", http.StatusOK},
		"no port":              {http.MethodGet, token + "/", "127.0.0.1", http.StatusOK},
		"none":                 {http.MethodGet, "", "", http.StatusNotFound},
		"wrong":                {http.MethodGet, strings.Repeat("A", len(token)) + "/", "", http.StatusNotFound},
		"part":                 {http.MethodGet, token[:len(token)-1] + "/", "", http.StatusNotFound},
		"more":                 {http.MethodGet, token + "A/", "", http.StatusNotFound},
		"twice":                {http.MethodGet, "/" + token + "/", "", http.StatusNotFound},
		"events without":       {http.MethodGet, "events", "", http.StatusNotFound},
		"favicon":              {http.MethodGet, "favicon.ico", "", http.StatusNotFound},
		"something else":       {http.MethodGet, token + "/x", "", http.StatusNotFound},
		"rebound name":         {http.MethodGet, token + "/", "evil.example", http.StatusForbidden},
		"rebound name, port":   {http.MethodGet, token + "/", "evil.example:8080", http.StatusForbidden},
		"name like loopback":   {http.MethodGet, token + "/", "127.0.0.1.evil.example", http.StatusForbidden},
		"name like localhost":  {http.MethodGet, token + "/", "localhost.evil.example", http.StatusForbidden},
		"other address":        {http.MethodGet, token + "/", "10.0.0.1", http.StatusForbidden},
		"POST":                 {http.MethodPost, token + "/", "", http.StatusMethodNotAllowed},
		"HEAD":                 {http.MethodHead, token + "/", "", http.StatusMethodNotAllowed},
		"OPTIONS":              {http.MethodOptions, token + "/", "", http.StatusMethodNotAllowed},
		"POST without a token": {http.MethodPost, "", "", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := s.do(t, c.method, base+c.path, c.host)
			if response.StatusCode != c.want {
				t.Errorf("got %s, want %d", response.Status, c.want)
			}
			if refused := c.want != http.StatusOK; response.Close != refused {
				t.Errorf("the connection closes: %t, want %t", response.Close, refused)
			}
			if ok := c.want == http.StatusOK; ok != strings.Contains(body, "first") || !ok && body != "" {
				t.Errorf("got %q", body)
			}
			for header, want := range map[string]string{
				"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
				"Access-Control-Allow-Origin": "",
			} {
				if got := response.Header.Get(header); got != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
			if policy := response.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; ") {
				t.Errorf("policy %q", policy)
			}
		})
	}
}

// TestServer_Events: a viewer gets the node at once, and again when it has changed; it learns of a
// daemon that does not answer, and of its return.
func TestServer_Events(t *testing.T) {
	s := start(t)
	viewer := s.events(t)
	viewer.expect("node", "first", "seen", "2026-11-15 12:00:00 UTC")
	s.clock.add(interval)
	s.describe("first")
	viewer.expect("seen", "2026-11-15 12:00:02 UTC")
	s.tick <- time.Time{}
	s.describe("!the pipe\r\ndata: is gone")
	viewer.expect("failure", "the pipe<U+000D><U+000A>data: is gone")
	s.tick <- time.Time{}
	s.clock.add(interval)
	s.describe("second")
	viewer.expect("node", "second", "seen", "2026-11-15 12:00:04 UTC")
}

// TestServer_Fresh: a page that is opened after a pause shows the node as it is now.
func TestServer_Fresh(t *testing.T) {
	s := start(t)
	s.clock.add(time.Hour)
	go s.describe("second")
	if _, body := s.do(t, http.MethodGet, s.address, ""); !strings.Contains(body, "second") || !strings.Contains(body, "13:00:00 UTC") {
		t.Error(body)
	}
}

// TestServer_Crowd: more viewers than the limit are refused, and the others go on.
func TestServer_Crowd(t *testing.T) {
	s := start(t)
	viewers := make([]stream, 64)
	for i := range viewers {
		viewers[i] = s.events(t)
		viewers[i].expect("node", "", "seen", "")
	}
	if response, _ := s.do(t, http.MethodGet, s.address+"events", ""); response.StatusCode != http.StatusServiceUnavailable || !response.Close {
		t.Error(response.Status, response.Close)
	}
	s.describe("second")
	for _, viewer := range viewers {
		viewer.expect("node", "", "seen", "")
	}
}

// TestServer_Silent: connections that say nothing, or begin a request, or do not know the token, make room for a page at
// once, and never for each other's sake end that of a viewer.
func TestServer_Silent(t *testing.T) {
	s := start(t)
	viewer := s.events(t)
	viewer.expect("node", "", "seen", "")
	host, _, _ := strings.Cut(strings.TrimPrefix(s.address, "http://"), "/")
	for i := range 300 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", host)
		require.NoError(t, err)
		defer conn.Close()
		_, _ = io.WriteString(conn, []string{"", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"}[i%3])
	}
	s.client.Timeout = 2 * time.Second // of the five that a silent connection has
	for range 5 {
		s.client.CloseIdleConnections()
		if response, _ := s.do(t, http.MethodGet, s.address, ""); response.StatusCode != http.StatusOK {
			t.Error(response.Status)
		}
	}
	s.describe("second")
	viewer.expect("node", "second")
}

// TestServer_Stop: the end of the command ends the events and closes the address.
func TestServer_Stop(t *testing.T) {
	s := start(t)
	viewer := s.events(t)
	viewer.expect("node", "", "seen", "")
	<-s.asked // stop during a description
	s.stop()
	require.NoError(t, <-s.ended)
	viewer.expect("end", "")
	if _, err := s.client.Get(s.address); err == nil { //nolint:bodyclose,noctx // it fails
		t.Error("the address answers after the end")
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]string{
		"8080": "127.0.0.1:8080", ":8080": "127.0.0.1:8080", "0": "127.0.0.1:0", "localhost:1": "127.0.0.1:1", "127.0.0.2:1": "127.0.0.2:1", "[::1]:1": "[::1]:1",
		"": "", "x": "", "-1": "", "65536": "", "0.0.0.0:1": "", "[::]:1": "", "10.0.0.1:1": "", "example.com:1": "", "127.0.0.1": "", "127.0.0.1:http": "", "1:2:3": "",
	} {
		got, err := web.Loopback(address)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", address, got, err)
		}
	}
}
