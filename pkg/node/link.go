package node

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
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// Bounds of a search: pods write in the directories that it lists.
const (
	// maxDepth is more than what kubelet and drivers make:
	// pods\UID\volumes\kubernetes.io~csi\NAME\mount and
	// plugins\kubernetes.io\csi\DRIVER\HASH\globalmount.
	maxDepth = 8
	// maxEntries is more than 1,000 volumes with five links each make, which is 22,000.
	maxEntries = 30_000
)

// Folders of a pod's volumes, by plugin. Only those of CSI are mounts; others, such as
// emptyDir, hold any number of the pod's own files.
const (
	volumesOf    = "kubernetes.io~"
	volumesOfCSI = "kubernetes.io~csi"
)

// linkSearch walks through the working directories and enters no link.
type linkSearch struct {
	*lookup
	reach     policy.Reach
	entries   int
	bytesLeft int // in the answer
	links     []Link
}

// errEnough ends a search at its bounds.
var errEnough = errors.New("the search has ended")

// allLinks finds the links in the working directories that lead to a volume, or nowhere.
func (l *lookup) allLinks(ctx context.Context) []Link {
	s := linkSearch{lookup: l, reach: l.limits.Reach(l.m), bytesLeft: maxLinkBytes}
	locations := s.locateAll(ctx, l.limits.WorkingDirs())
	// Whole volumes are too large to search; the working directories in them are searched.
	for _, dir := range slices.Sorted(maps.Keys(locations)) {
		if locations[dir].Rest == "" {
			s.problems.add("links in "+dir, errors.New("it is a whole volume, which is not searched"))
			delete(locations, dir)
		}
	}
	for _, dir := range outermost(slices.Collect(maps.Keys(locations))) {
		err := s.directory(ctx, dir, locations[dir])
		if errors.Is(err, errEnough) {
			l.problems.add("links", fmt.Errorf("only the first %d entries of the working directories were searched", s.entries))
			break
		}
		s.failed(dir, err)
	}
	slices.SortFunc(s.links, func(a, b Link) int { return cmp.Compare(a.Path, b.Path) })
	return s.links
}

// failed notes that a working directory could not be searched, unless it does not exist yet.
func (s *linkSearch) failed(dir string, err error) {
	if err != nil && !errors.Is(err, winerr.NotFound) {
		s.linksFailed = true
		s.problems.add("links in "+dir, err)
	}
}

// locateAll finds out where working directories really are: the operator may have made them
// links.
func (s *linkSearch) locateAll(ctx context.Context, dirs []string) map[string]win.Path {
	found := map[string]win.Path{}
	for _, dir := range dirs {
		location, err := s.locate(ctx, dir)
		if err != nil {
			s.failed(dir, err)
			continue
		}
		found[dir] = location
	}
	return found
}

func (s *linkSearch) locate(ctx context.Context, dir string) (win.Path, error) {
	location, err := s.m.Location(ctx, win.Following(dir))
	if err != nil {
		return win.Path{}, err
	}
	id, ok := win.VolumeOf(location)
	if !ok {
		return win.Path{}, fmt.Errorf("it is at %s, which is on no volume", location)
	}
	_, rest, _ := strings.Cut(location, `}\`)
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

// directory searches a working directory at its real location.
func (s *linkSearch) directory(ctx context.Context, dir string, location win.Path) error {
	above, name := location.Split()
	parent, err := s.m.OpenDirectory(ctx, above)
	if err != nil {
		return err
	}
	defer parent.Close()
	return s.list(ctx, parent, name, dir, 1)
}

// list searches a directory in an open one. path is the name that people know.
func (s *linkSearch) list(ctx context.Context, above win.Tree, name, path string, depth int) error {
	return above.ListDirectory(ctx, name, func(dir win.Tree, entries []win.DirEntry) error {
		for _, entry := range entries {
			if err := s.entry(ctx, dir, entry, winpath.Join(path, entry.Name), depth); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

func (s *linkSearch) entry(ctx context.Context, dir win.Tree, entry win.DirEntry, path string, depth int) error {
	if s.entries++; s.entries > maxEntries || s.bytesLeft < 0 {
		s.entries--
		return errEnough
	}
	switch {
	case entry.Tag.NameSurrogate():
		return s.link(ctx, dir, entry.Name, path)
	case !entry.Directory || depth >= maxDepth || holdsFilesOfPods(entry.Name):
		return nil
	}
	// A directory that cannot be listed does not end the search.
	switch err := s.list(ctx, dir, entry.Name, path, depth+1); {
	case errors.Is(err, errEnough) || ctx.Err() != nil:
		return err
	case errors.Is(err, winerr.NotFound) || winerr.CodeOf(err) == winerr.Directory: // removed or replaced just now
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
func (s *linkSearch) link(ctx context.Context, dir win.Tree, name, path string) error {
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
		s.found(Link{Path: path, VolumeID: string(id), Stale: s.staleVolume(id)})
		return nil
	}
	if share, remote := unc.ShareOf(point.Target()); remote && point.Tag == win.TagSymlink {
		s.foundInto(share, path)
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, portion(ctx, objectLimit, 2))
	defer cancel()
	link, err := s.follow(limited, path)
	switch {
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded): // a disk hangs, and has the link with it
		s.found(Link{Path: path, Stale: "where it leads: " + reasonOf(err)})
	case err != nil:
		s.trouble("where the link "+path+" leads", err)
	case link.VolumeID != "" || link.Stale != "":
		s.found(link)
	}
	return ctx.Err()
}

// follow finds out where a link leads, as far as the policy lets a caller. It does not look
// beyond, nor at shares, which may take minutes to answer.
func (s *linkSearch) follow(ctx context.Context, path string) (Link, error) {
	link := Link{Path: path}
	at, err := s.reach.Resolve(ctx, op, path, policy.Enter)
	switch {
	case winerr.CodeOf(err) == winerr.CantResolveFilename:
		link.Stale = "it leads in a circle"
		return link, nil
	case winerr.CodeOf(err) == winerr.AccessDenied: // by Windows, not by the policy
		return link, err
	case errors.Is(err, winerr.Denied), errors.Is(err, winerr.Unsupported), errors.Is(err, winerr.NotFound):
		return link, nil
	case err != nil:
		return link, err
	}
	if id, ok := win.ParseVolumeID(at.Base); ok {
		link.VolumeID, link.Stale = string(id), s.staleVolume(id)
		if at.Rest == "" || link.Stale != "" {
			return link, nil
		}
	} else if share, remote := unc.ShareOf(at.Base); remote {
		s.foundInto(share, path)
		return link, nil
	}
	_, err = s.m.FileInfo(ctx, at)
	switch {
	case policy.Unreachable(err):
		link.Target = at.String()
		link.Stale = "its target cannot be reached: " + reasonOf(err)
		return link, nil
	case winerr.CodeOf(err) == winerr.ReparsePointEncounter: // replaced just now
		return link, nil
	default:
		return link, err
	}
}

// staleVolume says why a link to a volume leads nowhere, if it does.
func (s *linkSearch) staleVolume(id win.VolumeID) string {
	if s.present == nil || s.present[id] {
		return ""
	}
	return "its volume is gone, or on a disk that is offline"
}

func (s *linkSearch) found(link Link) {
	s.bytesLeft -= encodedSize(link.Path, link.VolumeID, link.Stale, link.Target)
	s.links = append(s.links, link)
}

// foundInto notes a link into a share. Nothing looks beyond it: shares may take minutes to answer.
func (s *linkSearch) foundInto(share, path string) {
	s.bytesLeft -= encodedSize(path, share)
	if s.intoShares == nil {
		s.intoShares = map[string][]string{}
	}
	s.intoShares[share] = append(s.intoShares[share], path)
}

// trouble notes what could not be found out about a file that pods may have named.
func (s *linkSearch) trouble(what string, err error) {
	s.linksFailed = s.linksFailed || err != nil
	if s.problems.add(what, err) {
		s.bytesLeft -= encodedSize(what, reasonOf(err))
	}
}
