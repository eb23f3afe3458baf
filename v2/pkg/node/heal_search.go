package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// Where kubelet stages volumes: stagingDir\DRIVER\HASH\stagingName. Before 1.24 it was
// stagingDir\pv\NAME\stagingName.
// https://github.com/kubernetes/kubernetes/pull/107065
const (
	stagingDir    = `plugins\kubernetes.io\csi`
	stagingName   = "globalmount"
	stagingByName = "pv"
)

type stagingLink struct {
	path   string   // in a working directory
	at     win.Path // in its volume
	driver string
	volume string
	point  win.ReparsePoint
	kind   target
	id     win.VolumeID // of toVolume
	remote unc.Path     // of toShare

	changed time.Time
	noDate  error // why it is unknown
	first   checkResult
	second  checkResult
}

// target is what the link leads to, for people.
func (l *stagingLink) target() string {
	if l.kind == toVolume {
		return string(l.id)
	}
	return l.remote.Directory()
}

// leadsTo is the volume or the share.
func (l *stagingLink) leadsTo() string {
	if l.kind == toVolume {
		return string(l.id)
	}
	return l.remote.Share()
}

// search finds the staging links in the working directories. It enters no link.
func (h *healing) search(ctx context.Context) (links []*stagingLink, failed problems) {
	found := linkSearch{m: h.m, reach: h.reach}
	locations := found.locateAll(ctx, h.limits.WorkingDirs())
	for _, dir := range slices.Sorted(maps.Keys(locations)) {
		s := stagingSearch{m: h.m, path: winpath.Join(dir, stagingDir), at: locations[dir].Join(stagingDir)}
		if err := s.drivers(ctx); err != nil && !errors.Is(err, winerr.NotFound) {
			failed.add(s.path, err)
		}
		links = append(links, s.links...)
		failed = append(failed, s.failed...)
	}
	failed = append(failed, found.problems...)
	slices.SortFunc(links, func(a, b *stagingLink) int { return strings.Compare(a.path, b.path) })
	// Two working directories can be the same one, by a link or in another spelling.
	known := map[string]bool{}
	links = slices.DeleteFunc(links, func(l *stagingLink) bool {
		at := winpath.Fold(winpath.Join(l.at.Base, l.at.Rest))
		duplicate := known[at]
		known[at] = true
		return duplicate
	})
	return links, failed
}

type stagingSearch struct {
	m       win.Machine
	path    string
	at      win.Path
	links   []*stagingLink
	entries int
	failed  problems
}

var errTooMany = errors.New("it has too many entries")

// drivers goes through stagingDir.
func (s *stagingSearch) drivers(ctx context.Context) error {
	root, err := s.m.OpenDirectory(ctx, s.at)
	if err != nil {
		return err
	}
	defer root.Close()
	return s.each(ctx, root, "", func(drivers win.Tree, driver string) error {
		return s.each(ctx, drivers, driver, func(volumes win.Tree, volume string) error {
			return s.staging(ctx, volumes, driver, volume)
		})
	})
}

// each calls visit for the directories in a directory. One that cannot be listed does not end the
// search.
func (s *stagingSearch) each(ctx context.Context, above win.Tree, name string, visit func(dir win.Tree, name string) error) error {
	err := win.List(ctx, above, name, func(dir win.Tree, entries []win.DirEntry) error {
		for _, entry := range entries {
			if s.entries++; s.entries > maxEntries {
				return errTooMany
			}
			if !entry.Directory || entry.Tag.NameSurrogate() {
				continue
			}
			if err := visit(dir, entry.Name); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	return s.unlessListed(ctx, name, err)
}

// unlessListed notes that a directory could not be listed. Errors that end the search it returns.
func (s *stagingSearch) unlessListed(ctx context.Context, name string, err error) error {
	switch {
	case err == nil, errors.Is(err, winerr.NotFound), winerr.CodeOf(err) == winerr.Directory: // removed or replaced just now
		return nil
	case name == "", errors.Is(err, errTooMany), ctx.Err() != nil:
		return err
	}
	s.failed.add(winpath.Join(s.path, name), err)
	return nil
}

func (s *stagingSearch) staging(ctx context.Context, volumes win.Tree, driver, volume string) error {
	err := win.List(ctx, volumes, volume, func(dir win.Tree, entries []win.DirEntry) error {
		for _, entry := range entries {
			if winpath.Equal(entry.Name, stagingName) && entry.Tag.NameSurrogate() {
				return s.link(ctx, dir, driver, volume, entry.Name)
			}
		}
		return ctx.Err()
	})
	return s.unlessListed(ctx, winpath.Join(driver, volume), err)
}

// link reads a link. One that drivers do not make, or that cannot be read, is not ours to judge.
func (s *stagingSearch) link(ctx context.Context, dir win.Tree, driver, volume, name string) error {
	found := &stagingLink{
		path: winpath.Join(s.path, winpath.Join(winpath.Join(driver, volume), name)),
		at:   s.at.Join(driver, volume, name), driver: driver, volume: volume,
	}
	if winpath.Equal(driver, stagingByName) {
		found.driver = ""
	}
	point, err := dir.ReparsePoint(ctx, name)
	switch {
	case errors.Is(err, winerr.NotFound) || winerr.CodeOf(err) == winerr.NotAReparsePoint:
		return nil
	case policy.Unreadable(err) || (err != nil && ctx.Err() == nil):
		s.failed.add(found.path, err)
		return nil
	case err != nil:
		return err
	}
	found.point = point
	if text, mounted := point.MountedVolume(); mounted {
		found.kind, found.id = toVolume, win.VolumeID(text)
		if id, ok := win.ParseVolumeID(text); ok {
			found.id = id
		}
		s.links = append(s.links, found)
		return nil
	}
	if point.Tag == win.TagSymlink && !point.Relative && strings.HasPrefix(point.Target(), `\\`) && !strings.HasPrefix(point.Target(), `\\?\`) {
		if found.remote, err = unc.Parse(opHeal, point.Target()); err == nil {
			found.kind = toShare
			s.links = append(s.links, found)
		}
	}
	return nil
}

// date finds out how old links are.
func (h *healing) date(ctx context.Context, links []*stagingLink) {
	for _, link := range links {
		above, name := link.at.Split()
		dir, err := h.m.OpenDirectory(ctx, above)
		if err != nil {
			link.noDate = err
			continue
		}
		link.changed, link.noDate = dir.ChangedAt(ctx, name)
		dir.Close()
	}
}
