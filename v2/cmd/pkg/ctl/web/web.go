// Package web serves the page of a node on loopback and keeps it up to date.
//
// Other users and other sites of the browser are on the same machine. A random token in the address
// keeps out the former, the check of the host name the latter.
package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/webpage"
)

const (
	// maxViewers limits the pages that get events.
	maxViewers = 64
	// maxConnections leaves some for requests beside the events.
	maxConnections = 2 * maxViewers
	maxHeaderBytes = 8 << 10
	headerTimeout  = 5 * time.Second
	idleTimeout    = time.Minute
	// writeTimeout is the time for one response or one event.
	writeTimeout = 10 * time.Second
	// freshTimeout is how long a request waits for a new description, before it gets the last one.
	freshTimeout = 5 * time.Second
	// stopTimeout is how long requests may take at the end.
	stopTimeout = time.Second
)

// Server serves one node.
type Server struct {
	// Describe describes the node. The server calls it once at a time.
	Describe func(context.Context) (inventory.Node, error)
	// Interval is the pause between descriptions, while there are viewers.
	Interval time.Duration
	// Now and After are those of package time, except in tests.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time

	token string
	wake  chan struct{} // has an element if a viewer has come

	callers callers

	mu      sync.Mutex
	viewers int
	streams int
	state   state
	changed chan struct{} // closed when state changes
}

// state is the last description. Its fields do not change.
type state struct {
	at      time.Time // of the node
	tried   time.Time // of the last attempt
	failure string    // of the last attempt
	content webpage.Content
	event   []byte // with the content
	sum     [sha256.Size]byte
}

// Loopback completes an address: host:port, or only a port. It refuses those that other machines
// can reach.
func Loopback(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = "", address
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", fmt.Errorf("invalid address %q; use a port, or 127.0.0.1:PORT", address)
	}
	switch {
	case host == "" || strings.EqualFold(host, "localhost"):
		host = "127.0.0.1"
	case !loopback(host):
		return "", fmt.Errorf("other machines could reach %q; use 127.0.0.1 or [::1], and a tunnel such as 'ssh -L' from other machines", address)
	}
	return net.JoinHostPort(host, port), nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Prepare chooses the token.
func (s *Server) Prepare() {
	s.token = rand.Text() + rand.Text() // 256 bits
	s.wake, s.changed = make(chan struct{}, 1), make(chan struct{})
}

// Start describes the node for the first time, after Prepare.
func (s *Server) Start(ctx context.Context) error {
	node, err := s.Describe(ctx)
	if err != nil {
		return err
	}
	return s.publish(node)
}

// Address returns the address to open, after Prepare. It is a secret.
func (s *Server) Address(listener net.Listener) string {
	return "http://" + listener.Addr().String() + "/" + s.token + "/"
}

// Serve serves the page after Start, until ctx ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // events end with it
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout, // there are no bodies
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         s.callers.changed,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, callerKey{}, conn)
		},
		ErrorLog: log.New(io.Discard, "", 0), // errors of clients
	}
	var tasks sync.WaitGroup
	tasks.Go(func() { s.follow(ctx) })
	tasks.Go(func() {
		<-ctx.Done()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if server.Shutdown(limited) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(listener)
	cancel()
	tasks.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// follow describes the node once per interval while there are viewers.
func (s *Server) follow(ctx context.Context) {
	for {
		if !s.watched() {
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
				continue
			}
		}
		node, err := s.Describe(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = s.publish(node)
		}
		if err != nil {
			s.fail(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.After(s.Interval):
		}
	}
}

func (s *Server) watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.viewers > 0
}

// publish notifies the viewers about a description.
func (s *Server) publish(node inventory.Node) error {
	content := webpage.New(node)
	var html bytes.Buffer
	if err := content.WriteContent(&html); err != nil {
		return err
	}
	now := s.Now()
	s.set(state{at: now, tried: now, content: content, event: event("node", html.String()), sum: sha256.Sum256(html.Bytes())})
	return nil
}

// fail notifies the viewers that there is no new description.
func (s *Server) fail(err error) {
	_, last := s.current()
	last.failure, last.tried = output.Printable(err.Error()), s.Now()
	s.set(last)
}

func (s *Server) set(next state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = next
	close(s.changed)
	s.changed = make(chan struct{})
}

// current returns the state, and what is closed when there is another one.
func (s *Server) current() (<-chan struct{}, state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed, s.state
}

// view counts a viewer until leave is called.
func (s *Server) view() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.viewers++
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.viewers--
	}
}

var headers = map[string]string{
	"Cache-Control":                "no-store",
	"Content-Security-Policy":      webpage.Policy(),
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
}

// ServeHTTP answers the two addresses that begin with the token, and reveals nothing at others.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	known := subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
	if conn, ok := r.Context().Value(callerKey{}).(net.Conn); ok && known {
		s.callers.trust(conn)
	}
	switch {
	case !local(r.Host): // a name of another site that its DNS server has pointed at us
		refuse(w, http.StatusForbidden)
	case !known:
		refuse(w, http.StatusNotFound)
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed)
	case rest == "":
		s.page(w, r)
	case rest == "events":
		s.events(w, r)
	default:
		refuse(w, http.StatusNotFound)
	}
}

// refuse answers a request and closes the connection: others wait for it.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
}

// local reports whether a Host header names this machine. The port may be that of a tunnel.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.EqualFold(host, "localhost") || loopback(host)
}

// page writes the page with a description that is at most an interval old, if there is one.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	defer s.view()()
	asked, late := s.Now(), s.After(freshTimeout)
	changed, last := s.current()
	for waiting := true; waiting && asked.Sub(last.tried) > s.Interval; changed, last = s.current() {
		select {
		case <-changed:
		case <-late:
			waiting = false
		case <-r.Context().Done():
			return
		}
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = last.content.WriteLive(w, last.at, "/"+s.token+"/events") // a viewer that is gone
}

// events sends a description when it differs from the last one, and the time of each.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		refuse(w, http.StatusServiceUnavailable)
		return
	}
	defer s.exit()
	defer s.view()()
	controller := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	var sent [sha256.Size]byte
	for {
		changed, last := s.current()
		var message []byte
		if last.sum != sent {
			message = append(message, last.event...)
		}
		if last.failure != "" {
			message = append(message, event("failure", last.failure)...)
		} else {
			message = append(message, event("seen", last.at.UTC().Format(webpage.Stamp))...)
		}
		_ = controller.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := w.Write(message); err != nil {
			return
		}
		if err := controller.Flush(); err != nil {
			return
		}
		sent = last.sum
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams >= maxViewers {
		return false
	}
	s.streams++
	return true
}

func (s *Server) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
}

// event encodes an event. Lines of data end with any line break, so that none can begin a field.
func event(name, data string) []byte {
	var b strings.Builder
	b.WriteString("event: " + name + "\n")
	for line := range strings.Lines(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data)) {
		b.WriteString("data: " + strings.TrimSuffix(line, "\n") + "\n")
	}
	b.WriteString("\n")
	return []byte(b.String())
}
