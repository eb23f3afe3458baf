package windows_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// mapShare makes a mapping that is removed after the test, unless it is gone.
func (g *group) mapShare(remote, user string, password win.Secret) error {
	g.Helper()
	g.Cleanup(func() {
		err := g.machine.RemoveSMBMapping(context.WithoutCancel(g.ctx), remote, true)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			g.Errorf("a mapping is left behind: %v", err)
		}
	})
	return g.machine.CreateSMBMapping(g.ctx, win.SMBMappingRequest{Remote: remote, User: user, Password: password})
}

// TestShare maps a share that the operator has named, and removes the mapping.
func TestShare(t *testing.T) {
	g := newGroup(t)
	if g.share == nil {
		g.Skip("no share was named; see -share")
	}
	ctx, share := g.Context(), *g.share
	server := share.server()
	// A mapping that is there belongs to a user of the machine.
	switch _, err := g.machine.SMBMapping(ctx, share.remote); {
	case err == nil:
		g.Skipf("%s is mapped already; name a share that is not in use", share.remote)
	case !errors.Is(err, fs.ErrNotExist):
		g.Skipf("whether %s is mapped already is unknown: %s", share.remote, text(err))
	}
	remove := func() error { return g.machine.RemoveSMBMapping(ctx, share.remote, true) }
	const noUser = "no-such-user-49"
	wrong := win.NewSecret("wrong-Pa55word")
	// Are errors exceptions or results, and with which codes? Expected: an exception whose HRESULT holds a Windows
	// code. If not: both are read; an unknown code is an error with its number.
	g.ask("Q-smb-errors", func(a *answer) {
		a.fact("wrong password", g.mapShare(share.remote, share.user, wrong))
		a.fact("no such share", g.mapShare(server+`\no-such-share-49`, share.user, share.password))
		// Some name servers answer for every name. The server behind that must not get the operator's password, not
		// even as a response of NTLM.
		a.fact("no such server", g.mapShare(noServer+`\share`, noUser, wrong))
		a.fact("remove no mapping", g.machine.RemoveSMBMapping(ctx, server+`\no-such-share-49`, true))
	})
	// Does Create without Credential work, as this machine or as a guest? Expected: for a share that lets guests in, or in a
	// domain the account of the machine.
	g.ask("Q-smb-no-credentials", func(a *answer) {
		a.fact("Create without a user", g.mapShare(share.remote, "", win.Secret{}))
		_, err := g.machine.TargetInfo(ctx, win.Anywhere(share.remote))
		a.fact("open the share", err)
		_ = remove() // fails if it was not created
	})
	// Does Create take its parameters by name, without LocalPath, and Persistent as false? Expected: yes, as PowerShell
	// does; a build without Persistent is not given it. If not: every call fails with 87.
	g.ask("Q-smb-parameters", func(a *answer) { a.fact("Create", g.mapShare(share.remote, share.user, share.password)) })
	mapping, err := g.machine.SMBMapping(ctx, share.remote)
	if err != nil {
		g.Fatalf("the share could not be mapped: %s; check -share, -user and -password-file", text(err))
	}
	// Is Credential split at the first colon without a backslash before it? Expected: yes, PowerShell's form.
	g.ask("Q-smb-credential", func(a *answer) { a.fact("status with this user and password", uint32(mapping.Status)) })
	// Does a query for one RemotePath ignore case? Expected: yes, WQL does. If not: a mapping in another spelling is
	// not found, and creating it ends with 85.
	g.ask("Q-smb-case", func(a *answer) {
		_, err := g.machine.SMBMapping(ctx, strings.ToUpper(share.remote))
		a.fact("find it in capitals", err)
	})
	// Does RequirePrivacy of a mapping say what it was created with? Expected: yes, or nothing. If not: if always
	// false: after a restart of the daemon second volumes of a share fail with FailedPrecondition until
	// -require-privacy=false.
	g.ask("Q-smb-privacy", func(a *answer) {
		a.fact("says that it requires privacy", mapping.Private)
		a.fact("says that it does not", mapping.Plain)
	})
	// Does GetDiskFreeSpaceEx take \\?\UNC\server\share\dir\ from LocalSystem, over a global mapping, and report the
	// quota of that directory? Expected: yes. If not: stats of shares fails, or reports the whole share.
	g.ask("Q-path-space", func(a *answer) {
		space, err := g.machine.PathSpace(ctx, win.Following(share.remote))
		a.fact("GetDiskFreeSpaceEx of the share", err)
		a.fact("has a size", space.Total > 0)
	})
	// Does Create return 85 while Windows keeps the credentials of the share's mapping, also for another user?
	// Expected: yes. If not: if 1219: mappings whose server is away are removed when another user asks for a share of
	// it.
	g.ask("Q-smb-credentials-kept", func(a *answer) {
		a.fact("Create again", g.mapShare(share.remote, share.user, share.password))
		a.fact("Create as another user", g.mapShare(share.remote, noUser, wrong))
	})
	// Does Remove with force return at once while files are open, and while the server is away? Expected: yes. If not:
	// the call waits, and with it other calls about that server.
	g.ask("Q-smb-remove-busy", func(a *answer) {
		began := g.machine.Now()
		a.fact("Remove", remove())
		a.measured("took", g.machine.Now().Sub(began))
	})
	// Is LocalPath of a mapping without a drive letter empty? Expected: yes. If not: mappings are never removed.
	g.ask("Q-smb-localpath", func(a *answer) {
		_, err := g.machine.SMBMapping(ctx, share.remote)
		a.fact("after its removal", err) // mappings with a local path are never removed
	})
	// Does Create fail with 1312 for a user name without a domain, and on which machines? Expected: on some, as
	// csi-driver-smb users report; any domain helps. If not: another code, without the advice.
	g.ask("Q-smb-domain", func(a *answer) {
		plain := share.user
		if _, user, ok := strings.Cut(plain, `\`); ok {
			plain = user
		}
		plain, _, _ = strings.Cut(plain, "@")
		for _, user := range []struct{ how, name string }{{"user", plain}, {`ANY\user`, `ANY\` + plain}, {"user@any", plain + "@any"}} {
			a.fact("as "+user.how, g.mapShare(share.remote, user.name, share.password))
			_ = remove() // fails if it was not created
		}
	})
}

// TestManyMappings maps many shares, as a node with many volumes does.
func TestManyMappings(t *testing.T) {
	g := newGroup(t)
	if g.mappings == 0 {
		g.Skip("how many shares to map was not named; see -mappings")
	}
	ctx := g.Context()
	// Which code does Create return, and how long does it take to find one of many mappings? Expected: 8, 1450, 1455 or
	// 1816 at some 700, as users report, and no longer than for one. If not: the error has no number of mappings; the
	// problem comes at 500.
	g.ask("Q-mappings", func(a *answer) {
		began := g.machine.Now()
		mapped := 0
		var failure error
		for mapped < g.mappings {
			remote := g.share.remote + strconv.Itoa(mapped+1)
			if _, err := g.machine.SMBMapping(ctx, remote); !errors.Is(err, fs.ErrNotExist) {
				a.Skipf("%s is mapped already, or that is unknown: %s", remote, text(err))
			}
			if failure = g.mapShare(remote, g.share.user, g.share.password); failure != nil {
				break
			}
			mapped++
		}
		a.fact("the last Create", failure)
		a.measured("mappings", mapped)
		a.measured("took", g.machine.Now().Sub(began))
		began = g.machine.Now()
		_, err := g.machine.SMBMapping(ctx, g.share.remote+"1")
		a.fact("find one", err)
		a.measured("find one took", g.machine.Now().Sub(began))
		began = g.machine.Now()
		_, err = g.machine.SMBMappings(ctx)
		a.fact("list all", err)
		a.measured("list all took", g.machine.Now().Sub(began))
	})
}

// TestPortal registers an iSCSI portal that the operator has named, and removes it.
func TestPortal(t *testing.T) {
	g := newGroup(t)
	ctx := g.Context()
	portals, listErr := g.machine.ReportSendTargetPortals(ctx)
	// Which code is returned without the service? Expected: 0xefff003e, 0xefff0039 or 1722. If not: internal with its
	// number.
	g.ask("Q-iscsi-no-service", func(a *answer) {
		if listErr == nil {
			a.Skip("the service MSiSCSI runs")
		}
		a.fact("ReportIScsiSendTargetPortalsW", listErr)
	})
	if g.portal == nil {
		g.Skip("no iSCSI portal was named; see -portal")
	}
	if listErr != nil {
		g.Skipf("the service MSiSCSI does not answer: %s", text(listErr))
	}
	registered := func(p win.TargetPortal) bool {
		return slices.ContainsFunc(portals, func(known win.SendTargetPortal) bool { return known.Portal.String() == p.String() })
	}
	if registered(*g.portal) {
		g.Skipf("portal %s is registered already; remove it, or name another", g.portal)
	}
	// remove may be called when the test, and with it ctx, has ended.
	remove := func(p win.TargetPortal) (found bool, err error) {
		ctx := context.WithoutCancel(ctx)
		now, err := g.machine.ReportSendTargetPortals(ctx)
		for _, known := range now {
			if known.Portal.String() == p.String() {
				return true, g.machine.RemoveSendTargetPortal(ctx, known)
			}
		}
		return false, err
	}
	add := func(p win.TargetPortal) error {
		g.Cleanup(func() {
			if _, err := remove(p); err != nil {
				g.Errorf("a portal is left behind: %v", err)
			}
		})
		return g.machine.AddSendTargetPortal(ctx, p)
	}
	// Do the functions use the layouts of internal/win/winlayout/iscsi_*.go? See TestLocal_ISCSIQuestions,
	// which only reads, and ListTargetPortals after iscsicli AddTargetPortal. Expected: yes. If
	// not: a pointer or count that leads out of the buffer is an error; other differences show as nonsense in
	// addresses and names.
	g.ask("Q-iscsi-layouts", func(a *answer) {
		a.fact("AddIScsiSendTargetPortalW", add(*g.portal))
		now, err := g.machine.ReportSendTargetPortals(ctx)
		a.must(err)
		a.fact("portals that it added", len(now)-len(portals))
		targets, err := g.machine.ReportTargets(ctx)
		a.fact("ReportIScsiTargetsW", err)
		a.measured("targets", len(targets))
		for _, target := range targets {
			if !strings.HasPrefix(target, "iqn.") && !strings.HasPrefix(target, "eui.") && !strings.HasPrefix(target, "naa.") {
				a.Errorf("%q is not the name of a target", target)
			}
			_, err := g.machine.ReportTargetPortals(ctx, target)
			a.measured("its portals", err)
		}
		_, err = g.machine.Sessions(ctx)
		a.fact("GetIScsiSessionListW", err)
		_, err = g.machine.PersistentLogins(ctx)
		a.fact("ReportIScsiPersistentLoginsW", err)
		a.fact("AddIScsiSendTargetPortalW, again", add(*g.portal))
	})
	// Does RefreshIScsiSendTargetPortalW find a portal registered with a certain initiator? Expected: yes. If not:
	// DiscoverTargetPortal returns NotFound until the portal is removed and added again.
	g.ask("Q-iscsi-refresh", func(a *answer) {
		a.fact("RefreshIScsiSendTargetPortalW", g.machine.RefreshSendTargetPortal(ctx, *g.portal))
		_, err := remove(*g.portal)
		a.must(err)
		a.fact("of a portal that is not registered", g.machine.RefreshSendTargetPortal(ctx, *g.portal))
	})
	// Does AddIScsiSendTargetPortalW keep a portal that does not answer? Expected: no. If not: the call fails,
	// ListTargetPortals shows the portal, and the next call succeeds.
	g.ask("Q-iscsi-dead-portal", func(a *answer) {
		dead := noPortal
		if registered(dead) {
			a.Skipf("portal %s is registered already; remove it", dead)
		}
		began := g.machine.Now()
		a.fact("AddIScsiSendTargetPortalW", add(dead))
		a.measured("took", g.machine.Now().Sub(began))
		kept, err := remove(dead)
		a.must(err)
		a.fact("it is kept", kept)
	})
}
