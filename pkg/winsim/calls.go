package winsim

import (
	"context"
	"maps"
	"reflect"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// calls counts the calls to a node by the seam's method. One call is about one system call on a
// real machine; performance budgets count them.
type calls struct {
	mu     sync.Mutex
	counts map[string]int
}

// Calls returns the number of calls by name, since the start or the last ResetCalls.
func (n *Node) Calls() map[string]int {
	n.calls.mu.Lock()
	defer n.calls.mu.Unlock()
	return maps.Clone(n.calls.counts)
}

// ResetCalls sets all counts to zero.
func (n *Node) ResetCalls() {
	n.calls.mu.Lock()
	defer n.calls.mu.Unlock()
	clear(n.calls.counts)
}

func (c *calls) count(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[call]++
}

// beginCall starts every emulated call: it counts the call and applies injected faults. Faults
// have no other hook. Aliases are other names of the object that faults can match.
func (n *Node) beginCall(ctx context.Context, call, object string, aliases ...string) error {
	return n.beginCallOn(ctx, call, func() []string { return append(aliases, object) })
}

// beginCallOn is beginCall for objects whose names are built only if a fault asks: a path can
// have thousands of components.
func (n *Node) beginCallOn(ctx context.Context, call string, names func() []string) error {
	n.calls.count(call)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := n.applyFaults(ctx, call, names); err != nil {
		return err
	}
	return n.awaitDisk(ctx, names)
}

// callNames are the calls that a Fault can name.
var callNames = func() map[string]bool {
	names := map[string]bool{}
	for _, part := range []reflect.Type{
		reflect.TypeFor[win.Files](), reflect.TypeFor[win.Directory](), reflect.TypeFor[win.Disks](), reflect.TypeFor[win.Volumes](),
		reflect.TypeFor[win.ISCSI](), reflect.TypeFor[win.SMB](), reflect.TypeFor[win.System](),
	} {
		for method := range part.Methods() {
			names[method.Name] = true
		}
	}
	delete(names, "Open") // counts as OpenDirectory
	delete(names, "Close")
	return names
}()
