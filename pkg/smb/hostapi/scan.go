package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/queue"
)

// Limits of a scan. What kubelet and drivers link to shares is at most seven names below the
// kubelet's directory: plugins\kubernetes.io\csi\<driver>\<hash>\globalmount, or
// pods\<uid>\volumes\kubernetes.io~csi\<name>\mount.
const (
	scanDepth   = 8
	scanEntries = 100_000
	scanTime    = 10 * time.Second
	scanPause   = 10 * time.Minute // before one that was too long is repeated
	scanRetry   = 10 * time.Second // before one that failed is
)

// scans are the searches for links that others have made, or this program before it was
// started anew: one for each set of working directories. The zero value is ready.
type scans struct {
	running queue.Queues[scanOf]
	mu      sync.Mutex
	ended   map[string]ended
}

// scanOf is a scan of a set of working directories. Callers join the one that runs.
type scanOf string

// Objects implements queue.Change.
func (s scanOf) Objects() []string { return []string{string(s)} }

// Fresh implements queue.Change.
func (scanOf) Fresh() bool { return false }

// ended is how a scan ended, and when.
type ended struct {
	err error
	at  time.Time
}

// pause is how long to wait after a scan that did not come to its end. The next one after a
// scan that was too long would be, too; other failures pass.
func (e ended) pause() time.Duration {
	if errors.Is(e.err, errTooManyFiles) || errors.Is(e.err, context.DeadlineExceeded) {
		return scanPause
	}
	return scanRetry
}

var errTooManyFiles = fmt.Errorf("there are more than %d files and directories", scanEntries)

// learnLinks makes sure that all links to shares in the working directories are known. Those
// that are made later pass through here anyway. Without working directories nobody can say
// where links may be, and those that this process has made are all that counts.
func (h host) learnLinks(ctx context.Context) error {
	if h.limits == nil {
		return nil
	}
	s, dirs := &h.state.scans, strings.Join(h.limits.WorkingDirs(), "\n")
	if last, ok := s.last(dirs); ok && (last.err == nil || h.m.Now().Before(last.at.Add(last.pause()))) {
		return last.err
	}
	return s.running.Do(ctx, scanOf(dirs), scanTime, func(ctx context.Context) error {
		err := h.scan(ctx)
		s.note(dirs, ended{err, h.m.Now()})
		return err
	})
}

func (s *scans) last(dirs string) (ended, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.ended[dirs]
	return last, ok
}

func (s *scans) note(dirs string, e ended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = map[string]ended{}
	}
	s.ended[dirs] = e
}

// scan remembers every link to a share in the working directories.
func (h host) scan(ctx context.Context) error {
	search := &search{h: h, left: scanEntries}
	for _, dir := range h.limits.WorkingDirs() {
		if err := search.below(ctx, dir); err != nil {
			return fmt.Errorf("look for links to shares in %s: %w", dir, err)
		}
	}
	klog.FromContext(ctx).V(2).Info("Looked for links to shares", "entries", scanEntries-search.left, "found", search.found)
	return nil
}

type search struct {
	h           host
	left, found int
}

// below goes through a working directory. It is found as its operator wrote it down, links on
// the way included.
func (s *search) below(ctx context.Context, dir string) error {
	above, name := win.Anywhere(dir).Split()
	parent, err := s.h.m.OpenDirectory(ctx, above)
	if errors.Is(err, winerr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	return s.list(ctx, parent, name, dir, scanDepth)
}

// list goes through a directory, and follows no link.
func (s *search) list(ctx context.Context, parent win.Tree, name, path string, depth int) error {
	err := parent.ListDirectory(ctx, name, func(dir win.Tree, entries []win.DirEntry) error {
		for _, e := range entries {
			if s.left--; s.left < 0 {
				return errTooManyFiles
			}
			if err := s.visit(ctx, dir, e, winpath.Join(path, e.Name), depth); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, winerr.NotFound): // since its parent was listed
		return nil
	case winerr.CodeOf(err) == winerr.AccessDenied && depth < scanDepth:
		// Somebody's own directory, in which we could make no link either.
		klog.FromContext(ctx).V(2).Info("A directory cannot be searched for links to shares", "path", path, "error", err)
		return nil
	}
	return err
}

func (s *search) visit(ctx context.Context, dir win.Tree, e win.DirEntry, path string, depth int) error {
	switch {
	case e.Tag == win.TagSymlink:
		point, err := dir.ReparsePoint(ctx, e.Name)
		if errors.Is(err, winerr.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if share, ok := shareOf(point); ok {
			s.found++
			s.h.state.links.add(share, link{path, s.h.limits})
		}
	case e.Directory && !e.Tag.NameSurrogate() && depth > 1 && !filledByPods(e.Name):
		return s.list(ctx, dir, e.Name, path, depth-1)
	}
	return nil
}

// filledByPods reports whether a directory of the kubelet holds the files of pods, of which
// there can be very many, and among which no driver makes links: volumes of the kinds that
// kubelet itself keeps on its disk.
func filledByPods(name string) bool {
	switch strings.ToLower(name) {
	case "kubernetes.io~empty-dir", "kubernetes.io~configmap", "kubernetes.io~secret", "kubernetes.io~projected", "kubernetes.io~downward-api":
		return true
	default:
		return false
	}
}
