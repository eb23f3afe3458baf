package logfile_test

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/logfile"
)

// TestFile_DiskFull writes to the device that is a full disk.
func TestFile_DiskFull(t *testing.T) {
	var failure error
	fallback := &bytes.Buffer{}
	f := open(t, logfile.Config{Path: "/dev/full", Fallback: fallback, Failed: func(err error) { failure = err }})
	put(t, f, line(0))
	put(t, f, line(1))
	if fallback.String() != line(0)+line(1) || !errors.Is(failure, syscall.ENOSPC) {
		t.Errorf("the fallback has %q, after %v", fallback, failure)
	}
}

// TestFile_Device is never renamed, however much was written.
func TestFile_Device(t *testing.T) {
	cfg := newConfig(t)
	cfg.Path = os.DevNull
	f := open(t, cfg)
	for i := range 10 {
		put(t, f, line(i))
	}
	want(t, cfg, "")
}
