package filesystem

import (
	"maps"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// maxLinked bounds the paths that links remembers. A node has some hundred volumes.
const maxLinked = 4096

// links are those that a Filesystem has made and removed since it exists, by the path to which they lead.
type links struct {
	mu sync.Mutex
	to map[string]map[string]bool // both folded
}

func (l *links) made(target, link string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	target = winpath.Fold(target)
	if l.to[target] == nil {
		if len(l.to) == maxLinked {
			maps.DeleteFunc(l.to, func(_ string, links map[string]bool) bool { return len(links) == 0 })
		}
		if len(l.to) == maxLinked {
			return
		}
		if l.to == nil {
			l.to = make(map[string]map[string]bool)
		}
		l.to[target] = make(map[string]bool)
	}
	if len(l.to[target]) < maxLinked {
		l.to[target][winpath.Fold(link)] = true
	}
}

func (l *links) removed(target, link string) {
	l.made(target, link)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.to[winpath.Fold(target)], winpath.Fold(link))
}

// Unlinked reports whether Rmdir has removed a link to a path, and after it no link that CreateSymlink made leads there.
// A driver that unpublished a volume has done so. It needs the option OnUnlinkedGone.
func (f *Filesystem) Unlinked(path string) bool {
	f.links.mu.Lock()
	defer f.links.mu.Unlock()
	links, known := f.links.to[winpath.Fold(path)]
	return known && len(links) == 0
}
