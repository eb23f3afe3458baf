package api_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestReboot is the oldest complaint of users: after a restart of the node no share can be
// mapped, because of what is left of the old mappings.
func TestReboot(t *testing.T) {
	node := newNode(t)
	before := limited(t, node)
	must(t, mapTo(before, share+`\a`, stage), mapTo(before, `\\files\more`, stage2), node.WriteFile(share+`\a\file`, "data"))
	wantContent(t, node, stage+`\file`, "data")
	node.Reboot()

	if _, err := node.ReadFile(stage + `\file`); err == nil {
		t.Error("the share can be read after the restart")
	}
	request := win.SMBMappingRequest{Remote: share, User: user, Password: win.NewSecret(password)}
	if err := node.CreateSMBMapping(t.Context(), request); winerr.CodeOf(err) != winerr.CredentialConflict {
		t.Errorf("who only maps the share again gets %v, want 1219", err)
	}
	must(t, node.RemoveSMBMapping(t.Context(), share, true))
	if err := node.CreateSMBMapping(t.Context(), request); winerr.CodeOf(err) != winerr.CredentialConflict {
		t.Errorf("who only removes the mapping of the share first gets %v, want 1219 because of the other one", err)
	}

	after := limited(t, node)
	must(t, mapTo(after, share+`\a`, stage))
	wantContent(t, node, stage+`\file`, "data")
	must(t, mapTo(after, `\\files\more`, stage2), node.WriteFile(stage2+`\file`, "more"))
	wantContent(t, node, stage+`\file`, "data")
	wantContent(t, node, stage2+`\file`, "more")
}

// TestReboot_LooksAway: what a restart leaves may look as if the server were away, whatever
// code opening the share answers.
func TestReboot_LooksAway(t *testing.T) {
	for _, code := range []winerr.Code{5, 51, 53, 121, 1231, 1232} {
		node := newNode(t)
		must(t, mapTo(limited(t, node), share, stage), node.WriteFile(stage+`\file`, "data"))
		node.Reboot()
		inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Times: 1, Error: uint32(code)})
		if err := mapTo(limited(t, node), share, stage); err != nil {
			t.Errorf("code %d: %v", code, err)
			continue
		}
		wantContent(t, node, stage+`\file`, "data")
	}
}

// TestMapping_KeepsWhatWorks: a mapping that works is not touched, whatever it says about
// itself and whoever asks.
func TestMapping_KeepsWhatWorks(t *testing.T) {
	for name, prepare := range map[string]func(*winsim.Node){
		"connected":  func(*winsim.Node) {},
		"idle":       func(n *winsim.Node) { n.EndSMBSessions() },
		"no listing": func(n *winsim.Node) { _, _ = n.Inject(winsim.Fault{Call: "FileInfo", Object: share, Error: 5}) },
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t)
			host := limited(t, node)
			must(t, mapTo(host, share, stage))
			prepare(node)
			node.ResetCalls()
			must(t, mapTo(host, share, stage), host.(smbapi.Mapper).MapSMBShare(share, stage, "other", "wrong"))
			if made(node, "CreateSMBMapping")+made(node, "RemoveSMBMapping") != 0 {
				t.Errorf("it was made anew: %v", node.Calls())
			}
		})
	}
}

// TestMapping_RemakesWhatIsDead: each of the ways in which a share refuses to be opened.
func TestMapping_RemakesWhatIsDead(t *testing.T) {
	for _, code := range []winerr.Code{55, 58, 59, 64, 65, 67, 86, 1219, 1236, 1265, 1272, 1326, 1327, 1328, 1329, 1330, 1331, 1385, 1793, 1907, 1909, 2250} {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage))
		inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Times: 1, Error: uint32(code)})
		node.ResetCalls()
		must(t, mapTo(host, share, stage))
		if made(node, "RemoveSMBMapping") != 1 || made(node, "CreateSMBMapping") != 1 {
			t.Errorf("code %d: %v, want the mapping to be removed and made once", code, node.Calls())
		}
	}
}

// TestMapping_ServerAway: while a server is away its mapping stays, for Windows to use it again
// when the server is back.
func TestMapping_ServerAway(t *testing.T) {
	node := newNode(t)
	host := limited(t, node)
	must(t, mapTo(host, share, stage), node.WriteFile(stage+`\file`, "data"))
	for _, code := range []winerr.Code{51, 53, 121, 1222, 1225, 1231, 1232, 1311, 2138} {
		fault := inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Times: 1, Error: uint32(code)})
		wantKind(t, "map", mapTo(host, share, stage), winerr.Unavailable, code)
		fault.Remove()
	}
	change(t, node, "files", func(s *winsim.SMBServer) { s.Down = true })
	wantKind(t, "map", mapTo(host, share, stage), winerr.Unavailable, winerr.BadNetPath)
	wantKind(t, "map another", mapTo(host, `\\files\more`, ""), winerr.Unavailable, winerr.BadNetPath)
	change(t, node, "files", func(s *winsim.SMBServer) { s.Down = false })
	wantContent(t, node, stage+`\file`, "data")
	// What it says and we do not understand is no reason to take the mapping away either.
	inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Times: 1, Error: 8})
	wantKind(t, "map", mapTo(host, share, stage), winerr.Internal, 8)
	wantMapped(t, node, share, true)
}

// TestMapping_InTheWay: a mapping that was not to be seen is removed, unless it works.
func TestMapping_InTheWay(t *testing.T) {
	for _, code := range []winerr.Code{winerr.AlreadyAssigned, winerr.DeviceAlreadyRemembered, winerr.CredentialConflict} {
		for name, hidden := range map[string]bool{"of another process, working": false, "hidden": true} {
			node := newNode(t)
			fault := winsim.Fault{Call: "CreateSMBMapping", Times: 1, Error: uint32(code)}
			if !hidden {
				fault.Do = func(n *winsim.Node) {
					_, _ = n.Inject(winsim.Fault{Call: "SMBMapping", Times: 1, Do: func(n *winsim.Node) {
						_ = n.CreateSMBMapping(t.Context(), win.SMBMappingRequest{Remote: share, User: user, Password: win.NewSecret(password)})
					}})
				}
			} else {
				// It is there only for who removes it.
				_, err := node.Inject(winsim.Fault{Call: "RemoveSMBMapping", Times: 1, Do: func(n *winsim.Node) {
					_ = n.CreateSMBMapping(t.Context(), win.SMBMappingRequest{Remote: share, User: user, Password: win.NewSecret(password)})
				}})
				must(t, err)
			}
			inject(t, node, fault)
			if err := mapTo(limited(t, node), share, stage); err != nil {
				t.Errorf("%s, code %d: %v", name, code, err)
			}
			if !hidden && made(node, "RemoveSMBMapping") != 0 {
				t.Errorf("code %d: a mapping that works was removed", code)
			}
			wantMapped(t, node, share, true)
		}
	}
}

// TestMapping_ConflictOfUsers: another user's mapping that works is not removed.
func TestMapping_ConflictOfUsers(t *testing.T) {
	node := newNode(t)
	change(t, node, "spare", func(s *winsim.SMBServer) { s.Accounts = append(s.Accounts, winsim.SMBAccount{User: "second"}) })
	host := limited(t, node)
	must(t, mapTo(host, `\\spare\data`, stage))
	err := host.(smbapi.Mapper).MapSMBShare(`\\spare\more`, stage2, "second", "")
	wantKind(t, "another user", err, winerr.InUse, winerr.CredentialConflict)
	if err != nil && (!strings.Contains(err.Error(), "one user per server") || strings.Contains(err.Error(), "ResourceExists")) {
		t.Errorf("%v does not say what to do, or looks like a success to democratic-csi", err)
	}
	wantMapped(t, node, `\\spare\data`, true)
	must(t, host.(smbapi.Mapper).MapSMBShare(`\\10.0.0.7\more`, stage2, "second", ""))
}

// TestMapping_Guest: who has no name gives no password.
func TestMapping_Guest(t *testing.T) {
	node := newNode(t)
	host := limited(t, node).(smbapi.Mapper)
	wantKind(t, "no guests", host.MapSMBShare(share, "", "", ""), winerr.Denied, winerr.AccessDenied)
	change(t, node, "files", func(s *winsim.SMBServer) { s.Guest = true })
	must(t, host.MapSMBShare(share, stage, "", "ignored"))
	if logons := node.SMBLogons("files"); len(logons) != 2 || logons[1].Password != "" {
		t.Errorf("the server was told %+v", logons)
	}
}

// TestHungServer_OthersGoOn: a server that does not answer delays nobody but those who ask for
// it, and those not longer than they want.
func TestHungServer_OthersGoOn(t *testing.T) {
	for _, call := range []string{"SMBMapping", "FileInfo", "CreateSMBMapping", "RemoveSMBMapping"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := newNode(t)
				host := limited(t, node)
				if call == "FileInfo" {
					must(t, mapTo(host, `\\spare\data`, ""))
				}
				fault := inject(t, node, winsim.Fault{Call: call, Object: `\\spare\*`, Delay: time.Hour})
				ask := func(host smbapi.HostAPI) error {
					if call == "RemoveSMBMapping" {
						return host.RemoveSMBGlobalMapping(`\\spare\data`)
					}
					return mapTo(host, `\\spare\data`, "")
				}
				var hung sync.WaitGroup
				for range 3 {
					hung.Go(func() { _ = ask(host) })
				}
				synctest.Wait()
				begin := time.Now()
				for range 20 {
					must(t, mapTo(host, share, stage), host.RemoveSMBGlobalMapping(`\\files\more`))
				}
				if waited := time.Since(begin); waited != 0 {
					t.Errorf("others waited for %v", waited)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := ask(bind(ctx, host)); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
					t.Errorf("who waits for a second gets %v after %v", err, time.Since(begin))
				}
				hung.Wait()
				if waited := time.Since(begin); waited > 10*time.Minute {
					t.Errorf("those who asked for it waited for %v", waited)
				}
				fault.Remove()
				must(t, ask(host))
			})
		})
	}
}

// TestProbe_Hangs: a share that cannot be opened in time keeps its mapping.
func TestProbe_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage))
		inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Times: 1, Delay: time.Hour})
		begin := time.Now()
		err := mapTo(host, share, stage)
		if wantKind(t, "hanging", err, winerr.Unavailable, 0); time.Since(begin) != 10*time.Second {
			t.Errorf("after %v, want 10 s", time.Since(begin))
		}
		wantMapped(t, node, share, true)
		must(t, mapTo(host, share, stage))
		if made(node, "RemoveSMBMapping") != 0 {
			t.Error("the mapping was removed")
		}
	})
}

// TestCallerLeaves: at whatever call, the mapping that works stays, and a retry succeeds.
func TestCallerLeaves(t *testing.T) {
	for nth := 1; ; nth++ {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage), node.RemoveAll(stage))
		ctx, cancel := context.WithCancel(t.Context())
		fault := inject(t, node, winsim.Fault{Nth: nth, Times: 1, Do: func(*winsim.Node) { cancel() }})
		err := mapTo(bind(ctx, host), share, stage)
		cancel()
		if fault.Hits() == 0 {
			must(t, err)
			return
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the caller left at call %d: %v", nth, err)
		}
		must(t, mapTo(host, share, stage))
		if made(node, "RemoveSMBMapping") != 0 {
			t.Errorf("the caller left at call %d: the mapping was removed", nth)
		}
	}
}

// TestJoin: a slow connection is begun once for all who want the same, also after the first of
// them has left; whoever gives another password waits for the next turn.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t)
		host := limited(t, node)
		inject(t, node, winsim.Fault{Call: "CreateSMBMapping", Times: 1, Delay: 30 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := mapTo(bind(ctx, host), share, stage); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first: %v", err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := mapTo(host, share, stage); err != nil {
					t.Errorf("a retry: %v", err)
				}
			})
		}
		synctest.Wait()
		all.Go(func() {
			if err := host.(smbapi.Mapper).MapSMBShare(share, stage2, user, "wrong"); err != nil {
				t.Errorf("another folder, when the share is mapped: %v", err)
			}
		})
		all.Wait()
		if n := made(node, "CreateSMBMapping"); n != 1 {
			t.Errorf("the mapping was made %d times", n)
		}
		if n := made(node, "SMBMapping"); n != 2 {
			t.Errorf("it was looked for %d times, want once for those who joined and once for the last", n)
		}
	})
}
