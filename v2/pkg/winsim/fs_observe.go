package winsim

import (
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Touch is an access of one call to one file or directory.
type Touch struct {
	// Call is the name of the call as Calls lists it.
	Call string
	// Path is the real path of the file, after all links: on a drive C:\dir\file, on a volume
	// without a letter \\?\Volume{guid}\dir\file, on a share \\server\share\dir\file.
	Path string
	// Changed is true if the call created, changed or deleted the file.
	Changed bool
}

// Observe calls f for every file and directory that a call accesses, before a deletion. F must not call the node.
func (n *Node) Observe(f func(Touch)) {
	defer n.lock()()
	n.files.observers = append(n.files.observers, f)
}

// observe calls the observers. t.mu is held.
func (t *files) observe(call string, at resolvedPath, changed bool) {
	if len(t.observers) == 0 {
		return
	}
	touch := Touch{Call: call, Path: displayPath(at.volume, at.entry), Changed: changed}
	for _, f := range t.observers {
		f(touch)
	}
}

// displayPath is the real path of an entry: on a share, by drive letter, or by volume.
func displayPath(v *volume, e *entry) string {
	switch {
	case v.share != nil:
		return pathFrom(v.share.names()[0]+`\`, e)
	case v.Letter != "":
		return pathFrom(v.Letter+`:\`, e)
	default:
		return pathFrom(string(v.id()), e)
	}
}

func pathFrom(root string, e *entry) string {
	var names []string
	for ; e.parent != nil; e = e.parent {
		names = append(names, e.name)
	}
	slices.Reverse(names)
	return root + strings.Join(names, winpath.Separator)
}
