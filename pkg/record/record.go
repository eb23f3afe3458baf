// Package record writes the calls that CSI Proxy makes to Windows into a file, one JSON line each. The
// file shows a developer, who does not have the machine, what it has answered: csi-proxy-sim replay compares
// it with the emulated node.
//
// A driver that uses the library begins at its start, before it makes the first host:
//
//	stop, err := record.Start(ctx, record.Config{Path: `C:\csi\calls.jsonl`, Hash: true})
//	if err != nil { ... }
//	defer stop()
//
// The file never holds a password or a CHAP secret. It holds names of files, shares, users and targets, and
// serial numbers, unless Hash is set. Without Start nothing is recorded, and calls cost nothing more.
package record

import (
	"context"
	"errors"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
)

// DefaultMaxBytes is how large a recording may become, unless Config says otherwise.
const DefaultMaxBytes = record.DefaultMaxBytes

// Config says what to record, and where.
type Config struct {
	// Path is the file. A full file, and that of an earlier run, gets the suffix .1; older ones have higher numbers.
	// A file that is no recording is not replaced.
	Path string
	// MaxBytes is the size of all files together; 0 means DefaultMaxBytes. The oldest are removed.
	MaxBytes int64
	// Hash replaces names and serial numbers by hashes, with a key that is not kept: equal names have
	// equal hashes within a recording. Data and raw bytes are left out.
	Hash bool
}

// Start begins to record the calls of all hosts that are made from now on for the machine this program runs
// on. First it describes the machine's storage in the file, which can take some seconds; ctx limits only that.
// Stop ends the recording; hosts go on without it. A file that cannot be written later is logged, and does
// not disturb any call.
func Start(ctx context.Context, cfg Config) (stop func() error, err error) {
	file, err := open(ctx, local.Machine(), cfg, local.Build())
	if err != nil {
		return nil, err
	}
	local.Use(file.Machine())
	if !cfg.Hash {
		local.Tap(file.ControlCode, file.Rows)
	}
	return func() error {
		local.Tap(nil, nil)
		local.Use(nil)
		return file.Close()
	}, nil
}

// On is Start for a given machine. Outside this module that is an emulated one: On(ctx, node, cfg) with a
// *winsim.Node. The calls of hosts on the result are recorded.
func On(ctx context.Context, m win.Machine, cfg Config) (recorded win.Machine, stop func() error, err error) {
	file, err := open(ctx, m, cfg, "emulated")
	if err != nil {
		return nil, nil, err
	}
	return file.Machine(), file.Close, nil
}

func open(ctx context.Context, m win.Machine, cfg Config, build string) (*record.File, error) {
	if cfg.Path == "" {
		return nil, errors.New("record calls: there is no path")
	}
	logger := klog.FromContext(ctx)
	return record.Open(ctx, m, cfg.Path, record.Options{
		Program: version.String(), Windows: build, Hash: cfg.Hash, MaxBytes: cfg.MaxBytes, Services: servicelist.Default(),
		Failed: func(err error) { logger.Error(err, "Cannot record calls", "file", cfg.Path) },
	})
}
