package command

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

func (a *app) life() *cobra.Command {
	var disk uint32
	var path string
	var yes, takeOnline bool
	var c *cobra.Command
	c = a.asking(page{
		use:   "life",
		short: "Walk a blank disk through the whole life of a CSI volume",
		long: `Walk a disk through what a driver does with it: take it online, partition it, format and
mount its volume, write its cache, grow it, read its size, unmount it, take it offline.
One line per step, with its time. At the first step that fails, or at an interrupt, it
takes back what it can: the mount, the folders that it made, and the state of the disk.
A partition and a file system stay.

It writes to the disk, and therefore asks first. Refused are a disk that has a formatted
volume, a disk that is offline (nobody can see what is on it) without --take-online,
and a --path that exists.`,
		example: `  csi-proxyctl volume life --disk 3
  csi-proxyctl volume life --disk 3 --take-online
  csi-proxyctl volume life --disk 3 --path 'C:\var\lib\kubelet\plugins\life' --yes`,
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		if !c.Flags().Changed("disk") {
			return usagef("--disk is missing")
		}
		l := &life{session: s, disk: disk, path: path, takeOnline: takeOnline}
		if err := a.bounded(ctx, l.examine); err != nil {
			return err
		}
		if !yes {
			said, err := a.confirm(ctx, l.question())
			if err != nil {
				return err
			}
			if !said {
				return fmt.Errorf("disk %d was left alone: nobody has said yes", disk)
			}
		}
		return a.bounded(ctx, l.walk)
	})
	c.Flags().Uint32Var(&disk, "disk", 0, "number of the disk")
	c.Flags().StringVar(&path, "path", kubeletPath+`\plugins\csi-proxyctl-life\mount`, "folder at which to mount; it is made, with those above it, and removed in the end")
	c.Flags().BoolVar(&takeOnline, "take-online", false, "also a disk that is offline; if it is not blank, it is taken offline again")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// confirm asks on standard error, so that standard output stays the answer. Nobody can be
// made to answer, so it ends with ctx.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(a.env.Err, question+" [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.env.In).ReadString('\n') // no answer is no
		answer <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.env.Err)
		return false, ctx.Err()
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true, nil
		}
		return false, nil
	}
}

// life is one walk.
type life struct {
	*session
	disk       uint32
	path       string
	takeOnline bool

	// What was found before the walk.
	online  bool
	size    int64
	serial  string
	missing []string // folders above the path that have to be made, from the outermost

	// How far the walk has come.
	volume  string
	results []stepResult
	undo    []step
	left    []string // what cannot be taken back
	// unmounted is true once the volume has been, so that the folder is ours to remove.
	unmounted bool
}

// examine returns an error for a walk that would end half-way, or take what somebody may
// still need.
func (l *life) examine(ctx context.Context) error {
	for group, methods := range lifeMethods {
		if err := l.client.Offers(ctx, group, methods...); err != nil {
			return err
		}
	}
	if err := l.examineDisk(ctx); err != nil {
		return err
	}
	return l.examinePath(ctx)
}

// lifeMethods are what a walk calls.
var lifeMethods = map[string][]string{
	"disk":       {"ListDiskIDs", "GetDiskStats", "GetDiskState", "SetDiskState", "PartitionDisk", "Rescan"},
	"filesystem": {"PathExists", "Mkdir", "Rmdir"},
	"volume": {
		"ListVolumesOnDisk", "IsVolumeFormatted", "FormatVolume", "MountVolume", "GetVolumeIDFromTargetPath",
		"WriteVolumeCache", "ResizeVolume", "GetVolumeStats", "UnmountVolume",
	},
}

func (l *life) examineDisk(ctx context.Context) error {
	var state diskv1.GetDiskStateResponse
	if err := l.client.Do(ctx, "disk", "GetDiskState", &diskv1.GetDiskStateRequest{DiskNumber: l.disk}, &state); err != nil {
		return err
	}
	if l.online = state.GetIsOnline(); !l.online && !l.takeOnline {
		return fmt.Errorf("disk %d is offline, so nobody can see what is on it; --take-online looks, and takes it offline again unless it is blank", l.disk)
	}
	var stats diskv1.GetDiskStatsResponse
	if err := l.client.Do(ctx, "disk", "GetDiskStats", &diskv1.GetDiskStatsRequest{DiskNumber: l.disk}, &stats); err != nil {
		return err
	}
	var ids diskv1.ListDiskIDsResponse
	if err := l.client.Do(ctx, "disk", "ListDiskIDs", &diskv1.ListDiskIDsRequest{}, &ids); err != nil {
		return err
	}
	l.size, l.serial = stats.GetTotalBytes(), strings.TrimSpace(ids.GetDiskIDs()[l.disk].GetSerialNumber())
	return l.refuseData(ctx)
}

// refuseData returns an error for a disk with a file system. Those of a disk that is
// offline cannot be seen.
func (l *life) refuseData(ctx context.Context) error {
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

// examinePath refuses a path that exists, because the walk removes it in the end, and finds
// out which folders above it do not.
func (l *life) examinePath(ctx context.Context) error {
	exists, err := l.exists(ctx, l.path)
	if err != nil {
		return err
	}
	if exists {
		return fmt.Errorf("%s exists, and would be removed in the end; say a --path that does not", l.path)
	}
	// An error is that of a folder above those which requests may touch: it is there.
	isThere := func(folder string) bool {
		exists, err := l.exists(ctx, folder)
		return exists || err != nil
	}
	l.missing = nil
	for folder := parent(l.path); folder != "" && !isThere(folder); folder = parent(folder) {
		l.missing = append([]string{folder}, l.missing...)
	}
	return nil
}

func (l *life) exists(ctx context.Context, path string) (bool, error) {
	var response filesystemv2alpha1.PathExistsResponse
	err := l.client.Do(ctx, "filesystem", "PathExists", &filesystemv2alpha1.PathExistsRequest{Path: path}, &response)
	return response.GetExists(), err
}

// parent is the folder above a path of Windows.
func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '\\'))] }

func (l *life) question() string {
	question := fmt.Sprintf("Partition and format disk %d (%s", l.disk, output.Size(l.size))
	if l.serial != "" {
		question += ", serial " + output.Printable(l.serial)
	}
	return question + ")?"
}
