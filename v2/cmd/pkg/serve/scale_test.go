package serve_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const kubelet = `C:\var\lib\kubelet`

// large is a node with so many disks, each with a volume that five links lead to, and seven mappings of
// shares for ten disks. No node has 1,000 disks; one that grows should not become slow before it is full.
func large(tb testing.TB, disks int) *winsim.Node {
	tb.Helper()
	model := winsim.Default()
	model.Disks = model.Disks[:1]
	server := winsim.SMBServer{Name: "files", Guest: true}
	for i := range disks {
		id := fmt.Sprintf("00000000-0000-0000-0001-%012d", i)
		model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{
			{Type: "msr", Size: 16 * winsim.MiB}, {Volume: &winsim.Volume{ID: id}},
		}})
		staged := fmt.Sprintf(`%s\plugins\kubernetes.io\csi\driver\%04d\globalmount`, kubelet, i)
		model.Files = append(model.Files, winsim.File{Path: staged, Volume: id})
		for pod := range 4 {
			model.Files = append(model.Files, winsim.File{Path: fmt.Sprintf(`%s\pods\%04d-%d\volumes\kubernetes.io~csi\pv\mount`, kubelet, i, pod), Symlink: staged})
		}
		if i%10 < 7 {
			server.Shares = append(server.Shares, winsim.SMBShare{Name: fmt.Sprintf("share-%04d", i)})
		}
	}
	model.SMBServers = []winsim.SMBServer{server}
	node, err := winsim.New(model)
	if err != nil {
		tb.Fatal(err)
	}
	for _, share := range server.Shares {
		if err := node.CreateSMBMapping(tb.Context(), win.SMBMappingRequest{Remote: `\\files\` + share.Name}); err != nil {
			tb.Fatal(err)
		}
	}
	return node
}

func describeAll(tb testing.TB, m win.Machine) *wholenode.Description {
	tb.Helper()
	n, err := wholenode.NewOn(m, wholenode.WorkingDirs(kubelet))
	if err != nil {
		tb.Fatal(err)
	}
	found, err := n.Describe(tb.Context(), wholenode.Links, wholenode.Shares, wholenode.Sessions)
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

// TestDescribe_CallsAreLinear: twice the disks, links and mappings take twice the calls. It is in virtual time,
// because a description has a time limit that a busy machine exceeds.
func TestDescribe_CallsAreLinear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := func(disks int) (calls int) {
			node := large(t, disks)
			node.ResetCalls()
			found := describeAll(t, node)
			if len(found.Disks) != disks+1 || len(found.Links) != 5*disks || len(found.Shares) != disks*7/10 || len(found.Problems) != 0 {
				t.Fatalf("%d disks, %d links, %d shares, %q", len(found.Disks), len(found.Links), len(found.Shares), found.Problems)
			}
			for _, n := range node.Calls() {
				calls += n
			}
			return calls
		}
		first, second, third := count(10), count(20), count(40)
		if third-second != 2*(second-first) {
			t.Errorf("10, 20 and 40 disks take %d, %d and %d calls", first, second, third)
		}
		// 20 for the disk and its volume; the others list directories of four pods and read five links, each once.
		if each := float64(second-first) / 10; each > 41 {
			t.Errorf("a disk takes %.1f calls", each)
		}
		if testing.Short() {
			return
		}
		// Windows lists large directories in several parts.
		if all, want := count(1000), first+99*(second-first); all < want || all > want+want/100 {
			t.Errorf("1,000 disks take %d calls, want about %d", all, want)
		}
	})
}

// BenchmarkDescribe describes nodes of up to 1,000 disks, 5,000 links and 700 mappings: as a library, which is
// without clients, and for clients of the daemon that ask at the same time.
func BenchmarkDescribe(b *testing.B) {
	for _, c := range []struct{ disks, clients int }{{10, 0}, {100, 0}, {1000, 0}, {1000, 1}, {1000, 10}} {
		b.Run(fmt.Sprintf("disks=%d/clients=%d", c.disks, c.clients), func(b *testing.B) {
			node := large(b, c.disks)
			ask := func() { describeAll(b, node) }
			if c.clients > 0 {
				ask = asClients(b, node, c.clients, len(describeAll(b, node).Links))
			}
			node.ResetCalls()
			for b.Loop() {
				ask()
			}
			calls := 0
			for _, n := range node.Calls() {
				calls += n
			}
			b.ReportMetric(float64(calls)/float64(b.N), "calls/op")
		})
	}
}

// asClients serves a node, and returns what lets clients ask for its description at the same time.
func asClients(b *testing.B, node *winsim.Node, count, links int) (ask func()) {
	b.Helper()
	serve.Start(b, node)
	clients := make([]extensionv1.InspectorClient, count)
	for i := range clients {
		conn, err := client.Connect(b.Context(), "system", apiversion.NewVersionOrPanic("v1alpha1"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		clients[i] = extensionv1.NewInspectorClient(conn)
	}
	return func() {
		var wg sync.WaitGroup
		for _, c := range clients {
			wg.Go(func() {
				found, err := c.DescribeNode(b.Context(), &extensionv1.DescribeNodeRequest{Links: true, Shares: true, Sessions: true})
				if err != nil || len(found.GetLinks()) != links {
					b.Errorf("%d links, %v", len(found.GetLinks()), err)
				}
			})
		}
		wg.Wait()
	}
}
