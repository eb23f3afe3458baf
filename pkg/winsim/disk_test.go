package winsim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
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

// TestFault_CodesOfFormat: the two ways to format fail with numbers of their own.
func TestFault_CodesOfFormat(t *testing.T) {
	node := newProvenNode(t, storageModel())
	for _, c := range []struct {
		call   string
		number uint32
		want   error
	}{
		{"Format", 40003, winerr.StorageCacheOutOfDate},
		{"Format", 6, winerr.StorageInUse},
		{"Format", 1117, winerr.IODevice},
		{"Format", 0x80041002, winerr.WMINotFound},
		{"FormatLegacy", 6, winerr.LegacyFormatWriteProtected},
		{"FormatLegacy", 18, winerr.LegacyFormatUnknown},
		{"FormatLegacy", 19, winerr.WriteProtect},
		{"FormatLegacy", 40003, winerr.Code(40003)},
		{"FlushVolume", 6, winerr.Code(6)},
	} {
		inject(t, node, winsim.Fault{Call: c.call, Error: c.number, Times: 1})
		if err := callMethod(t, node, c.call); !bare(err, c.want) {
			t.Errorf("%s with error %d: %v, want %v", c.call, c.number, err, c.want)
		}
	}
}

// TestFault_DevicesByAnyName: a fault on disk 2 finds calls that know it by its interface,
// and one on a volume those that name its device.
func TestFault_DevicesByAnyName(t *testing.T) {
	node, ctx := newProvenNode(t, storageModel()), t.Context()
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

func TestInjection_RemoveReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newProvenNode(t, storageModel())
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

// TestClock_Virtual: time passes by sleeping only, and what is to happen happens then.
func TestClock_Virtual(t *testing.T) {
	node, ctx := newProvenNode(t, winsim.Default()), t.Context()
	start := node.Now()
	for range 3 {
		mustAll(t, node.Sleep(ctx, 20*time.Minute))
	}
	if passed := node.Now().Sub(start); passed != time.Hour {
		t.Errorf("%v passed, want 1h", passed)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := node.Sleep(cancelled, time.Hour); !errors.Is(err, context.Canceled) || node.Now().Sub(start) != time.Hour {
		t.Errorf("a cancelled sleep: %v after %v", err, node.Now().Sub(start))
	}
	if err := node.Sleep(ctx, -time.Hour); err != nil || node.Now().Sub(start) != time.Hour {
		t.Errorf("a negative sleep: %v after %v", err, node.Now().Sub(start))
	}
}

// TestClock_Real: with real time the same happens at the same time, here in a bubble.
func TestClock_Real(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := storageModel()
		model.RealTime = true
		model.Storage.FormatTime = 10 * time.Second
		node, start := newProvenNode(t, model), time.Now()

		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := node.Format(hasty, dataID, win.FormatOptions{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("a caller with a second: %v after %v", err, time.Since(start))
		}
		if err := node.Format(t.Context(), dataID, win.FormatOptions{}); !bare(err, winerr.StorageInUse) {
			t.Errorf("a second format: %v, want code 6", err)
		}
		if content, err := node.ReadFile(dataVolume + "file"); content != "data" {
			t.Errorf("before the end: %q, %v", content, err)
		}
		mustAll(t, node.Sleep(t.Context(), 9*time.Second))
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
			node := newProvenNode(t, model)
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
		node := newProvenNode(t, storageModel())
		before, err := node.DiskFingerprint(2)
		mustAll(t, err)
		if err := c.run(node); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if after, err := node.DiskFingerprint(2); (after != before) != c.want || err != nil {
			t.Errorf("%s: the fingerprint changed is %v, %v, want %v", name, after != before, err, c.want)
		}
	}
	if _, err := newProvenNode(t, storageModel()).DiskFingerprint(9); !errors.Is(err, winerr.NotFound) {
		t.Errorf("of no disk: %v", err)
	}
}

// TestWriteDisk wipes a disk with a volume: Windows sees that its table is gone when it is asked to look.
func TestWriteDisk(t *testing.T) {
	node := newProvenNode(t, storageModel())
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
	node := newProvenNode(t, model)
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

// TestPresets_Disks: what drivers look for is there.
func TestPresets_Disks(t *testing.T) {
	for _, name := range winsim.Presets() {
		if name == "broken" {
			continue // some of its disks do not answer
		}
		model, _ := winsim.Preset(name)
		node := newProvenNode(t, model)
		host := node.Disk()
		ids, err := host.ListDiskIDs()
		mustAll(t, err)
		locations, err := host.ListDiskLocations()
		mustAll(t, err)
		if len(ids) != len(model.Disks) || len(locations) != len(model.Disks) || len(ids) < 3 {
			t.Errorf("%s: %d disks, %d ids, %d locations", name, len(model.Disks), len(ids), len(locations))
		}
		var found bool
		switch name {
		case "azure":
			found = locations[1].LUNID == "0" && locations[2].LUNID == "1" && locations[1].Adapter == "1" && locations[0].Adapter == "0"
		case "ebs-nvme":
			found = strings.HasPrefix(ids[1].SerialNumber, "vol0123456789abcdef0") && locations[1].LUNID == ""
		case "azure-nvme":
			found = locations[1].LUNID == "0" && locations[2].LUNID == "1" && locations[0].LUNID == "" && locations[3].LUNID == ""
		case "gce-nvme":
			found = ids[1].SerialNumber == "10CC_9636_B6E3_CE3B_0000_0000_0000_0000." && ids[1].Page83 == "10cc9636b6e3ce3b" && locations[1].LUNID == ""
		case "gce":
			found = ids[1].Page83 == "Google  pvc-data-1"
		case "vsphere":
			online, err := host.GetDiskState(1)
			found = ids[1].Page83 == "6000c29b1e5c4f7d8a90b1c2d3e4f5a1" && err == nil && !online
		default:
			found = ids[1].SerialNumber == "WINSIM0001"
		}
		if !found {
			t.Errorf("%s: ids %+v, locations %+v", name, ids, locations)
		}
		if system, err := node.SystemVolumes(t.Context()); err != nil || !slices.Contains(system, winsim.SystemVolume) || len(system) != 2 {
			t.Errorf("%s: system volumes %q, %v", name, system, err)
		}
	}
}

// TestStorage_Concurrent: many disks at once, with everything else going on; for the race
// detector, and for what must hold in the end.
func TestStorage_Concurrent(t *testing.T) {
	const workers = 8
	model := storageModel()
	model.Storage.VolumeArrival = time.Millisecond
	for range workers {
		model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB})
	}
	node, ctx := newNode(t, model), t.Context()
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			number := uint32(3 + worker)
			device := win.PhysicalDrive(number)
			for range 20 {
				partition := win.Partition{Offset: 1 << 20, Length: 100 << 20, Type: win.PartitionBasicData, ID: win.NewGUID(), Attributes: win.NoDriveLetter}
				id := win.VolumeID(`\\?\Volume{` + partition.ID.String() + `}\`)
				err := errors.Join(
					node.CreateDisk(ctx, device, win.NewGUID()),
					node.SetDriveLayout(ctx, device, win.DriveLayout{Style: win.StyleGPT, Partitions: []win.Partition{partition}}),
					node.Sleep(ctx, time.Millisecond),
					node.Format(ctx, id, win.FormatOptions{}),
					node.WriteFile(string(id)+"file", "data"),
					node.GrowPartition(ctx, device, 1, 1<<20),
					node.ExtendVolume(ctx, id, 101<<11),
				)
				if err != nil {
					t.Error(err)
					return
				}
				if worker == 0 { // alone, so that the number stays
					err := node.DetachDisk(number)
					if _, again := node.ReattachDisk(number); err != nil || again != nil {
						t.Error(err, again)
					}
				}
				_, _ = node.VolumeIDs(ctx)
				_, _ = node.DiskDevices(ctx)
				_ = node.RescanAdapter(ctx, "")
				_, _ = node.DiskFingerprint(number)
				_, _ = node.FileSystem(ctx, dataID)
				_ = node.RefreshStorageCache(ctx)
				_ = node.Now()
			}
		})
	}
	wg.Wait()
	devices, err := node.DiskDevices(ctx)
	if err != nil || len(devices) != 3+workers {
		t.Errorf("%d disks, %v, want %d", len(devices), err, 3+workers)
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
