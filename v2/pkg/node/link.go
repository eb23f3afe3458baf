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
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
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

// linkSearch walks through the working directories and enters no link. It has no lookup of its own: others look at the
// same time.
type linkSearch struct {
	m         win.Machine
	reach     policy.Reach
	entries   int
	bytesLeft int // in the answer
	links     []Link
	// follows are the links whose targets are looked for when all links are known.
	follows []followed
	// intoShares are the links that lead into a share, by share.
	intoShares map[string][]string
	// failed means that the search has missed links because of a fault.
	failed   bool
	problems problems
}

// followed is a link that leads to a path.
type followed struct {
	path, target string
	link         Link
	share        string
	err          error
}

var errEnough = errors.New("the search has ended")

// allLinks finds the links in the working directories that lead to a volume, or nowhere.
func (l *lookup) allLinks(ctx context.Context) linkSearch {
	reach := l.limits.Reach(l.m)
	if l.describes {
		reach = l.limits.Reach(&remembering{Machine: l.m})
	}
	s := linkSearch{m: l.m, reach: reach, intoShares: map[string][]string{}}
	locations := s.locateAll(ctx, l.limits.WorkingDirs())
	// Whole volumes are too large to search; the working directories in them are searched.
	for _, dir := range slices.Sorted(maps.Keys(locations)) {
		if locations[dir].Rest == "" {
			s.problems.add("links in "+dir, errors.New("it is a whole volume, which is not searched"))
			delete(locations, dir)
		}
	}
	// Each directory may be on a disk that hangs.
	dirs := outermost(slices.Collect(maps.Keys(locations)))
	found := make([]linkSearch, len(dirs))
	failures := tasks.Each(ctx, len(dirs), lookLimit, func(ctx context.Context, i int) error {
		in := linkSearch{m: s.m, reach: s.reach, bytesLeft: maxLinkBytes / len(dirs), intoShares: map[string][]string{}}
		err := in.directory(ctx, dirs[i], locations[dirs[i]])
		if errors.Is(err, errEnough) {
			in.problems.add("links", fmt.Errorf("only the first %d entries of %s were searched", in.entries, dirs[i]))
			err = nil
		}
		in.followAll(ctx)
		found[i] = in
		return err
	})
	for i, in := range found {
		s.missed(dirs[i], failures[i])
		s.failed, s.links, s.problems = s.failed || in.failed, append(s.links, in.links...), append(s.problems, in.problems...)
		s.follows = append(s.follows, in.follows...)
		for share, paths := range in.intoShares {
			s.intoShares[share] = append(s.intoShares[share], paths...)
		}
	}
	return s
}

// report adds what was found to a description. Links to volumes that are not present are stale; present is nil if that is
// not known.
func (s *linkSearch) report(node *Description, present map[win.VolumeID]bool) {
	mounted := map[string]string{}
	for _, l := range s.links {
		mounted[winpath.Fold(l.Path)] = l.VolumeID
	}
	for i := range s.links {
		l := &s.links[i]
		if l.Problem != nil && l.VolumeID == "" { // a link to a mount of a disk that hangs
			l.VolumeID = mounted[winpath.Fold(l.Target)]
		}
		if l.VolumeID != "" && present != nil && !present[win.VolumeID(l.VolumeID)] {
			l.Stale, l.Problem, l.Target = "its volume is gone, or on a disk that is offline", nil, ""
		}
	}
	node.Links, node.LinksFailed = s.links, s.failed
	s.addToShares(node)
	slices.SortFunc(node.Links, func(a, b Link) int { return cmp.Compare(a.Path, b.Path) })
}

// missed notes that a working directory could not be searched, unless it does not exist yet.
func (s *linkSearch) missed(dir string, err error) {
	if err != nil && !errors.Is(err, winerr.NotFound) {
		s.failed = true
		s.problems.add("links in "+dir, err)
	}
}

// locateAll finds out where working directories really are: the operator may have made them
// links.
func (s *linkSearch) locateAll(ctx context.Context, dirs []string) map[string]win.Path {
	locations := make([]win.Path, len(dirs))
	failures := tasks.Each(ctx, len(dirs), portion(ctx, objectLimit, 2), func(ctx context.Context, i int) (err error) {
		locations[i], err = s.locate(ctx, dirs[i])
		return err
	})
	found := map[string]win.Path{}
	for i, dir := range dirs {
		if s.missed(dir, failures[i]); failures[i] == nil {
			found[dir] = locations[i]
		}
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
	return win.List(ctx, above, name, func(dir win.Tree, entries []win.DirEntry) error {
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

func (s *linkSearch) link(ctx context.Context, dir win.Tree, name, path string) error {
	point, err := dir.ReparsePoint(ctx, name)
	switch {
	case policy.Unreadable(err):
		s.found(Link{Path: path, Problem: pointer(problemOf("", "it cannot be read: ", err))})
		return nil
	case errors.Is(err, winerr.NotFound) || winerr.CodeOf(err) == winerr.NotAReparsePoint:
		return nil
	case err != nil:
		s.trouble("the link "+path, err)
		return ctx.Err()
	}
	if text, mounted := point.MountedVolume(); mounted {
		id, _ := win.ParseVolumeID(text)
		s.found(Link{Path: path, VolumeID: string(id)})
		return nil
	}
	if share, remote := unc.ShareOf(point.Target()); remote && point.Tag == win.TagSymlink {
		s.foundInto(share, path)
		return ctx.Err()
	}
	s.follows = append(s.follows, followed{path: path, target: point.Target()})
	return ctx.Err()
}

// followAll finds out where links lead, all at once: each may lead to a disk that hangs.
func (s *linkSearch) followAll(ctx context.Context) {
	mounted := map[string]string{}
	for _, l := range s.links {
		mounted[winpath.Fold(l.Path)] = l.VolumeID
	}
	failures := tasks.Each(ctx, len(s.follows), lookLimit, func(ctx context.Context, i int) error {
		f := &s.follows[i]
		if id := mounted[winpath.Fold(f.target)]; id != "" { // a pod's link leads to where its volume is staged, which was read just now
			f.link = Link{Path: f.path, VolumeID: id}
			return nil
		}
		s.follow(ctx, f)
		return nil
	})
	for i, f := range s.follows {
		if s.bytesLeft < 0 {
			s.failed = true
			s.problems.add("links", fmt.Errorf("%d of %d are left out, because the answer would be too long", len(s.follows)-i, len(s.follows)))
			return
		}
		switch err := cmp.Or(failures[i], f.err); {
		case err != nil:
			f.link.Problem, f.link.Target = pointer(problemOf("", "where it leads: ", err)), f.target
			s.failed = s.failed || f.link.VolumeID == ""
			s.found(f.link)
		case f.share != "":
			s.foundInto(f.share, f.path)
		case f.link.VolumeID != "" || f.link.Stale != "" || f.link.Problem != nil || f.link.Target != "":
			s.found(f.link)
		}
	}
}

// follow finds out where a link leads, as far as the policy lets a caller. It does not look
// beyond, nor at shares, which may take minutes to answer.
func (s *linkSearch) follow(ctx context.Context, f *followed) {
	link := &f.link
	link.Path = f.path
	at, err := s.reach.Resolve(ctx, op, f.path, policy.Enter)
	switch {
	case winerr.CodeOf(err) == winerr.CantResolveFilename:
		link.Problem = &Problem{Kind: Failure, WindowsCode: uint32(winerr.CantResolveFilename), Text: "it leads in a circle"}
		return
	case winerr.CodeOf(err) == winerr.AccessDenied: // by Windows, not by the policy
		f.err = err
		return
	case errors.Is(err, winerr.Denied):
		link.Target = f.target // outside
		return
	case errors.Is(err, winerr.Unsupported), errors.Is(err, winerr.NotFound):
		return
	case err != nil:
		f.err = err
		return
	}
	if id, ok := win.ParseVolumeID(at.Base); ok {
		if link.VolumeID = string(id); at.Rest == "" {
			return
		}
	} else if share, remote := unc.ShareOf(at.Base); remote {
		f.share = share
		return
	}
	_, err = s.m.FileInfo(ctx, at)
	switch winerr.CodeOf(err) {
	case winerr.FileNotFound, winerr.PathNotFound: // no other answer says that it is gone
		link.Target, link.Stale = at.String(), "its target is gone: "+reasonOf(err)
	case winerr.ReparsePointEncounter: // replaced just now
	default:
		f.err = err
	}
}

func (s *linkSearch) found(link Link) {
	s.bytesLeft -= encodedSize(link.Path, link.VolumeID, link.Stale, link.Target)
	if link.Problem != nil {
		s.bytesLeft -= encodedSize(link.Problem.Text)
	}
	s.links = append(s.links, link)
}

// foundInto notes a link into a share. Nothing looks beyond it: shares may take minutes to answer.
func (s *linkSearch) foundInto(share, path string) {
	s.bytesLeft -= encodedSize(path, share)
	s.intoShares[share] = append(s.intoShares[share], path)
}

// trouble notes what could not be found out about a file that pods may have named.
func (s *linkSearch) trouble(what string, err error) {
	s.failed = s.failed || err != nil
	if s.problems.add(what, err) {
		s.bytesLeft -= encodedSize(what, what, reasonOf(err)) // object and text
	}
}
