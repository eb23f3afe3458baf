package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

func (a *app) life() *cobra.Command {
	var disk int64
	var path string
	var yes bool
	c := a.leaf(page{
		use:   "life",
		short: "Walk a blank disk through the whole life of a CSI volume",
		long: `Walk a disk through what a driver does with it: partition it, take it online, format and
mount its volume, write its cache, grow it, read its size, unmount it, take it offline.
One line per step, with its time. It ends at the first step that fails.

It writes to the disk, and therefore asks first. A disk that has a formatted volume
is refused.`,
		example: `  csi-proxyctl volume life --disk 3
  csi-proxyctl volume life --disk 3 --path 'C:\var\lib\kubelet\plugins\life' --yes`,
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		if disk < 0 {
			return usagef("--disk is missing")
		}
		number, err := parseDisk(fmt.Sprint(disk))
		if err != nil {
			return err
		}
		l := &life{session: s, disk: number, path: path}
		if err := l.refuse(ctx); err != nil {
			return err
		}
		if !yes && !a.confirm(fmt.Sprintf("Partition and format disk %d?", number)) {
			return fmt.Errorf("disk %d was left alone: nobody has said yes", number)
		}
		return l.run(ctx)
	})
	c.Flags().Int64Var(&disk, "disk", -1, "number of the disk")
	c.Flags().StringVar(&path, "path", kubeletPath+`\plugins\csi-proxyctl-life\mount`, "folder at which to mount; it is made, and removed in the end")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// confirm asks on standard error, so that standard output stays the answer.
func (a *app) confirm(question string) bool {
	fmt.Fprint(a.env.Err, question+" [y/N] ")
	line, _ := bufio.NewReader(a.env.In).ReadString('\n') // no answer is no
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}

// life is one walk.
type life struct {
	*session
	disk   uint32
	path   string
	volume string
}

// refuse returns an error for a disk that somebody may still need.
func (l *life) refuse(ctx context.Context) error {
	ids, err := l.source.VolumeIDs(ctx, l.disk, 0)
	if err != nil {
		return err
	}
	for _, id := range ids {
		var response volumev2alpha1.IsVolumeFormattedResponse
		if err := l.client.Do(ctx, "volume", "IsVolumeFormatted", &volumev2alpha1.IsVolumeFormattedRequest{VolumeId: id}, &response); err != nil {
			return err
		}
		if response.GetFormatted() {
			return fmt.Errorf("disk %d has a file system on volume %s; take a blank disk", l.disk, id)
		}
	}
	return nil
}

// step is one line of the walk. do returns what there is to say beyond that it worked.
type step struct {
	Name string
	do   func(ctx context.Context) (string, error)
}

// stepResult is a step for scripts.
type stepResult struct {
	Step   string `json:"step"`
	Result string `json:"result"`
	Micros int64  `json:"micros"`
}

func (l *life) run(ctx context.Context) error {
	start := time.Now()
	results := []stepResult{}
	for _, step := range l.steps() {
		began := time.Now()
		result, err := step.do(ctx)
		elapsed := time.Since(began)
		if err != nil {
			l.line(output.Bad, "failed", step.Name, elapsed)
			return fmt.Errorf("%s: %w", step.Name, err)
		}
		results = append(results, stepResult{step.Name, result, elapsed.Microseconds()})
		l.line(output.Good, result, step.Name, elapsed)
	}
	return l.Value(results, func() string {
		return fmt.Sprintf("The whole life took %s.\n", time.Since(start).Round(time.Millisecond))
	})
}

// line is the progress of one step, for people.
func (l *life) line(style output.Style, result, name string, elapsed time.Duration) {
	if l.Format.ForScripts() {
		return
	}
	text := fmt.Sprintf("%9.1f ms  %-40s %s\n", float64(elapsed.Microseconds())/1000, name, l.Paint(style, result))
	_, _ = io.WriteString(l.Out, text)
}

func (l *life) steps() []step {
	parent := l.path[:max(0, strings.LastIndexByte(l.path, '\\'))]
	setState := func(online bool) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			return "done", l.client.Do(ctx, "disk", "SetDiskState", &diskv1.SetDiskStateRequest{DiskNumber: l.disk, IsOnline: online}, &diskv1.SetDiskStateResponse{})
		}
	}
	return []step{
		// First, so that a path which is refused costs nothing.
		{"make the folder above the mount", func(ctx context.Context) (string, error) {
			return "done", l.client.Do(ctx, "filesystem", "Mkdir", &filesystemv2alpha1.MkdirRequest{Path: parent}, &filesystemv2alpha1.MkdirResponse{})
		}},
		{fmt.Sprintf("partition disk %d", l.disk), func(ctx context.Context) (string, error) {
			return "done", l.client.Do(ctx, "disk", "PartitionDisk", &diskv1.PartitionDiskRequest{DiskNumber: l.disk}, &diskv1.PartitionDiskResponse{})
		}},
		{"take it online", setState(true)},
		{"find its volume", func(ctx context.Context) (string, error) {
			ids, err := l.source.VolumeIDs(ctx, l.disk, 0)
			if err == nil && len(ids) != 1 {
				err = fmt.Errorf("it has %d volumes, not one", len(ids))
			}
			if err != nil {
				return "", err
			}
			l.volume = ids[0]
			// A disk that was offline could not be looked at before.
			return "1 volume", l.refuse(ctx)
		}},
		{"format the volume", func(ctx context.Context) (string, error) {
			return "done", l.client.Do(ctx, "volume", "FormatVolume", &volumev2alpha1.FormatVolumeRequest{VolumeId: l.volume}, &volumev2alpha1.FormatVolumeResponse{})
		}},
		{"mount the volume", func(ctx context.Context) (string, error) {
			return "done", l.client.Do(ctx, "volume", "MountVolume", &volumev2alpha1.MountVolumeRequest{VolumeId: l.volume, TargetPath: l.path}, &volumev2alpha1.MountVolumeResponse{})
		}},
		{"find the volume by its path", func(ctx context.Context) (string, error) {
			var found volumev2alpha1.GetVolumeIDFromTargetPathResponse
			err := l.client.Do(ctx, "volume", "GetVolumeIDFromTargetPath", &volumev2alpha1.GetVolumeIDFromTargetPathRequest{TargetPath: l.path}, &found)
			if err == nil && found.GetVolumeId() != l.volume {
				err = fmt.Errorf("%s leads to volume %s", l.path, found.GetVolumeId())
			}
			return "the same", err
		}},
		{"write its cache", func(ctx context.Context) (string, error) {
			return "done", l.client.Do(ctx, "volume", "WriteVolumeCache", &volumev2alpha1.WriteVolumeCacheRequest{VolumeId: l.volume}, &volumev2alpha1.WriteVolumeCacheResponse{})
		}},
		{"look for a larger disk", func(ctx context.Context) (string, error) {
			return "done", l.client.Do(ctx, "disk", "Rescan", &diskv1.RescanRequest{}, &diskv1.RescanResponse{})
		}},
		{"grow the volume to all there is", func(ctx context.Context) (string, error) {
			return "done", l.client.Do(ctx, "volume", "ResizeVolume", &volumev2alpha1.ResizeVolumeRequest{VolumeId: l.volume}, &volumev2alpha1.ResizeVolumeResponse{})
		}},
		{"read its size", func(ctx context.Context) (string, error) {
			var stats volumev2alpha1.GetVolumeStatsResponse
			err := l.client.Do(ctx, "volume", "GetVolumeStats", &volumev2alpha1.GetVolumeStatsRequest{VolumeId: l.volume}, &stats)
			return output.Size(stats.GetTotalBytes()), err
		}},
		{"unmount the volume", func(ctx context.Context) (string, error) {
			return "done", l.client.Do(ctx, "volume", "UnmountVolume", &volumev2alpha1.UnmountVolumeRequest{VolumeId: l.volume, TargetPath: l.path}, &volumev2alpha1.UnmountVolumeResponse{})
		}},
		{"remove the folder", func(ctx context.Context) (string, error) {
			return "done", l.client.Do(ctx, "filesystem", "Rmdir", &filesystemv2alpha1.RmdirRequest{Path: l.path}, &filesystemv2alpha1.RmdirResponse{})
		}},
		{"take the disk offline", setState(false)},
	}
}
