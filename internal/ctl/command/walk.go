package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

// step is one line of the walk. do returns what there is to say.
type step struct {
	name string
	do   func(ctx context.Context) (string, error)
}

// stepResult is a step for scripts.
type stepResult struct {
	Step   string `json:"step"`
	Result string `json:"result"`
	Micros int64  `json:"micros"`
}

// undoPatience is how long one step back may take, so that one that hangs leaves time for the
// others.
const undoPatience = 30 * time.Second

// walk takes all steps, or takes back those before one that fails.
func (l *life) walk(ctx context.Context) error {
	start := time.Now()
	l.results = []stepResult{}
	for _, step := range l.steps() {
		if err := l.take(ctx, step); err != nil {
			l.goBack(ctx)
			if l.Format.ForScripts() {
				_ = l.Value(l.results, nil) // the error is worth more
			}
			for _, left := range l.left {
				l.warn("%s", left)
			}
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return l.Value(l.results, func() string {
		return fmt.Sprintf("The whole life took %s.\n", time.Since(start).Round(time.Millisecond))
	})
}

// take takes a step, and tells how it went.
func (l *life) take(ctx context.Context, step step) error {
	began := time.Now()
	result, err := step.do(ctx)
	elapsed, style := time.Since(began), output.Good
	if err != nil {
		result, style = "failed", output.Bad
	}
	l.results = append(l.results, stepResult{step.name, result, elapsed.Microseconds()})
	if !l.Format.ForScripts() {
		text := fmt.Sprintf("%9.1f ms  %-40s %s\n", float64(elapsed.Microseconds())/1000, step.name, l.Paint(style, result))
		_, _ = io.WriteString(l.Out, text)
	}
	return err
}

// goBack takes back what was done, the last first, whether or not ctx is over.
func (l *life) goBack(ctx context.Context) {
	for _, step := range slices.Backward(l.undo) {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoPatience)
		if err := l.take(limited, step); err != nil {
			l.left = append(l.left, fmt.Sprintf("%s: %s", step.name, inventory.Reason(err)))
		}
		cancel()
	}
}

// later remembers how a step is taken back. It is called before the step: one that fails may
// have been carried out.
func (l *life) later(name string, do func(ctx context.Context) (string, error)) {
	l.undo = append(l.undo, step{"going back: " + name, do})
}

// call is a step that is one call.
func (l *life) call(group, method string, request, response proto.Message) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return "done", l.client.Do(ctx, group, method, request, response)
	}
}

func (l *life) setState(online bool) func(context.Context) (string, error) {
	return l.call("disk", "SetDiskState", &diskv1.SetDiskStateRequest{DiskNumber: l.disk, IsOnline: online}, &diskv1.SetDiskStateResponse{})
}

func (l *life) steps() []step {
	return []step{
		// First, so that a path which is refused costs nothing.
		{"make the folder above the mount", l.makeFolders},
		{"take the disk online", func(ctx context.Context) (string, error) {
			if !l.online {
				l.later("take the disk offline", l.setState(false))
			}
			return l.setState(true)(ctx)
		}},
		{fmt.Sprintf("partition disk %d", l.disk), func(ctx context.Context) (string, error) {
			return l.forGood(ctx, "a partition", l.call("disk", "PartitionDisk", &diskv1.PartitionDiskRequest{DiskNumber: l.disk}, &diskv1.PartitionDiskResponse{}))
		}},
		{"find its volume", func(ctx context.Context) (string, error) {
			ids, err := l.source.VolumeIDs(ctx, l.disk, 0)
			if err == nil && len(ids) != 1 {
				l.left = nil // it was partitioned before, and was left alone
				if len(ids) == 0 {
					l.left = []string{fmt.Sprintf("disk %d may have a partition now", l.disk)}
				}
				err = fmt.Errorf("it has %d volumes, not one", len(ids))
			}
			if err != nil {
				return "", err
			}
			l.volume = ids[0]
			// Volumes of a disk that was offline appear a while after it is online.
			if err := l.refuseData(ctx); err != nil {
				l.left = nil // the partition was there, and was left alone
				return "", err
			}
			return "1 volume", nil
		}},
		{"format the volume", func(ctx context.Context) (string, error) {
			return l.forGood(ctx, "a file system", l.call("volume", "FormatVolume", &volumev2alpha1.FormatVolumeRequest{VolumeId: l.volume}, &volumev2alpha1.FormatVolumeResponse{}))
		}},
		{"mount the volume", func(ctx context.Context) (string, error) {
			l.later("unmount the volume", l.unmountOurs)
			return l.call("volume", "MountVolume", &volumev2alpha1.MountVolumeRequest{VolumeId: l.volume, TargetPath: l.path}, &volumev2alpha1.MountVolumeResponse{})(ctx)
		}},
		{"find the volume by its path", func(ctx context.Context) (string, error) {
			found, err := l.mounted(ctx)
			if err == nil && found != l.volume {
				err = fmt.Errorf("%s leads to volume %s", l.path, found)
			}
			return "the same", err
		}},
		{"write its cache", func(ctx context.Context) (string, error) {
			return l.call("volume", "WriteVolumeCache", &volumev2alpha1.WriteVolumeCacheRequest{VolumeId: l.volume}, &volumev2alpha1.WriteVolumeCacheResponse{})(ctx)
		}},
		{"look for a larger disk", l.call("disk", "Rescan", &diskv1.RescanRequest{}, &diskv1.RescanResponse{})},
		{"grow the volume to all there is", func(ctx context.Context) (string, error) {
			return l.call("volume", "ResizeVolume", &volumev2alpha1.ResizeVolumeRequest{VolumeId: l.volume}, &volumev2alpha1.ResizeVolumeResponse{})(ctx)
		}},
		{"read its size", func(ctx context.Context) (string, error) {
			var stats volumev2alpha1.GetVolumeStatsResponse
			err := l.client.Do(ctx, "volume", "GetVolumeStats", &volumev2alpha1.GetVolumeStatsRequest{VolumeId: l.volume}, &stats)
			return output.Size(stats.GetTotalBytes()), err
		}},
		{"unmount the volume", l.unmount},
		{"remove the folders", func(ctx context.Context) (string, error) {
			if _, err := l.remove(l.path)(ctx); err != nil {
				return "", err
			}
			return l.removeFolders(ctx)
		}},
		{"take the disk offline", l.setState(false)},
	}
}

// forGood takes a step that cannot be taken back. One that fails may have been carried out.
func (l *life) forGood(ctx context.Context, what string, do func(ctx context.Context) (string, error)) (string, error) {
	result, err := do(ctx)
	verb := "has"
	if err != nil {
		verb = "may have"
	}
	l.left = append(l.left, fmt.Sprintf("disk %d %s %s now", l.disk, verb, what))
	return result, err
}

// makeFolders makes the folders above the mount. Since it was found missing somebody may
// have made the mount's own, and would lose it in the end.
func (l *life) makeFolders(ctx context.Context) (string, error) {
	if err := l.examinePath(ctx); err != nil {
		return "", err
	}
	if len(l.missing) == 0 {
		return "is there", nil
	}
	l.later("remove the folders", l.removeFolders)
	return l.call("filesystem", "Mkdir", &filesystemv2alpha1.MkdirRequest{Path: parent(l.path)}, &filesystemv2alpha1.MkdirResponse{})(ctx)
}

// removeFolders removes those that makeFolders has made, from the innermost.
func (l *life) removeFolders(ctx context.Context) (string, error) {
	for _, folder := range slices.Backward(l.missing) {
		if _, err := l.remove(folder)(ctx); err != nil {
			return "", err
		}
	}
	return "done", nil
}

// remove removes a folder, if it is empty.
func (l *life) remove(path string) func(context.Context) (string, error) {
	return l.call("filesystem", "Rmdir", &filesystemv2alpha1.RmdirRequest{Path: path}, &filesystemv2alpha1.RmdirResponse{})
}

func (l *life) unmount(ctx context.Context) (string, error) {
	result, err := l.call("volume", "UnmountVolume", &volumev2alpha1.UnmountVolumeRequest{VolumeId: l.volume, TargetPath: l.path}, &volumev2alpha1.UnmountVolumeResponse{})(ctx)
	l.unmounted = err == nil
	return result, err
}

// unmountOurs takes back a mount that may not have come about. A folder there in which our
// volume is not mounted is not ours.
func (l *life) unmountOurs(ctx context.Context) (string, error) {
	if exists, err := l.exists(ctx, l.path); err != nil || !exists {
		return "was not mounted", err
	}
	if !l.unmounted {
		found, err := l.mounted(ctx)
		if err != nil {
			return "", err
		}
		if found != l.volume {
			return "", fmt.Errorf("%s leads to volume %s", l.path, found)
		}
		if _, err := l.unmount(ctx); err != nil {
			return "", err
		}
	}
	return l.remove(l.path)(ctx)
}

// mounted returns the volume that the path leads to.
func (l *life) mounted(ctx context.Context) (string, error) {
	var found volumev2alpha1.GetVolumeIDFromTargetPathResponse
	err := l.client.Do(ctx, "volume", "GetVolumeIDFromTargetPath", &volumev2alpha1.GetVolumeIDFromTargetPathRequest{TargetPath: l.path}, &found)
	return found.GetVolumeId(), err
}
