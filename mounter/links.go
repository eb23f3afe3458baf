package mounter

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

// links are the links of pods that a Mounter knows: those that it made, and those that one search has found, because a
// driver restarts while pods run. Each is looked at again before it counts.
type links struct {
	mu       sync.Mutex
	sources  map[string]string // by link, as pathKey returns it: the path that it leads to
	searched map[string]bool   // by directory of the kubelet
	failing  map[string]time.Time
}

// add returns where the link led before, or "".
func (l *links) add(link, source string) (before string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sources == nil {
		l.sources = map[string]string{}
	}
	before = l.sources[pathKey(link)]
	l.sources[pathKey(link)] = source
	return before
}

func (l *links) forget(link string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sources, pathKey(link))
}

// to returns the links to a path, or to what is below it.
func (l *links) to(path string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for link, source := range l.sources {
		if isBelow(path, source) {
			found = append(found, link)
		}
	}
	slices.Sort(found)
	return found
}

// begin reports whether a directory must be searched, and notes that it was.
func (l *links) begin(dir string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.searched == nil {
		l.searched = map[string]bool{}
	}
	defer func() { l.searched[dir] = true }()
	return !l.searched[dir]
}

// failed notes that a search has failed, and returns for how long searches have.
func (l *links) failed(dir string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.searched, dir)
	if l.failing == nil {
		l.failing = map[string]time.Time{}
	}
	if l.failing[dir].IsZero() {
		l.failing[dir] = time.Now()
	}
	return time.Since(l.failing[dir])
}

// isBelow reports whether a path is another one, or below it.
func isBelow(above, path string) bool {
	above, path = pathKey(above), pathKey(path)
	return path == above || strings.HasPrefix(path, above+`\`)
}

// checkUnpublished fails while a pod's link leads to a staging path: the pod would lose its volume. On other systems a
// pod keeps what is mounted for it.
func (m *Mounter) checkUnpublished(ctx context.Context, staging string) error {
	if err := m.searchLinks(ctx, staging); err != nil {
		return err
	}
	for _, link := range m.links.to(staging) {
		at, err := m.entryAt(ctx, link)
		switch {
		case err != nil:
			return err
		case at.kind == fsapi.LinkEntry && leadsBelow(staging, at.target), at.guessed && at.kind != fsapi.SubdirectoryEntry:
			return newError(failure.InUse, "look at", staging, "the volume is published at %s; unpublish it first", link)
		}
		m.links.forget(link)
	}
	return nil
}

// leadsBelow reports whether the target of a link is a path or below it.
func leadsBelow(path, target string) bool {
	clean, err := Path(target)
	return err == nil && isBelow(path, clean)
}

// searchLinks looks, once, for the links that the kubelet had made for pods before this process began:
// pods\UID\volumes\kubernetes.io~csi\NAME\mount. They are beside plugins\, where it stages volumes. What cannot be
// searched keeps a volume, but not for ever.
func (m *Mounter) searchLinks(ctx context.Context, staging string) error {
	at := strings.Index(strings.ToLower(staging), `\plugins\`)
	if at < 0 {
		return nil
	}
	root := staging[:at]
	unlock, err := m.locks.lock(ctx, "links in "+pathKey(root)) // one search at a time
	if err != nil {
		return err
	}
	defer unlock()
	if !m.links.begin(pathKey(root)) {
		return nil
	}
	err = m.searchPods(ctx, root+`\pods`)
	if err == nil || cannotTell(err) {
		return ctx.Err()
	}
	const enough = time.Minute
	if m.links.failed(pathKey(root)) < enough {
		return newError(failure.Unavailable, "look for links of pods to", staging, "%s; a pod may use the volume, so try again", failure.Message(err))
	}
	klog.FromContext(ctx).Info("Cannot search for links of pods, so those of an earlier process do not count", "directory", root, "reason", err.Error())
	return ctx.Err()
}

func (m *Mounter) searchPods(ctx context.Context, pods string) error {
	return m.eachIn(ctx, pods, func(pod, _ string) error {
		return m.eachIn(ctx, pod+`\volumes\kubernetes.io~csi`, func(volume, _ string) error {
			return m.eachIn(ctx, volume, func(link, target string) error {
				if source, err := Path(target); err == nil {
					m.links.add(link, source)
				}
				return nil
			})
		})
	})
}

// eachIn calls do for the folders and links in a directory, which need not exist. It goes on after a failure, and returns
// the first.
func (m *Mounter) eachIn(ctx context.Context, dir string, do func(path, target string) error) error {
	entries, complete, first := m.node.list(ctx, dir)
	switch {
	case errors.Is(first, fs.ErrNotExist):
		return nil
	case first == nil && !complete:
		first = newError(failure.Unavailable, "list", dir, "it has too many entries")
	}
	for _, entry := range entries {
		at := dir + `\` + entry.Name
		switch entry.Type {
		case fsapi.FileEntry, fsapi.MountEntry:
		case fsapi.SubdirectoryEntry, fsapi.LinkEntry:
			first = cmp.Or(first, do(at, entry.Target))
		case fsapi.OtherEntry:
			first = cmp.Or(first, newError(failure.Unavailable, "look at", at, "it cannot be read"))
		}
	}
	return first
}
