package api_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// luns are the LUNs that a driver finds, by disk number.
func luns(t *testing.T, node *winsim.Node) map[uint32]string {
	t.Helper()
	locations, err := diskapi.NewOn(node).ListDiskLocations()
	require.NoError(t, err)
	found := map[uint32]string{}
	for number, at := range locations {
		if at.LUNID != "" {
			found[number] = at.LUNID
		}
	}
	return found
}

// azureV6 is a node whose disks have another model name, and SCSI addresses.
func azureV6(model string, scsi ...winsim.SCSI) winsim.Model {
	m := winsim.AzureNVMe()
	for i := range m.Disks[:3] {
		m.Disks[i].Product, m.Disks[i].SCSI = model, &scsi[i]
		m.Disks[i].Path = fmt.Sprintf(`\\?\scsi#disk&ven_nvme&prod_virtual_disk_nvm#6&ca10229&0&%06x#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`, i)
	}
	return m
}

func TestListDiskLocations_Azure(t *testing.T) {
	change := func(change func(disks []winsim.Disk)) winsim.Model {
		model := winsim.AzureNVMe()
		change(model.Disks)
		return model
	}
	for _, c := range []struct {
		name  string
		model winsim.Model
		want  map[uint32]string
	}{
		{"v7", winsim.AzureNVMe(), map[uint32]string{1: "0", 2: "1"}},
		{"v7 without texts", change(func(disks []winsim.Disk) {
			for i := range disks {
				disks[i].Location, disks[i].SCSI = "", nil
			}
		}), map[uint32]string{1: "0", 2: "1"}},
		{"another model", change(func(disks []winsim.Disk) { disks[1].Product = "MSFT NVMe Accelerator v2.0" }), map[uint32]string{2: "1"}},
		{"another bus", change(func(disks []winsim.Disk) { disks[1].Bus, disks[1].SCSI, disks[1].Location = winsim.BusSAS, nil, "" }), map[uint32]string{2: "1"}},
		{"no unit", change(func(disks []winsim.Disk) { disks[1].Path = "" }), map[uint32]string{2: "1"}},
		{"v6", azureV6("Virtual_Disk NVME Premium", winsim.SCSI{}, winsim.SCSI{Port: 1}, winsim.SCSI{Port: 1, LUN: 7}), map[uint32]string{1: "0", 2: "7"}},
		{"v6, the same address", azureV6("Virtual_Disk NVME Premium", winsim.SCSI{}, winsim.SCSI{}, winsim.SCSI{LUN: 1}), map[uint32]string{2: "1"}},
		{"local disks only", azureV6("Microsoft NVMe Direct Disk", winsim.SCSI{}, winsim.SCSI{Port: 1}, winsim.SCSI{Port: 2}), map[uint32]string{}},
		{"SCSI", winsim.Azure(), map[uint32]string{0: "0", 1: "0", 2: "1"}},
	} {
		if diff := cmp.Diff(c.want, luns(t, newNode(t, c.model))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestListDiskLocations_AzureSystem: the disk of Windows has no LUN, wherever it is attached; and no
// NVMe disk has one if Windows does not say which disk it runs from.
func TestListDiskLocations_AzureSystem(t *testing.T) {
	model := winsim.AzureNVMe()
	model.Disks[0].Path, model.Disks[1].Path = model.Disks[1].Path, model.Disks[0].Path
	if diff := cmp.Diff(map[uint32]string{2: "1"}, luns(t, newNode(t, model))); diff != "" {
		t.Errorf("disks exchanged (-want +got):\n%s", diff)
	}
	for _, fault := range []winsim.Fault{{Call: "SystemVolumes", Error: 5}, {Call: "VolumeExtents", Error: 31}} {
		node := newNode(t, winsim.AzureNVMe())
		inject(t, node, fault)
		if diff := cmp.Diff(map[uint32]string{}, luns(t, node)); diff != "" {
			t.Errorf("%s fails (-want +got):\n%s", fault.Call, diff)
		}
	}
}

// TestListDiskLocations_AzureArrives: a disk that comes later has its own LUN.
func TestListDiskLocations_AzureArrives(t *testing.T) {
	node := newNode(t, winsim.AzureNVMe())
	disk := winsim.AzureNVMe().Disks[2]
	disk.Number, disk.Path = 9, `\\?\scsi#disk&ven_nvme&prod_msft_nvme_accele#6&ca10229&0&00000a#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`
	if _, err := node.AttachDisk(disk); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[uint32]string{1: "0", 2: "1", 9: "9"}, luns(t, node)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestListDiskLocations_AzureUnanswered: two disks have LUN 0, on different adapters, so neither has
// one. That stays so while one of them does not answer, unless it is gone.
func TestListDiskLocations_AzureUnanswered(t *testing.T) {
	v6 := azureV6("Virtual_Disk NVME Premium", winsim.SCSI{}, winsim.SCSI{Port: 1}, winsim.SCSI{Port: 2})
	none, first := map[uint32]string{}, map[uint32]string{1: "0"}
	for _, c := range []struct {
		name  string
		model winsim.Model
		fault winsim.Fault
		want  map[uint32]string
	}{
		{"all answer", v6, winsim.Fault{Call: "DiskAttributes", Object: device(2), Error: 31}, none},
		{"number", v6, winsim.Fault{Call: "DeviceNumber", Object: device(2), Error: 31}, none},
		{"bus and model", v6, winsim.Fault{Call: "DeviceDescriptor", Object: device(2), Error: 31}, none},
		{"no bus and model", v6, winsim.Fault{Call: "DeviceDescriptor", Object: device(2), Error: 1}, none},
		{"address", v6, winsim.Fault{Call: "SCSIAddress", Object: device(2), Error: 31}, none},
		{"gone", v6, winsim.Fault{Call: "DeviceNumber", Object: device(2), Error: 1167}, first},
		{"gone after its number", v6, winsim.Fault{Call: "DeviceDescriptor", Object: device(2), Error: 1167}, first},
		{"v7, bus and model", winsim.AzureNVMe(), winsim.Fault{Call: "DeviceDescriptor", Object: device(1), Error: 31}, none},
		{"v7, the address does not count", winsim.AzureNVMe(), winsim.Fault{Call: "SCSIAddress", Object: device(1), Error: 31}, map[uint32]string{1: "0", 2: "1"}},
	} {
		node := newNode(t, c.model)
		inject(t, node, c.fault)
		if diff := cmp.Diff(c.want, luns(t, node)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestListDiskLocations_AzureBesideISCSI: a disk on another bus keeps its LUN, and the NVMe disk with
// the same LUN too. Without it, a driver that compares nothing but the LUN would find one disk, the
// wrong one.
func TestListDiskLocations_AzureBesideISCSI(t *testing.T) {
	model := winsim.AzureNVMe()
	model.Disks = append(model.Disks, winsim.Disk{Number: 9, Size: winsim.GiB, Bus: winsim.BusISCSI, SCSI: &winsim.SCSI{Port: 3}})
	if diff := cmp.Diff(map[uint32]string{1: "0", 2: "1", 9: "0"}, luns(t, newNode(t, model))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
