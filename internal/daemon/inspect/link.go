package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Bounds of a search: pods write in the directories that are searched.
const (
	// maxDepth is enough for what kubelet and drivers make, with some to spare:
	// pods\UID\volumes\kubernetes.io~csi\NAME\mount and
	// plugins\kubernetes.io\csi\DRIVER\HASH\globalmount.
	maxDepth   = 8
	maxEntries = 20_000
)

// Folders of pods in which volumes of other kinds are, such as emptyDir, whose files are the
// pods' own and can be any number. Only those of CSI are mounts.
const (
	volumesOf    = "kubernetes.io~"
	volumesOfCSI = "kubernetes.io~csi"
)

// search is a walk through the working directories, which enters no link.
type search struct {
	*look
	reach   policy.Reach
	entries int
	room    int // that is left for what it finds
	links   []Link
}

// errEnough ends a search at its bounds.
var errEnough = errors.New("the search has ended")

// allLinks finds the links in the working directories that lead to a volume, or nowhere.
func (l *look) allLinks(ctx context.Context) []Link {
	s := search{look: l, reach: l.limits.Reach(l.m), room: linkRoom}
	places := s.places(ctx, l.limits.WorkingDirs())
	for _, dir := range outermost(slices.Collect(maps.Keys(places))) {
		err := s.directory(ctx, dir, places[dir])
		if errors.Is(err, errEnough) {
			l.problems.add("links", fmt.Errorf("only the first %d entries of the working directories were searched", s.entries))
			break
		}
		s.failed(dir, err)
	}
	slices.SortFunc(s.links, func(a, b Link) int { return cmp.Compare(a.Path, b.Path) })
	return s.links
}

// failed notes that a working directory could not be searched, unless nothing has been put
// there yet.
func (s *search) failed(dir string, err error) {
	if !errors.Is(err, winerr.NotFound) {
		s.problems.add("links in "+dir, err)
	}
}

// places finds out where directories really are: they are the operator's, and may themselves
// be links. Whole volumes are left out, which have more than a search can take, so that they
// do not hide the directories in them that can be searched.
func (s *search) places(ctx context.Context, dirs []string) map[string]win.Path {
	found := map[string]win.Path{}
	for _, dir := range dirs {
		place, err := s.place(ctx, dir)
		if err != nil {
			s.failed(dir, err)
			continue
		}
		found[dir] = place
	}
	return found
}

func (s *search) place(ctx context.Context, dir string) (win.Path, error) {
	location, err := s.m.Location(ctx, win.Following(dir))
	if err != nil {
		return win.Path{}, err
	}
	id, ok := win.VolumeOf(location)
	if !ok {
		return win.Path{}, fmt.Errorf("it is at %s, which is on no volume", location)
	}
	_, rest, _ := strings.Cut(location, `}\`)
	if rest == "" {
		return win.Path{}, errors.New("it is a whole volume, which is not searched")
	}
	return win.Path{Base: string(id), Rest: rest}, nil
}

// outermost leaves out directories that lie in another one of them.
func outermost(dirs []string) []string {
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	var outer []string
	for _, dir := range dirs {
		if !slices.ContainsFunc(outer, func(other string) bool { return winpath.Contains(other, dir) }) {
			outer = append(outer, dir)
		}
	}
	return outer
}

// directory searches a working directory, which is opened where it really is.
func (s *search) directory(ctx context.Context, dir string, place win.Path) error {
	above, name := place.Split()
	parent, err := s.m.OpenDirectory(ctx, above)
	if err != nil {
		return err
	}
	defer parent.Close()
	return s.list(ctx, parent, name, dir, 1)
}

// list searches a directory in an open one. Its path is what people know it by.
func (s *search) list(ctx context.Context, above win.Tree, name, path string, depth int) error {
	return above.ListDirectory(ctx, name, func(dir win.Tree, entries []win.DirEntry) error {
		for _, entry := range entries {
			if err := s.entry(ctx, dir, entry, winpath.Join(path, entry.Name), depth); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

func (s *search) entry(ctx context.Context, dir win.Tree, entry win.DirEntry, path string, depth int) error {
	if s.entries++; s.entries > maxEntries || s.room < 0 {
		s.entries--
		return errEnough
	}
	switch {
	case entry.Tag.NameSurrogate():
		return s.link(ctx, dir, entry.Name, path)
	case !entry.Directory || depth >= maxDepth || holdsFilesOfPods(entry.Name):
		return nil
	}
	// A directory that cannot be listed does not hide those beside it.
	switch err := s.list(ctx, dir, entry.Name, path, depth+1); {
	case errors.Is(err, errEnough) || ctx.Err() != nil:
		return err
	case errors.Is(err, winerr.NotFound) || winerr.CodeOf(err) == winerr.Directory: // it was removed or exchanged just now
		return nil
	default:
		s.trouble("links in "+path, err)
		return nil
	}
}

func holdsFilesOfPods(name string) bool {
	return len(name) >= len(volumesOf) && winpath.Equal(name[:len(volumesOf)], volumesOf) && !winpath.Equal(name, volumesOfCSI)
}

// link looks where a link leads.
func (s *search) link(ctx context.Context, dir win.Tree, name, path string) error {
	point, err := dir.ReparsePoint(ctx, name)
	switch {
	case policy.Unreadable(err):
		s.found(Link{Path: path, Stale: "it cannot be read: " + reasonOf(err)})
		return nil
	case errors.Is(err, winerr.NotFound) || winerr.CodeOf(err) == winerr.NotAReparsePoint:
		return nil
	case err != nil:
		s.trouble("the link "+path, err)
		return ctx.Err()
	}
	if text, mounted := point.MountedVolume(); mounted {
		id, _ := win.ParseVolumeID(text)
		s.found(Link{Path: path, VolumeID: id, Stale: s.staleVolume(id)})
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, portion(ctx, patience, 2))
	defer cancel()
	link, err := s.follow(limited, path)
	switch {
	case err != nil:
		s.trouble("where the link "+path+" leads", err)
	case link.VolumeID != "" || link.Stale != "":
		s.found(link)
	}
	return ctx.Err()
}

// follow goes where a link leads, as far as the policy lets anybody. What lies beyond, and
// shares, which may take minutes to answer, are not looked at.
func (s *search) follow(ctx context.Context, path string) (Link, error) {
	link := Link{Path: path}
	at, err := s.reach.Resolve(ctx, op, path, policy.Enter)
	switch {
	case winerr.CodeOf(err) == winerr.CantResolveFilename:
		link.Stale = "it leads in a circle"
		return link, nil
	case errors.Is(err, winerr.Denied), errors.Is(err, winerr.Unsupported), errors.Is(err, winerr.NotFound):
		return link, nil
	case err != nil:
		return link, err
	}
	if id, ok := win.ParseVolumeID(at.Base); ok {
		link.VolumeID, link.Stale = id, s.staleVolume(id)
		if at.Rest == "" || link.Stale != "" {
			return link, nil
		}
	} else if strings.HasPrefix(at.Base, `\\`) {
		return link, nil
	}
	_, err = s.m.FileInfo(ctx, at)
	switch {
	case policy.Unreachable(err):
		link.Stale = "its target " + at.String() + " cannot be reached: " + reasonOf(err)
		return link, nil
	case winerr.CodeOf(err) == winerr.ReparsePointEncounter: // exchanged just now
		return link, nil
	default:
		return link, err
	}
}

// staleVolume says why a link to a volume leads nowhere, if it does.
func (s *search) staleVolume(id win.VolumeID) string {
	if s.present == nil || s.present[id] {
		return ""
	}
	return "its volume is gone, or on a disk that is offline"
}

func (s *search) found(link Link) {
	s.room -= room(link.Path, string(link.VolumeID), link.Stale)
	s.links = append(s.links, link)
}

// trouble notes what could not be found out about something that a stranger has named.
func (s *search) trouble(what string, err error) {
	if s.problems.add(what, err) {
		s.room -= room(what, reasonOf(err))
	}
}
