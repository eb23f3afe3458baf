package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// refuseMounted fails if a volume of an online disk is mounted at a folder, where a pod may use it. It returns the volumes
// of the disk. It looks at no file system, which would mount it.
//
// With onlyPods a folder counts only if a pod's link leads to it, and what does not answer does not count. Otherwise the
// folder at which the caller has mounted its volume does not, and what does not answer may be in use; a volume that
// does not report on which disk it is does not keep a disk online.
//
// A drive letter does not count: Windows gives one to every new volume. Only with a volume that it names, the caller wants
// every other path of a writable disk to count.
func (h *host) refuseMounted(ctx context.Context, op string, disk target, now win.DiskAttributes, onlyPods bool) ([]win.VolumeID, error) {
	if now.Offline {
		return nil, nil
	}
	volumes, unknown, err := h.volumesOn(ctx, disk)
	if err != nil && !onlyPods {
		return nil, winerr.As(kindOfOther(err), op, disk.name(), err, "")
	}
	asked := volumes
	for id := range unknown {
		if op != opOffline {
			asked = append(slices.Clip(asked), id)
		}
	}
	letters := op == opOffline && !onlyPods && !now.ReadOnly
	failures := tasks.Each(ctx, len(asked), diskTimeout, func(ctx context.Context, i int) error {
		paths, err := h.m.VolumePaths(ctx, asked[i])
		if err != nil {
			return ignoreNotFound(err)
		}
		for _, path := range paths {
			path = strings.TrimSuffix(path, winpath.Separator)
			isFolder := len(path) > len(`C:`)
			user := path
			switch {
			case !isFolder && !letters, winpath.Equal(path, disk.mustBe.Path), isFolder && !h.leadsTo(ctx, path, asked[i]):
				continue
			case onlyPods:
				if user = h.podLinkTo(ctx, path); user == "" {
					continue
				}
			case unknown[asked[i]] != nil:
				return unknown[asked[i]]
			}
			return winerr.New(winerr.InUse, op, disk.name(), "it is mounted at %s; unmount it first", user)
		}
		return nil
	})
	for i, err := range failures {
		if err != nil && !errors.Is(err, winerr.InUse) {
			if onlyPods {
				continue
			}
			err = winerr.As(kindOfOther(err), op, disk.name(), err, "whether volume "+string(asked[i])+" is on it and in use is unknown, so it stays as it is")
		}
		if err != nil {
			return nil, err
		}
	}
	return volumes, ctx.Err()
}

// leadsTo reports whether a volume is mounted at a folder. The mount manager may name folders that were removed since.
func (h *host) leadsTo(ctx context.Context, folder string, id win.VolumeID) bool {
	point, err := h.m.ReparsePoint(ctx, win.Anywhere(folder))
	if err != nil {
		return !errors.Is(err, winerr.NotFound) && winerr.CodeOf(err) != winerr.NotAReparsePoint
	}
	there, ok := point.MountedVolume()
	return ok && winpath.Equal(there, string(id))
}

// podLinkTo returns the link of a pod that leads to a mounted folder or below, the folder itself if that is a pod's, or
// nothing. Links of pods, pods\UID\volumes\kubernetes.io~csi\NAME\mount, are beside plugins, where volumes are staged.
func (h *host) podLinkTo(ctx context.Context, folder string) (link string) {
	names := strings.Split(folder, winpath.Separator)
	at := slices.IndexFunc(names, func(name string) bool { return winpath.Equal(name, "plugins") || winpath.Equal(name, "pods") })
	switch {
	case at < 0:
		return ""
	case winpath.Equal(names[at], "pods"):
		return folder
	}
	h.each(ctx, win.Following(strings.Join(append(names[:at:at], "pods"), winpath.Separator)), func(pod win.Path) {
		h.each(ctx, pod.Join("volumes", "kubernetes.io~csi"), func(volume win.Path) {
			point, err := h.m.ReparsePoint(ctx, volume.Join("mount"))
			if err != nil {
				return
			}
			if target, err := winpath.Clean(point.Target()); err == nil && winpath.Contains(folder, target) {
				link = volume.Join("mount").String()
			}
		})
	})
	return link
}

// each calls do for the entries of a directory, as far as they can be listed.
func (h *host) each(ctx context.Context, dir win.Path, do func(entry win.Path)) {
	opened, err := h.m.OpenDirectory(ctx, dir)
	if err != nil {
		return
	}
	defer opened.Close()
	_ = win.List(ctx, opened, "", func(_ win.Tree, entries []win.DirEntry) error {
		for _, entry := range entries {
			do(dir.Join(entry.Name))
		}
		return nil
	})
}

// volumesOn returns the volumes on a disk, and those that do not report on which disk they are.
func (h *host) volumesOn(ctx context.Context, disk target) (volumes []win.VolumeID, unknown map[win.VolumeID]error, err error) {
	if volumes, complete := h.volumesByName(ctx, disk); complete {
		return volumes, nil, nil
	}
	all, err := h.m.VolumeIDs(ctx)
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	unknown = map[win.VolumeID]error{}
	tasks.Each(ctx, len(all), diskTimeout, func(ctx context.Context, i int) error {
		extents, err := h.m.VolumeExtents(ctx, all[i])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ignoreNotFound(err) != nil: // it may be on this disk
			unknown[all[i]] = err
		case slices.ContainsFunc(extents, func(e win.Extent) bool { return e.Disk == disk.number }):
			volumes = append(volumes, all[i])
		}
		return nil
	})
	return volumes, unknown, ctx.Err()
}

// volumesByName returns the volumes of a GPT disk by the name that Windows usually gives them, the GUID of their
// partition. It asks no volume of another disk, which may hang. It is not complete if a volume has another name.
func (h *host) volumesByName(ctx context.Context, disk target) (volumes []win.VolumeID, complete bool) {
	layout, err := h.m.DriveLayout(ctx, disk.device)
	if err != nil || layout.Style != win.StyleGPT {
		return nil, false
	}
	for _, p := range layout.Partitions {
		if p.Type == win.PartitionMSR {
			continue // has no volume
		}
		id := volumeNamed(p)
		at, err := h.m.DeviceNumber(ctx, id.Device())
		if err != nil || at != (win.DeviceNumber{Type: win.DeviceTypeDisk, Number: disk.number, Partition: p.Number}) {
			return nil, false
		}
		volumes = append(volumes, id)
	}
	return volumes, true
}

// ignoreNotFound is for volumes that have left since they were listed.
func ignoreNotFound(err error) error {
	if errors.Is(err, winerr.NotFound) {
		return nil
	}
	return err
}
