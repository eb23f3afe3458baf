package mounter

import (
	"context"
	"slices"
	"strings"

	"k8s.io/klog/v2"
	"k8s.io/mount-utils"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// list returns every path at which a volume or a share is: drives, mounted folders, and links in the
// working directories.
func (m *Mounter) list(ctx context.Context) ([]mount.MountPoint, error) {
	found, err := m.node.machine.Describe(ctx, nodeapi.Links, nodeapi.Shares)
	if err != nil {
		return nil, err
	}
	if !found.LinksSearched || found.VolumesFailed || found.LinksFailed || found.SharesFailed {
		return nil, newError(failure.Unavailable, "look for mounts", "", "%s", problemText(found.Problems))
	}
	for _, problem := range found.Problems {
		klog.FromContext(ctx).Info("The list of mounts may lack some", "problem", problem)
	}
	var points []mount.MountPoint
	seen := map[string]bool{}
	add := func(point mount.MountPoint) {
		if key := pathKey(point.Path); !seen[key] {
			seen[key] = true
			points = append(points, point)
		}
	}
	volumes := map[string]nodeapi.Volume{}
	for _, v := range found.Volumes {
		if !v.MountPathsListed {
			return nil, errMountsUnknown(v.ID, v.Problems)
		}
		volumes[v.ID] = v
		for _, path := range v.MountPaths {
			add(mountPoint(v, v.ID, path))
		}
	}
	for _, link := range found.Links {
		if link.VolumeID != "" {
			add(mountPoint(volumes[link.VolumeID], link.VolumeID, link.Path))
		}
	}
	for _, share := range found.Shares {
		for _, link := range share.Links {
			add(mount.MountPoint{Device: share.Remote, Path: link, Type: "cifs", Opts: []string{"rw"}})
		}
	}
	slices.SortFunc(points, func(a, b mount.MountPoint) int { return strings.Compare(pathKey(a.Path), pathKey(b.Path)) })
	return points, nil
}

// mountPoint leaves out whether a volume is read-only if its disk does not report.
func mountPoint(v nodeapi.Volume, id, path string) mount.MountPoint {
	point := mount.MountPoint{Device: id, Path: strings.TrimSuffix(path, `\`), Type: v.FileSystem}
	switch {
	case v.ReadOnly == nil:
	case *v.ReadOnly:
		point.Opts = []string{"ro"}
	default:
		point.Opts = []string{"rw"}
	}
	return point
}

// pathKey compares paths as Windows does, with or without a backslash at the end.
func pathKey(path string) string { return strings.ToLower(strings.TrimSuffix(path, `\`)) }

// mountPaths returns the folders at which any of the volumes is mounted. It fails if that is unknown
// for one of them.
func (m *Mounter) mountPaths(ctx context.Context, volumes []string) ([]string, error) {
	found, err := m.node.machine.DescribeVolumes(ctx, volumes...)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, id := range volumes {
		at := slices.IndexFunc(found, func(v nodeapi.Volume) bool { return strings.EqualFold(id, v.ID) })
		if at < 0 {
			return nil, errMountsUnknown(id, nil)
		}
		v := found[at]
		if !v.MountPathsListed {
			return nil, errMountsUnknown(id, v.Problems)
		}
		paths = append(paths, v.MountPaths...)
	}
	return paths, nil
}

// errMountsUnknown is the error if the mounts of a volume are unknown: a caller would take them for gone.
func errMountsUnknown(id string, problems []nodeapi.Problem) error {
	return newError(failure.Unavailable, "look for mounts of", id, "%s", problemText(problems))
}

func problemText(problems []nodeapi.Problem) string {
	if len(problems) == 0 {
		return "the node does not answer; try again"
	}
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.Text
	}
	return "the node does not answer: " + strings.Join(texts, "; ") + "; try again"
}

// refs returns the other paths of what is at a path.
func (m *Mounter) refs(ctx context.Context, path string) ([]string, error) {
	points, err := m.list(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(points, func(p mount.MountPoint) bool { return pathKey(p.Path) == pathKey(path) })
	if at < 0 {
		return []string{}, nil
	}
	paths := []string{}
	for i, p := range points {
		if i != at && p.Device == points[at].Device {
			paths = append(paths, p.Path)
		}
	}
	return paths, nil
}
