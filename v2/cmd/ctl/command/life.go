package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/output"
)

func (a *app) life() *cobra.Command {
	var disk uint32
	var path string
	var yes, takeOnline bool
	var c *cobra.Command
	c = a.interactive(page{
		use:   "life",
		short: "Test a blank disk with the full life cycle of a CSI volume",
		long: `Run the steps of a CSI driver on a blank disk: bring it online, partition it, format and
mount its volume, write its cache, grow it, read its size, unmount it, take it offline.
Each step is one line with its duration. If a step fails, or after an interrupt, life
undoes what it can: the mount, the folders that it created, and the state of the disk.
A new partition and file system stay.

The command writes to the disk and asks for confirmation. It refuses a disk with a
formatted volume, an offline disk (its contents are unknown) without --take-online, and
an existing --path.`,
		example: `  csi-proxyctl volume life --disk 3
  csi-proxyctl volume life --disk 3 --take-online
  csi-proxyctl volume life --disk 3 --path 'C:\var\lib\kubelet\plugins\life' --yes`,
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		if !c.Flags().Changed("disk") {
			return usagef("--disk is required")
		}
		l := &life{session: s, disk: disk, path: path, takeOnline: takeOnline}
		if err := a.bounded(ctx, l.examine); err != nil {
			return err
		}
		if !yes {
			if err := a.mustConfirm(ctx, l.question(), fmt.Sprintf("disk %d", disk)); err != nil {
				return err
			}
		}
		return a.bounded(ctx, l.run)
	})
	c.Flags().Uint32Var(&disk, "disk", 0, "number of the disk (required)")
	c.Flags().StringVar(&path, "path", kubeletPath+`\plugins\csi-proxyctl-life\mount`, "mount folder; it and missing parents are created, and removed at the end")
	c.Flags().BoolVar(&takeOnline, "take-online", false, "accept an offline disk; it goes offline again if it is not blank")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return c
}

type life struct {
	*session
	disk       uint32
	path       string
	takeOnline bool

	// Found before the first step.
	online         bool
	size           int64
	serial         string
	missingParents []string // parent folders of path to create, outermost first

	// Progress.
	volume  string
	results []stepResult
	undo    []step
	left    []string // changes that cannot be undone
	// unmounted says that our volume was mounted at path, so we may remove the folder.
	unmounted bool
}

// examine returns an error if a later step is known to fail, or if the disk or the path may
// be in use.
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

// lifeMethods are the API calls of all steps.
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
		return fmt.Errorf("disk %d is offline and its contents are unknown; use --take-online to check it (it goes offline again unless it is blank)", l.disk)
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

// refuseData returns an error for a disk with a file system. It cannot see those of an
// offline disk.
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
			return fmt.Errorf("disk %d has a file system on volume %s; choose a blank disk", l.disk, id)
		}
	}
	return nil
}

// examinePath refuses an existing path, because the last step removes it, and finds its
// missing parents.
func (l *life) examinePath(ctx context.Context) error {
	exists, err := l.exists(ctx, l.path)
	if err != nil {
		return err
	}
	if exists {
		return fmt.Errorf("%s exists and would be removed at the end; choose a --path that does not exist", l.path)
	}
	// An error means a parent outside the working directories, which exists.
	isThere := func(folder string) bool {
		exists, err := l.exists(ctx, folder)
		return exists || err != nil
	}
	l.missingParents = nil
	for folder := parent(l.path); folder != "" && !isThere(folder); folder = parent(folder) {
		l.missingParents = append([]string{folder}, l.missingParents...)
	}
	return nil
}

func (l *life) exists(ctx context.Context, path string) (bool, error) {
	var response filesystemv2alpha1.PathExistsResponse
	err := l.client.Do(ctx, "filesystem", "PathExists", &filesystemv2alpha1.PathExistsRequest{Path: path}, &response)
	return response.GetExists(), err
}

func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '\\'))] }

func (l *life) question() string {
	question := fmt.Sprintf("Partition and format disk %d (%s", l.disk, output.Size(l.size))
	if l.serial != "" {
		question += ", serial " + output.Printable(l.serial)
	}
	return question + ")?"
}
