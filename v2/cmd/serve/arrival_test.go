package serve_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// withData is a disk from another node: it has a volume with a file.
func withData(number uint32) winsim.Disk {
	return winsim.Disk{
		Number: number, Size: winsim.GiB, Bus: winsim.BusSAS, Layout: winsim.LayoutGPT,
		ID: "0b5a1a5e-0000-4000-8000-000000000001",
		Partitions: []winsim.Partition{{
			ID:     "0b5a1a5e-0000-4000-8000-000000000002",
			Volume: &winsim.Volume{Files: []winsim.File{{Path: `\precious`, Content: "data"}}},
		}},
	}
}

// TestArrival: disks as SANs and clouds deliver them, and what a driver that was compiled years
// ago makes of them.
func TestArrival(t *testing.T) {
	const number = 7
	for name, c := range map[string]struct {
		policy   winsim.SANPolicy
		arrival  time.Duration
		change   func(*winsim.Disk)
		code     codes.Code // of the first attempt
		says     string
		again    codes.Code // of the kubelet's retry
		readOnly bool
	}{
		"moved from another node (csi-proxy#437)": {policy: winsim.OfflineShared},
		"protected by the platform":               {policy: winsim.OfflineShared, change: func(d *winsim.Disk) { d.WriteProtected = true }, readOnly: true},
		"read-only by its owner's wish":           {change: func(d *winsim.Disk) { d.ReadOnly = true }, readOnly: true},
		"a volume that takes 15 s":                {policy: winsim.OfflineShared, arrival: 15 * time.Second},
		"a volume that takes 45 s": {
			policy: winsim.OfflineShared, arrival: 45 * time.Second, code: codes.DeadlineExceeded, says: "partition 1",
		},
		"a disk of Linux": {
			policy: winsim.OfflineShared, change: func(d *winsim.Disk) { d.Partitions = []winsim.Partition{{Type: "linux"}} },
			code: codes.FailedPrecondition, says: "Linux file system", again: codes.FailedPrecondition,
		},
	} {
		t.Run(name, func(t *testing.T) {
			model := winsim.VSphere()
			model.Storage.SANPolicy = c.policy
			if c.arrival != 0 {
				model.Storage.VolumeArrival = c.arrival
			}
			node, err := winsim.New(model)
			must(t, err)
			disk := withData(number)
			if c.change != nil {
				c.change(&disk)
			}
			if _, err := node.AttachDisk(disk); err != nil {
				t.Fatal(err)
			}
			before := fingerprint(t, node, number)
			d := newDriver(t, node, number)
			stageAzureDisk(d)
			if status.Code(d.err) != c.code || (d.err != nil && !strings.Contains(d.err.Error(), c.says)) {
				t.Fatalf("%v, want %s with %q", d.err, c.code, c.says)
			}
			for range 2 { // the kubelet's retries
				d.err = nil
				stageAzureDisk(d)
				if status.Code(d.err) != c.again {
					t.Fatalf("the retry: %v, want %s", d.err, c.again)
				}
			}
			if fingerprint(t, node, number) != before {
				t.Error("the disk was written to")
			}
			if c.again != codes.OK {
				return
			}
			if content, err := node.ReadFile(mountPath + `\precious`); content != "data" {
				t.Errorf("the volume contains %q, %v", content, err)
			}
			if err := node.WriteFile(mountPath+`\new`, "text"); (err == nil) == c.readOnly {
				t.Errorf("a pod's write: %v; read-only %v", err, c.readOnly)
			}
		})
	}
}

// TestArrival_Copy: a restored snapshot is staged beside its original (csi-proxy#287).
func TestArrival_Copy(t *testing.T) {
	node, err := winsim.New(winsim.VSphere()) // with the default SAN policy of servers
	must(t, err)
	d := newDriver(t, node, 7)
	for number, path := range map[uint32]string{7: `C:\var\lib\kubelet\plugins\one`, 8: `C:\var\lib\kubelet\plugins\two`} {
		if _, err := node.AttachDisk(withData(number)); err != nil {
			t.Fatal(err)
		}
		d.number, d.path = number, path
		for range 2 {
			if stageAzureDisk(d); d.err != nil {
				t.Fatal(d.err)
			}
		}
		if err := node.WriteFile(path+`\mine`, path); err != nil {
			t.Error(err)
		}
	}
	for _, path := range []string{`C:\var\lib\kubelet\plugins\one`, `C:\var\lib\kubelet\plugins\two`} {
		if content, err := node.ReadFile(path + `\mine`); content != path {
			t.Errorf("%s contains %q, %v", path, content, err)
		}
	}
}

func fingerprint(t *testing.T, node *winsim.Node, disk uint32) string {
	t.Helper()
	print, err := node.DiskFingerprint(disk)
	must(t, err)
	return print
}
