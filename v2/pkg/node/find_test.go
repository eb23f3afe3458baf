package node_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestFindDisk finds disk 1 of each cloud by the keys that its driver has.
func TestFindDisk(t *testing.T) {
	for _, c := range []struct {
		name  string
		model winsim.Model
		query wholenode.Query
	}{
		{"default, number", winsim.Default(), wholenode.Query{Number: pointer(uint32(1))}},
		{"default, serial number", winsim.Default(), wholenode.Query{Serial: "WINSIM0001"}},
		{"default, page 83", winsim.Default(), wholenode.Query{Page83: "WINSIM  disk-1"}},
		{"default, LUN and adapter", winsim.Default(), wholenode.Query{LUN: "0", Adapter: "1"}},
		{"default, LUN, the system disk has it, too", winsim.Default(), wholenode.Query{LUN: "0"}},
		{"default, size", winsim.Default(), wholenode.Query{Size: 10 << 30}},
		{"default, SCSI address", winsim.Default(), wholenode.Query{SCSI: &wholenode.SCSIAddress{Port: 1}}},
		{"default, model and size", winsim.Default(), wholenode.Query{Model: "WINSIM Disk", Size: 10 << 30}},
		{"default, path", winsim.Default(), wholenode.Query{Path: `\\?\SCSI#disk&ven_winsim&prod_disk#5&0000001&0&000000#{53F56307-b6bf-11d0-94f2-00a0c91efb8b}`}},
		{"azure-nvme, LUN", winsim.AzureNVMe(), wholenode.Query{LUN: "0"}},
		{"azure-nvme, namespace", winsim.AzureNVMe(), wholenode.Query{NamespaceID: 2}},
		{"azure-nvme, NGUID", winsim.AzureNVMe(), wholenode.Query{NGUID: "371BBE562601463D8419338D66A00002"}},
		{"gce-nvme, EUI-64", winsim.GCENVMe(), wholenode.Query{EUI64: "10cc9636b6e3ce3b"}},
		{"gce, page 83", winsim.GCE(), wholenode.Query{Bus: "SCSI", Page83: "Google  pvc-data-1"}},
		{"ebs-nvme, serial number", winsim.EBSNVMe(), wholenode.Query{SerialPrefix: "vol0123456789abcdef0"}},
		{"vsphere, page 83", winsim.VSphere(), wholenode.Query{Page83: "6000c29b1e5c4f7d8a90b1c2d3e4f5a1"}},
	} {
		got, err := newOn(t, newNode(t, c.model)).FindDisk(t.Context(), c.query)
		if err != nil || *got.Number != 1 || got.System {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestFindDisk_NotOne(t *testing.T) {
	for _, c := range []struct {
		name  string
		model winsim.Model
		query wholenode.Query
		kind  error
		want  string
	}{
		{"no key", winsim.Default(), wholenode.Query{}, fs.ErrInvalid, "the query is empty"},
		{"no such number", winsim.Default(), wholenode.Query{Number: pointer(uint32(9))}, fs.ErrNotExist, `find disk with number "9": there is no such disk, or Windows has not seen it yet`},
		{"one key differs", winsim.Default(), wholenode.Query{Serial: "WINSIM0001", Page83: "WINSIM  disk-2"}, fs.ErrNotExist, `with serial number "WINSIM0001", page 83 "WINSIM  disk-2": `},
		{"part of a serial number", winsim.Default(), wholenode.Query{Serial: "WINSIM"}, fs.ErrNotExist, "there is no such disk"},
		{"the disk of Windows", winsim.Default(), wholenode.Query{Serial: "SYSTEM"}, fs.ErrNotExist, "only the disk that Windows runs from has these keys"},
		{"the disk of Windows on Azure", winsim.AzureNVMe(), wholenode.Query{NamespaceID: 1}, fs.ErrNotExist, "only the disk that Windows runs from"},
		{"an unknown LUN", winsim.AzureNVMe(), wholenode.Query{LUN: "7"}, fs.ErrNotExist, "there is no such disk"},
	} {
		got, err := newOn(t, newNode(t, c.model)).FindDisk(t.Context(), c.query)
		if got != nil || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, want %s", c.name, got, err, c.want)
		}
	}
}

// TestFindDisk_Ambiguous: no disk is better than one of several.
func TestFindDisk_Ambiguous(t *testing.T) {
	model := winsim.Default()
	model.Disks[3].Serial = model.Disks[1].Serial
	for _, c := range []struct {
		query wholenode.Query
		want  string
	}{
		{wholenode.Query{Serial: "WINSIM0001"}, `find disk with serial number "WINSIM0001": several disks match: disk 1, disk 3; add a key to the query`},
		{wholenode.Query{SerialPrefix: "WINSIM"}, `find disk with serial number beginning with "WINSIM": several disks match: disk 1, disk 2, disk 3; add a key to the query`},
		{wholenode.Query{Bus: "scsi", Adapter: "1"}, `find disk with bus "scsi", adapter "1": several disks match: disk 1, disk 2, disk 3; add a key to the query`},
	} {
		got, err := newOn(t, newNode(t, model)).FindDisk(t.Context(), c.query)
		var ambiguous *wholenode.AmbiguousError
		if got != nil || !errors.As(err, &ambiguous) || err.Error() != c.want || len(ambiguous.Candidates) < 2 {
			t.Errorf("%+v: %+v, %v", c.query, got, err)
		}
	}
}

// TestFindDisk_Unanswered: a key that a disk does not report is not a reason to say that there is no such
// disk, and no disk is found while it is unknown which one Windows runs from.
func TestFindDisk_Unanswered(t *testing.T) {
	const disk1, disk2 = `\\.\PhysicalDrive1`, `\\.\PhysicalDrive2`
	const path1 = `\\?\scsi#disk&ven_winsim&prod_disk#5&0000001&0&000000#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`
	serial := wholenode.Query{Serial: "WINSIM0001"}
	for _, c := range []struct {
		name  string
		fault winsim.Fault
		query wholenode.Query
		want  string // part of the error; empty: disk 1 is found
	}{
		{"another disk fails", winsim.Fault{Object: disk2, Error: 1117}, serial, "may be it, but did not answer every question; try again later"},
		{"another disk is gone", winsim.Fault{Object: disk2, Error: 1167}, serial, ""},
		{"another question of another disk fails", winsim.Fault{Call: "DeviceIdentifiers", Object: disk2, Error: 31}, serial, ""},
		{"another disk fails, the path differs", winsim.Fault{Object: disk2, Error: 1117}, wholenode.Query{Path: path1}, ""},
		{"another disk has no number", winsim.Fault{Call: "DeviceNumber", Object: disk2, Error: 31}, wholenode.Query{Number: pointer(uint32(1))}, ""},
		{"another question fails", winsim.Fault{Call: "DeviceIdentifiers", Object: disk1, Error: 31}, serial, ""},
		{"the question fails", winsim.Fault{Call: "DeviceDescriptor", Object: disk1, Error: 1117}, serial, "disk 1 may be it, but did not answer every question; try again later"},
		{
			"the question fails, another key differs",
			winsim.Fault{Call: "DeviceDescriptor", Object: disk1, Error: 1117},
			wholenode.Query{Serial: "WINSIM0001", Page83: "other"},
			"there is no such disk",
		},
		{"no number", winsim.Fault{Call: "DeviceNumber", Object: disk1, Error: 1117}, wholenode.Query{Size: 10 << 30}, "may be it"},
		{"no list", winsim.Fault{Call: "DiskDevices", Error: 5}, serial, "(Windows error 5)"},
		{"no system volume", winsim.Fault{Call: "SystemVolumes", Error: 5}, serial, "Windows did not say which disks it runs from"},
		{"no system disk", winsim.Fault{Call: "VolumeExtents", Error: 1117}, serial, "Windows did not say which disks it runs from"},
	} {
		node := newNode(t, winsim.Default())
		inject(t, node, c.fault)
		got, err := newOn(t, node).FindDisk(t.Context(), c.query)
		switch {
		case c.want == "" && (err != nil || *got.Number != 1):
			t.Errorf("%s: %+v, %v", c.name, got, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %+v, %v, want %s", c.name, got, err, c.want)
		}
	}
}

// TestFindDisk_Twin: a disk that matches is not the one while another disk may match, too.
func TestFindDisk_Twin(t *testing.T) {
	model := winsim.Default()
	model.Disks = append(model.Disks[:1],
		winsim.Disk{Number: 7, Size: winsim.GiB, Serial: "SAME", SCSI: &winsim.SCSI{Port: 1, LUN: 3}},
		winsim.Disk{Number: 8, Size: winsim.GiB, Serial: "SAME", SCSI: &winsim.SCSI{Port: 2, LUN: 3}})
	address := wholenode.Query{SCSI: &wholenode.SCSIAddress{Port: 1, LUN: 3}}
	for _, c := range []struct {
		call  string
		query wholenode.Query
	}{
		{"DeviceDescriptor", wholenode.Query{Serial: "SAME"}},
		{"DeviceDescriptor", wholenode.Query{SerialPrefix: "SA"}},
		{"DeviceDescriptor", wholenode.Query{LUN: "3"}},
		{"DeviceNumber", wholenode.Query{Serial: "SAME"}},
		{"DeviceNumber", wholenode.Query{LUN: "3"}},
		{"SCSIAddress", address},
		{"DiskGeometry", wholenode.Query{Size: 1 << 30}},
	} {
		node := newNode(t, model)
		inject(t, node, winsim.Fault{Call: c.call, Object: `\\.\PhysicalDrive8`, Error: 31})
		got, err := newOn(t, node).FindDisk(t.Context(), c.query)
		if got != nil || !errors.Is(err, winerr.Unavailable) || !strings.Contains(err.Error(), "may be it") {
			t.Errorf("%s, %s: %+v, %v", c.call, c.query, got, err)
		}
	}
}

// TestFindDisk_Silent: a disk that does not answer any question about itself is not taken for another one if it said
// before what it is, or is mounted. It delays only the first search. What only one disk in the world has is enough.
func TestFindDisk_Silent(t *testing.T) {
	const folder = `C:\var\lib\kubelet\mounted`
	const volume = `\\?\Volume{5eed0000-0000-4000-8000-000000000002}\`
	withVolume := func(model winsim.Model) winsim.Model {
		model.Disks[2].Layout, model.Disks[2].Partitions = winsim.LayoutGPT, []winsim.Partition{{Volume: &winsim.Volume{ID: volume}}}
		return model
	}
	queries := map[string]struct {
		model winsim.Model
		query wholenode.Query
	}{
		"serial number":   {winsim.Default(), wholenode.Query{Serial: "WINSIM0001"}},
		"page 83":         {winsim.Default(), wholenode.Query{Page83: "WINSIM  disk-1"}},
		"LUN and adapter": {winsim.Default(), wholenode.Query{LUN: "0", Adapter: "1"}},
		"size":            {winsim.Default(), wholenode.Query{Size: 10 << 30}},
		"SCSI address":    {winsim.Default(), wholenode.Query{SCSI: &wholenode.SCSIAddress{Port: 1}}},
		"EUI-64":          {winsim.GCENVMe(), wholenode.Query{EUI64: "10cc9636b6e3ce3b"}},
		"LUN of NVMe":     {winsim.AzureNVMe(), wholenode.Query{LUN: "0"}},
		"NGUID":           {winsim.AzureNVMe(), wholenode.Query{NGUID: "371bbe562601463d8419338d66a00002"}},
	}
	for name, c := range map[string]struct {
		fault         winsim.Fault
		seen, mounted bool
		onlyUnique    bool
	}{
		"seen, fails":       {fault: winsim.Fault{Error: 1117}, seen: true},
		"seen, hangs":       {fault: winsim.Fault{Delay: time.Hour}, seen: true},
		"mounted, fails":    {fault: winsim.Fault{Error: 31}, mounted: true},
		"never seen, fails": {fault: winsim.Fault{Error: 1117}, onlyUnique: true},
	} {
		for key, q := range queries {
			t.Run(name+"/"+key, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					node := newNode(t, withVolume(q.model))
					i := newOn(t, node)
					if c.mounted {
						prepare(t, node.MountFolder(folder, volume))
					}
					if c.seen {
						found, err := i.FindDisk(t.Context(), q.query)
						prepare(t, err)
						if *found.Number != 1 {
							t.Fatalf("%+v", found)
						}
					}
					for _, call := range []string{"DeviceDescriptor", "DeviceIdentifiers", "SCSIAddress", "DeviceLocation", "DiskGeometry"} {
						fault := c.fault
						fault.Call, fault.Object = call, `\\.\PhysicalDrive2`
						inject(t, node, fault)
					}
					for search := range 3 {
						start := time.Now()
						got, err := i.FindDisk(t.Context(), q.query)
						unique := q.query.Page83+q.query.EUI64+q.query.NGUID != ""
						if c.onlyUnique && !unique || !c.seen && key == "LUN of NVMe" { // which Windows does not tell unless all answer
							if !errors.Is(err, winerr.Unavailable) {
								t.Errorf("%+v, %v", got, err)
							}
						} else if err != nil || *got.Number != 1 {
							t.Errorf("%+v, %v", got, err)
						}
						if took := time.Since(start); took > time.Second && search > 0 || took > 200*time.Millisecond && c.seen {
							t.Errorf("search %d took %v", search, took)
						}
					}
					if !c.seen {
						return
					}
					second := newOn(t, newNode(t, withVolume(q.model)))
					own, err := second.Describe(t.Context())
					prepare(t, err)
					if own := own.Disks[2]; own.Serial != "" { // the silent disk is not missing
						if got, err := i.FindDisk(t.Context(), wholenode.Query{Serial: own.Serial}); !errors.Is(err, winerr.Unavailable) {
							t.Errorf("the silent disk itself: %+v, %v", got, err)
						}
					}
				})
			})
		}
	}
}

// TestFindDisk_Forgets: the next disk in a slot is another one.
func TestFindDisk_Forgets(t *testing.T) {
	node := newNode(t, winsim.Default())
	i := newOn(t, node)
	query := wholenode.Query{Serial: "WINSIM0001"}
	find := func(want error) {
		t.Helper()
		if got, err := i.FindDisk(t.Context(), query); !errors.Is(err, want) {
			t.Errorf("%+v, %v, want %v", got, err, want)
		}
	}
	find(nil)
	inject(t, node, winsim.Fault{Call: "DeviceDescriptor", Object: `\\.\PhysicalDrive2`, Error: 1117})
	find(nil)
	prepare(t, node.DetachDisk(2))
	find(nil)
	_, err := node.ReattachDisk(2)
	prepare(t, err)
	find(winerr.Unavailable)
}

// TestFindDisk_Partition: the disk of a volume is found also while it is offline.
func TestFindDisk_Partition(t *testing.T) {
	const id = "5eed0000-0000-4000-8000-000000000001"
	model := winsim.Default()
	model.Disks[1].Offline = true
	model.Disks[1].Layout, model.Disks[1].Partitions = winsim.LayoutGPT, []winsim.Partition{{Volume: &winsim.Volume{ID: `\\?\Volume{` + id + `}\`}}}
	i := newOn(t, newNode(t, model))
	if got, err := i.FindDisk(t.Context(), wholenode.Query{Partition: strings.ToUpper(id)}); err != nil || *got.Number != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := i.FindDisk(t.Context(), wholenode.Query{Partition: "5eed"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestFindDisk_NoExtents: the disk of a system volume without extents is the system's all the same.
func TestFindDisk_NoExtents(t *testing.T) {
	node := newNode(t, winsim.Default())
	i := newOn(t, noExtents{node})
	if got, err := i.FindDisk(t.Context(), wholenode.Query{Serial: "SYSTEM"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := i.FindDisk(t.Context(), wholenode.Query{Serial: "WINSIM0001"}); err != nil || *got.Number != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

type noExtents struct{ *winsim.Node }

func (noExtents) VolumeExtents(context.Context, win.VolumeID) ([]win.Extent, error) { return nil, nil }

// TestFindDisk_Hangs: another disk that hangs delays the answer by 5 seconds; the caller's deadline
// counts.
func TestFindDisk_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, winsim.Default())
		inject(t, node, winsim.Fault{Object: `\\?\scsi*0000002*`, Delay: time.Hour})
		start := time.Now()
		got, err := newOn(t, node).FindDisk(t.Context(), wholenode.Query{Serial: "WINSIM0001", Number: pointer(uint32(1))})
		if took := time.Since(start); err != nil || *got.Number != 1 || took > 6*time.Second {
			t.Errorf("%+v, %v after %s", got, err, took)
		}
		for _, serial := range []string{"WINSIM0001", "WINSIM0002"} {
			if _, err := newOn(t, node).FindDisk(t.Context(), wholenode.Query{Serial: serial}); !errors.Is(err, winerr.Unavailable) {
				t.Errorf("%s, which the one that hangs may have: %v", serial, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := newOn(t, node).FindDisk(ctx, wholenode.Query{Serial: "WINSIM0001"}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// TestFindDisk_Calls: the questions that each key needs, once per disk.
func TestFindDisk_Calls(t *testing.T) {
	for _, c := range []struct {
		query wholenode.Query
		want  map[string]int
	}{
		{wholenode.Query{Serial: "WINSIM0001"}, map[string]int{
			"DiskDevices": 1, "DeviceNumber": 4, "DeviceDescriptor": 4, "DeviceIdentifiers": 4, "SCSIAddress": 4, "DiskGeometry": 4,
			"DiskAttributes": 4, "DriveLayout": 4, "SystemVolumes": 1, "VolumeExtents": 2,
		}},
		{wholenode.Query{LUN: "0"}, map[string]int{
			"DiskDevices": 2, "DeviceNumber": 8, "DeviceDescriptor": 8, "DeviceIdentifiers": 4, "SCSIAddress": 4, "DiskGeometry": 4,
			"DiskAttributes": 4, "DriveLayout": 4, "SystemVolumes": 1, "VolumeExtents": 2, "DeviceLocation": 4,
		}},
	} {
		node := newNode(t, winsim.Default())
		if _, err := newOn(t, node).FindDisk(t.Context(), c.query); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, node.Calls()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.query, diff)
		}
	}
}

// TestDescribe_Keys: each disk has every key that it reports.
func TestDescribe_Keys(t *testing.T) {
	type keys struct {
		Path, Bus, Model, Serial, Page83, EUI64, NGUID string
		Namespace                                      uint32
		Location                                       diskapi.DiskLocation
		SCSI                                           wholenode.SCSIAddress
	}
	const accelerator = `\\?\scsi#disk&ven_nvme&prod_msft_nvme_accele#6&ca10229&0&000001#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`
	for _, c := range []struct {
		name  string
		model winsim.Model
		disk  int
		want  keys
	}{
		{"azure-nvme", winsim.AzureNVMe(), 1, keys{
			Path: accelerator, Bus: "nvme", Model: "MSFT NVMe Accelerator v1.0", Namespace: 2,
			Serial: "371B_BE56_2601_463D_8419_338D_66A0_0002.", Page83: "371bbe562601463d8419338d66a00002", NGUID: "371bbe562601463d8419338d66a00002",
			Location: diskapi.DiskLocation{Adapter: "0", Bus: "12606208", LUNID: "0"},
		}},
		{"gce-nvme", winsim.GCENVMe(), 1, keys{
			Path: `\\?\scsi#disk&ven_nvme&prod_nvme_card-pd#5&1f8d6c0e&0&000001#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`, Bus: "nvme", Model: "nvme_card-pd",
			Serial: "10CC_9636_B6E3_CE3B_0000_0000_0000_0000.", Page83: "10cc9636b6e3ce3b", EUI64: "10cc9636b6e3ce3b",
			Location: diskapi.DiskLocation{Adapter: "0", Bus: "0"},
		}},
		{"azure", winsim.Azure(), 2, keys{
			Path: `\\?\scsi#disk&ven_winsim&prod_disk#5&0000002&0&000000#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`, Bus: "sas", Model: "Msft Virtual Disk",
			Page83:   "60022480c1f0a2b3d4e5f60718293a01",
			Location: diskapi.DiskLocation{Adapter: "1", Bus: "0", Target: "0", LUNID: "1"}, SCSI: wholenode.SCSIAddress{Port: 1, LUN: 1},
		}},
	} {
		d := describe(t, newOn(t, newNode(t, c.model))).Disks[c.disk]
		got := keys{d.Path, d.Bus, d.Model, d.Serial, d.Page83, d.EUI64, d.NGUID, d.NamespaceID, *d.Location, *d.SCSI}
		if diff := cmp.Diff(c.want, got); diff != "" || len(d.Problems) > 0 {
			t.Errorf("%s: %q (-want +got):\n%s", c.name, d.Problems, diff)
		}
	}
}

// TestDescribe_OfflineReason: policy, collision or unknown, as far as Windows reports.
func TestDescribe_OfflineReason(t *testing.T) {
	table := func(serial string) winsim.Disk {
		return winsim.Disk{Size: winsim.GiB, Serial: serial, Layout: winsim.LayoutGPT, ID: "0b5a1a5e-0000-4000-8000-000000000001", Partitions: []winsim.Partition{{Type: "msr", Size: 16 * winsim.MiB}}}
	}
	copied := table("COPY")
	copied.Offline = true
	for _, c := range []struct {
		name   string
		policy winsim.SANPolicy
		disks  []winsim.Disk
		fault  string
		want   []string
	}{
		{"online", "", []winsim.Disk{{Size: winsim.GiB}}, "", []string{""}},
		{"an operator", "", []winsim.Disk{{Size: winsim.GiB, Offline: true}}, "", []string{"unknown"}},
		{"a shared bus", winsim.OfflineShared, []winsim.Disk{{Size: winsim.GiB, Bus: winsim.BusSAS}}, "", []string{"policy"}},
		{"a bus that is not shared", winsim.OfflineShared, []winsim.Disk{{Size: winsim.GiB, Bus: winsim.BusNVMe, Offline: true}}, "", []string{"unknown"}},
		{"all disks", winsim.OfflineAll, []winsim.Disk{{Size: winsim.GiB, Bus: winsim.BusNVMe}}, "", []string{"policy"}},
		{"the policy is unknown", winsim.OfflineAll, []winsim.Disk{{Size: winsim.GiB}}, "SANPolicy", []string{"unknown"}},
		{"a copy", "", []winsim.Disk{table("ORIGINAL"), copied}, "", []string{"", "collision with disk 1"}},
		{"a copy of a disk that is offline", "", []winsim.Disk{copied, copied}, "", []string{"unknown", "unknown"}},
	} {
		model := winsim.Default()
		model.Storage.SANPolicy = c.policy
		model.Disks = append(model.Disks[:1], c.disks...)
		node := newNode(t, model)
		if c.fault != "" {
			inject(t, node, winsim.Fault{Call: c.fault, Error: 5})
		}
		var got []string
		for _, d := range describe(t, newOn(t, node)).Disks[1:] {
			got = append(got, d.OfflineReason)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestDescribe_Shares: they are listed if the caller asks for them, and a failure is a problem.
func TestDescribe_Shares(t *testing.T) {
	node := newNode(t, winsim.Default())
	ctx := t.Context()
	prepare(t, node.SMB().NewSMBGlobalMapping(`\\files\data`, "csi", "csi-Pa55"))
	i := newOn(t, node)
	got, err := i.Describe(ctx, wholenode.Shares)
	if diff := cmp.Diff([]wholenode.Share{{Remote: `\\files\data`, Status: "ok", Private: pointer(true)}}, got.Shares); err != nil || diff != "" || !got.SharesListed {
		t.Errorf("%v, listed %v (-want +got):\n%s", err, got.SharesListed, diff)
	}
	if got, err := i.Describe(ctx); err != nil || got.Shares != nil || got.SharesListed {
		t.Errorf("not asked for: %v, %v", got, err)
	}
	inject(t, node, winsim.Fault{Call: "SMBMappings", Error: 53})
	if got, err := i.Describe(ctx, wholenode.Shares); err != nil || got.SharesListed || len(got.Problems) != 1 || got.Problems[0].Object != "shares" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestNew_Refuses(t *testing.T) {
	if _, err := wholenode.New(wholenode.WorkingDirs(`D:\`)); err == nil {
		t.Error("a whole drive is accepted")
	}
	if _, err := wholenode.New(wholenode.WorkingDirs(`relative\path`)); err == nil {
		t.Error("a relative working directory was accepted")
	}
}

// TestFindDisk_AtOnce: callers that look for different disks at the same time share the questions to all disks.
// A search that began before a disk came is not theirs.
func TestFindDisk_AtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const disks = 50
		model := winsim.Default()
		model.Disks = model.Disks[:1]
		for i := range disks {
			model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, Serial: fmt.Sprint("LIFE", i), SCSI: &winsim.SCSI{Port: 1, Target: uint8(i)}})
		}
		node := newNode(t, model)
		inject(t, node, winsim.Fault{Call: "DeviceDescriptor", Delay: time.Millisecond})
		i := newOn(t, node)
		var wg sync.WaitGroup
		find := func(serial string, want uint32) {
			wg.Go(func() {
				if got, err := i.FindDisk(t.Context(), wholenode.Query{Serial: serial}); err != nil || *got.Number != want {
					t.Errorf("%s: %+v, %v", serial, got, err)
				}
			})
		}
		find("LIFE0", 1)
		time.Sleep(3 * time.Millisecond) // it has begun
		late, err := node.AttachDisk(winsim.Disk{Size: winsim.GiB, Serial: "LATE"})
		if err != nil {
			t.Fatal(err)
		}
		find("LATE", late)
		for n := range disks {
			find(fmt.Sprint("LIFE", n), uint32(n+1))
		}
		wg.Wait()
		if got, want := node.Calls()["DeviceDescriptor"], disks+1+disks+2; got != want {
			t.Errorf("%d searches ask disks %d times, want %d", disks+2, got, want)
		}
	})
}

func pointer[T any](value T) *T { return &value }
