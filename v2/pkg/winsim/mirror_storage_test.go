package winsim_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/internal/claim"
)

// TestMirror_Storage: a volume's directory comes and goes with its disk, and formatting
// empties it.
func TestMirror_Storage(t *testing.T) {
	node, dir := mirrored(t, winsim.Default())
	ctx, stage := t.Context(), kubelet+`\plugins\stage`
	disks, err := disk.New(node.Disk())
	mustAll(t, err)
	volumes, err := volume.New(node.Volume())
	mustAll(t, err)
	_, err = disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: 1})
	mustAll(t, err)
	found, err := volumes.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: 1})
	mustAll(t, err)
	id := found.VolumeIDs[0]
	homes := func() (names []string) {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "volumes", id[len(`\\?\Volume{`):len(id)-len(`}\`)]))
		mustAll(t, err)
		return names
	}
	if len(homes()) > 0 {
		t.Error("a volume without a file system has a directory")
	}
	_, err = volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: id})
	mustAll(t, err)
	_, err = volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: id, TargetPath: stage})
	mustAll(t, err)

	data := filepath.Join(realPath(dir, stage), "data")
	mustAll(t, os.WriteFile(data, []byte("precious"), 0o600))
	before, err := node.DiskFingerprint(1)
	mustAll(t, err)

	// Offline and online again.
	_, err = disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: 1})
	mustAll(t, err)
	if _, err := os.Stat(data); err == nil || len(homes()) > 0 {
		t.Error("a disk that is offline is shown")
	}
	if after, err := node.DiskFingerprint(1); err != nil || after != before {
		t.Errorf("it has another fingerprint: %v", err)
	}
	_, err = disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: 1, IsOnline: true})
	mustAll(t, err, node.Sleep(ctx, 10e9))
	if text, err := os.ReadFile(data); string(text) != "precious" {
		t.Errorf("online again it has %q, %v", text, err)
	}

	// Taken away, and back.
	mustAll(t, node.DetachDisk(1))
	if _, err := os.Stat(data); err == nil || len(homes()) > 0 {
		t.Error("a detached disk is shown")
	}
	if _, err := os.Readlink(realPath(dir, stage)); err != nil {
		t.Errorf("the mounted folder of a detached disk: %v", err)
	}
	_, err = node.ReattachDisk(1)
	mustAll(t, err, node.Sleep(ctx, 10e9))
	if text, err := os.ReadFile(data); string(text) != "precious" {
		t.Errorf("attached again it has %q, %v", text, err)
	}

	mustAll(t, node.Format(ctx, win.VolumeID(id), win.FormatOptions{}))
	if names, err := os.ReadDir(realPath(dir, stage)); err != nil || len(names) > 0 {
		t.Errorf("the formatted volume has %v, %v", names, err)
	}
}

// TestMirror_HiddenDirectoryIsLost: a directory that cannot be moved away while its disk is
// offline, or is gone when the disk comes back, is no data lost.
func TestMirror_HiddenDirectoryIsLost(t *testing.T) {
	for _, c := range []struct {
		name           string
		before, during func(hidden string) error
	}{
		{"cannot be hidden", os.RemoveAll, nil},
		{"is lost meanwhile", nil, os.RemoveAll},
	} {
		t.Run(c.name, func(t *testing.T) {
			needLinks(t)
			node, dir := newNode(t, winsim.Default()), t.TempDir()
			var problems []error
			stop, err := node.Mirror(dir, func(err error) { problems = append(problems, err) })
			mustAll(t, err)
			t.Cleanup(stop)
			disks, err := disk.New(node.Disk())
			mustAll(t, err)
			volumes, err := volume.New(node.Volume())
			mustAll(t, err)
			_, err = disks.PartitionDisk(t.Context(), &disk.PartitionDiskRequest{DiskNumber: 1})
			mustAll(t, err)
			found, err := volumes.ListVolumesOnDisk(t.Context(), &volume.ListVolumesOnDiskRequest{DiskNumber: 1})
			mustAll(t, err)
			_, err = volumes.FormatVolume(t.Context(), &volume.FormatVolumeRequest{VolumeID: found.VolumeIDs[0]})
			mustAll(t, err)
			homes, err := filepath.Glob(filepath.Join(dir, "volumes", "*"))
			mustAll(t, err)
			data := filepath.Join(homes[0], "data")
			mustAll(t, os.WriteFile(data, []byte("precious"), 0o600))

			hidden := filepath.Join(dir, claim.Mark, "hidden")
			if c.before != nil {
				mustAll(t, c.before(hidden))
			}
			_, err = disks.SetDiskState(t.Context(), &disk.SetDiskStateRequest{DiskNumber: 1})
			mustAll(t, err)
			if c.during != nil {
				mustAll(t, c.during(hidden))
			}
			_, err = disks.SetDiskState(t.Context(), &disk.SetDiskStateRequest{DiskNumber: 1, IsOnline: true})
			mustAll(t, err, node.Sleep(t.Context(), 10e9))
			if text, err := os.ReadFile(data); string(text) != "precious" {
				t.Errorf("online again it has %q, %v", text, err)
			}
			if len(problems) == 0 {
				t.Error("the loss was not reported")
			}
		})
	}
}
