package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/output"
)

// step is one line of the output. do returns its result.
type step struct {
	name string
	do   func(ctx context.Context) (string, error)
}

type stepResult struct {
	Step   string `json:"step"`
	Result string `json:"result"`
	Micros int64  `json:"micros"`
}

// resultWidth is the width of the longest result, "was not mounted".
const resultWidth = 15

// undoTimeout limits each undo step, so that one that hangs does not block the others.
const undoTimeout = 30 * time.Second

// run runs all steps. If one fails it undoes those before it.
func (l *life) run(ctx context.Context) error {
	start := time.Now()
	l.results = []stepResult{}
	steps := l.steps()
	for i, step := range steps {
		if err := l.runStep(ctx, step, i+1, len(steps)); err != nil {
			l.undoAll(ctx)
			if l.Format.ForScripts() {
				_ = l.Value(l.results, nil) // the step's error matters more
			}
			for _, left := range l.left {
				l.warn("%s", left)
			}
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return l.Value(l.results, func() string {
		return fmt.Sprintf("All steps took %s.\n", time.Since(start).Round(time.Millisecond))
	})
}

// runStep names a step, runs it and prints its result.
func (l *life) runStep(ctx context.Context, step step, number, of int) error {
	name := fmt.Sprintf("%-40s ", step.name)
	if l.meter == nil && !l.Format.ForScripts() { // in a log, the last line is what it waits for
		_, _ = io.WriteString(l.Out, name)
		name = ""
	}
	l.meter.begin(ctx, step.name, number, of)
	began := time.Now()
	result, err := step.do(ctx)
	l.meter.end()
	elapsed, style := time.Since(began), output.Good
	if err != nil {
		result, style = "failed", output.Bad
	}
	l.results = append(l.results, stepResult{step.name, result, elapsed.Microseconds()})
	if !l.Format.ForScripts() {
		padding := strings.Repeat(" ", max(0, resultWidth-len(result)))
		text := fmt.Sprintf("%s%s%s %9.1f ms\n", name, l.Paint(style, result), padding, float64(elapsed.Microseconds())/1000)
		_, _ = io.WriteString(l.Out, text)
	}
	return err
}

// undoAll undoes the steps in reverse order, even after ctx has ended.
func (l *life) undoAll(ctx context.Context) {
	for i, step := range slices.Backward(l.undo) {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		if err := l.runStep(limited, step, len(l.undo)-i, len(l.undo)); err != nil {
			l.left = append(l.left, fmt.Sprintf("%s: %s", step.name, inventory.Reason(err)))
		}
		cancel()
	}
}

// addUndo registers how to undo a step. Steps call it first, because a call that fails may
// still have taken effect.
func (l *life) addUndo(name string, do func(ctx context.Context) (string, error)) {
	l.undo = append(l.undo, step{"undo: " + name, do})
}

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
		// First, so that a refused path changes nothing.
		{"create the parent of the mount folder", l.makeParents},
		{"bring the disk online", func(ctx context.Context) (string, error) {
			if !l.online {
				l.addUndo("take the disk offline", l.setState(false))
			}
			return l.setState(true)(ctx)
		}},
		{fmt.Sprintf("partition disk %d", l.disk), func(ctx context.Context) (string, error) {
			return l.permanent(ctx, "a partition", l.call("disk", "PartitionDisk", &diskv1.PartitionDiskRequest{DiskNumber: l.disk}, &diskv1.PartitionDiskResponse{}))
		}},
		{"find its volume", func(ctx context.Context) (string, error) {
			ids, err := l.source.VolumeIDs(ctx, l.disk, 0)
			if err == nil && len(ids) != 1 {
				l.left = nil // PartitionDisk did nothing: there were partitions
				if len(ids) == 0 {
					l.left = []string{fmt.Sprintf("disk %d may have a partition now", l.disk)}
				}
				err = fmt.Errorf("disk %d has %d volumes, want 1", l.disk, len(ids))
			}
			if err != nil {
				return "", err
			}
			l.volume = ids[0]
			// Only now: volumes of an offline disk appear after it comes online.
			if err := l.refuseData(ctx); err != nil {
				l.left = nil // PartitionDisk did nothing: there was a partition
				return "", err
			}
			return "1 volume", nil
		}},
		{"format the volume", func(ctx context.Context) (string, error) {
			return l.permanent(ctx, "a file system", l.call("volume", "FormatVolume", &volumev2alpha1.FormatVolumeRequest{VolumeId: l.volume}, &volumev2alpha1.FormatVolumeResponse{}))
		}},
		{"mount the volume", func(ctx context.Context) (string, error) {
			l.addUndo("unmount the volume", l.unmountOurs)
			return l.call("volume", "MountVolume", &volumev2alpha1.MountVolumeRequest{VolumeId: l.volume, TargetPath: l.path}, &volumev2alpha1.MountVolumeResponse{})(ctx)
		}},
		{"find the volume by its path", func(ctx context.Context) (string, error) {
			found, err := l.mounted(ctx)
			if err == nil && found != l.volume {
				err = fmt.Errorf("%s leads to volume %s", l.path, found)
			}
			return "same volume", err
		}},
		{"write its cache", func(ctx context.Context) (string, error) {
			return l.call("volume", "WriteVolumeCache", &volumev2alpha1.WriteVolumeCacheRequest{VolumeId: l.volume}, &volumev2alpha1.WriteVolumeCacheResponse{})(ctx)
		}},
		{"rescan the disks", l.call("disk", "Rescan", &diskv1.RescanRequest{}, &diskv1.RescanResponse{})},
		{"grow the volume to the maximum", func(ctx context.Context) (string, error) {
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
			return l.removeParents(ctx)
		}},
		{"take the disk offline", l.setState(false)},
	}
}

// permanent runs a step that cannot be undone. One that fails may still have taken effect.
func (l *life) permanent(ctx context.Context, what string, do func(ctx context.Context) (string, error)) (string, error) {
	result, err := do(ctx)
	verb := "has"
	if err != nil {
		verb = "may have"
	}
	l.left = append(l.left, fmt.Sprintf("disk %d %s %s now", l.disk, verb, what))
	return result, err
}

// makeParents creates the parents of the mount folder. It examines the path again: another
// process may have created it meanwhile, and the last step would remove it.
func (l *life) makeParents(ctx context.Context) (string, error) {
	if err := l.examinePath(ctx); err != nil {
		return "", err
	}
	if len(l.missingParents) == 0 {
		return "exists", nil
	}
	l.addUndo("remove the folders", l.removeParents)
	return l.call("filesystem", "Mkdir", &filesystemv2alpha1.MkdirRequest{Path: parent(l.path)}, &filesystemv2alpha1.MkdirResponse{})(ctx)
}

// removeParents removes the folders of makeParents, innermost first.
func (l *life) removeParents(ctx context.Context) (string, error) {
	for _, folder := range slices.Backward(l.missingParents) {
		if _, err := l.remove(folder)(ctx); err != nil {
			return "", err
		}
	}
	return "done", nil
}

func (l *life) remove(path string) func(context.Context) (string, error) {
	return l.call("filesystem", "Rmdir", &filesystemv2alpha1.RmdirRequest{Path: path}, &filesystemv2alpha1.RmdirResponse{})
}

func (l *life) unmount(ctx context.Context) (string, error) {
	result, err := l.call("volume", "UnmountVolume", &volumev2alpha1.UnmountVolumeRequest{VolumeId: l.volume, TargetPath: l.path}, &volumev2alpha1.UnmountVolumeResponse{})(ctx)
	l.unmounted = err == nil
	return result, err
}

// unmountOurs undoes a mount that may have failed. It touches the folder only if our volume
// is mounted there.
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
