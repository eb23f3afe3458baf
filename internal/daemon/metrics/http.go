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

// Limits on what one who connects can demand.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = 30 * time.Second
	maxHeaderBytes = 8 << 10
	maxScrapes     = 4 // at once
)

// Run serves metrics and health on an address while work runs, and returns what work returns.
// If it cannot listen, work is not begun. The readiness ends with ctx, at the beginning of the
// stop; everything else is served until work has returned.
//
// There is neither encryption nor a password, so the address should be of this machine only.
func (m *Metrics) Run(ctx context.Context, address string, work func(context.Context) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	logger := klog.FromContext(ctx)
	if local, ok := listener.Addr().(*net.TCPAddr); ok && !local.IP.IsLoopback() {
		logger.Info("Whoever reaches this machine can read the metrics: there is no password; prefer a loopback address", "address", listener.Addr())
	}
	logger.Info("Serving metrics", "address", listener.Addr())
	defer context.AfterFunc(ctx, func() { m.ready.Store(false) })()

	s := &http.Server{
		Handler:           m.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(io.Discard, "", 0), // strangers' mistakes
	}
	s.SetKeepAlivesEnabled(false) // who asks once in a while need not keep a connection
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error(err, "Metrics are not served any more", "address", listener.Addr())
		}
	}()
	err = work(ctx)
	_ = s.Close() // what is left are connections of those who read
	<-served
	return err
}

// Handler answers /metrics, /healthz and /readyz, and nothing else.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError, // one that fails must not hide the others
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
