package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/calltable"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// manyVolumes has on disk 1 two volumes and a part of a third, on disk 2 the rest of that
// one, on disk 3 nothing, and a CD-ROM with the number of disk 0.
func manyVolumes() winsim.Model {
	model := modelWith(
		winsim.Disk{Size: 4 * winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{
			{Type: "msr"},
			{Size: winsim.GiB, Volume: &winsim.Volume{ID: volumeID(1)}},
			{Size: winsim.GiB, Volume: &winsim.Volume{ID: volumeID(2), FileSystem: winsim.FileSystemNone}},
			{Type: "ldm-data"},
		}},
		winsim.Disk{Size: 4 * winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Type: "ldm-data"}}},
		winsim.Disk{Size: winsim.GiB},
	)
	model.Volumes = []winsim.Volume{
		{ID: volumeID(3), Extents: []winsim.Extent{{Disk: 1, Offset: 3 * winsim.GiB, Size: winsim.GiB / 2}, {Disk: 2, Offset: winsim.GiB, Size: winsim.GiB}}},
		{ID: volumeID(4), FileSystem: winsim.CDFS, CDROM: true},
		{ID: volumeID(5)}, // a RAM disk
	}
	return model
}

func TestListVolumesOnDisk(t *testing.T) {
	host := volumeapi.NewOn(newNode(t, manyVolumes()))
	for _, c := range []struct {
		disk, partition uint32
		want            []string
	}{
		{1, 0, []string{volumeID(1), volumeID(2), volumeID(3)}},
		{1, 1, nil}, // reserved
		{1, 2, []string{volumeID(1)}},
		{1, 3, []string{volumeID(2)}},
		{1, 4, []string{volumeID(3)}},
		{1, 5, nil}, // none of that number
		{2, 0, []string{volumeID(3)}},
		{2, 1, []string{volumeID(3)}},
		{3, 0, nil},
	} {
		t.Run(fmt.Sprintf("disk %d partition %d", c.disk, c.partition), func(t *testing.T) {
			got, err := host.ListVolumesOnDisk(c.disk, c.partition)
			if err != nil || got == nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
	// The EFI partition and drive C:, but not the CD-ROM.
	got, err := host.ListVolumesOnDisk(0, 0)
	if err != nil || len(got) != 2 || got[1] != winsim.SystemVolume {
		t.Errorf("on disk 0: %q, %v", got, err)
	}
}

func TestListVolumesOnDisk_VolumesThatDoNotAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		fault winsim.Fault
		want  []string // of disk 1; nil if the list fails
	}{
		"gone before it was asked": {
			winsim.Fault{Call: "DeviceNumber", Object: volumeID(2), Error: uint32(winerr.FileNotFound)}, nil,
		},
		"gone for a moment": {
			winsim.Fault{Call: "DeviceNumber", Object: volumeID(2), Error: uint32(winerr.FileNotFound), Times: 3},
			[]string{volumeID(1), volumeID(2), volumeID(3)},
		},
		"detached before it was asked": {
			winsim.Fault{Call: "DeviceNumber", Object: volumeID(3), Times: 1, Do: func(n *winsim.Node) { _ = n.DetachDisk(2) }},
			[]string{volumeID(1), volumeID(2)}, // the third is half on disk 2
		},
		"offline, but it knows its extents": {
			winsim.Fault{Call: "DeviceNumber", Object: volumeID(2), Error: uint32(winerr.NotReady)},
			[]string{volumeID(1), volumeID(2), volumeID(3)},
		},
		"I/O error": {
			winsim.Fault{Object: volumeID(2), Error: uint32(winerr.IODevice)}, nil,
		},
		"I/O error of a dynamic one": {
			winsim.Fault{Object: volumeID(3), Error: uint32(winerr.IODevice)},
			[]string{volumeID(1), volumeID(2)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t, manyVolumes())
			fault := inject(t, node, c.fault)
			got, err := volumeapi.NewOn(node).ListVolumesOnDisk(1, 0)
			if c.want == nil {
				wantKind(t, "list", err, winerr.Unavailable, "partition 3")
			} else if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
			if fault.Hits() == 0 {
				t.Error("the fault did not happen")
			}
		})
	}
}

// TestListVolumesOnDisk_OnlyVolumeDoesNotAnswer: an empty list would say that the disk has no
// volume.
func TestListVolumesOnDisk_OnlyVolumeDoesNotAnswer(t *testing.T) {
	for name, faults := range map[string][]winsim.Fault{
		"the volume":    {{Call: "DeviceNumber", Object: volumeID(1)}, {Call: "VolumeExtents", Object: volumeID(1)}},
		"and the table": {{Call: "DriveLayout"}, {Call: "DeviceNumber", Object: volumeID(1)}, {Call: "VolumeExtents", Object: volumeID(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t, modelWith(winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Volume: &winsim.Volume{ID: volumeID(1)}}}}))
			for _, fault := range faults {
				fault.Error = uint32(winerr.NotReady)
				inject(t, node, fault)
			}
			if got, err := volumeapi.NewOn(node).ListVolumesOnDisk(firstDisk, 0); winerr.CodeOf(err) != winerr.NotReady {
				t.Errorf("got %q, %v, want error 21", got, err)
			}
		})
	}
}

// TestListVolumesOnDisk_OneOfTwo: a driver would take the one volume for the only one.
func TestListVolumesOnDisk_OneOfTwo(t *testing.T) {
	for _, code := range []winerr.Code{winerr.FileNotFound, winerr.InvalidFunction, winerr.NotReady, winerr.GenFailure, winerr.InvalidParameter, winerr.IODevice} {
		for _, layout := range []winsim.Layout{winsim.LayoutGPT, winsim.LayoutMBR} {
			t.Run(fmt.Sprint(layout, " ", uint32(code)), func(t *testing.T) {
				disk := winsim.Disk{Size: winsim.GiB, Layout: layout, Partitions: []winsim.Partition{
					{Size: 100 * winsim.MiB, Volume: &winsim.Volume{ID: volumeID(1)}},
					{Size: 100 * winsim.MiB, Volume: &winsim.Volume{ID: volumeID(2)}},
				}}
				node := newNode(t, modelWith(disk))
				host := volumeapi.NewOn(node)
				for _, call := range []string{"DeviceNumber", "VolumeExtents"} {
					inject(t, node, winsim.Fault{Call: call, Object: volumeID(1), Error: uint32(code)})
				}
				begin := node.Now()
				_, err := host.ListVolumesOnDisk(firstDisk, 0)
				wantKind(t, "list", err, winerr.Unavailable, "partition 1")
				if waited := node.Now().Sub(begin); waited != 5*time.Second {
					t.Errorf("it took %v", waited)
				}
				if got, err := host.ListVolumesOnDisk(firstDisk, 2); err != nil || !slices.Equal(got, []string{volumeID(2)}) {
					t.Errorf("the other partition: %q, %v", got, err)
				}
			})
		}
	}
}

// TestListVolumesOnDisk_EFI has a partition that Windows need not make a volume of. If it does,
// and the volume does not answer, the disk is not empty.
func TestListVolumesOnDisk_EFI(t *testing.T) {
	efi := winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Type: "efi", Volume: &winsim.Volume{ID: id, FileSystem: winsim.FAT32}}}}
	linux := winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Type: "linux"}}}
	model := modelWith(efi, linux)
	model.Volumes = []winsim.Volume{{ID: volumeID(5)}} // a RAM disk, which never knows the question
	for _, code := range []winerr.Code{winerr.InvalidFunction, winerr.InvalidParameter, winerr.NotReady, winerr.IODevice} {
		t.Run(fmt.Sprint(uint32(code)), func(t *testing.T) {
			node := newNode(t, model)
			host := volumeapi.NewOn(node)
			if got, err := host.ListVolumesOnDisk(2, 0); err != nil || len(got) != 0 {
				t.Errorf("Linux: %q, %v", got, err)
			}
			for _, call := range []string{"DeviceNumber", "VolumeExtents"} {
				inject(t, node, winsim.Fault{Call: call, Object: id, Error: uint32(code)})
			}
			if got, err := host.ListVolumesOnDisk(firstDisk, 0); winerr.CodeOf(err) != code {
				t.Errorf("got %q, %v, want error %d", got, err, code)
			}
			must(t, node.SetDiskAttributes(t.Context(), win.PhysicalDrive(2), win.DiskAttributes{Offline: true}, win.DiskAttributes{Offline: true}))
			if got, err := host.ListVolumesOnDisk(2, 0); err != nil || len(got) != 0 {
				t.Errorf("offline: %q, %v", got, err)
			}
		})
	}
}

// TestListVolumesOnDisk_LooksRaw: a disk that has just arrived looks blank for a moment.
func TestListVolumesOnDisk_LooksRaw(t *testing.T) {
	for looks := range 4 {
		disk := gpt(winsim.GiB, formatted())
		disk.LooksRaw = looks
		node := newNode(t, modelWith(disk, winsim.Disk{Size: winsim.GiB}))
		host := volumeapi.NewOn(node)
		if got, err := host.ListVolumesOnDisk(firstDisk, 0); err != nil || !slices.Equal(got, []string{id}) {
			t.Errorf("%d looks: %q, %v", looks, got, err)
		}
		begin := node.Now()
		got, err := host.ListVolumesOnDisk(2, 0)
		if err != nil || len(got) != 0 || node.Now().Sub(begin) != 500*time.Millisecond {
			t.Errorf("blank: %q, %v after %v", got, err, node.Now().Sub(begin))
		}
	}
}

// TestListVolumesOnDisk_OddTables has disks on which volumes cannot be found by the GUIDs
// of their partitions.
func TestListVolumesOnDisk_OddTables(t *testing.T) {
	twin := gpt(winsim.GiB, winsim.Volume{ID: volumeID(2)})
	twin.Partitions[1].ID = volumeID(1)[len(`\\?\Volume`) : len(volumeID(1))-1]
	looksRaw := gpt(winsim.GiB, winsim.Volume{ID: volumeID(5)})
	looksRaw.LooksRaw = 1
	node := newNode(t, modelWith(
		gpt(winsim.GiB, winsim.Volume{ID: volumeID(1)}),
		twin, // a copy of disk 1
		winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{{Volume: &winsim.Volume{ID: volumeID(3)}}}},
		winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutSuperfloppy, Partitions: []winsim.Partition{{Volume: &winsim.Volume{ID: volumeID(4)}}}},
		looksRaw,
	))
	host := volumeapi.NewOn(node)
	check := func() {
		t.Helper()
		for disk := range 5 {
			got, err := host.ListVolumesOnDisk(uint32(disk+1), 0)
			if want := []string{volumeID(disk + 1)}; err != nil || !slices.Equal(got, want) {
				t.Errorf("on disk %d: %q, %v, want %q", disk+1, got, err, want)
			}
		}
	}
	check()
	inject(t, node, winsim.Fault{Call: "DriveLayout", Error: uint32(winerr.NotSupported)})
	check()
}

// TestListVolumesOnDisk_OtherDisksHang shows that one disk does not hold up the others.
func TestListVolumesOnDisk_OtherDisksHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, twoVolumes())
		inject(t, node, winsim.Fault{Object: volumeID(2), Delay: 10 * time.Second})
		begin := time.Now()
		got, err := volumeapi.NewOn(node).ListVolumesOnDisk(firstDisk, 0)
		if err != nil || !slices.Equal(got, []string{id}) || time.Since(begin) != 0 {
			t.Errorf("got %q, %v after %v", got, err, time.Since(begin))
		}
	})
}

// TestListVolumesOnDisk_SearchHangs has disks whose volumes must be searched for, while
// one of another disk hangs.
func TestListVolumesOnDisk_SearchHangs(t *testing.T) {
	mbr := func(number int) winsim.Disk {
		return winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{{Volume: &winsim.Volume{ID: volumeID(number)}}}}
	}
	late := mbr(3)
	late.Partitions[0].Size = winsim.GiB / 2
	late.Partitions = append(late.Partitions, winsim.Partition{Type: "0x83"}) // which has no volume, but might
	reserved := winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Type: "msr"}}}
	model := modelWith(mbr(1), mbr(2), late, winsim.Disk{Size: winsim.GiB}, reserved)
	for disk, c := range map[uint32]struct {
		want []string
		wait time.Duration
	}{
		1: {want: []string{volumeID(1)}},
		3: {want: []string{volumeID(3)}, wait: 5 * time.Second}, // its second one might be it
		4: {},
		5: {},
	} {
		t.Run(fmt.Sprint("disk ", disk), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := newNode(t, model)
				inject(t, node, winsim.Fault{Object: volumeID(2), Delay: time.Hour})
				begin := time.Now()
				got, err := volumeapi.NewOn(node).ListVolumesOnDisk(disk, 0)
				if err != nil || !slices.Equal(got, c.want) || time.Since(begin) != c.wait {
					t.Errorf("got %q, %v after %v, want %q after %v", got, err, time.Since(begin), c.want, c.wait)
				}
			})
		})
	}
}

// TestListVolumesOnDisk_OnlyVolumeHangs: an empty list would say that there is none, and a
// list must not take minutes.
func TestListVolumesOnDisk_OnlyVolumeHangs(t *testing.T) {
	for _, kind := range []string{"0x07", "0xef"} { // Windows need not make a volume of the second
		synctest.Test(t, func(t *testing.T) {
			node := newNode(t, modelWith(winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{{Type: kind, Volume: &winsim.Volume{ID: id}}}}))
			inject(t, node, winsim.Fault{Object: id, Delay: time.Hour})
			begin := time.Now()
			_, err := volumeapi.NewOn(node).ListVolumesOnDisk(firstDisk, 0)
			wantKind(t, "list", err, winerr.Unavailable, "disk 1")
			wantKind(t, "list", err, winerr.Unavailable, id)
			if waited := time.Since(begin); waited != 5*time.Second {
				t.Errorf("it took %v", waited)
			}
		})
	}
}

// TestListVolumesOnDisk_Late has volumes that Windows shows some time after their disk came
// online. A driver that takes the first id of an empty list crashes.
func TestListVolumesOnDisk_Late(t *testing.T) {
	offline := gpt(winsim.GiB, formatted())
	offline.Offline = true
	foreign := winsim.Disk{Size: winsim.GiB, Offline: true, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Type: "linux"}}}
	hidden := gpt(winsim.GiB, winsim.Volume{ID: volumeID(3)})
	hidden.Offline = true
	hidden.Partitions[1].Attributes, hidden.Partitions[1].Volume = win.HiddenPartition, nil
	mbr := winsim.Disk{Size: winsim.GiB, Offline: true, Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{{Volume: &winsim.Volume{ID: volumeID(4)}}}}
	model := modelWith(offline, foreign, hidden, mbr)
	for _, c := range []struct {
		name            string
		arrival         time.Duration
		disk, partition uint32
		want            string
		wait            time.Duration
		fails           string // names this partition
	}{
		{name: "at once", disk: 1, want: id},
		{name: "soon", arrival: 2 * time.Second, disk: 1, want: id, wait: 2500 * time.Millisecond},
		{name: "its partition, soon", arrival: 2 * time.Second, disk: 1, partition: 2, want: id, wait: 2500 * time.Millisecond},
		{name: "MBR, soon", arrival: 2 * time.Second, disk: 4, want: volumeID(4), wait: 2500 * time.Millisecond},
		{name: "late", arrival: 15 * time.Second, disk: 1, wait: 5 * time.Second, fails: "partition 2"},
		{name: "MBR, late", arrival: 15 * time.Second, disk: 4, wait: 5 * time.Second, fails: "partition 1"},
		{name: "the reserved partition", arrival: 15 * time.Second, disk: 1, partition: 1},
		{name: "Linux", arrival: 15 * time.Second, disk: 2},
		{name: "hidden", arrival: 15 * time.Second, disk: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := model
			model.Storage.VolumeArrival = c.arrival
			node := newNode(t, model)
			host := volumeapi.NewOn(node)
			before := fingerprint(t, node)
			must(t, node.SetDiskAttributes(t.Context(), win.PhysicalDrive(c.disk), win.DiskAttributes{}, win.DiskAttributes{Offline: true}))
			begin := node.Now()
			got, err := host.ListVolumesOnDisk(c.disk, c.partition)
			if waited := node.Now().Sub(begin); waited > c.wait || (c.wait > 0 && waited < c.wait-time.Second) {
				t.Errorf("it took %v, want %v", waited, c.wait)
			}
			switch {
			case c.fails != "":
				wantKind(t, "list", err, winerr.Unavailable, c.fails)
				wantKind(t, "list", err, winerr.Unavailable, fmt.Sprint("disk ", c.disk))
			case err != nil || got == nil || strings.Join(got, " ") != c.want:
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
			if fingerprint(t, node) != before {
				t.Error("a disk was changed")
			}
		})
	}
}

// TestListVolumesOnDisk_Offline: democratic-csi lists the volumes before it calls
// PartitionDisk, and needs an empty list to do so.
func TestListVolumesOnDisk_Offline(t *testing.T) {
	disk := gpt(winsim.GiB, formatted())
	disk.Offline = true
	node := newNode(t, modelWith(disk))
	begin := node.Now()
	got, err := volumeapi.NewOn(node).ListVolumesOnDisk(firstDisk, 0)
	if err != nil || got == nil || len(got) != 0 || node.Now().Sub(begin) != 0 {
		t.Errorf("got %q, %v after %v, want an empty list at once", got, err, node.Now().Sub(begin))
	}
	inject(t, node, winsim.Fault{Call: "DiskAttributes", Error: uint32(winerr.NotSupported)})
	_, err = volumeapi.NewOn(node).ListVolumesOnDisk(firstDisk, 0)
	wantKind(t, "a disk that does not report", err, winerr.Unavailable, "partition 2")
}

// TestListVolumesOnDisk_SearchEnds lets the caller leave, and our own code fail.
func TestListVolumesOnDisk_SearchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, manyVolumes())
		fault := inject(t, node, winsim.Fault{Object: volumeID(2), Delay: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := bind(ctx, volumeapi.NewOn(node)).ListVolumesOnDisk(1, 0)
		wantKind(t, "the caller leaves", err, winerr.Deadline, "disk 1")
		fault.Remove()

		inject(t, node, winsim.Fault{Call: "VolumeExtents", Object: volumeID(3), Do: func(*winsim.Node) { panic("oops") }})
		_, err = volumeapi.NewOn(node).ListVolumesOnDisk(1, 0)
		wantKind(t, "a panic", err, winerr.Internal, "oops")
	})
}

// TestVolumes_ManyDisks shows what grows with the number of disks, and what does not.
func TestVolumes_ManyDisks(t *testing.T) {
	const disks = 1000
	all := make([]winsim.Disk, disks)
	for i := range all {
		all[i] = gpt(winsim.GiB, winsim.Volume{ID: volumeID(i)})
	}
	all[501].Partitions[1].ID = "deadbeef-0000-4000-8000-000000000000" // a name that Windows did not keep
	node := newNode(t, modelWith(all...))
	host := volumeapi.NewOn(node)
	path := pods + `\x`
	must(t, node.MountFolder(path, volumeID(500)))
	for name, c := range map[string]struct {
		calls int // at most
		do    func() (any, error)
		want  any
	}{
		"ListVolumesOnDisk": {2, func() (any, error) {
			ids, err := host.ListVolumesOnDisk(501, 0)
			return strings.Join(ids, " "), err
		}, volumeID(500)},
		"ListVolumesOnDisk, by search": {disks + 5, func() (any, error) {
			ids, err := host.ListVolumesOnDisk(502, 0)
			return strings.Join(ids, " "), err
		}, volumeID(501)},
		"GetVolumeIDFromTargetPath": {2, func() (any, error) { return host.GetVolumeIDFromTargetPath(path) }, volumeID(500)},
		"GetDiskNumberFromVolumeID": {1, func() (any, error) { return host.GetDiskNumberFromVolumeID(volumeID(500)) }, uint32(501)},
	} {
		node.ResetCalls()
		got, err := c.do()
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
		if n := (calltable.Row{Calls: node.Calls()}).Total(); n > c.calls {
			t.Errorf("%s makes %d calls with %d disks, want at most %d", name, n, disks, c.calls)
		}
	}
}

func TestGetDiskNumberFromVolumeID(t *testing.T) {
	node := newNode(t, manyVolumes())
	host := volumeapi.NewOn(node)
	if got, err := host.GetDiskNumberFromVolumeID(volumeID(2)); err != nil || got != 1 {
		t.Errorf("got %d, %v, want 1", got, err)
	}
	_, err := host.GetDiskNumberFromVolumeID(volumeID(3))
	wantKind(t, "several disks", err, winerr.Unsupported, volumeID(3))
	_, err = host.GetDiskNumberFromVolumeID(volumeID(4))
	wantKind(t, "CD-ROM", err, winerr.InUse, volumeID(4))
	_, err = host.GetDiskNumberFromVolumeID(volumeID(5))
	wantKind(t, "no disk", err, winerr.InUse, volumeID(5))
	_, err = host.GetDiskNumberFromVolumeID(volumeID(6))
	wantKind(t, "no such volume", err, winerr.NotFound, volumeID(6))
}
