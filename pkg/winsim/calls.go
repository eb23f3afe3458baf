package winsim

import (
	"context"
	"maps"
	"reflect"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// calls counts the calls made to a node, by the name of the seam's method. One such
// call stands for about one system call on a real machine, which makes it the unit
// of our performance budgets.
type calls struct {
	mu     sync.Mutex
	counts map[string]int
}

// Calls returns how often each call was made since the start or the last ResetCalls.
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

// beginCall begins every emulated call: it counts the call, and lets injected faults
// delay or fail it. The object may have other names under which a fault knows it.
func (n *Node) beginCall(ctx context.Context, call, object string, aliases ...string) error {
	return n.beginCallOn(ctx, call, func() []string { return append(aliases, object) })
}

// beginCallOn is enter for objects whose names are only put together if a fault asks for
// them: that of a file can have thousands of components.
func (n *Node) beginCallOn(ctx context.Context, call string, names func() []string) error {
	n.calls.count(call)
	if err := ctx.Err(); err != nil {
		return err
	}
	return n.applyFaults(ctx, call, names)
}

// callNames are the calls a Fault can name.
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
