package winsim

import (
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Touch is what one call did to one file or directory.
type Touch struct {
	// Call is the name of the call as Calls lists it.
	Call string
	// Path is where the file really is, whatever links led there: on a drive,
	// C:\dir\file, on a volume without a letter, \\?\Volume{guid}\dir\file, or on a
	// share, \\server\share\dir\file.
	Path string
	// Changed tells calls that made, changed or removed it from those that looked.
	Changed bool
}

// Observe calls f for every file and directory that a call reaches, before it is removed.
// It is how a test proves that nothing was touched where nothing should be. F must not
// call the node.
func (n *Node) Observe(f func(Touch)) {
	n.lock()
	defer n.mu.Unlock()
	n.observers = append(n.observers, f)
}

// observe tells the observers. n.mu is held.
func (n *Node) observe(call string, at resolvedPath, changed bool) {
	if len(n.observers) == 0 {
		return
	}
	touch := Touch{Call: call, Path: displayPath(at.volume, at.entry), Changed: changed}
	for _, f := range n.observers {
		f(touch)
	}
}

// displayPath tells where an entry really is: on a share, or by a drive letter if there is one.
func displayPath(v *volume, e *entry) string {
	switch {
	case v.share != nil:
		return pathFrom(v.share.name()+`\`, e)
	case v.letter != "":
		return pathFrom(v.letter+`:\`, e)
	default:
		return pathFrom(string(v.id()), e)
	}
}

// pathFrom is the path of an entry from the root of its volume.
func pathFrom(root string, e *entry) string {
	stream := ""
	if e.isStream {
		stream, e = ":"+e.name, e.parent
	}
	var names []string
	for ; e.parent != nil; e = e.parent {
		names = append(names, e.name)
	}
	slices.Reverse(names)
	return root + strings.Join(names, winpath.Separator) + stream
}
