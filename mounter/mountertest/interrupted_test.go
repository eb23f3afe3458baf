package mountertest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
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

// TestInterrupted ends Stage, or Unstage, at each of its calls to Windows, and the driver with it: another process undoes all, and
// knows no more than the path.
func TestInterrupted(t *testing.T) {
	first, step := 1, 1
	if testing.Short() {
		first, step = sample(20)
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
		"share":          {blankNode, mounter.StageRequest{Source: csiShare}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, verb := range []string{"Stage", "Unstage"} {
				eachMode(t, c.model, func(k *kit) {
					_ = k.Close()
					k.stop() // on Windows one daemon has the pipes
					ended := false
					for at := first; !ended; at += step {
						node, err := winsim.New(c.model())
						k.must(err)
						k := newKitOn(k.t, k.Mode(), node)
						before := k.used()
						request := c.request
						request.Path = staging
						if verb == "Unstage" {
							k.must(second(k.Stage(k.ctx, request)))
						}
						ctx, cancel := context.WithTimeout(k.ctx, time.Minute)
						var calls atomic.Int32
						fault, err := node.Inject(winsim.Fault{Do: func(*winsim.Node) {
							if int(calls.Add(1)) == at {
								cancel()
							}
						}})
						k.must(err)
						unstage := mounter.UnstageRequest{Path: staging, Offline: true}
						if verb == "Unstage" {
							err = k.Unstage(ctx, unstage)
						} else {
							_, err = k.Stage(ctx, request)
						}
						fault.Remove()
						cancel()
						if ended = int(calls.Load()) < at; ended && (err != nil || calls.Load() < 9) {
							k.t.Fatalf("after %d calls: %v", at, err)
						}
						if text := k.node.Tree(records); strings.Contains(text, "secret-of") || strings.Contains(text, "Pa55") || ended && verb == "Stage" && !strings.Contains(text, `version\":1`) {
							k.t.Errorf("the record is %s", text)
						}
						k.restart()
						err = k.Unstage(k.ctx, unstage)
						for begin := time.Now(); (failure.ClassOf(err) == failure.Unavailable || failure.ClassOf(err) == failure.Busy) && time.Since(begin) < time.Minute; { // as the kubelet does
							err = k.Unstage(k.ctx, unstage)
						}
						k.must(err)
						if after := k.used(); after != before {
							k.t.Errorf("%s was interrupted at call %d with %v: it was\n%s\nand is\n%s", verb, at, err, before, after)
						}
						_ = k.Close()
						k.stop()
					}
				})
			}
		})
	}
}

// TestUnstage_LinksUnknown: a driver that was restarted, and cannot see once whether a pod uses a volume, keeps it. After a
// minute it does not.
func TestUnstage_LinksUnknown(t *testing.T) {
	eachMode(t, attachedNode, func(k *kit) {
		k.must(k.stage(), k.Publish(k.ctx, staging, target), k.node.WriteFile(target+`\precious`, "data"))
		for _, code := range []uint32{5, 1117} {
			for nth, hit := 1, true; hit; nth++ {
				k.restart()
				fault, err := k.node.Inject(winsim.Fault{Nth: nth, Times: 1, Error: code})
				k.must(err)
				err = k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true})
				hit = fault.Hits() > 0
				fault.Remove()
				if got, readErr := k.node.ReadFile(target + `\precious`); err == nil || got != "data" || readErr != nil {
					k.t.Fatalf("call %d fails with %d: Unstage returns %v, and the pod reads %q, %v", nth, code, err, got, readErr)
				}
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, mounter.Library, attachedNode())
		k.must(k.stage())
		fault, err := k.node.Inject(winsim.Fault{Call: "ListDirectory", Object: `C:\var\lib\kubelet\pods`, Error: 1117})
		k.must(err)
		defer fault.Remove()
		k.wantClass("at first", k.unstage(), failure.Unavailable, "a pod may use the volume")
		time.Sleep(time.Minute) // of the clock of synctest
		k.must(k.unstage())
	})
}

// TestRecord_Unusable: a record that cannot be read, or removed, keeps no volume. Its removal is tried twice.
func TestRecord_Unusable(t *testing.T) {
	eachMode(t, attachedNode, func(k *kit) {
		k.must(k.stage())
		tree := strings.Fields(k.node.Tree(records))
		file := tree[slices.IndexFunc(tree, func(word string) bool { return strings.HasSuffix(word, ".json") })]
		k.restart()
		k.must(k.node.WriteFile(file, "{"))
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true}))
		if k.node.Exists(file) || k.node.Exists(staging) {
			k.t.Errorf("there is %s", k.node.Tree(records))
		}
		for _, times := range []int{1, 0} {
			k.must(k.stage())
			if times == 0 {
				k.restart() // it cannot be read, too
			}
			fault, err := k.node.Inject(winsim.Fault{Object: file, Error: 1117, Times: times})
			k.must(err)
			if err := k.unstage(); err == nil {
				k.t.Error("Unstage says OK, and the record stays")
			}
			k.must(k.unstage())
			if stays := k.node.Exists(file); k.node.Exists(staging) || stays != (times == 0) || fault.Hits() == 0 {
				k.t.Errorf("the record stays: %t, after %d faults", stays, fault.Hits())
			}
			fault.Remove()
		}
	})
}
