package winsim

import (
	"maps"
	"reflect"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// calls counts the calls to a node by the seam's method. One call is about one system call on a
// real machine; performance budgets count them. A listing is one call, however long it is.
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
	c.counts[call]++
}

var callNames = func() map[string]bool {
	names := map[string]bool{}
	for _, part := range []reflect.Type{
		reflect.TypeFor[win.Files](), reflect.TypeFor[win.Directory](), reflect.TypeFor[win.Disks](), reflect.TypeFor[win.Volumes](),
		reflect.TypeFor[win.ISCSI](), reflect.TypeFor[win.SMB](), reflect.TypeFor[win.System](),
	} {
		for i := range part.NumMethod() {
			method := part.Method(i)
			names[method.Name] = true
		}
	}
	delete(names, "Open") // counts as OpenDirectory
	delete(names, "Close")
	return names
}()
