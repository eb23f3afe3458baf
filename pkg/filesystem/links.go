package filesystem

import (
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// maxLinks bounds the links that are remembered, maxLinkText both paths of one: a caller can make many. A node has some
// hundred volumes, and kubelet's paths are shorter.
const (
	maxLinks    = 4096
	maxLinkText = 2048
)

// links are those that a Filesystem has made.
type links struct {
	mu      sync.Mutex
	targets map[string]string // by link; both folded
	free    map[string]bool   // targets of which a link was removed
	lost    bool              // some could not be remembered
}

func (l *links) made(target, link string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.targets) == maxLinks || len(target)+len(link) > maxLinkText {
		l.lost = true
		return
	}
	if l.targets == nil {
		l.targets = make(map[string]string)
	}
	l.targets[winpath.Fold(link)] = winpath.Fold(target)
}

func (l *links) removed(link string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	link = winpath.Fold(link)
	target, known := l.targets[link]
	if !known { // there may be others that are not known
		return
	}
	delete(l.targets, link)
	if l.free == nil || len(l.free) == maxLinks {
		l.free = make(map[string]bool)
	}
	l.free[target] = true
}

// Unlinked reports whether Rmdir has removed the last link to a path of those that CreateSymlink made. A driver that
// unpublished a volume has done so. It needs the option OnUnlinkedGone.
func (f *Filesystem) Unlinked(path string) bool {
	f.links.mu.Lock()
	defer f.links.mu.Unlock()
	path = winpath.Fold(path)
	if !f.links.free[path] || f.links.lost {
		return false
	}
	for _, target := range f.links.targets {
		if target == path {
			return false
		}
	}
	return true
}
