package api_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// lists are the two calls that look at every disk, with the numbers of the disks found.
var lists = map[string]func(diskapi.HostAPI) ([]uint32, error){
	"ListDiskIDs": func(h diskapi.HostAPI) ([]uint32, error) {
		found, err := h.ListDiskIDs()
		return slices.Sorted(maps.Keys(found)), err
	},
	"ListDiskLocations": func(h diskapi.HostAPI) ([]uint32, error) {
		found, err := h.ListDiskLocations()
		return slices.Sorted(maps.Keys(found)), err
	},
}

func TestLists_OfClouds(t *testing.T) {
	for _, c := range []struct {
		name      string
		model     winsim.Model
		ids       map[uint32]diskapi.DiskIDs
		locations map[uint32]diskapi.DiskLocation
	}{
		{
			"azure", winsim.Azure(),
			map[uint32]diskapi.DiskIDs{
				0: {Page83: "600224805a1bd4d05f4e7dbb0e6c1b49"},
				1: {Page83: "60022480c1f0a2b3d4e5f60718293a00"},
				2: {Page83: "60022480c1f0a2b3d4e5f60718293a01"},
			},
			map[uint32]diskapi.DiskLocation{
				0: {Adapter: "0", Bus: "0", Target: "0", LUNID: "0"},
				1: {Adapter: "1", Bus: "0", Target: "0", LUNID: "0"},
				2: {Adapter: "1", Bus: "0", Target: "0", LUNID: "1"},
			},
		},
		{
			"gce", winsim.GCE(),
			map[uint32]diskapi.DiskIDs{
				0: {Page83: "Google  system", SerialNumber: "system"},
				1: {Page83: "Google  pvc-data-1", SerialNumber: "pvc-data-1"},
				2: {Page83: "Google  pvc-data-2", SerialNumber: "pvc-data-2"},
			},
			map[uint32]diskapi.DiskLocation{
				0: {Adapter: "2", Bus: "0", Target: "1", LUNID: "0"},
				1: {Adapter: "2", Bus: "0", Target: "2", LUNID: "0"},
				2: {Adapter: "2", Bus: "0", Target: "3", LUNID: "0"},
			},
		},
		{
			"ebs-nvme", winsim.EBSNVMe(),
			map[uint32]diskapi.DiskIDs{
				0: {SerialNumber: "vol0a1b2c3d4e5f60718_00000001."},
				1: {SerialNumber: "vol0123456789abcdef0_00000001."},
				2: {SerialNumber: "vol0fedcba9876543210_00000001."},
			},
			map[uint32]diskapi.DiskLocation{
				0: {Adapter: "0", Bus: "0"},
				1: {Adapter: "1", Bus: "0"},
				2: {Adapter: "2", Bus: "0"},
			},
		},
		{
			"azure-nvme", winsim.AzureNVMe(),
			map[uint32]diskapi.DiskIDs{
				0: {Page83: "371bbe562601463d8419338d66a00001", SerialNumber: "371B_BE56_2601_463D_8419_338D_66A0_0001."},
				1: {Page83: "371bbe562601463d8419338d66a00002", SerialNumber: "371B_BE56_2601_463D_8419_338D_66A0_0002."},
				2: {Page83: "371bbe562601463d8419338d66a00003", SerialNumber: "371B_BE56_2601_463D_8419_338D_66A0_0003."},
				3: {SerialNumber: "0000_0000_0000_0001_6479_A700_0000_0001."},
			},
			map[uint32]diskapi.DiskLocation{
				0: {Adapter: "0", Bus: "12606208"},
				1: {Adapter: "0", Bus: "12606208", LUNID: "0"},
				2: {Adapter: "0", Bus: "12606208", LUNID: "1"},
				3: {Adapter: "1", Bus: "35655680"},
			},
		},
		{
			"gce-nvme", winsim.GCENVMe(),
			map[uint32]diskapi.DiskIDs{
				0: {Page83: "5d1f0a5fc6d9e0b2", SerialNumber: "5D1F_0A5F_C6D9_E0B2_0000_0000_0000_0000."},
				1: {Page83: "10cc9636b6e3ce3b", SerialNumber: "10CC_9636_B6E3_CE3B_0000_0000_0000_0000."},
				2: {Page83: "2b6e1f90a4c35d78", SerialNumber: "2B6E_1F90_A4C3_5D78_0000_0000_0000_0000."},
			},
			map[uint32]diskapi.DiskLocation{
				0: {Adapter: "0", Bus: "0"},
				1: {Adapter: "0", Bus: "0"},
				2: {Adapter: "0", Bus: "0"},
			},
		},
		{"no disk at all", winsim.Model{}, map[uint32]diskapi.DiskIDs{}, map[uint32]diskapi.DiskLocation{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := diskapi.NewOn(newNode(t, c.model))
			ids, err := h.ListDiskIDs()
			if diff := cmp.Diff(c.ids, ids); err != nil || diff != "" {
				t.Errorf("ids: %v (-want +got):\n%s", err, diff)
			}
			locations, err := h.ListDiskLocations()
			if diff := cmp.Diff(c.locations, locations); err != nil || diff != "" {
				t.Errorf("locations: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestListDiskLocations_Sources(t *testing.T) {
	scsi := &winsim.SCSI{Port: 3, Path: 9, Target: 2, LUN: 5, BusNumber: "4"}
	const text = "Integrated : Bus 0 : Device 3 : Function 0 : Adapter 1 : Port 0 : Target 6 : LUN 7"
	for _, c := range []struct {
		name string
		disk winsim.Disk
		want *diskapi.DiskLocation
	}{
		{"the text wins", winsim.Disk{Location: text, SCSI: scsi}, &diskapi.DiskLocation{Adapter: "1", Bus: "0", Target: "6", LUNID: "7"}},
		{"the address without a text", winsim.Disk{SCSI: scsi}, &diskapi.DiskLocation{Adapter: "3", Bus: "4", Target: "2", LUNID: "5"}},
		{"a text of another kind", winsim.Disk{Location: "Slot 4", SCSI: scsi}, &diskapi.DiskLocation{Adapter: "3", Bus: "4", Target: "2", LUNID: "5"}},
		{"an address without a bus", winsim.Disk{SCSI: &winsim.SCSI{LUN: 1}}, &diskapi.DiskLocation{Adapter: "0", Target: "0", LUNID: "1"}},
		{"neither", winsim.Disk{}, nil},
		{"NVMe with an address only", winsim.Disk{Bus: winsim.BusNVMe, SCSI: scsi}, &diskapi.DiskLocation{Adapter: "3", Bus: "4"}},
		{"NVMe with a text that pretends", winsim.Disk{Bus: winsim.BusNVMe, Location: text}, &diskapi.DiskLocation{Adapter: "1", Bus: "0"}},
		{"a file", winsim.Disk{Bus: winsim.BusFileBacked, Location: `C:\vm\disk.vhdx`, SCSI: scsi}, nil},
		{"a file with an odd name", winsim.Disk{Bus: winsim.BusFileBacked, Location: text}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := diskapi.NewOn(newNode(t, withDisk(c.disk))).ListDiskLocations()
			require.NoError(t, err)
			if got, ok := found[added]; ok != (c.want != nil) || (ok && got != *c.want) {
				t.Errorf("got %+v, %v, want %+v", got, ok, c.want)
			}
			if len(found) < 4 {
				t.Errorf("the other disks are missing: %v", found)
			}
		})
	}
}

// gone are the codes of a device that has left.
var gone = []uint32{2, 55, 433, 1167, 1617}

// TestLists_SickDisk: whatever one disk answers, the others are listed. The disk itself is missing
// only if it is gone or does not report its number; the log says why.
func TestLists_SickDisk(t *testing.T) {
	all, others := []uint32{0, 1, 2, 3}, []uint32{0, 2, 3}
	for _, call := range []string{"DeviceNumber", "DeviceDescriptor", "DeviceIdentifiers", "DeviceLocation"} {
		for _, code := range append([]uint32{1, 5, 21, 23, 31, 50, 87, 121, 1117, 1460}, gone...) {
			for name, list := range lists {
				asked := call == "DeviceNumber" || call == "DeviceDescriptor" ||
					(call == "DeviceLocation") == (name == "ListDiskLocations")
				want, logged := all, 0
				switch {
				case !asked, call == "DeviceLocation": // which has a substitute
				case call == "DeviceNumber", slices.Contains(gone, code):
					want, logged = others, 1
				case code != 1 && code != 50: // which mean that the driver does not know the question
					logged = 1
				}
				t.Run(fmt.Sprintf("%s, %s answers %d", name, call, code), func(t *testing.T) {
					node := newNode(t, winsim.Default())
					inject(t, node, winsim.Fault{Call: call, Object: device(blank), Error: code})
					var lines []string
					log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 2})
					got, err := list(bound(klog.NewContext(t.Context(), log), node))
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("got %d, %v, want %d", got, err, want)
					}
					if len(lines) != logged || (logged > 0 && !strings.Contains(lines[0], fmt.Sprintf("(Windows error %d)", code))) {
						t.Errorf("the log has %q, want %d lines with the error", lines, logged)
					}
				})
			}
		}
	}
}

// TestListDiskIDs_Unanswered: virtual machines answer optional properties with 31. The keys that
// the disks do tell are listed.
// TestLists_NoMedium: a reader without a medium is not a disk.
func TestLists_NoMedium(t *testing.T) {
	for name, list := range lists {
		want, err := list(diskapi.NewOn(newNode(t, winsim.Default())))
		require.NoError(t, err)
		node := newNode(t, withDisk(winsim.Disk{Size: winsim.GiB, Bus: "usb", Serial: "READER", NoMedium: true, SCSI: &winsim.SCSI{Port: 9}}))
		got, err := list(diskapi.NewOn(node))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
}

func TestListDiskIDs_Unanswered(t *testing.T) {
	complete, err := diskapi.NewOn(newNode(t, winsim.Default())).ListDiskIDs()
	require.NoError(t, err)
	const both = "DeviceDescriptor DeviceIdentifiers"
	for call, without := range map[string]func(diskapi.DiskIDs) diskapi.DiskIDs{
		"DeviceIdentifiers": func(ids diskapi.DiskIDs) diskapi.DiskIDs { ids.Page83 = ""; return ids },
		"DeviceDescriptor":  func(ids diskapi.DiskIDs) diskapi.DiskIDs { ids.SerialNumber = ""; return ids },
		both:                func(diskapi.DiskIDs) diskapi.DiskIDs { return diskapi.DiskIDs{} },
	} {
		for _, code := range []uint32{1, 31, 50, 87, 1117} {
			node := newNode(t, winsim.Default())
			for call := range strings.FieldsSeq(call) {
				inject(t, node, winsim.Fault{Call: call, Error: code})
			}
			want := map[uint32]diskapi.DiskIDs{}
			for disk, ids := range complete {
				want[disk] = without(ids)
			}
			got, err := diskapi.NewOn(node).ListDiskIDs()
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s answers %d: %v (-want +got):\n%s", call, code, err, diff)
			}
		}
	}
}

// TestListDiskLocations_Unanswered: a disk without a text that does not report its address is
// listed without a location; one that does not report its bus has no LUN, because it may be a local
// NVMe disk.
func TestListDiskLocations_Unanswered(t *testing.T) {
	for _, c := range []struct {
		call  string
		model winsim.Model
		codes []uint32
		want  *diskapi.DiskLocation
	}{
		{"SCSIAddress", withoutLocations(), []uint32{5, 21, 31, 87, 1117}, &diskapi.DiskLocation{}},
		{"SCSIAddress", withoutLocations(), []uint32{1, 50}, nil}, // attached nowhere
		{"SCSIAddress", withoutLocations(), gone, nil},
		{"SCSIAddress", winsim.Default(), []uint32{1, 31, 1117}, &diskapi.DiskLocation{Adapter: "1", Bus: "0", Target: "0", LUNID: "0"}}, // not asked
		{"DeviceLocation", winsim.Default(), []uint32{1, 31, 50, 1117}, &diskapi.DiskLocation{Adapter: "1", Bus: "0", Target: "0", LUNID: "0"}},
		{"DeviceDescriptor", winsim.Default(), []uint32{1, 31, 50, 1117}, &diskapi.DiskLocation{Adapter: "1", Bus: "0"}},
	} {
		for _, code := range c.codes {
			node := newNode(t, c.model)
			inject(t, node, winsim.Fault{Call: c.call, Object: device(blank), Error: code})
			found, err := diskapi.NewOn(node).ListDiskLocations()
			got, ok := found[blank]
			if err != nil || ok != (c.want != nil) || (ok && got != *c.want) || len(found) < 3 {
				t.Errorf("%s answers %d: %+v, %v, want %+v", c.call, code, found, err, c.want)
			}
		}
	}
}

func TestLists_DiskVanishes(t *testing.T) {
	for name, list := range lists {
		for _, call := range []string{"DeviceNumber", "DeviceDescriptor"} {
			node := newNode(t, winsim.Default())
			inject(t, node, winsim.Fault{Call: call, Object: device(blank), Times: 1, Do: func(n *winsim.Node) { _ = n.DetachDisk(blank) }})
			got, err := list(diskapi.NewOn(node))
			if want := []uint32{0, 2, 3}; err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, gone before %s: %d, %v, want %d", name, call, got, err, want)
			}
		}
	}
}

// TestLists_HangingDisk: a disk that hangs is left out after a while; a caller with an earlier
// deadline does not wait for it.
func TestLists_HangingDisk(t *testing.T) {
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := newNode(t, winsim.Default())
				inject(t, node, winsim.Fault{Call: "DeviceDescriptor", Object: device(blank), Delay: time.Minute})
				start := time.Now()
				got, err := list(bound(t.Context(), node))
				if want := []uint32{0, 2, 3}; err != nil || !slices.Equal(got, want) {
					t.Errorf("got %d, %v, want %d", got, err, want)
				}
				if took := time.Since(start); took != 5*time.Second {
					t.Errorf("it took %s", took)
				}

				// While that call is stuck, the next ones do not wait as long.
				start = time.Now()
				if got, err := list(bound(t.Context(), node)); err != nil || len(got) != 3 || time.Since(start) > time.Second {
					t.Errorf("the next list: %d, %v after %v", got, err, time.Since(start))
				}

				node = newNode(t, winsim.Default())
				inject(t, node, winsim.Fault{Call: "DeviceDescriptor", Object: device(blank), Delay: time.Minute})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start = time.Now()
				if _, err := list(bound(ctx, node)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
				}
				if took := time.Since(start); took != time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

func TestLists_NoList(t *testing.T) {
	for name, list := range lists {
		node := newNode(t, winsim.Default())
		inject(t, node, winsim.Fault{Call: "DiskDevices", Error: 5})
		if got, err := list(diskapi.NewOn(node)); err == nil || !strings.Contains(err.Error(), "(Windows error 5)") {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

// oddDevices lists a disk twice, as a driver stack with several paths may, and a device that is
// not a disk.
type oddDevices struct{ *winsim.Node }

func (m oddDevices) DiskDevices(ctx context.Context) ([]win.Device, error) {
	devices, err := m.Node.DiskDevices(ctx)
	return append(devices, devices[1], `\\?\cdrom`), err
}

func (m oddDevices) DeviceNumber(ctx context.Context, d win.Device) (win.DeviceNumber, error) {
	if d == `\\?\cdrom` {
		return win.DeviceNumber{Type: win.DeviceTypeCDROM, Number: 5}, nil
	}
	return m.Node.DeviceNumber(ctx, d)
}

func TestLists_OddDevices(t *testing.T) {
	for name, list := range lists {
		got, err := list(diskapi.NewOn(oddDevices{newNode(t, winsim.Default())}))
		if want := []uint32{0, 1, 2, 3}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d, %v, want %d", name, got, err, want)
		}
	}
}

// panickingMachine has a bug.
type panickingMachine struct{ *winsim.Node }

func (m panickingMachine) DeviceDescriptor(ctx context.Context, d win.Device) (win.DeviceDescriptor, error) {
	if number, _ := m.DeviceNumber(ctx, d); number.Number == blank {
		panic("oops")
	}
	return m.Node.DeviceDescriptor(ctx, d)
}

func TestLists_Panic(t *testing.T) {
	got, err := lists["ListDiskIDs"](diskapi.NewOn(panickingMachine{newNode(t, winsim.Default())}))
	if want := []uint32{0, 2, 3}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %d, %v, want %d", got, err, want)
	}
}
