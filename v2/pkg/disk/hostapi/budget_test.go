package api_test

import (
	"flag"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/calltable"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

var update = flag.Bool("update", false, "rewrite the table of calls in testdata")

// budgets are operations on a node with the system disk and three others. The calls to
// Windows that each of them makes are in testdata; a change that needs more has to say so
// there.
var budgets = []struct {
	name  string
	model func() winsim.Model
	do    func(diskapi.DiskAPI) error
}{
	{
		"ListDiskIDs", winsim.Default,
		func(h diskapi.DiskAPI) error { _, err := h.ListDiskIDs(); return err },
	},
	{
		"ListDiskLocations", winsim.Default,
		func(h diskapi.DiskAPI) error { _, err := h.ListDiskLocations(); return err },
	},
	{
		"ListDiskLocations by address", withoutLocations,
		func(h diskapi.DiskAPI) error { _, err := h.ListDiskLocations(); return err },
	},
	{
		"ListDiskLocations on Azure", winsim.AzureNVMe,
		func(h diskapi.DiskAPI) error { _, err := h.ListDiskLocations(); return err },
	},
	{
		"GetDiskStats", winsim.Default,
		func(h diskapi.DiskAPI) error { _, err := h.GetDiskStats(blank); return err },
	},
	{
		"GetDiskState", winsim.Default,
		func(h diskapi.DiskAPI) error { _, err := h.GetDiskState(blank); return err },
	},
	{
		"SetDiskState, no change", winsim.Default,
		func(h diskapi.DiskAPI) error { return h.SetDiskState(blank, true) },
	},
	{
		"SetDiskState, online", offline,
		func(h diskapi.DiskAPI) error { return h.SetDiskState(blank, true) },
	},
	{
		"SetDiskState, offline", winsim.Default,
		func(h diskapi.DiskAPI) error { return h.SetDiskState(blank, false) },
	},
	{
		"IsDiskInitialized", winsim.Default,
		func(h diskapi.DiskAPI) error { _, err := h.IsDiskInitialized(blank); return err },
	},
	{
		"BasicPartitionsExist", winsim.Default,
		func(h diskapi.DiskAPI) error { _, err := h.BasicPartitionsExist(blank); return err },
	},
	{
		"PartitionDisk, blank", atOnce,
		func(h diskapi.DiskAPI) error { return h.PartitionDisk(blank) },
	},
	{
		"PartitionDisk, partitioned", partitioned,
		func(h diskapi.DiskAPI) error { return h.PartitionDisk(added) },
	},
	{
		"Rescan", winsim.Default,
		func(h diskapi.DiskAPI) error { return h.Rescan() },
	},
}

func withoutLocations() winsim.Model {
	model := winsim.Default()
	for i := range model.Disks {
		model.Disks[i].Location = ""
	}
	return model
}

func offline() winsim.Model {
	return withStorage(func(s *winsim.Storage) { s.SANPolicy = winsim.OfflineAll })
}

// atOnce is a machine on which volumes arrive at once.
func atOnce() winsim.Model { return withStorage(func(s *winsim.Storage) { *s = winsim.Storage{} }) }

func partitioned() winsim.Model { return withDisk(used["NTFS"]) }

func TestBudgets(t *testing.T) {
	var rows []calltable.Row
	for _, budget := range budgets {
		node := newNode(t, budget.model())
		if err := budget.do(bound(t.Context(), node)); err != nil {
			t.Fatalf("%s: %v", budget.name, err)
		}
		rows = append(rows, calltable.Row{Operation: budget.name, Calls: node.Calls()})
	}
	calltable.Compare(t, rows, *update)
}

// manyDisks is a node with a thousand disks of one volume each, and the system disk.
func manyDisks() winsim.Model {
	model := winsim.Default()
	model.Disks = model.Disks[:1]
	for range 1000 {
		model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{}}, SCSI: &winsim.SCSI{}})
	}
	return model
}

// TestManyDisks: lists grow with the number of disks, calls on one disk do not.
func TestManyDisks(t *testing.T) {
	node := newNode(t, manyDisks())
	h := bound(t.Context(), node)
	for _, c := range []struct {
		name string
		do   func() (int, error)
		disks,
		calls int
	}{
		{"ListDiskIDs", func() (int, error) { found, err := h.ListDiskIDs(); return len(found), err }, 1001, 1 + 3*1001},
		{"ListDiskLocations", func() (int, error) { found, err := h.ListDiskLocations(); return len(found), err }, 1001, 1 + 3*1001 + 1000},
		{"PartitionDisk", func() (int, error) { return 0, h.PartitionDisk(500) }, 0, 7},
	} {
		node.ResetCalls()
		disks, err := c.do()
		row := calltable.Row{Operation: c.name, Calls: node.Calls()}
		if err != nil || disks != c.disks || row.Total() != c.calls {
			t.Errorf("%s: %d disks, %v, %d calls %s, want %d disks, %d calls", c.name, disks, err, row.Total(), row.Names(), c.disks, c.calls)
		}
	}
}
