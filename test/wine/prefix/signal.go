//go:build linux

package prefix

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

// prefixes are those that are open.
type prefixes struct {
	mu  sync.Mutex
	all []*Prefix
}

var open prefixes

func (s *prefixes) add(p *Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, p)
}

func (s *prefixes) remove(p *Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(other *Prefix) bool { return other == p })
}

func (s *prefixes) list() []*Prefix {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// CloseOnSignal closes all prefixes when this process is interrupted or terminated, before
// it ends of that.
func CloseOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		received := (<-signals).(syscall.Signal)
		for _, p := range open.list() {
			p.Close()
		}
		signal.Reset(received)
		_ = syscall.Kill(syscall.Getpid(), received)
	}()
}
