package winsim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// storageModel has a system disk, a blank disk 1, and disk 2 with a volume.
func storageModel() winsim.Model {
	model := winsim.Default()
	model.Storage = winsim.Storage{}
	model.Disks = append(model.Disks[:2], winsim.Disk{
		Size: winsim.GiB, Layout: winsim.LayoutGPT, SCSI: &winsim.SCSI{Port: 3},
		Partitions: []winsim.Partition{{Type: "msr"}, {Size: 100 * winsim.MiB, Volume: &winsim.Volume{
			ID: dataVolume, Files: []winsim.File{{Path: "file", Content: "data"}},
		}}},
	})
	model.Files = append(model.Files, winsim.File{Path: `C:\empty`})
	return model
}

const dataID = win.VolumeID(dataVolume)

// TestFault_DevicesByAnyName: a fault on disk 2 finds calls that know it by its interface,
// and one on a volume those that name its device.
func TestFault_DevicesByAnyName(t *testing.T) {
	node, ctx := newNode(t, storageModel()), t.Context()
	devices, err := node.DiskDevices(ctx)
	mustAll(t, err)
	for _, c := range []struct {
		object string
		device win.Device
		want   bool
	}{
		{`\\.\PhysicalDrive2`, devices[2], true},
		{`\\.\physicaldrive2`, devices[2], true},
		{`*drive2`, win.PhysicalDrive(2), true},
		{string(devices[2]), win.PhysicalDrive(2), true},
		{`\\.\PhysicalDrive2`, devices[1], false},
		{dataVolume, dataID.Device(), true},
		{string(dataID.Device()), dataID.Device(), true},
		{`*1111-2222*`, dataID.Device(), true},
		{`\\.\PhysicalDrive2`, dataID.Device(), false},
	} {
		injection := inject(t, node, winsim.Fault{Object: c.object, Error: 21})
		_, err := node.DeviceNumber(ctx, c.device)
		if failed := bare(err, winerr.NotReady); failed != c.want {
			t.Errorf("a fault on %s, a call on %s: %v", c.object, c.device, err)
		}
		injection.Remove()
	}
}

// TestClock_Real: with real time the same happens at the same time, here in a bubble.
func TestClock_Real(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := storageModel()
		model.RealTime = true
		model.Storage.FormatTime = 10 * time.Second
		node, start := newNode(t, model), time.Now()

		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := node.Format(hasty, dataID, win.FormatOptions{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("a caller with a second: %v after %v", err, time.Since(start))
		}
		if err := node.Process(nil).Format(t.Context(), dataID, win.FormatOptions{}); !bare(err, winerr.StorageInUse) {
			t.Errorf("a second format, of another process: %v, want code 6", err)
		}
		if err := node.Format(t.Context(), dataID, win.FormatOptions{}); !errors.Is(err, win.ErrStuck) || time.Since(start) != 2*time.Second {
			t.Errorf("a second format: %v after %v, want that the first is stuck", err, time.Since(start))
		}
		if content, err := node.ReadFile(dataVolume + "file"); content != "data" {
			t.Errorf("before the end: %q, %v", content, err)
		}
		mustAll(t, node.Sleep(t.Context(), 8*time.Second))
		synctest.Wait()
		if node.Exists(dataVolume + "file") {
			t.Error("the format did not go on when its caller had left")
		}
		if err := node.Format(t.Context(), dataID, win.FormatOptions{}); err != nil || time.Since(start) != 20*time.Second {
			t.Errorf("a third format: %v after %v", err, time.Since(start))
		}
	})
}

// TestFormat_VolumeLeaves: the caller learns that it came to nothing.
func TestFormat_VolumeLeaves(t *testing.T) {
	for call, want := range map[string]error{"Format": winerr.StorageIOError, "FormatLegacy": winerr.LegacyFormatIOError} {
		format := win.Machine.Format
		if call == "FormatLegacy" {
			format = win.Machine.FormatLegacy
		}
		synctest.Test(t, func(t *testing.T) {
			model := storageModel()
			model.RealTime = true
			model.Storage.FormatTime = 10 * time.Second
			node := newNode(t, model)
			done := make(chan error, 1)
			go func() { done <- format(node, t.Context(), dataID, win.FormatOptions{}) }()
			time.Sleep(time.Second)
			mustAll(t, node.DetachDisk(2))
			if err := <-done; !bare(err, want) {
				t.Errorf("%s: %v, want %v", call, err, want)
			}
		})
	}
}

// TestDiskFingerprint: it sees every change of what is on the disk, and nothing else.
func TestDiskFingerprint(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(*winsim.Node) error
		want bool
	}{
		"nothing": {func(*winsim.Node) error { return nil }, false},
		"offline": {func(n *winsim.Node) error {
			return n.SetDiskAttributes(t.Context(), win.PhysicalDrive(2), win.DiskAttributes{Offline: true}, win.DiskAttributes{Offline: true})
		}, false},
		"update": {func(n *winsim.Node) error { return n.UpdateDisk(t.Context(), win.PhysicalDrive(2)) }, false},
		"mount": {func(n *winsim.Node) error {
			return open(t, n, `C:\`).SetMountPoint(t.Context(), "empty", dataID)
		}, false},
		"another disk": {func(n *winsim.Node) error { return n.CreateDisk(t.Context(), win.PhysicalDrive(1), win.GUID{}) }, false},
		"a file":       {func(n *winsim.Node) error { return n.WriteFile(dataVolume+"file", "datA") }, true},
		"a directory":  {func(n *winsim.Node) error { return n.Mkdir(dataVolume + "dir") }, true},
		"format":       {func(n *winsim.Node) error { return n.Format(t.Context(), dataID, win.FormatOptions{}) }, true},
		"new table":    {func(n *winsim.Node) error { return n.CreateDisk(t.Context(), win.PhysicalDrive(2), win.GUID{}) }, true},
		"no partition": {func(n *winsim.Node) error {
			return n.SetDriveLayout(t.Context(), win.PhysicalDrive(2), win.DriveLayout{Style: win.StyleGPT})
		}, true},
		"partition grows": {func(n *winsim.Node) error { return n.GrowPartition(t.Context(), win.PhysicalDrive(2), 2, 1<<20) }, true},
	} {
		node := newNode(t, storageModel())
		before, err := node.DiskFingerprint(2)
		mustAll(t, err)
		if err := c.run(node); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if after, err := node.DiskFingerprint(2); (after != before) != c.want || err != nil {
			t.Errorf("%s: the fingerprint changed is %v, %v, want %v", name, after != before, err, c.want)
		}
	}
	if _, err := newNode(t, storageModel()).DiskFingerprint(9); !errors.Is(err, winerr.NotFound) {
		t.Errorf("of no disk: %v", err)
	}
}

// TestWriteDisk wipes a disk with a volume: Windows sees that its table is gone when it is asked to look.
func TestWriteDisk(t *testing.T) {
	node := newNode(t, storageModel())
	ctx, data := t.Context(), win.PhysicalDrive(2)
	style := func() win.PartitionStyle {
		t.Helper()
		mustAll(t, node.UpdateDisk(ctx, data))
		layout, err := node.DriveLayout(ctx, data)
		mustAll(t, err)
		return layout.Style
	}
	zeros := make([]byte, winsim.MiB)
	mustAll(t, node.WriteDisk(2, 0, zeros))
	if got := style(); got != win.StyleGPT {
		t.Errorf("with the table at its end, the disk is of style %v", got)
	}
	mustAll(t, node.WriteDisk(2, int64(winsim.GiB-winsim.MiB), zeros))
	if got := style(); got != win.StyleRaw {
		t.Errorf("without tables, the disk is of style %v", got)
	}
	if ids, err := node.VolumeIDs(ctx); err != nil || slices.Contains(ids, dataID) {
		t.Errorf("its volume is still there: %v, %v", ids, err)
	}
	for name, err := range map[string]error{
		"no such disk":   node.WriteDisk(9, 0, zeros),
		"half a sector":  node.WriteDisk(2, 0, zeros[:256]),
		"an odd offset":  node.WriteDisk(2, 1, zeros),
		"beyond its end": node.WriteDisk(2, int64(winsim.GiB), zeros),
		"before it":      node.WriteDisk(2, -512, zeros),
	} {
		if err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// TestAttachDisk_Copy: a snapshot that is attached beside its original has the same ids;
// the mount manager finds another name for its volume.
func TestAttachDisk_Copy(t *testing.T) {
	model := storageModel()
	node := newNode(t, model)
	copied := model.Disks[2]
	copied.Number = 9
	number, err := node.AttachDisk(copied)
	if err != nil || number != 9 {
		t.Fatalf("disk %d, %v, want 9", number, err)
	}
	info, err := node.DiskInfo(9)
	mustAll(t, err)
	id := info.Partitions[1].Volume.ID
	if id == "" || id == dataVolume {
		t.Errorf("the copy's volume is %q", id)
	}
	if err := node.WriteFile(id+"file", "other"); err != nil {
		t.Error(err)
	}
	if content, err := node.ReadFile(dataVolume + "file"); content != "data" {
		t.Errorf("the original contains %q, %v", content, err)
	}
	if _, err := node.AttachDisk(copied); !errors.Is(err, winerr.Exists) {
		t.Errorf("the same number again: %v", err)
	}
	if _, err := node.AttachDisk(winsim.Disk{}); !errors.Is(err, winerr.Invalid) || !strings.Contains(err.Error(), "size: ") {
		t.Errorf("a disk without a size: %v", err)
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]winsim.Size{
		"0": 0, "1": 1, "512": 512, "1KiB": 1024, "10GiB": 10 << 30, "10 GiB": 10 << 30, "-1MiB": -1 << 20, "1024TiB": 1 << 50, "8388607TiB": 8388607 << 40,
	} {
		var got winsim.Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
		if again := winsim.Size(0); again.UnmarshalText([]byte(got.String())) != nil || again != got {
			t.Errorf("%d is written %q and read as %d", got, got, again)
		}
	}
	for _, text := range []string{"", "x", "GiB", "1GB", "1gib", "1.5GiB", "0x10", "8388608TiB", "9223372036854775808", "1 2", "1KiBMiB"} {
		var got winsim.Size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func TestInjection_RemoveReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, storageModel())
		injection := inject(t, node, winsim.Fault{Call: "Format", Delay: time.Hour})
		done := make(chan error, 1)
		go func() { done <- node.Format(t.Context(), dataID, win.FormatOptions{}) }()
		synctest.Wait()
		if injection.Hits() != 1 || len(done) != 0 {
			t.Fatalf("%d hits, %d answers, want a call that hangs", injection.Hits(), len(done))
		}
		start := time.Now()
		injection.Remove()
		if err := <-done; err != nil || time.Since(start) > time.Second {
			t.Errorf("the call ended with %v after %v", err, time.Since(start))
		}
	})
}
