package mountertest_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// crowd is how many targets and servers a busy node has, and how many volumes on each.
const crowd = 5

func busyNode() winsim.Model {
	model := targetNode()
	model.ISCSI.Targets = nil
	for i := range crowd {
		model.ISCSI.Targets = append(model.ISCSI.Targets, winsim.ISCSITarget{IQN: fmt.Sprint(iqn, i), LUNs: slices.Repeat([]winsim.Disk{{Size: winsim.GiB}}, crowd)})
		server := winsim.SMBServer{Name: fmt.Sprint("files", i), Accounts: []winsim.SMBAccount{{User: "csi", Password: "csi-Pa55"}}}
		for j := range crowd {
			server.Shares = append(server.Shares, winsim.SMBShare{Name: fmt.Sprint("data", j)})
		}
		model.SMBServers = append(model.SMBServers, server)
	}
	return model
}

// TestDrain stages 50 volumes on 5 targets and 5 servers at the same time, while calls fail, and drains the node as often. It
// is then as it was.
func TestDrain(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 2
	}
	eachMode(t, busyNode, func(k *kit) {
		volumes := map[string]mounter.Source{}
		for i := range crowd {
			for j := range crowd {
				volumes[fmt.Sprintf("%s-lun-%d-%d", staging2, i, j)] = mounter.ISCSI{Portals: []string{portalA}, Target: fmt.Sprint(iqn, i), LUN: uint16(j)}
				volumes[fmt.Sprintf("%s-share-%d-%d", staging2, i, j)] = mounter.SMB{Remote: fmt.Sprintf(`\\files%d\data%d`, i, j), Username: "csi", Password: "csi-Pa55"}
			}
		}
		each := func(verb string, do func(path string, source mounter.Source) error) {
			var wg sync.WaitGroup
			for path, source := range volumes {
				wg.Go(func() {
					const attempts = 50
					err := do(path, source)
					for n := 1; err != nil && n < attempts; n++ { // as the kubelet does
						_ = k.node.Sleep(k.ctx, time.Second)
						err = do(path, source)
					}
					if err != nil {
						k.t.Errorf("%s %s: %v", verb, path, err)
					}
				})
			}
			wg.Wait()
		}
		before := k.used()
		for round := range rounds {
			fault, err := k.node.Inject(winsim.Fault{Chance: 0.01, Error: 21})
			k.must(err)
			each("stage", func(path string, source mounter.Source) error {
				return second(k.Stage(k.ctx, mounter.StageRequest{Path: path, Source: source}))
			})
			each("unstage", func(path string, _ mounter.Source) error {
				return k.Unstage(k.ctx, mounter.UnstageRequest{Path: path, Offline: round%2 == 0})
			})
			fault.Remove()
			if after := k.used(); after != before {
				k.t.Fatalf("round %d: it was\n%s\nand is\n%s", round, before, after)
			}
		}
	})
}
