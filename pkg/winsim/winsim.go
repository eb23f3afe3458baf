// Package winsim is an emulated Windows storage node for tests: of this project,
// and of CSI drivers that have no Windows machine at hand.
//
// A Node stands where the real machine stands, below the host logic. What a test
// exercises through it is the code that runs on Windows nodes, not a stand-in for
// that code. Five lines are enough:
//
//	node, err := winsim.New(winsim.Default())
//	if err != nil { ... }
//	fs, err := filesystem.New(node.Filesystem())
//	if err != nil { ... }
//	_, err = fs.Mkdir(ctx, &filesystem.MkdirRequest{Path: `C:\var\lib\kubelet\pods\1`})
//
// The child package serve puts the whole gRPC API of a node on Unix sockets, so that
// a driver's own client code can be tested on any OS; the program csi-proxy-sim does
// the same for drivers in other languages.
//
// What a node contains is said by a Model, in Go or in YAML. A node counts the calls
// made to it (Calls), fails or delays them on demand (Inject), and lets a test look
// at and change its files directly (WriteFile, Symlink, MountFolder and so on).
// A Node is safe for concurrent use.
//
// The package never touches the machine it runs on and imports nothing of Windows.
package winsim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

// Node is one emulated Windows machine.
type Node struct {
	win.Disks   // replaced by methods soon
	win.Volumes // replaced by methods soon

	calls    calls
	faults   faults
	realTime bool

	mu      sync.Mutex // guards everything below
	volumes []*volume
}

var _ win.Machine = (*Node)(nil)

// New creates a node as model describes it. The error names the field that is
// wrong.
func New(model Model) (*Node, error) {
	if err := model.validate(); err != nil {
		return nil, err
	}
	node := &Node{realTime: model.RealTime}
	node.faults.random = rand.New(rand.NewPCG(model.Seed, model.Seed)) //nolint:gosec // faults must be reproducible, not secret
	for _, v := range model.Volumes {
		node.volumes = append(node.volumes, newVolume(v))
	}
	for i, f := range model.Files {
		if err := node.create(f); err != nil {
			return nil, &ModelError{Field: field("files", i, "path"), Problem: err.Error()}
		}
	}
	return node, nil
}

// Filesystem returns the host of the filesystem group on this node, for
// filesystem.New.
func (n *Node) Filesystem() fsapi.HostAPI { return fsapi.NewOn(n) }

// Sleep is the node's clock. Unless the model asks for real time it returns at
// once, so that tests do not wait for retries.
func (n *Node) Sleep(ctx context.Context, d time.Duration) error {
	if !n.realTime {
		return ctx.Err()
	}
	return sleep(ctx, d)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
