package mountertest_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// records is where the mounter keeps what it has begun.
const records = `C:\var\lib\kubelet\plugins\csi-proxy-mounter`

// offlineNode has disk 1 offline, with a volume.
func offlineNode(layout winsim.Layout) func() winsim.Model {
	return func() winsim.Model {
		model := attachedNode()
		model.Disks[1].Layout, model.Disks[1].Offline = layout, true
		if layout == winsim.LayoutMBR {
			model.Disks[1].Partitions = model.Disks[1].Partitions[1:]
		}
		return model
	}
}

// used is what a volume has taken of a node.
func (k *kit) used() string {
	text := ""
	for _, d := range k.node.Describe().Disks {
		text += fmt.Sprintf("disk %d: offline %t, read-only %t\n", d.Number, d.Offline, d.ReadOnly)
	}
	for _, s := range k.node.Describe().ISCSI.Sessions {
		text += "session with " + s.Target + "\n"
	}
	for _, m := range k.node.Describe().SMBMappings {
		text += fmt.Sprintf(mapped, m.Remote, m.Stale || m.Idle)
	}
	if k.node.Exists(records) {
		text += strings.TrimSpace(strings.TrimPrefix(k.node.Tree(records), records))
	}
	return text
}

// TestStage_Interrupted ends Stage at each of its calls to Windows, and the driver with it: another process undoes all, and
// knows no more than the path.
func TestStage_Interrupted(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 9
	}
	chap := lun(3, portalA, portalB)
	chap.CHAP = mounter.CHAP{Username: "me", Secret: "secret-of-me-12", MutualSecret: "secret-of-it-12"}
	for name, c := range map[string]struct {
		model   func() winsim.Model
		request mounter.StageRequest
	}{
		"blank disk":     {func() winsim.Model { m := blankNode(); m.Disks[1].Offline = true; return m }, mounter.StageRequest{Source: number(1)}},
		"disk with MBR":  {offlineNode(winsim.LayoutMBR), mounter.StageRequest{Source: number(1)}},
		"read-only disk": {offlineNode(winsim.LayoutGPT), mounter.StageRequest{Source: number(1), ReadOnly: true}},
		"LUN":            {secretNode, mounter.StageRequest{Source: chap}},
		"LUN with MPIO":  {mpioNode, mounter.StageRequest{Source: lun(3, portalA, portalB)}},
		"share":          {blankNode, mounter.StageRequest{Source: mounter.SMB{Remote: `\\files\data`, Username: "csi", Password: "csi-Pa55"}}},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, c.model, func(k *kit) {
				ended := false
				for at := 1; !ended; at += step {
					node, err := winsim.New(c.model())
					k.must(err)
					k := newKitOn(k.t, k.Mode(), node)
					before := k.used()
					ctx, cancel := context.WithTimeout(k.ctx, time.Minute)
					var calls atomic.Int32
					fault, err := node.Inject(winsim.Fault{Do: func(*winsim.Node) {
						if int(calls.Add(1)) == at {
							cancel()
						}
					}})
					k.must(err)
					request := c.request
					request.Path = staging
					_, err = k.Stage(ctx, request)
					fault.Remove()
					cancel()
					if ended = int(calls.Load()) < at; ended && (err != nil || at < 10) {
						k.t.Fatalf("after %d calls: %v", at, err)
					}
					if text := k.node.Tree(records); strings.Contains(text, "secret-of") || strings.Contains(text, "Pa55") || ended && !strings.Contains(text, `version\":1`) {
						k.t.Errorf("the record is %s", text)
					}
					k.restart()
					k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true}))
					if after := k.used(); after != before {
						k.t.Errorf("interrupted at call %d with %v: it was\n%s\nand is\n%s", at, err, before, after)
					}
					_ = k.Close()
					k.stop()
				}
			})
		})
	}
}
