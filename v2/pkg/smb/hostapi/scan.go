package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/queue"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Limits of a scan. Kubelet and drivers link to shares at most seven names below the kubelet's
// directory: plugins\kubernetes.io\csi\<driver>\<hash>\globalmount, or
// pods\<uid>\volumes\kubernetes.io~csi\<name>\mount.
const (
	scanDepth   = 8
	scanDrive   = scanDepth + 4 // of a whole drive, which holds the kubelet's directory
	scanEntries = 100_000
	scanTime    = 10 * time.Second
	scanPause   = 10 * time.Minute // after a scan that hit a limit
	scanRetry   = 10 * time.Second // after a scan that failed
	scanFailing = time.Minute      // until scans that fail are no reason any more to keep a volume
)

// scans look for links that other processes have made, or this program before it restarted:
// one scan for each set of working directories. The zero value is ready.
type scans struct {
	running queue.Queues[scanOf]
	mu      sync.Mutex
	ended   map[string]ended
}

// scanOf is a scan of a set of working directories. Callers join the one that runs.
type scanOf string

func (s scanOf) Objects() []string { return []string{string(s)} }

func (scanOf) Fresh() bool { return false }

// ended is how a scan ended, and when.
type ended struct {
	err error
	at  time.Duration
	// since is when the first of the scans has failed that have failed since.
	since time.Duration
}

// passes reports whether a failure can pass soon.
func (e ended) passes(now time.Duration) bool {
	return e.err != nil && e.pause() == scanRetry && now-e.since < scanFailing
}

// pause is how long to wait after a scan that did not finish. After one that hit a limit, the
// next would hit it, too; other failures pass.
func (e ended) pause() time.Duration {
	if errors.Is(e.err, errTooManyFiles) || errors.Is(e.err, context.DeadlineExceeded) {
		return scanPause
	}
	return scanRetry
}

var errTooManyFiles = fmt.Errorf("there are more than %d files and directories", scanEntries)

// learnLinks makes sure that all links to shares in the working directories are known. This
// process makes the later ones itself. Without working directories there is nothing to scan,
// and only links that this process has made count.
func (h host) learnLinks(ctx context.Context) error {
	if h.limits == nil {
		return nil
	}
	s, dirs := &h.state.scans, h.limits.String()
	if last, ok := s.last(dirs); ok && (last.err == nil || h.m.Elapsed() < last.at+last.pause()) {
		return last.err
	}
	return s.running.Do(ctx, scanOf(dirs), scanTime, func(ctx context.Context) error {
		err := h.scan(ctx)
		s.note(dirs, ended{err: err, at: h.m.Elapsed()})
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
	e.since = e.at
	if before := s.ended[dirs]; before.err != nil {
		e.since = before.since
	}
	s.ended[dirs] = e
}

// scan remembers every link to a share in the working directories.
func (h host) scan(ctx context.Context) error {
	scan := &linkScan{h: h, left: scanEntries}
	for _, dir := range h.limits.WorkingDirs() {
		if err := scan.below(ctx, dir); err != nil {
			return fmt.Errorf("scan %s for links to shares: %w", dir, err)
		}
	}
	klog.FromContext(ctx).V(2).Info("Scanned for links to shares", "entries", scanEntries-scan.left, "found", scan.found)
	return nil
}

type linkScan struct {
	h           host
	left, found int
}

// below scans a working directory. It can be the root of a drive, and links in its path and at
// its end are followed: the operator made them.
func (s *linkScan) below(ctx context.Context, dir string) error {
	opened, err := s.h.m.OpenDirectory(ctx, win.Following(dir))
	if errors.Is(err, winerr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer opened.Close()
	depth := scanDepth
	if _, hasParent := winpath.Parent(dir); !hasParent {
		depth = scanDrive
	}
	return s.list(ctx, opened, "", dir, depth)
}

// list scans a directory, and follows no link.
func (s *linkScan) list(ctx context.Context, parent win.Tree, name, path string, depth int) error {
	err := win.List(ctx, parent, name, func(dir win.Tree, entries []win.DirEntry) error {
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
	case winerr.CodeOf(err) == winerr.AccessDenied && name != "":
		// This process could make no link in it either.
		klog.FromContext(ctx).V(2).Info("Skipped a directory in the scan for links to shares", "path", path, "error", err)
		return nil
	}
	return err
}

func (s *linkScan) visit(ctx context.Context, dir win.Tree, e win.DirEntry, path string, depth int) error {
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
	case e.Directory && !e.Tag.NameSurrogate() && depth > 1 && !filledByPods(e.Name) && !ofWindows(path):
		return s.list(ctx, dir, e.Name, path, depth-1)
	}
	return nil
}

// filledByPods reports whether a directory of the kubelet holds files of pods: volumes that
// kubelet keeps on its own disk. There can be very many files, and drivers make no links there.
func filledByPods(name string) bool {
	switch strings.ToLower(name) {
	case "kubernetes.io~empty-dir", "kubernetes.io~configmap", "kubernetes.io~secret", "kubernetes.io~projected", "kubernetes.io~downward-api":
		return true
	default:
		return false
	}
}

// ofWindows reports whether a directory belongs to Windows or holds container images. A scan of
// a whole drive would spend all its entries there, and drivers make no links in it.
func ofWindows(path string) bool {
	_, path, _ = strings.Cut(path, `:`)
	switch strings.ToLower(path) {
	case `\windows`, `\program files`, `\program files (x86)`, `\$recycle.bin`, `\system volume information`,
		`\programdata\containerd`, `\programdata\docker`:
		return true
	default:
		return false
	}
}
