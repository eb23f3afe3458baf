package api_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestRemove_AfterRestart: links that a process before this one has made count, if it is known
// where to look for them.
func TestRemove_AfterRestart(t *testing.T) {
	node := newNode(t)
	must(t, mapTo(limited(t, node), share, stage), mapTo(limited(t, node), `\\files\more`, ""))
	must(t, node.Symlink(work+`\pods\p\volumes\kubernetes.io~csi\v\mount`, stage))
	host := limited(t, node)
	must(t, host.RemoveSMBGlobalMapping(share), host.RemoveSMBGlobalMapping(`\\files\more`))
	wantMapped(t, node, share, true)
	wantMapped(t, node, `\\files\more`, false)

	// The scan is not repeated.
	node.ResetCalls()
	must(t, host.RemoveSMBGlobalMapping(share), host.RemoveSMBGlobalMapping(share))
	if made(node, "ListDirectory") != 0 || made(node, "ReparsePoint") != 2 {
		t.Errorf("two more removals made the calls %v", node.Calls())
	}
	must(t, node.RemoveAll(stage), host.RemoveSMBGlobalMapping(share))
	wantMapped(t, node, share, false)
}

// TestRemove_ExceptLink: a driver that removes its link last can repeat both steps. Another link keeps the mapping.
func TestRemove_ExceptLink(t *testing.T) {
	node := newNode(t)
	host := limited(t, node)
	except := func(link string) error { return host.(smbapi.Extended).RemoveSMBGlobalMappingExcept(share, link) }
	must(t, mapTo(host, share, stage), mapTo(host, share, stage2))
	must(t, except(stage))
	wantMapped(t, node, share, true)
	must(t, node.RemoveAll(stage))
	inject(t, node, winsim.Fault{Call: "RemoveSMBMapping", Times: 1, Error: 31})
	wantKind(t, "a failure", except(stage2), winerr.Internal, 31)
	wantMapped(t, node, share, true)
	for range 2 {
		must(t, except(stage2))
		wantMapped(t, node, share, false)
	}
	if !node.Exists(stage2) {
		t.Error("the link is gone")
	}
	must(t, mapTo(host, share, stage2)) // it is used again
	wantMapped(t, node, share, true)
}

// TestRemove_WithoutWorkingDirs: a driver that was restarted cannot know what uses a mapping that
// it made before.
func TestRemove_WithoutWorkingDirs(t *testing.T) {
	node := newNode(t)
	driver := smbapi.NewOn(node)
	must(t, mapTo(driver, share, stage), mapTo(driver, share, stage2), node.WriteFile(stage2+`\file`, "data"), node.RemoveAll(stage))
	restarted := smbapi.NewOn(node)
	must(t, restarted.RemoveSMBGlobalMapping(share), restarted.RemoveSMBGlobalMapping(`\\files\more`))
	wantContent(t, node, stage2+`\file`, "data")
	inject(t, node, winsim.Fault{Call: "SMBMapping", Times: 1, Error: 31})
	wantKind(t, "unsure", restarted.RemoveSMBGlobalMapping(share), winerr.Internal, 31)

	must(t, node.RemoveAll(stage2), driver.RemoveSMBGlobalMapping(share))
	wantMapped(t, node, share, false)
	must(t, mapTo(restarted, share, stage), node.RemoveAll(stage), driver.RemoveSMBGlobalMapping(share))
	wantMapped(t, node, share, true) // not the driver's own any more
}

// TestRemove_ScanFails: what could not be removed for want of a scan goes with the first call
// after one that succeeds, and not before.
func TestRemove_ScanFails(t *testing.T) {
	node := newNode(t)
	must(t, mapTo(limited(t, node), share, ""))
	host := limited(t, node)
	fault := inject(t, node, winsim.Fault{Call: "ListDirectory", Nth: 5, Times: 1, Error: 1117})
	must(t, host.RemoveSMBGlobalMapping(share), mapTo(host, `\\files\more`, ""))
	if wantMapped(t, node, share, true); fault.Hits() != 1 {
		t.Errorf("the scan failed %d times", fault.Hits())
	}
	must(t, node.Sleep(t.Context(), 11*60e9), mapTo(host, `\\files\more`, ""))
	wantMapped(t, node, share, false)

	// A directory that is closed to us is not a reason to keep all mappings for ever.
	must(t, mapTo(limited(t, node), share, ""))
	inject(t, node, winsim.Fault{Call: "ListDirectory", Object: work + `\plugins\*`, Error: 5})
	must(t, limited(t, node).RemoveSMBGlobalMapping(share))
	wantMapped(t, node, share, false)
	must(t, mapTo(limited(t, node), share, ""))
	inject(t, node, winsim.Fault{Call: "ListDirectory", Object: work, Error: 5})
	must(t, limited(t, node).RemoveSMBGlobalMapping(share))
	wantMapped(t, node, share, true)
}

// TestRemove_OddLinks: links of others count, however they are spelled and whatever they end in.
func TestRemove_OddLinks(t *testing.T) {
	for _, target := range []string{`\\files\data`, `\\FILES\DATA\x`, `\\files\data\aux`, `\\files\data\a.`, `\\files\data\sub\..`, `\\?\UNC\files\data\x`} {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, ""), node.Symlink(work+`\pods\planted`, target), host.RemoveSMBGlobalMapping(share))
		if !isMapped(t, node, share) {
			t.Errorf("%s does not count", target)
		}
	}
}

// TestRemove_WantedAgain: mapping a share again cancels its postponed removal.
func TestRemove_WantedAgain(t *testing.T) {
	node := newNode(t)
	host := limited(t, node)
	must(t, mapTo(host, share, stage), host.RemoveSMBGlobalMapping(share), node.RemoveAll(stage),
		mapTo(host, share, ""), mapTo(host, `\\files\more`, ""))
	wantMapped(t, node, share, true)
}

// TestRemove_ForgetsLinks: those that are gone are not looked at again.
func TestRemove_ForgetsLinks(t *testing.T) {
	node := newNode(t)
	host := limited(t, node)
	must(t, mapTo(host, share, stage), mapTo(host, share, stage2), node.RemoveAll(stage), node.RemoveAll(stage2), host.RemoveSMBGlobalMapping(share))
	if n := smbapi.KnownLinks(host); n != 0 {
		t.Errorf("%d links are remembered, of which none is left", n)
	}
}

// TestRemove_ScanHangs: what cannot be looked for in time counts as there.
func TestRemove_ScanHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t)
		t.Cleanup(synctest.Wait) // until what hangs has ended
		must(t, mapTo(limited(t, node), share, ""))
		inject(t, node, winsim.Fault{Call: "ListDirectory", Times: 1, Delay: time.Hour})
		// The scan has ten seconds of its own, and says nothing about this call.
		must(t, limited(t, node).RemoveSMBGlobalMapping(share))
		wantMapped(t, node, share, true)
	})
}

// scanned makes a host look for links, which the first removal of a mapping does.
func scanned(host smbapi.HostAPI) error {
	return errors.Join(mapTo(host, `\\files\more`, ""), host.RemoveSMBGlobalMapping(`\\files\more`))
}

// TestRemove_Fresh: a removal that begins after a link has gone is not answered by one that
// began before.
func TestRemove_Fresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage), scanned(host))
		inject(t, node, winsim.Fault{Call: "ReparsePoint", Times: 1, Delay: time.Minute, Error: 1117})
		var first sync.WaitGroup
		first.Go(func() { _ = host.RemoveSMBGlobalMapping(share) })
		synctest.Wait()
		must(t, node.RemoveAll(stage), host.RemoveSMBGlobalMapping(share))
		wantMapped(t, node, share, false)
		first.Wait()
	})
}

// TestScan_Surrogates: what stands for another directory is not gone through.
func TestScan_Surrogates(t *testing.T) {
	node := newNode(t)
	must(t, mapTo(limited(t, node), share, ""), node.Junction(work+`\windows`, `C:\Windows`), node.MountFolder(work+`\system`, winsim.SystemVolume))
	node.Observe(func(touch winsim.Touch) {
		if touch.Call == "ListDirectory" && !strings.HasPrefix(touch.Path, work) || strings.HasPrefix(touch.Path, work+`\windows\`) {
			t.Errorf("%s was listed", touch.Path)
		}
	})
	node.ResetCalls()
	must(t, limited(t, node).RemoveSMBGlobalMapping(share))
	lists := made(node, "ListDirectory")
	must(t, node.RemoveAll(work+`\windows`), node.RemoveAll(work+`\system`), mapTo(limited(t, node), share, ""))
	node.ResetCalls()
	must(t, limited(t, node).RemoveSMBGlobalMapping(share))
	if again := made(node, "ListDirectory"); again != lists {
		t.Errorf("%d directories were listed with a junction and a mounted volume, %d without", lists, again)
	}
}

// TestRemove_LinkLeadsElsewhere: a link that was replaced does not keep the mapping.
func TestRemove_LinkLeadsElsewhere(t *testing.T) {
	for name, replace := range map[string]func(*winsim.Node) error{
		"directory":     func(n *winsim.Node) error { return n.Mkdir(stage) },
		"another share": func(n *winsim.Node) error { return n.Symlink(stage, `\\files\more\`) },
		"local link":    func(n *winsim.Node) error { return n.Symlink(stage, work) },
		"nothing":       func(*winsim.Node) error { return nil },
	} {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage), node.RemoveAll(stage), replace(node), host.RemoveSMBGlobalMapping(share))
		if isMapped(t, node, share) {
			t.Errorf("replaced by %s: the share is still mapped", name)
		}
	}
}

// steps are by how much the clock is set in tests about time.
var steps = []time.Duration{0, time.Hour, -time.Hour}

// TestRemove_Unsure: if it is unknown whether a link uses the share, the mapping stays.
func TestRemove_Unsure(t *testing.T) {
	t.Run("the link cannot be read", func(t *testing.T) {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage), scanned(host))
		fault := inject(t, node, winsim.Fault{Call: "ReparsePoint", Error: 1117})
		must(t, host.RemoveSMBGlobalMapping(share))
		wantMapped(t, node, share, true)
		fault.Remove()
		must(t, node.RemoveAll(stage), host.RemoveSMBGlobalMapping(share))
		wantMapped(t, node, share, false)
	})
	for _, step := range steps {
		t.Run("the scan fails, and the clock is set by "+step.String(), func(t *testing.T) {
			node := newNode(t)
			must(t, mapTo(limited(t, node), share, ""))
			host := limited(t, node)
			fault := inject(t, node, winsim.Fault{Call: "ListDirectory", Nth: 5, Error: 1117})
			must(t, host.RemoveSMBGlobalMapping(share))
			wantMapped(t, node, share, true)
			// It is not repeated at once, but later.
			hits := fault.Hits()
			node.StepClock(step)
			must(t, host.RemoveSMBGlobalMapping(share))
			if wantMapped(t, node, share, true); fault.Hits() != hits {
				t.Error("the scan was repeated at once")
			}
			fault.Remove()
			must(t, node.Sleep(t.Context(), 11e9), host.RemoveSMBGlobalMapping(share))
			wantMapped(t, node, share, false)
		})
	}
	t.Run("the scan fails, and other shares are not mapped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			node := newNode(t)
			must(t, mapTo(limited(t, node), share, ""))
			host := limited(t, node)
			fault := inject(t, node, winsim.Fault{Call: "ListDirectory", Error: 1117})
			for _, remote := range []string{share, `\\files\one`, `\\files\more`, `\\files\none`} {
				must(t, host.RemoveSMBGlobalMapping(remote))
			}
			fault.Remove()
			must(t, node.Sleep(t.Context(), time.Minute))
			time.Sleep(3 * time.Minute)
			if removals := made(node, "RemoveSMBMapping"); removals != 1 {
				t.Errorf("%d removals were made, want 1", removals)
			}
			wantMapped(t, node, share, false)
		})
	})
	t.Run("there are too many files", func(t *testing.T) {
		node := newNode(t)
		must(t, mapTo(limited(t, node), share, ""))
		for i := range smbapi.ScanEntries/1000 + 1 {
			for j := range 1000 {
				must(t, node.Mkdir(fmt.Sprintf(work+`\x\%d\%d`, i, j)))
			}
		}
		must(t, limited(t, node).RemoveSMBGlobalMapping(share))
		wantMapped(t, node, share, true)
	})
}

// TestScan_Bounds: what pods write is not gone through, nor what lies very deep, and no link
// is followed.
func TestScan_Bounds(t *testing.T) {
	node := newNode(t)
	pod := work + `\pods\p\volumes\`
	must(t,
		node.WriteFile(pod+`kubernetes.io~empty-dir\cache\a\b`, ""),
		node.WriteFile(work+`\1\2\3\4\5\6\7\8\9\a`, ""),
		node.Symlink(work+`\windows`, `C:\Windows`),
		node.Symlink(pod+`kubernetes.io~csi\v\mount`, share+`\`))
	var seen []string
	node.Observe(func(touch winsim.Touch) {
		if touch.Call == "ListDirectory" {
			seen = append(seen, touch.Path)
		}
	})
	must(t, mapTo(limited(t, node), share, ""), limited(t, node).RemoveSMBGlobalMapping(share))
	wantMapped(t, node, share, true)
	for _, path := range seen {
		if strings.Contains(path, "empty-dir") || strings.Contains(path, `\8`) || !strings.HasPrefix(path, work) {
			t.Errorf("%s was listed", path)
		}
	}
}

// TestLinks_Forgotten: a driver that never asks for removals does not make us remember all
// links there ever were.
func TestLinks_Forgotten(t *testing.T) {
	node := newNode(t)
	host := smbapi.NewOn(node)
	for i := range 3000 {
		link := many(work+`\plugins\`, i)
		must(t, mapTo(host, share, link), node.RemoveAll(link))
	}
	if n := smbapi.KnownLinks(host); n > 300 {
		t.Errorf("%d links are remembered, of which none is left", n)
	}
}

// TestCosts: what a call costs does not depend on how many mappings there are, nor on how
// many links lead to a share.
func TestCosts(t *testing.T) {
	costs := func(mappings int) (costs [4]string) {
		model := winsim.Default()
		for i := range mappings {
			model.SMBServers[0].Shares = append(model.SMBServers[0].Shares, winsim.SMBShare{Name: many("s", i)})
		}
		node, err := winsim.New(model)
		must(t, err)
		host := limited(t, node)
		for i := range mappings {
			must(t, mapTo(host, `\\files\`+many("s", i), many(work+`\plugins\s`, i)), mapTo(host, share, many(work+`\plugins\l`, i)))
		}
		must(t, mapTo(host, share, work+`\plugins\first`), host.RemoveSMBGlobalMapping(share)) // and the scan
		last := `\\files\` + many("s", mappings-1)
		for i, do := range []func() error{
			func() error { return mapTo(host, share, work+`\plugins\again`) },
			func() error { return host.RemoveSMBGlobalMapping(share) },
			func() error { return host.RemoveSMBGlobalMapping(last) },
			func() error { return mapTo(host, last, many(work+`\plugins\s`, mappings-1)) },
		} {
			if i == 2 {
				must(t, node.RemoveAll(many(work+`\plugins\s`, mappings-1)))
			}
			node.ResetCalls()
			must(t, do())
			costs[i] = fmt.Sprint(node.Calls())
		}
		return costs
	}
	few, lots := costs(1), costs(700)
	if few != lots {
		t.Errorf("with one mapping %v,\nwith 700 %v", few, lots)
	}
	t.Log(few)
}

// TestCosts_OneServer: nor do conflicts about a server depend on how many of its shares are
// mapped, but for the removal of what a restart has left.
func TestCosts_OneServer(t *testing.T) {
	costs := func(n int) (costs [4]string) {
		node := newNode(t, alwaysPersistent)
		change(t, node, "files", func(s *winsim.SMBServer) {
			for i := range n {
				s.Shares = append(s.Shares, winsim.SMBShare{Name: many("s", i)})
			}
			s.Accounts = append(s.Accounts, winsim.SMBAccount{User: "second", Password: "x"})
		})
		host := limited(t, node)
		for i := range n {
			must(t, mapTo(host, `\\files\`+many("s", i), many(work+`\plugins\s`, i)))
		}
		second := func() error { return host.(smbapi.Extended).MapSMBShare(`\\files\more`, "", "second", "x") }
		for i, do := range []func() error{
			second,
			func() error { node.EndSMBSessions(); return second() },
			func() error {
				change(t, node, "files", func(s *winsim.SMBServer) { s.Down = true })
				defer change(t, node, "files", func(s *winsim.SMBServer) { s.Down = false })
				return second()
			},
			func() error { node.Reboot(); return mapTo(host, `\\files\more`, "") },
		} {
			node.ResetCalls()
			if err := do(); (err == nil) != (i == 3) {
				t.Errorf("%d: %v", i, err)
			}
			calls := node.Calls()
			if removed := calls["RemoveSMBMapping"]; i == 3 && removed == n+1 || removed == 1 {
				delete(calls, "RemoveSMBMapping") // replace tries, and finds nothing
			}
			costs[i] = fmt.Sprint(calls)
		}
		return costs
	}
	few, lots := costs(3), costs(700)
	if few != lots {
		t.Errorf("with three mappings %v,\nwith 700 %v", few, lots)
	}
	t.Log(few)
}

// TestOutside: a link out of the working directories is refused before anything is mapped.
func TestOutside(t *testing.T) {
	node := newNode(t)
	must(t, node.Symlink(work+`\out`, `C:\Windows`), node.Symlink(work+`\share`, `\\spare\data`),
		node.Junction(work+`\in`, work+`\pods`), node.MountFolder(work+`\system`, winsim.SystemVolume))
	before := node.Tree(`C:\Windows`)
	host := limited(t, node)
	for _, path := range []string{`C:\Windows\link`, work, `C:\var`, `C:\`, `D:\x`, work + `-evil\x`, work + `\out\link`, work + `\share\link`, work + `\system\link`} {
		if err := mapTo(host, share, path); winerr.KindOf(err) != winerr.Denied {
			t.Errorf("%s: %v, want %v", path, err, winerr.Denied)
		}
		if err := host.NewSMBLink(share, path); winerr.KindOf(err) != winerr.Denied {
			t.Errorf("only a link at %s: %v, want %v", path, err, winerr.Denied)
		}
	}
	if made(node, "SMBMapping")+made(node, "CreateSMBMapping")+made(node, "CreateDirectoryLink") != 0 {
		t.Errorf("calls were made: %v", node.Calls())
	}
	if after := node.Tree(`C:\Windows`); after != before {
		t.Errorf("outside this changed:\n%s", after)
	}
	must(t, mapTo(host, share, work+`\in\link`))
	wantKind(t, "the root of a drive", mapTo(smbapi.NewOn(node), share, `C:\`), winerr.Exists, 0)
}

// TestLinksGone: the end of the last link carries out a removal that was postponed, and takes
// no call to Windows for other paths.
func TestLinksGone(t *testing.T) {
	node := newNode(t)
	host := limited(t, node)
	gone := func(path string) { host.(smbapi.Extended).LinksGone(path) }
	must(t, mapTo(host, share, stage), mapTo(host, share, stage2), node.RemoveAll(stage))
	gone(stage)
	wantMapped(t, node, share, true) // its removal was not asked for
	must(t, host.RemoveSMBGlobalMapping(share))
	node.ResetCalls()
	gone(work + `\pods\a`)
	gone(stage2 + `\below`)
	if calls := node.Calls(); len(calls) != 0 {
		t.Errorf("other paths take the calls %v", calls)
	}
	gone(stage2) // still there
	wantMapped(t, node, share, true)
	must(t, node.RemoveAll(stage2))
	gone(work + `\plugins`)
	wantMapped(t, node, share, false)
}

// TestLinksGone_Later: a removal that fails, or whose link cannot be read, is tried again, without a call.
func TestLinksGone_Later(t *testing.T) {
	for _, fault := range []winsim.Fault{{Call: "RemoveSMBMapping", Times: 2, Error: 53}, {Call: "ReparsePoint", Object: stage, Times: 2, Error: 32}} {
		synctest.Test(t, func(t *testing.T) {
			node := newNode(t)
			host := limited(t, node)
			must(t, mapTo(host, share, stage), host.RemoveSMBGlobalMapping(share), node.RemoveAll(stage))
			inject(t, node, fault)
			host.(smbapi.Extended).LinksGone(stage)
			wantMapped(t, node, share, true)
			time.Sleep(150 * time.Second)
			wantMapped(t, node, share, false)
		})
	}
	synctest.Test(t, func(t *testing.T) { // its driver has removed the link first
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage), node.RemoveAll(stage))
		inject(t, node, winsim.Fault{Call: "ReparsePoint", Object: stage, Times: 1, Error: 32})
		must(t, host.RemoveSMBGlobalMapping(share))
		wantMapped(t, node, share, true)
		time.Sleep(150 * time.Second)
		wantMapped(t, node, share, false)
	})
}

// TestLinksGone_Hangs: a server that does not answer delays the caller for five seconds, and the
// removal goes on.
func TestLinksGone_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage), host.RemoveSMBGlobalMapping(share), node.RemoveAll(stage))
		inject(t, node, winsim.Fault{Call: "RemoveSMBMapping", Delay: 30 * time.Second})
		start := time.Now()
		host.(smbapi.Extended).LinksGone(stage)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
		wantMapped(t, node, share, true)
		time.Sleep(30 * time.Second)
		wantMapped(t, node, share, false)
	})
}

// TestLinksGone_Replaced: a link to another share at the same path counts as its end.
func TestLinksGone_Replaced(t *testing.T) {
	node := newNode(t)
	host := limited(t, node)
	must(t, mapTo(host, share, stage), host.RemoveSMBGlobalMapping(share), node.RemoveAll(stage), mapTo(host, `\\spare\data`, stage))
	wantMapped(t, node, share, false)
	wantMapped(t, node, `\\spare\data`, true)
}

// TestScan_WorkingDir: links are found in a working directory that is a link or a whole drive.
func TestScan_WorkingDir(t *testing.T) {
	for _, c := range []struct{ dir, base string }{{`C:\kubelet`, `C:\kubelet`}, {`C:\`, work}} {
		node := newNode(t)
		must(t, node.Symlink(`C:\kubelet`, work), mapTo(limited(t, node), share, stage))
		limits, err := policy.NewUnsafe([]string{c.dir})
		must(t, err)
		host := bind(klog.NewContext(t.Context(), logr.Discard()), smbapi.NewOn(node).(smbapi.Extended).Within(limits))
		must(t, host.RemoveSMBGlobalMapping(share))
		wantMapped(t, node, share, true)
		must(t, node.RemoveAll(stage))
		host.(smbapi.Extended).LinksGone(c.base + stage[len(work):])
		if isMapped(t, node, share) {
			t.Errorf("%s: the mapping is kept", c.dir)
		}
	}
}
