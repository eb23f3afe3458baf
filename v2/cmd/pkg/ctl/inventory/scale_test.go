package inventory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// crowded is a node with 500 volumes in use by pods. Number 400 is full, and disk 450 is offline.
func crowded() winsim.Model {
	model := winsim.Default()
	model.Disks = model.Disks[:1]
	for i := 1; i <= 500; i++ {
		d := dataDisk(winsim.GiB, winsim.Partition{Volume: &winsim.Volume{ID: id(i)}})
		d.Offline = i == 450
		if i == 400 {
			d.Partitions[1].Volume.Used = 990 * winsim.MiB
		}
		model.Disks = append(model.Disks, d)
		staged := fmt.Sprintf(`%s\plugins\kubernetes.io\csi\driver-%d\%064x\globalmount`, kubelet, i%2, i)
		model.Files = append(model.Files,
			winsim.File{Path: staged, Volume: id(i)},
			winsim.File{Path: fmt.Sprintf(`%s\pods\uid-%d\volumes\kubernetes.io~csi\pvc-%d\mount`, kubelet, i, i), Symlink: staged})
	}
	return model
}

// TestNode_Crowded: with 500 volumes the problems are the first lines, and filters find one pod among
// 500.
func TestNode_Crowded(t *testing.T) {
	node, err := winsim.New(crowded())
	require.NoError(t, err)
	dir := serve.SocketDir(t)
	serve.StartWith(t, node, serve.Config{Config: daemon.Config{SocketDir: dir}})
	found, err := source(t, dir).Node(t.Context())
	require.NoError(t, err)
	if len(found.Problems) != 2 || found.Problems[0].Kind != problem.Offline || found.Problems[1].Kind != problem.Full {
		t.Fatalf("problems %+v", found.Problems)
	}
	printer := &output.Printer{Format: output.Table}
	lines := strings.SplitN(found.Draw(printer, 80), "\n", 10)
	if head := strings.Join(lines[:8], "\n"); !strings.Contains(head, "501 disks") || !strings.Contains(head, "! hurts pods: disk 450: offline") ||
		!strings.Contains(head, "pod uid-450  pv pvc-450") {
		t.Errorf("the first lines are\n%s", head)
	}
	for name, c := range map[string]struct {
		filter                   inventory.Filter
		disks, volumes, problems int
	}{
		"pod":            {inventory.Filter{Pods: []string{"UID-499"}}, 1, 1, 0},
		"beginning":      {inventory.Filter{Pods: []string{"uid-49"}}, 11, 11, 0}, // 49, and 490 to 499
		"two pods":       {inventory.Filter{Pods: []string{"uid-7", "uid-400"}, PVs: []string{"pvc-7", "pvc-400"}}, 2, 2, 1},
		"offline":        {inventory.Filter{Pods: []string{"uid-450"}}, 1, 0, 1},
		"pv":             {inventory.Filter{PVs: []string{"pvc-400"}}, 1, 1, 1},
		"driver":         {inventory.Filter{Drivers: []string{"driver-1"}}, 250, 250, 0},
		"disk":           {inventory.Filter{Disks: []uint32{400, 3}}, 2, 2, 1},
		"disk and pv":    {inventory.Filter{Disks: []uint32{400}, PVs: []string{"pvc-400"}}, 1, 1, 1},
		"problems":       {inventory.Filter{Problems: true}, 2, 1, 2},
		"problem of pod": {inventory.Filter{Problems: true, Pods: []string{"uid-400"}}, 1, 1, 1},
		"not that disk":  {inventory.Filter{Disks: []uint32{1}, PVs: []string{"pvc-400"}}, 0, 0, 0},
		"unknown pod":    {inventory.Filter{Pods: []string{"uid-501"}}, 0, 0, 0},
	} {
		selected, ok := found.Select(c.filter)
		if len(selected.Disks) != c.disks || len(selected.Volumes) != c.volumes || len(selected.Problems) != c.problems || ok != (c.disks > 0) {
			t.Errorf("%s: %d disks, %d volumes, problems %+v, found %v", name, len(selected.Disks), len(selected.Volumes), selected.Problems, ok)
		}
	}
	if len(found.Disks) != 501 || len(found.Problems) != 2 {
		t.Error("a filter has changed the node")
	}
	if names := found.Names(); len(names) != 501+501+2 { // without the volume of the disk that is offline but with its stale mount and link, with those of disk 0
		t.Errorf("%d names", len(names))
	}
}
