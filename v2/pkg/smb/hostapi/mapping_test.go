package api_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestReboot is the oldest complaint of users: after a restart of the node no share can be
// mapped, because stale mappings are left.
func TestReboot(t *testing.T) {
	node := newNode(t, alwaysPersistent)
	before := limited(t, node)
	must(t, mapTo(before, share, ""), node.WriteFile(share+`\a\file`, "data"),
		mapTo(before, share+`\a`, stage), mapTo(before, `\\files\more`, stage2))
	wantContent(t, node, stage+`\file`, "data")
	node.Reboot()

	if _, err := node.ReadFile(stage + `\file`); err == nil {
		t.Error("the share can be read after the restart")
	}
	request := win.SMBMappingRequest{Remote: share, User: user, Password: win.NewSecret(password)}
	if err := node.CreateSMBMapping(t.Context(), request); winerr.CodeOf(err) != winerr.CredentialConflict {
		t.Errorf("mapping the share again without removing it gets %v, want 1219", err)
	}
	must(t, node.RemoveSMBMapping(t.Context(), share, true))
	if err := node.CreateSMBMapping(t.Context(), request); winerr.CodeOf(err) != winerr.CredentialConflict {
		t.Errorf("mapping the share again after removing only its own mapping gets %v, want 1219 because of the other one", err)
	}

	after := limited(t, node)
	must(t, mapTo(after, share+`\a`, stage))
	wantContent(t, node, stage+`\file`, "data")
	must(t, mapTo(after, `\\files\more`, stage2), node.WriteFile(stage2+`\file`, "more"))
	wantContent(t, node, stage+`\file`, "data")
	wantContent(t, node, stage2+`\file`, "more")
}

// TestReboot_Temporary: a mapping that is not persistent is gone after a restart.
func TestReboot_Temporary(t *testing.T) {
	node := newNode(t)
	must(t, mapTo(limited(t, node), share, stage), node.WriteFile(stage+`\file`, "data"))
	node.Reboot()
	wantMapped(t, node, share, false)
	node.ResetCalls()
	must(t, mapTo(limited(t, node), share, stage))
	if made(node, "RemoveSMBMapping") != 0 {
		t.Errorf("the calls are %v", node.Calls())
	}
	wantContent(t, node, stage+`\file`, "data")
}

// TestReboot_LooksAway: after a restart of the node, opening a share whose mapping is stale can fail
// with any code, known (5, 53, 87 and 1312 are reported) or not.
func TestReboot_LooksAway(t *testing.T) {
	for _, code := range []winerr.Code{2, 3, 5, 51, 53, 87, 121, 1231, 1232, 1240, 1312, 1384, 1396, 1397, 1398, 1460, 1786, 1787, 1788, 1789, 2457, 4242} {
		node := newNode(t, alwaysPersistent)
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

// TestMapping_KeepsWhatWorks: a mapping that works is kept, with any status and for any user.
func TestMapping_KeepsWhatWorks(t *testing.T) {
	for name, prepare := range map[string]func(*winsim.Node){
		"connected": func(*winsim.Node) {},
		"idle":      func(n *winsim.Node) { n.EndSMBSessions() },
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t)
			host := limited(t, node)
			must(t, mapTo(host, share, stage))
			prepare(node)
			node.ResetCalls()
			must(t, mapTo(host, share, stage), host.(smbapi.Extended).MapSMBShare(share, stage, "other", "wrong"))
			if made(node, "CreateSMBMapping")+made(node, "RemoveSMBMapping") != 0 {
				t.Errorf("it was recreated: %v", node.Calls())
			}
		})
	}
}

// TestMapping_Denied: a share that the account may not open (5) is not one that opens, unless what the
// request needs of it does, or another link.
func TestMapping_Denied(t *testing.T) {
	const dir = share + `\a`
	setUp := func(t *testing.T, paths ...string) (*winsim.Node, smbapi.HostAPI) {
		t.Helper()
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, ""), node.Mkdir(dir))
		for _, path := range paths {
			inject(t, node, winsim.Fault{Call: "FileInfo", Object: path, Error: 5})
		}
		node.ResetCalls()
		return node, host
	}
	wantKept := func(t *testing.T, node *winsim.Node) {
		t.Helper()
		if made(node, "RemoveSMBMapping") != 0 {
			t.Errorf("the calls are %v, want the mapping to be kept", node.Calls())
		}
	}
	t.Run("the directory opens", func(t *testing.T) {
		node, host := setUp(t, share)
		must(t, mapTo(host, dir, stage), mapTo(host, dir, stage))
		wantKept(t, node)
	})
	t.Run("the share opens", func(t *testing.T) {
		node, host := setUp(t, dir)
		must(t, mapTo(host, dir, stage), mapTo(host, dir, stage))
		wantKept(t, node)
	})
	t.Run("another link opens", func(t *testing.T) {
		node, host := setUp(t, share, dir)
		must(t, node.Mkdir(share+`\b`), mapTo(host, share+`\b`, stage2), mapTo(host, dir, stage))
		wantKept(t, node)
	})
	t.Run("nothing opens, and no link uses it", func(t *testing.T) {
		node, host := setUp(t, share, dir)
		wantKind(t, "map", mapTo(host, dir, stage), winerr.Denied, 5) // also with a new mapping
		if made(node, "CreateSMBMapping") != 1 {
			t.Errorf("the calls are %v, want it to be recreated: the request may have another account", node.Calls())
		}
		wantKind(t, "map again, without a link", mapTo(host, share, ""), winerr.Denied, 5)
		must(t, node.RemoveSMBMapping(t.Context(), share, true))
		for _, remote := range []string{dir, share} {
			wantKind(t, "a new mapping", mapTo(host, remote, stage), winerr.Denied, 5)
			wantMapped(t, node, share, false)
		}
	})
	t.Run("nothing opens any more", func(t *testing.T) {
		node, host := setUp(t)
		must(t, mapTo(host, dir, stage), mapTo(host, share, stage2))
		inject(t, node, winsim.Fault{Call: "FileInfo", Error: 5})
		wantKind(t, "map", mapTo(host, dir, stage), winerr.Denied, 5)
		wantKept(t, node)
	})
}

// TestReboot_AllLookAway: also the other mappings of the server, whose server is not away.
func TestReboot_AllLookAway(t *testing.T) {
	node := newNode(t, alwaysPersistent)
	before := limited(t, node)
	must(t, mapTo(before, share, stage), mapTo(before, `\\files\more`, stage2), node.WriteFile(stage+`\file`, "data"))
	node.Reboot()
	fault := inject(t, node, winsim.Fault{Call: "FileInfo", Object: `\\files\*`, Error: 53})
	after := limited(t, node)
	must(t, mapTo(after, share, stage))
	fault.Remove()
	wantContent(t, node, stage+`\file`, "data")
	must(t, mapTo(after, `\\files\more`, stage2))
}

// TestConflict_OthersAway: another user does not get the mappings of a server that is away.
func TestConflict_OthersAway(t *testing.T) {
	for name, prepare := range map[string]func(*winsim.SMBServer){
		"down":   func(s *winsim.SMBServer) { s.Down = true },
		"locked": func(s *winsim.SMBServer) { s.Accounts[0].State = winsim.SMBAccountLocked },
	} {
		for _, idle := range []bool{false, true} {
			node := newNode(t)
			host := limited(t, node)
			must(t, mapTo(host, share, stage), node.WriteFile(stage+`\file`, "data"))
			change(t, node, "files", func(s *winsim.SMBServer) {
				s.Accounts = append(s.Accounts, winsim.SMBAccount{User: "second", Password: "x"})
				prepare(s)
			})
			if idle {
				node.EndSMBSessions()
			}
			err := host.(smbapi.Extended).MapSMBShare(`\\files\more`, stage2, "second", "x")
			wantKind(t, name, err, winerr.InUse, winerr.CredentialConflict)
			change(t, node, "files", func(s *winsim.SMBServer) { s.Down, s.Accounts[0].State = false, "" })
			wantContent(t, node, stage+`\file`, "data")
		}
	}
}

// TestConflict_OtherServers: mappings of other servers are never in the way.
func TestConflict_OtherServers(t *testing.T) {
	node := newNode(t, alwaysPersistent)
	host := limited(t, node)
	must(t, mapTo(host, `\\spare\data`, stage), mapTo(host, `\\files\more`, stage2))
	node.Reboot()
	must(t, mapTo(limited(t, node), share, ""))
	wantMapped(t, node, `\\files\more`, false)
	wantMapped(t, node, `\\spare\data`, true)
}

// TestMapping_PassingFailure: a session that is lost for a moment is left to Windows.
func TestMapping_PassingFailure(t *testing.T) {
	for _, code := range []winerr.Code{55, 58, 59, 64, 1236, 2250} {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage), node.WriteFile(stage+`\file`, "data"))
		node.ResetCalls()
		inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Times: 2, Error: uint32(code)})
		must(t, mapTo(host, share, stage2))
		// The server is being restarted.
		inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Times: 1, Error: uint32(code)})
		inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Nth: 2, Times: 1, Error: 53})
		wantKind(t, "then away", mapTo(host, share, stage2), winerr.Unavailable, 53)
		// For longer than we try.
		fault := inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Error: uint32(code)})
		wantKind(t, "for longer", mapTo(host, share, stage2), winerr.Unavailable, code)
		must(t, node.Sleep(t.Context(), 30*time.Second))
		wantKind(t, "for longer", mapTo(host, share, stage2), winerr.Unavailable, code)
		wantContent(t, node, stage+`\file`, "data")
		if made(node, "RemoveSMBMapping")+made(node, "CreateSMBMapping") != 0 {
			t.Errorf("code %d: %v, want the mapping to be kept", code, node.Calls())
		}
		// For so long that Windows will not do it.
		must(t, node.Sleep(t.Context(), 31*time.Second), mapTo(host, share, stage2))
		if fault.Remove(); made(node, "RemoveSMBMapping") != 1 || made(node, "CreateSMBMapping") != 1 {
			t.Errorf("code %d: %v, want the mapping to be recreated after a minute", code, node.Calls())
		}
		wantContent(t, node, stage+`\file`, "data")
	}
}

// TestMapping_Refused: a mapping that the server refuses is kept for its users, unless the
// request may have the new password.
func TestMapping_Refused(t *testing.T) {
	lock := func(s *winsim.SMBServer) { s.Accounts[0].State = winsim.SMBAccountLocked }
	rename := func(s *winsim.SMBServer) { s.Accounts[0].Password = "new" }
	unshare := func(s *winsim.SMBServer) { s.Shares = s.Shares[1:] }
	for name, c := range map[string]struct {
		change         func(*winsim.SMBServer)
		user, password string
		idle, made     bool
		code           winerr.Code
	}{
		"a stranger while the account is locked":      {lock, "mallory", "x", false, false, 1909},
		"its user while the account is locked":        {lock, user, password, false, false, 1909},
		"idle, while the account is locked":           {lock, user, password, true, false, 1909},
		"a stranger when the password was changed":    {rename, "mallory", "x", false, false, 1326},
		"with the old password":                       {rename, user, password, false, false, 1326},
		"with the new password":                       {rename, user, "new", false, true, 0},
		"idle, with the new password":                 {rename, user, "new", true, true, 0},
		"with the new password, and another spelling": {rename, "CSI", "new", false, true, 0},
		"when the share is gone":                      {unshare, user, password, false, false, 67},
	} {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage), node.WriteFile(stage+`\file`, "data"))
		var before []winsim.SMBShare
		var account winsim.SMBAccount
		change(t, node, "files", func(s *winsim.SMBServer) {
			before, account = s.Shares, s.Accounts[0]
			c.change(s)
		})
		if c.idle {
			node.EndSMBSessions()
		}
		node.ResetCalls()
		err := host.(smbapi.Extended).MapSMBShare(share, stage2, c.user, c.password)
		if winerr.CodeOf(err) != c.code || (err == nil) != c.made || (made(node, "RemoveSMBMapping") == 1) != c.made {
			t.Errorf("%s: %v, want code %d, and the calls are %v", name, err, c.code, node.Calls())
		}
		if !c.made && c.code != 67 { // whose files are gone
			change(t, node, "files", func(s *winsim.SMBServer) { s.Shares, s.Accounts[0] = before, account })
			wantContent(t, node, stage+`\file`, "data")
		}
	}
}

// TestMapping_PasswordChangedBeforeRestart: a daemon that has restarted does not know the old
// password. It recreates a mapping that another link uses with the password of the request.
func TestMapping_PasswordChangedBeforeRestart(t *testing.T) {
	node := newNode(t)
	must(t, mapTo(limited(t, node), share, stage), node.WriteFile(stage+`\file`, "data"))
	change(t, node, "files", func(s *winsim.SMBServer) { s.Accounts[0].Password = "new" })
	restarted := limited(t, node)
	node.ResetCalls()
	must(t, restarted.(smbapi.Extended).MapSMBShare(share, stage2, user, "new"))
	if made(node, "RemoveSMBMapping") != 1 || made(node, "CreateSMBMapping") != 1 {
		t.Errorf("the mapping was not recreated once: %v", node.Calls())
	}
	wantContent(t, node, stage+`\file`, "data")
	wantContent(t, node, stage2+`\file`, "data")
}

// TestMapping_Privacy: where encryption is required, a mapping without it is recreated although
// it works, unless another link uses it.
func TestMapping_Privacy(t *testing.T) {
	node := newNode(t)
	strict := limited(t, node)
	lax := strict.(smbapi.Extended).WithPrivacy(false)
	must(t, mapTo(lax, share, stage))
	must(t, mapTo(lax, share, stage2))
	wantKind(t, "others use it", mapTo(strict, share, stage2), winerr.InUse, 0)
	must(t, node.RemoveAll(stage), mapTo(strict, share, stage2))
	if logons := node.SMBLogons("files"); len(logons) != 2 || logons[0].Encrypted || !logons[1].Encrypted {
		t.Errorf("the server saw %+v", logons)
	}
	node.ResetCalls()
	must(t, mapTo(strict, share, stage), mapTo(lax, share, stage), mapTo(limited(t, node), share, stage))
	if made(node, "CreateSMBMapping")+made(node, "RemoveSMBMapping") != 0 {
		t.Errorf("one that encrypts was recreated: %v", node.Calls())
	}

	// The server cannot.
	change(t, node, "files", func(s *winsim.SMBServer) { s.NoEncryption = true })
	must(t, mapTo(lax, `\\files\more`, ""))
	wantKind(t, "no encryption", mapTo(strict, `\\files\more`, ""), winerr.InUse, 65)
	wantMapped(t, node, `\\files\more`, false)
}

// TestMapping_PrivacyUntold: Windows may report a mapping as unencrypted that this process
// created with encryption.
func TestMapping_PrivacyUntold(t *testing.T) {
	node := newNode(t)
	host := bind(t.Context(), smbapi.NewOn(liar{node}))
	must(t, mapTo(host, share, stage), mapTo(host, share, stage2))
	if n := made(node, "CreateSMBMapping"); n != 1 {
		t.Errorf("the mapping was made %d times", n)
	}
}

// liar is a machine that says of all mappings that they do not encrypt.
type liar struct{ *winsim.Node }

func (l liar) SMBMapping(ctx context.Context, remote string) (win.SMBMapping, error) {
	mapping, err := l.Node.SMBMapping(ctx, remote)
	mapping.Plain = true
	return mapping, err
}

// TestPassword_Wiped: the host overwrites its copy.
func TestPassword_Wiped(t *testing.T) {
	machine := &keeper{Node: newNode(t)}
	must(t, mapTo(smbapi.NewOn(machine), share, ""))
	if text := machine.kept.Bytes(); len(text) != len(password) || strings.Trim(string(text), "\x00") != "" {
		t.Errorf("%d bytes are left as they were", len(text))
	}
}

// keeper is a machine that keeps the last password.
type keeper struct {
	*winsim.Node
	kept win.Secret
}

func (k *keeper) CreateSMBMapping(ctx context.Context, request win.SMBMappingRequest) error {
	k.kept = request.Password
	return k.Node.CreateSMBMapping(ctx, request)
}

// TestNames_CaseOfWindows: names are compared by Windows' rules for case, not by Unicode's.
func TestNames_CaseOfWindows(t *testing.T) {
	names := []string{"data\u212a", "datak", "\u0130nfo", "info", "\u03a3\u03a3", "\u023ax"}
	node := newNode(t)
	change(t, node, "files", func(s *winsim.SMBServer) {
		for _, name := range names {
			s.Shares = append(s.Shares, winsim.SMBShare{Name: name})
		}
	})
	host := limited(t, node)
	for i, name := range names {
		link := many(work+`\pods\l`, i)
		must(t, mapTo(host, `\\files\`+name, link), node.WriteFile(link+`\file`, name))
	}
	for i, name := range names {
		wantContent(t, node, many(work+`\pods\l`, i)+`\file`, name)
	}
	must(t, mapTo(host, "\\\\files\\\u03c3\u03c3", many(work+`\pods\m`, 0)))
	if all, err := node.SMBMappings(t.Context()); err != nil || len(all) != len(names) {
		t.Errorf("the mappings are %v, %v", all, err)
	}
}

// TestMapping_RecreatesBroken: each code with which a share refuses to be opened.
func TestMapping_RecreatesBroken(t *testing.T) {
	for _, code := range []winerr.Code{55, 58, 59, 64, 65, 67, 86, 1219, 1236, 1265, 1272, 1326, 1327, 1328, 1329, 1330, 1331, 1385, 1793, 1907, 1909, 2250} {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage))
		inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Times: 3, Error: uint32(code)})
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
	// An unknown code does not remove the mapping either.
	for _, code := range []winerr.Code{87, 4242} {
		inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Times: 1, Error: uint32(code)})
		wantKind(t, "map", mapTo(host, share, stage), winerr.Internal, code)
		wantMapped(t, node, share, true)
	}
}

// TestMapping_NeverStuck: a mapping that is not OK, that others use, and that opens with an unknown code
// is kept while Windows says that it has its credentials, but not for ever.
func TestMapping_NeverStuck(t *testing.T) {
	for _, step := range steps {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage), node.WriteFile(stage+`\file`, "data"))
		node.EndSMBSessions()
		inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Times: 3, Error: 4242})
		wantKind(t, "at first", mapTo(host, share, stage2), winerr.Internal, 4242)
		node.StepClock(step)
		wantKind(t, "at once again", mapTo(host, share, stage2), winerr.Internal, 4242)
		must(t, node.Sleep(t.Context(), time.Minute), mapTo(host, share, stage2))
		if made(node, "RemoveSMBMapping") != 1 {
			t.Errorf("the clock is set by %s: the calls are %v", step, node.Calls())
		}
		wantContent(t, node, stage+`\file`, "data")
	}
}

// TestMapping_Hidden: a mapping that Windows did not list is replaced, unless it works.
func TestMapping_Hidden(t *testing.T) {
	for _, code := range []winerr.Code{winerr.AlreadyAssigned, winerr.DeviceAlreadyRemembered, winerr.CredentialConflict} {
		for name, hidden := range map[string]bool{"of another process, working": false, "hidden": true} {
			node := newNode(t)
			fault := winsim.Fault{Call: "CreateSMBMapping", Times: 1, Error: uint32(code)}
			if !hidden {
				fault.Do = func(n *winsim.Node) {
					_, _ = n.Inject(winsim.Fault{Call: "SMBMapping", Times: 1, Do: func(n *winsim.Node) {
						_ = n.CreateSMBMapping(t.Context(), win.SMBMappingRequest{Remote: share, User: user, Password: win.NewSecret(password), RequirePrivacy: true})
					}})
				}
			} else {
				// Only RemoveSMBMapping finds it.
				_, err := node.Inject(winsim.Fault{Call: "RemoveSMBMapping", Times: 1, Do: func(n *winsim.Node) {
					_ = n.CreateSMBMapping(t.Context(), win.SMBMappingRequest{Remote: share, User: user, Password: win.NewSecret(password), RequirePrivacy: true})
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
	err := host.(smbapi.Extended).MapSMBShare(`\\spare\more`, stage2, "second", "")
	wantKind(t, "another user", err, winerr.InUse, winerr.CredentialConflict)
	if err != nil && (!strings.Contains(err.Error(), "one user per server") || strings.Contains(err.Error(), "ResourceExists")) {
		t.Errorf("%v does not say what to do, or looks like a success to democratic-csi", err)
	}
	wantMapped(t, node, `\\spare\data`, true)
	must(t, host.(smbapi.Extended).MapSMBShare(`\\10.0.0.7\more`, stage2, "second", ""))
}

// TestMapping_Guest: without a user name no password is sent.
func TestMapping_Guest(t *testing.T) {
	node := newNode(t)
	host := limited(t, node).(smbapi.Extended)
	wantKind(t, "no guests", host.MapSMBShare(share, "", "", ""), winerr.Denied, winerr.AccessDenied)
	change(t, node, "files", func(s *winsim.SMBServer) { s.Guest = true })
	must(t, host.MapSMBShare(share, stage, "", "ignored"))
	if logons := node.SMBLogons("files"); len(logons) != 2 || logons[1].Password != "" {
		t.Errorf("the server got %+v", logons)
	}
}

// TestHungServer_OthersGoOn: a server that does not answer delays only calls about it, and
// those no longer than their deadline.
func TestHungServer_OthersGoOn(t *testing.T) {
	for _, call := range []string{"SMBMapping", "FileInfo", "CreateSMBMapping", "RemoveSMBMapping"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := newNode(t)
				host := limited(t, node)
				if call == "FileInfo" || call == "RemoveSMBMapping" {
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
					t.Errorf("a caller with a deadline of a second gets %v after %v", err, time.Since(begin))
				}
				hung.Wait()
				if waited := time.Since(begin); waited > 10*time.Minute {
					t.Errorf("calls about the server took %v", waited)
				}
				fault.Remove()
				synctest.Wait()
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
		fault := inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Times: 1, Delay: time.Hour})
		begin := time.Now()
		err := mapTo(host, share, stage)
		if wantKind(t, "hanging", err, winerr.Unavailable, 0); time.Since(begin) != 10*time.Second {
			t.Errorf("after %v, want 10 s", time.Since(begin))
		}
		wantMapped(t, node, share, true)
		begin = time.Now()
		if err := mapTo(host, share, stage); !errors.Is(err, winerr.Unavailable) || time.Since(begin) > time.Second {
			t.Errorf("while it hangs: %v after %v, want that it is unavailable", err, time.Since(begin))
		}
		wantMapped(t, node, share, true)
		fault.Remove()
		synctest.Wait()
		must(t, mapTo(host, share, stage))
		if made(node, "RemoveSMBMapping") != 0 {
			t.Error("the mapping was removed")
		}
	})
}

// TestProbe_HangsWhenIdle: a share that does not open in time is not a sign of a restart.
func TestProbe_HangsWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, stage))
		node.EndSMBSessions()
		inject(t, node, winsim.Fault{Call: "FileInfo", Object: share, Times: 1, Delay: time.Hour})
		node.ResetCalls()
		wantKind(t, "hanging", mapTo(host, share, stage), winerr.Unavailable, 0)
		if made(node, "CreateSMBMapping")+made(node, "RemoveSMBMapping") != 0 {
			t.Errorf("the calls are %v", node.Calls())
		}
	})
}

// TestCodes: each answer of Windows to a request for a mapping has a kind.
func TestCodes(t *testing.T) {
	for code, want := range map[winerr.Code]struct {
		kind winerr.Kind
		text string
	}{
		52: {winerr.Unavailable, ""}, 54: {winerr.Unavailable, "445"}, 56: {winerr.Unavailable, ""}, 71: {winerr.Unavailable, "limit"},
		1203: {winerr.Unavailable, "445"}, 1233: {winerr.Unavailable, "445"}, 1234: {winerr.Unavailable, "445"},
		1240: {winerr.Denied, ""}, 1384: {winerr.Denied, "groups"}, 1396: {winerr.Denied, "setspn"}, 1397: {winerr.Denied, "alias"},
		1398: {winerr.Denied, "clock"}, 2457: {winerr.Denied, "clock"}, 1786: {winerr.Denied, "domain"}, 1787: {winerr.Denied, "domain"}, 1788: {winerr.Denied, "domain"}, 1789: {winerr.Denied, "domain"},
	} {
		node := newNode(t)
		inject(t, node, winsim.Fault{Call: "CreateSMBMapping", Error: uint32(code)})
		err := mapTo(limited(t, node), share, "")
		if wantKind(t, "map", err, want.kind, code); err != nil && !strings.Contains(err.Error(), want.text) {
			t.Errorf("%v does not say %q", err, want.text)
		}
	}
}

// TestMapping_TooMany: the error of a node with too many mappings has their number.
func TestMapping_TooMany(t *testing.T) {
	for _, code := range []winerr.Code{8, 1450, 1455, 1816} {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, ""), mapTo(host, `\\spare\data`, ""))
		fault := inject(t, node, winsim.Fault{Call: "CreateSMBMapping", Error: uint32(code)})
		err := mapTo(host, `\\files\more`, "")
		if wantKind(t, "map", err, winerr.NoSpace, code); err != nil && !strings.Contains(err.Error(), "this node has 2 SMB mappings") {
			t.Errorf("%v does not say how many there are", err)
		}
		fault.Remove()
		must(t, mapTo(host, `\\files\more`, ""))
	}
}

// TestLink_Race: a link that another process makes at the same time counts if it is the same.
func TestLink_Race(t *testing.T) {
	for target, want := range map[string]winerr.Kind{share + `\`: 0, `\\files\more\`: winerr.Exists} {
		node := newNode(t)
		inject(t, node, winsim.Fault{Call: "CreateDirectoryLink", Times: 1, Do: func(n *winsim.Node) { must(t, n.Symlink(stage, target)) }})
		if err := mapTo(limited(t, node), share, stage); (err == nil) != (want == 0) || (err != nil && winerr.KindOf(err) != want) {
			t.Errorf("a link to %s: %v", target, err)
		}
	}
}

// TestJoin_Differs: calls that differ in required encryption or in working directories do not
// share a run.
func TestJoin_Differs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t)
		strict := limited(t, node)
		lax := strict.(smbapi.Extended).WithPrivacy(false)
		inPods, err := policy.Limit(strict, []string{work + `\pods`})
		must(t, err)
		inject(t, node, winsim.Fault{Call: "CreateSMBMapping", Times: 1, Delay: 30 * time.Second})
		var all sync.WaitGroup
		for _, host := range []smbapi.HostAPI{lax, strict, inPods} {
			all.Go(func() { _ = mapTo(host, share, "") })
			synctest.Wait()
		}
		all.Wait()
		if n := made(node, "SMBMapping"); n < 3 {
			t.Errorf("three different calls looked %d times", n)
		}
		if logons := node.SMBLogons("files"); !logons[len(logons)-1].Encrypted {
			t.Errorf("the server saw %+v", logons)
		}
	})
}

// TestJoin: identical calls begin a slow connection once, also after the first caller has left; a
// call with another password waits for the next turn.
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
			if err := host.(smbapi.Extended).MapSMBShare(share, stage2, user, "wrong"); err != nil {
				t.Errorf("another folder, when the share is mapped: %v", err)
			}
		})
		all.Wait()
		if n := made(node, "CreateSMBMapping"); n != 1 {
			t.Errorf("the mapping was made %d times", n)
		}
		if n := made(node, "SMBMapping"); n != 2 {
			t.Errorf("it was looked for %d times, want once for the joined calls and once for the last", n)
		}
	})
}

// TestMapping_Abandoned: a share that a server maps when no caller waits any more is not linked, and not left mapped.
func TestMapping_Abandoned(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			node := newNode(t)
			host := limited(t, node)
			fault := winsim.Fault{Call: "CreateSMBMapping", Times: 1, Delay: 5 * time.Second}
			if mapped {
				fault.Call = "FileInfo"
				must(t, mapTo(host, share, stage2))
			}
			inject(t, node, fault)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := mapTo(bind(ctx, host), share, stage); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it ends with %v", err)
			}
			time.Sleep(time.Hour)
			if wantMapped(t, node, share, mapped); node.Exists(stage) {
				t.Error("there is a link")
			}
			must(t, mapTo(host, share, stage))
			wantMapped(t, node, share, true)
		})
	}
}

// TestMapping_DomainRequired: a user name without a domain is refused, and the error says what
// to write; the same name with any domain works.
func TestMapping_DomainRequired(t *testing.T) {
	node := newNode(t)
	host := limited(t, node)
	change(t, node, "files", func(s *winsim.SMBServer) { s.DomainRequired = true })
	err := mapTo(host, share, stage)
	wantKind(t, "map", err, winerr.Invalid, winerr.NoSuchLogonSession)
	if err == nil || !strings.Contains(err.Error(), `use DOMAIN\user; any domain works`) {
		t.Errorf("%v has no advice", err)
	}
	must(t, host.(smbapi.Extended).MapSMBShare(share, stage, `ANY\`+user, password))
	wantMapped(t, node, share, true)

	// With a domain, another reason applies.
	inject(t, node, winsim.Fault{Call: "CreateSMBMapping", Error: 1312})
	err = host.(smbapi.Extended).MapSMBShare(`\\spare\data`, "", `ANY\`+user, password)
	wantKind(t, "map with a domain", err, winerr.Invalid, winerr.NoSuchLogonSession)
	if strings.Contains(err.Error(), "any domain") {
		t.Errorf("%v asks for a domain that is there", err)
	}
}

// TestDirectory_Missing: a directory that is not on the share is an error that names both, and
// leaves nothing behind (csi-driver-smb staged such volumes, and pods failed later).
func TestDirectory_Missing(t *testing.T) {
	const missing = share + `\none`
	wantMissing := func(t *testing.T, node *winsim.Node, err error, code winerr.Code) {
		t.Helper()
		wantKind(t, "missing directory", err, winerr.NotFound, code)
		if err != nil && (!strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "map share "+share+":")) {
			t.Errorf("%v does not name the directory and the share", err)
		}
		if _, err := node.ReadFile(stage); winerr.CodeOf(err) != winerr.FileNotFound {
			t.Errorf("%s: %v, want nothing there", stage, err)
		}
	}
	t.Run("no mapping before", func(t *testing.T) {
		node := newNode(t)
		wantMissing(t, node, mapTo(limited(t, node), missing, stage), winerr.FileNotFound)
		wantMapped(t, node, share, false)
		wantMissing(t, node, mapTo(smbapi.NewOn(node), missing+`\deep`, stage), winerr.PathNotFound)
		wantMapped(t, node, share, false)
	})
	t.Run("no mapping before, and the scan for links fails", func(t *testing.T) {
		node := newNode(t)
		inject(t, node, winsim.Fault{Call: "ListDirectory", Error: 5})
		host := limited(t, node)
		wantMissing(t, node, mapTo(host, missing, stage), winerr.FileNotFound)
		wantMapped(t, node, share, false)
		must(t, mapTo(host, share, stage2), node.RemoveSMBMapping(t.Context(), share, true))
		wantMissing(t, node, mapTo(host, missing, stage), winerr.FileNotFound)
		wantMapped(t, node, share, true) // a known link uses it
	})
	t.Run("another process makes the mapping, and the scan for links fails", func(t *testing.T) {
		node := newNode(t)
		inject(t, node, winsim.Fault{Call: "ListDirectory", Error: 5})
		inject(t, node, winsim.Fault{Call: "CreateSMBMapping", Times: 1, Do: func(node *winsim.Node) {
			must(t, smbapi.NewOn(node).NewSMBGlobalMapping(share, user, password))
		}})
		wantMissing(t, node, mapTo(limited(t, node), missing, stage), winerr.FileNotFound)
		wantMapped(t, node, share, true)
	})
	t.Run("a link needs the mapping", func(t *testing.T) {
		node := newNode(t)
		must(t, mapTo(limited(t, node), share, stage2), node.RemoveSMBMapping(t.Context(), share, true))
		wantMissing(t, node, mapTo(limited(t, node), missing, stage), winerr.FileNotFound)
		wantMapped(t, node, share, true)
	})
	t.Run("mapped before", func(t *testing.T) {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, ""))
		wantMissing(t, node, mapTo(host, missing, stage), winerr.FileNotFound)
		wantMapped(t, node, share, true)
		must(t, mapTo(host, share, stage2), host.RemoveSMBGlobalMapping(share))
		wantMissing(t, node, mapTo(host, missing, stage), winerr.FileNotFound)
		must(t, node.RemoveAll(stage2), mapTo(host, `\\files\more`, "")) // its removal still waits
		wantMapped(t, node, share, false)
	})
	t.Run("a file", func(t *testing.T) {
		node := newNode(t)
		host := limited(t, node)
		must(t, mapTo(host, share, ""), node.WriteFile(missing, ""))
		wantMissing(t, node, mapTo(host, missing, stage), winerr.Directory)
	})
	t.Run("cannot be removed", func(t *testing.T) {
		node := newNode(t)
		host := limited(t, node)
		inject(t, node, winsim.Fault{Call: "RemoveSMBMapping", Times: 1, Error: 53})
		wantMissing(t, node, mapTo(host, missing, stage), winerr.FileNotFound)
		wantMapped(t, node, share, true)
		must(t, mapTo(host, `\\files\more`, ""))
		wantMapped(t, node, share, false)
	})
}

// TestDirectory_Unsure: a directory that the account may not look at can be used, and other
// answers about it say nothing.
func TestDirectory_Unsure(t *testing.T) {
	const dir = share + `\secret`
	for _, code := range []uint32{5, 123, 1463, 1920} {
		for _, mapped := range []bool{false, true} {
			node := newNode(t)
			host := limited(t, node)
			inject(t, node, winsim.Fault{Call: "FileInfo", Object: dir, Error: code})
			if mapped {
				must(t, mapTo(host, share, ""))
			}
			if err := mapTo(host, dir, stage); err != nil {
				t.Errorf("code %d, mapped before: %v: %v", code, mapped, err)
			}
			wantMapped(t, node, share, true)
		}
	}
}
