package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"
)

// Limits of one client.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = 30 * time.Second
	maxHeaderBytes = 8 << 10
	maxScrapes     = 4 // at once
)

// Run serves metrics and health on an address while work runs, and returns what work returns. If it
// cannot listen, it does not start work. Readiness ends with ctx, when the stop begins; the rest is
// served until work returns.
//
// There is neither encryption nor a password, so use a loopback address.
func (m *Metrics) Run(ctx context.Context, address string, work func(context.Context) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	logger := klog.FromContext(ctx)
	if local, ok := listener.Addr().(*net.TCPAddr); ok && !local.IP.IsLoopback() {
		logger.Info("Other machines can read the metrics, which have no password; prefer a loopback address", "address", listener.Addr())
	}
	logger.Info("Serving metrics", "address", listener.Addr())
	defer context.AfterFunc(ctx, func() { m.ready.Store(false) })()

	s := &http.Server{
		Handler:           m.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(io.Discard, "", 0), // errors of clients
	}
	s.SetKeepAlivesEnabled(false) // scrapes are rare
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error(err, "Metrics are no longer served", "address", listener.Addr())
		}
	}()
	err = work(ctx)
	_ = s.Close() // closes the connections of readers
	<-served
	return err
}

// Handler answers /metrics, /healthz and /readyz, and nothing else.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError, // one metric that fails must not hide the others
		MaxRequestsInFlight: maxScrapes,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !m.ready.Load() {
			http.Error(w, "not all endpoints listen", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
