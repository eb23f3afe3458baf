package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

type volumeReport struct {
	Volume
	failed     problems
	noLocation error // why it does not report which disk it is on
	removed    bool  // meanwhile
}

// allVolumes looks at all volumes that have a name.
func (l *lookup) allVolumes(ctx context.Context) ([]volumeReport, error) {
	ids, err := l.m.VolumeIDs(ctx)
	if err != nil {
		return nil, err
	}
	volumes := l.reportEach(ctx, ids)
	l.present = map[win.VolumeID]bool{}
	for _, v := range volumes {
		l.present[win.VolumeID(v.ID)] = true
	}
	return volumes, nil
}

// maxVolumes is how many volumes DescribeVolumes looks at. A disk has few, and who wants to know more can describe
// the node.
const maxVolumes = 128

// DescribeVolumes looks at the volumes with these ids and at nothing else, so it is much quicker than Describe on
// a node with many. Volumes that do not exist are left out. It does not report what only disks know: whether a volume
// is read-only, and where one is that does not answer.
func (n *Node) DescribeVolumes(ctx context.Context, ids ...string) ([]Volume, error) {
	const op = "describe volumes"
	if len(ids) > maxVolumes {
		return nil, winerr.New(winerr.Invalid, op, "", "there are %d, more than %d; describe the node instead", len(ids), maxVolumes)
	}
	parsed := make([]win.VolumeID, len(ids))
	for i, text := range ids {
		id, ok := win.ParseVolumeID(text)
		if !ok {
			return nil, winerr.New(winerr.Invalid, op, "", "%.100q is not a volume id", text)
		}
		parsed[i] = id
	}
	limited, cancel := context.WithTimeout(win.AsInspector(ctx), portion(ctx, lookLimit, 3))
	defer cancel()
	l := lookup{Node: n, describes: true}
	volumes := make([]Volume, 0, len(ids))
	for _, v := range l.reportEach(limited, parsed) {
		v.failed.add("disk", v.noLocation)
		v.Problems = v.failed.list()
		volumes = append(volumes, v.Volume)
	}
	return volumes, winerr.Wrap(op, "", ctx.Err())
}

func (l *lookup) reportEach(ctx context.Context, ids []win.VolumeID) []volumeReport {
	volumes := make([]volumeReport, len(ids))
	failures := tasks.Each(ctx, len(ids), l.objectTime(ctx), func(ctx context.Context, i int) error {
		volumes[i].ID = string(ids[i])
		ctx, done := l.slow.Bound(ctx, string(ids[i]))
		defer done()
		l.volume(ctx, &volumes[i])
		return nil
	})
	for i, err := range failures {
		if err != nil {
			logMistake(ctx, string(ids[i]), err)
			volumes[i].failed.add("volume", err)
		}
	}
	var left []string
	volumes = slices.DeleteFunc(volumes, func(v volumeReport) bool {
		if v.removed {
			left = append(left, "the volume "+v.ID)
		}
		return v.removed
	})
	l.volumesLeft = left
	boundMountPaths(volumes)
	return volumes
}

// boundMountPaths leaves out what does not fit into an answer. Drive letters always fit.
func boundMountPaths(volumes []volumeReport) {
	left := maxMountBytes
	for i := range volumes {
		v := &volumes[i]
		all := len(v.MountPaths)
		v.MountPaths = slices.DeleteFunc(v.MountPaths, func(path string) bool {
			if isDrive(path) {
				return false
			}
			size := encodedSize(path)
			if size > left {
				return true
			}
			left -= size
			return false
		})
		if kept := len(v.MountPaths); kept < all {
			v.MountPathsListed = false
			v.failed.add("mount paths", fmt.Errorf("only %d of %d are listed, because the answer would be too long", kept, all))
		}
	}
}

func isDrive(path string) bool { return len(path) <= len(`C:\`) }

func (l *lookup) volume(ctx context.Context, v *volumeReport) {
	id := win.VolumeID(v.ID)
	if l.locate(ctx, id, v); v.removed {
		return
	}
	// Before the disk is asked, which may hang: the mount manager knows it.
	paths, err := l.m.VolumePaths(ctx, id)
	v.failed.add("mount paths", err)
	v.MountPathsListed = err == nil
	for _, path := range paths {
		if !isDrive(path) {
			path = strings.TrimSuffix(path, winpath.Separator)
		}
		v.MountPaths = append(v.MountPaths, path)
	}
	slices.Sort(v.MountPaths)
	l.content(ctx, id, v)     // which waits for a disk that hangs
	if v.State == Formatted { // last, because everything before it is more important
		l.format(ctx, id, v)
	}
}

// maxRootAccess is how long an access list in the answer can be.
const maxRootAccess = 4096

// format finds out how a volume was formatted. Other file systems have no clusters that can be
// asked for, or no access lists.
func (l *lookup) format(ctx context.Context, id win.VolumeID, v *volumeReport) {
	measures := map[string]func(context.Context, win.VolumeID) (win.NTFSVolumeData, error){
		"NTFS": l.m.NTFSVolumeData, "REFS": l.m.ReFSVolumeData,
	}[winpath.Fold(v.FileSystem)]
	if measures != nil {
		data, err := measures(ctx, id)
		v.failed.add("cluster size", err)
		v.ClusterSize = data.BytesPerCluster
		list, err := l.m.RootSecurity(ctx, id)
		if err == nil && len(list) > maxRootAccess {
			err = fmt.Errorf("the access list has %d bytes, and only %d fit into the answer", len(list), maxRootAccess)
		}
		if v.failed.add("root access", err); err == nil {
			v.RootAccess = rootAccess(list)
		}
	}
}

func rootAccess(list string) string {
	switch {
	case sddl.Same(list, sddl.NewRoot):
		return RootAccessDefault
	case sddl.Same(list, sddl.UsersModify):
		return volumeapi.UsersModify
	default:
		return list
	}
}

// locate finds out which disks a volume is on. A volume that is not exactly one partition
// shows by its extents. CD-ROMs and RAM disks are on no disk.
func (l *lookup) locate(ctx context.Context, id win.VolumeID, v *volumeReport) {
	number, err := l.m.DeviceNumber(ctx, id.Device())
	switch {
	case err == nil && number.Type == win.DeviceTypeDisk:
		v.Disks, v.Partition = []uint32{number.Number}, number.Partition
		return
	case err == nil:
		return
	case errors.Is(err, winerr.NotFound):
		v.removed = true
		return
	}
	extents, err := l.m.VolumeExtents(ctx, id)
	switch {
	case err == nil:
		for _, extent := range extents {
			v.Disks = append(v.Disks, extent.Disk)
		}
		slices.Sort(v.Disks)
		v.Disks = slices.Compact(v.Disks)
	case !errors.Is(err, winerr.Unsupported): // which a RAM disk answers
		v.noLocation = err
	}
}

// content finds out what is on a volume. It does not bring a volume online to see.
func (l *lookup) content(ctx context.Context, id win.VolumeID, v *volumeReport) {
	fileSystem, err := l.m.FileSystem(ctx, id)
	switch code := winerr.CodeOf(err); {
	case code == winerr.UnrecognizedVolume, err == nil && winpath.Equal(fileSystem.Name, "RAW"):
		v.State = Raw
	case code == winerr.FVELocked:
		v.State = Locked
	case code == winerr.NotReady:
		v.State = NotReady
	case err != nil:
		v.failed.add("file system", err)
	default:
		v.State, v.FileSystem, v.Label = Formatted, fileSystem.Name, fileSystem.Label
		space, err := l.m.VolumeSpace(ctx, id)
		if v.failed.add("use", err); err == nil {
			v.Total, v.Used = &space.Total, pointer(max(0, space.Total-space.Free))
		}
		l.dirty(ctx, id, v)
	}
}
