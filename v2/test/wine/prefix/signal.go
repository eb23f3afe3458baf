//go:build linux

package prefix

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

var open sync.Map // of *Prefix

// CloseOnSignal closes all prefixes when this process is interrupted or terminated, before
// it ends of that.
func CloseOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		received := (<-signals).(syscall.Signal)
		for p := range open.Range {
			p.(*Prefix).Close()
		}
		signal.Reset(received)
		_ = syscall.Kill(syscall.Getpid(), received)
	}()
}
