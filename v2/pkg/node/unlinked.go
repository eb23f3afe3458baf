package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

const (
	opUnlinked = "remove unlinked mount"

	// unlinkedAge is for how long the volume of a mount must be gone at each look.
	unlinkedAge = time.Minute
	// unlinkedLimit is how long a look may take: two searches of five seconds, one of links, and its turn.
	unlinkedLimit = time.Minute

	// A caller can make and remove many links. A node has some hundred volumes, and kubelet's paths are shorter.
	maxUnlinked     = 4096
	maxUnlinkedText = 2048
)

// unlinked are the paths to which links led that were removed.
type unlinked struct {
	looks tasks.Locks[struct{}]
	mu    sync.Mutex
	gone  map[string]absentVolume // by path; zero if it was not gone at the last look
}

// absentVolume is a volume that was gone at each look since then, by Elapsed.
type absentVolume struct {
	id    win.VolumeID
	since time.Duration
}

// NoteUnlinked notes that a link to a path was removed, as by a driver that unpublishes a volume. The option OnUnlink of
// package filesystem calls it.
func (n *Node) NoteUnlinked(target string) {
	path, err := winpath.Clean(target)
	if err != nil || len(path) > maxUnlinkedText {
		return
	}
	u := &n.unlinked
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone == nil {
		u.gone = map[string]absentVolume{}
	}
	if _, known := u.gone[path]; known || len(u.gone) < maxUnlinked {
		u.gone[path] = absentVolume{} // a look that has seen the link does not forget the path
	}
}

// RemoveUnlinked removes the mounts, each with its folder, that NoteUnlinked has noted, to which no link in the working
// directories leads, and whose volume was certainly gone at each call for a minute: drivers find nothing to unmount there,
// and the kubelet keeps a mounted folder. The daemon calls it twice a minute.
func (n *Node) RemoveUnlinked(ctx context.Context) error {
	if n.limits == nil {
		return winerr.New(winerr.Invalid, opUnlinked, "", "there are no working directories; set them with the option WorkingDirs")
	}
	u := &n.unlinked
	unlock, err := u.looks.Lock(ctx, struct{}{})
	if err != nil {
		return winerr.Wrap(opUnlinked, "", err)
	}
	defer unlock()
	u.mu.Lock()
	noted := maps.Clone(u.gone)
	u.mu.Unlock()
	paths := slices.Sorted(maps.Keys(noted))
	return errors.Join(tasks.Each(ctx, len(paths), unlinkedLimit, func(ctx context.Context, i int) error {
		done, now, err := n.lookAtUnlinked(ctx, paths[i], noted[paths[i]])
		u.mu.Lock()
		defer u.mu.Unlock()
		switch {
		case u.gone[paths[i]] != noted[paths[i]]: // it was noted again
		case done:
			delete(u.gone, paths[i])
		default:
			u.gone[paths[i]] = now
		}
		return winerr.Wrap(opUnlinked, paths[i], err)
	})...)
}

// lookAtUnlinked removes a mount if it is time. It is done if there is none, or a link leads to it: each look makes all
// adapters look for disks, and the removal of that link notes the path again.
func (n *Node) lookAtUnlinked(ctx context.Context, path string, before absentVolume) (done bool, now absentVolume, err error) {
	_, point, err := n.limits.Reach(n.m).Link(ctx, opUnlinked, path)
	text, _ := point.MountedVolume()
	id, ok := win.ParseVolumeID(text)
	switch {
	case errors.Is(err, winerr.NotFound), errors.Is(err, winerr.Denied), err == nil && !ok:
		return true, now, nil
	case err != nil:
		return false, now, err
	}
	gone, err := n.lost.Volume(ctx, n.m, id)
	switch {
	case !gone:
		return false, now, err
	case before.id != id:
		return false, absentVolume{id, n.m.Elapsed()}, nil
	case n.m.Elapsed()-before.since < unlinkedAge:
		return false, before, nil
	}
	ended := false // is read only after removeUnlinked has returned
	err = n.inTurnOfVolume(ctx, id, path, func(ctx context.Context) (err error) {
		ended, err = n.removeUnlinked(ctx, path, id)
		return err
	})
	return err == nil && ended, now, err
}

// removeUnlinked is lookAtUnlinked in its turn. A link that is made meanwhile, or that the search has not seen, leads
// nowhere then, rather than to a folder on drive C.
func (n *Node) removeUnlinked(ctx context.Context, path string, id win.VolumeID) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, unlinkedLimit)
	defer cancel()
	links := (&lookup{Node: n}).allLinks(win.AsInspector(ctx))
	if links.failed || len(links.problems) > 0 {
		return false, fmt.Errorf("the search for links to it has not seen all: %q", links.problems.list())
	}
	for _, link := range links.follows {
		if link.link.VolumeID == string(id) || winpath.SameTarget(link.target, path) {
			klog.FromContext(ctx).V(2).Info("A volume is gone, but a link leads to its mount", "volume", id, "path", path, "link", link.path)
			return true, nil
		}
	}
	if gone, err := n.lost.Volume(ctx, n.m, id); !gone {
		return false, err
	}
	entry, err := n.limits.Reach(n.m).Open(ctx, opUnlinked, path, policy.Remove)
	if err != nil {
		return false, err
	}
	defer entry.Close()
	point, err := entry.Dir.ReparsePoint(ctx, entry.Name)
	text, _ := point.MountedVolume()
	if now, _ := win.ParseVolumeID(text); err != nil || now != id {
		return false, err
	}
	changed, err := entry.Dir.ChangedAt(ctx, entry.Name)
	if err != nil {
		return false, err
	}
	removed, err := entry.Dir.RemoveLink(ctx, entry.Name, point, changed)
	if removed {
		klog.FromContext(ctx).Info("Removed the mount of a volume that is gone, to which no link leads", "volume", id, "path", path)
	}
	return removed, err
}
