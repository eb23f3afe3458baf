// Package mounter stages, publishes, grows and measures volumes on a Windows node. It replaces the
// Windows code of a CSI driver.
//
// New returns a Mounter. It works in one of two ways, with the same results and the same errors: as
// part of the driver's process in a HostProcess container, over the library, or through the pipes
// of the CSI Proxy daemon.
//
// Its verbs have the shape of CSI's node service: Stage, Unstage, Publish, Unpublish, Expand,
// NeedsResize and Stats. Each can be repeated: one that finds its work done succeeds. Each returns
// when its context ends; a repetition completes what was begun. Calls about one path, or one disk,
// wait for each other.
//
// A Mounter also implements mount.Interface of k8s.io/mount-utils, for the code that a driver has
// around it.
//
// Paths may have any spelling that the kubelet uses, see Path. The package does no work when it
// is imported, and compiles and works on every system: package mountertest runs it on an emulated
// node.
//
// The package is v0: its names can change, with a line in the change log.
package mounter

import (
	"context"
	"hash/maphash"
	"io/fs"
	"sync"
	"sync/atomic"

	"k8s.io/mount-utils"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// Mounter mounts volumes on a node. It is safe for concurrent use. Close ends its connections.
type Mounter struct {
	node    *node
	mode    Mode
	locks   *locks
	closed  *atomic.Bool
	links   *links
	mutual  *mutualSecret
	refused *refusals
	begun   *sync.Map // by path
	staging *sync.Map // paths, by the number of the disk that Stage is mounting
	late    *sync.Map // since when a disk could not go offline, by path
	// leaving are the targets that are logged out of later.
	leaving *sync.Map
	// ignored are the options and file systems of Linux that the log has.
	ignored *sync.Map
	// ctx is what the methods of mount.Interface use, which have no context; see WithContext.
	ctx context.Context //nolint:containedctx // mount.Interface is published without
}

var _ mount.Interface = (*Mounter)(nil)

// New returns a Mounter that works on this node. Without an option for the mode it finds out
// which one fits, see Detect.
//
// In the mode Daemon, New fails if the daemon does not serve the group filesystem, which every
// driver needs. With the option WithWait it waits for the daemon until ctx ends. It connects to the
// other groups at their first use, so a driver needs only the pipes of the groups that it uses.
func New(ctx context.Context, options ...Option) (*Mounter, error) {
	s := settings{workingDirs: []string{defaultWorkingDir}}
	mode, err := s.apply(options)
	if err != nil {
		return nil, during("open mounter", "", err)
	}
	n, mode, err := s.connect(ctx, mode)
	if err != nil {
		return nil, err
	}
	return &Mounter{node: n, mode: mode, locks: &locks{}, closed: &atomic.Bool{}, links: &links{}, mutual: &mutualSecret{}, refused: &refusals{seed: maphash.MakeSeed()}, begun: &sync.Map{}, staging: &sync.Map{}, late: &sync.Map{}, leaving: &sync.Map{}, ignored: &sync.Map{}, ctx: context.WithoutCancel(ctx)}, nil
}

// Mode returns how the Mounter works: Library or Daemon.
func (m *Mounter) Mode() Mode { return m.mode }

// Close ends the connections to the daemon. Afterwards every method fails with an error that matches
// fs.ErrClosed. A second call does nothing.
func (m *Mounter) Close() error {
	m.closed.Store(true)
	return m.node.close()
}

func (m *Mounter) open() error {
	if m.closed.Load() {
		return errClosed()
	}
	return nil
}

func (m *Mounter) path(path string) (string, error) {
	if err := m.open(); err != nil {
		return "", err
	}
	return Path(path)
}

func errClosed() error {
	return &nodeError{class: failure.InUse, text: "the mounter is closed; open another one with New", err: fs.ErrClosed}
}

// WithContext returns the same Mounter, whose methods of mount.Interface end with ctx and log to
// its logger. Those of the Mounter that New returns use the values of New's context, and do not end
// with it.
func (m *Mounter) WithContext(ctx context.Context) *Mounter {
	bound := *m
	bound.ctx = ctx
	return &bound
}
