package verify

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// askShare maps a share that the operator has named, and removes the mapping.
func askShare(b *bench) {
	if b.Share == nil {
		b.Skip("no share was named; see -share")
	}
	ctx, share := b.Context(), *b.Share
	server := share.Remote[:strings.LastIndexByte(share.Remote, '\\')]
	create := func(remote, user string, password win.Secret) error {
		return b.machine.CreateSMBMapping(ctx, win.SMBMappingRequest{Remote: remote, User: user, Password: password})
	}
	// A mapping that is there belongs to a user of the machine.
	switch _, err := b.machine.SMBMapping(ctx, share.Remote); {
	case err == nil:
		b.Skipf("%s is mapped already; name a share that is not in use", share.Remote)
	case !errors.Is(err, fs.ErrNotExist):
		b.Skipf("whether %s is mapped already is unknown: %s", share.Remote, text(err))
	}
	remove := func() error { return b.machine.RemoveSMBMapping(ctx, share.Remote, true) }
	b.Cleanup(func() { _ = remove() }) // it may be gone, as it should
	const noUser = "no-such-user-49"
	wrong := win.NewSecret("wrong-Pa55word")
	b.ask("Q-smb-errors", func(a *Ask) {
		a.Fact("wrong password", create(share.Remote, share.User, wrong))
		a.Fact("no such share", create(server+`\no-such-share-49`, share.User, share.Password))
		// Some name servers answer for every name. The server behind that must not get the operator's password, not
		// even as a response of NTLM.
		a.Fact("no such server", create(`\\no-such-server-49.invalid\share`, noUser, wrong))
		a.Fact("remove no mapping", b.machine.RemoveSMBMapping(ctx, server+`\no-such-share-49`, true))
	})
	b.ask("Q-smb-parameters", func(a *Ask) { a.Fact("Create", create(share.Remote, share.User, share.Password)) })
	mapping, err := b.machine.SMBMapping(ctx, share.Remote)
	if err != nil {
		b.Skipf("the share could not be mapped: %s", text(err))
	}
	b.ask("Q-smb-credential", func(a *Ask) { a.Fact("status with this user and password", uint32(mapping.Status)) })
	b.ask("Q-smb-case", func(a *Ask) {
		_, err := b.machine.SMBMapping(ctx, strings.ToUpper(share.Remote))
		a.Fact("find it in capitals", err)
	})
	b.ask("Q-smb-privacy", func(a *Ask) {
		a.Fact("says that it requires privacy", mapping.Private)
		a.Fact("says that it does not", mapping.Plain)
	})
	b.ask("Q-path-space", func(a *Ask) {
		space, err := b.machine.PathSpace(ctx, win.Following(share.Remote))
		a.Fact("GetDiskFreeSpaceEx of the share", err)
		a.Fact("has a size", space.Total > 0)
	})
	b.ask("Q-smb-credentials-kept", func(a *Ask) {
		a.Fact("Create again", create(share.Remote, share.User, share.Password))
		a.Fact("Create as another user", create(share.Remote, noUser, wrong))
	})
	b.ask("Q-smb-remove-busy", func(a *Ask) {
		began := b.machine.Now()
		a.Fact("Remove", remove())
		a.Measured("took", b.machine.Now().Sub(began))
	})
	b.ask("Q-smb-localpath", func(a *Ask) {
		_, err := b.machine.SMBMapping(ctx, share.Remote)
		a.Fact("after its removal", err) // mappings with a local path are never removed
	})
	b.ask("Q-smb-domain", func(a *Ask) {
		plain := share.User
		if _, user, ok := strings.Cut(plain, `\`); ok {
			plain = user
		}
		plain, _, _ = strings.Cut(plain, "@")
		for _, user := range []struct{ how, name string }{{"user", plain}, {`ANY\user`, `ANY\` + plain}, {"user@any", plain + "@any"}} {
			a.Fact("as "+user.how, create(share.Remote, user.name, share.Password))
			_ = remove() // fails if it was not created
		}
	})
}

// askPortal registers an iSCSI portal that the operator has named, and removes it.
func askPortal(b *bench) {
	ctx := b.Context()
	portals, listErr := b.machine.ReportSendTargetPortals(ctx)
	b.ask("Q-iscsi-no-service", func(a *Ask) {
		if listErr == nil {
			a.Skip("the service MSiSCSI runs")
		}
		a.Fact("ReportIScsiSendTargetPortalsW", listErr)
	})
	if b.Portal == nil {
		b.Skip("no iSCSI portal was named; see -portal")
	}
	if listErr != nil {
		b.Skipf("the service MSiSCSI does not answer: %s", text(listErr))
	}
	registered := func(p win.TargetPortal) bool {
		return slices.ContainsFunc(portals, func(known win.SendTargetPortal) bool { return known.Portal.String() == p.String() })
	}
	if registered(*b.Portal) {
		b.Skipf("portal %s is registered already; remove it, or name another", b.Portal)
	}
	remove := func() error {
		now, err := b.machine.ReportSendTargetPortals(ctx)
		if err != nil {
			return err
		}
		for _, known := range now {
			if known.Portal.String() == b.Portal.String() {
				return b.machine.RemoveSendTargetPortal(ctx, known)
			}
		}
		return nil
	}
	b.Cleanup(func() {
		if err := remove(); err != nil {
			b.Errorf("a portal is left behind: %v", err)
		}
	})
	b.ask("Q-iscsi-layouts", func(a *Ask) {
		a.Fact("AddIScsiSendTargetPortalW", b.machine.AddSendTargetPortal(ctx, *b.Portal))
		now, err := b.machine.ReportSendTargetPortals(ctx)
		a.Must(err)
		a.Fact("portals that it added", len(now)-len(portals))
		targets, err := b.machine.ReportTargets(ctx)
		a.Fact("ReportIScsiTargetsW", err)
		a.Measured("targets", len(targets))
		for _, target := range targets {
			if !strings.HasPrefix(target, "iqn.") && !strings.HasPrefix(target, "eui.") && !strings.HasPrefix(target, "naa.") {
				a.Errorf("%q is not the name of a target", target)
			}
			_, err := b.machine.ReportTargetPortals(ctx, target)
			a.Measured("its portals", err)
		}
		_, err = b.machine.Sessions(ctx)
		a.Fact("GetIScsiSessionListW", err)
		_, err = b.machine.PersistentLogins(ctx)
		a.Fact("ReportIScsiPersistentLoginsW", err)
		a.Fact("AddIScsiSendTargetPortalW, again", b.machine.AddSendTargetPortal(ctx, *b.Portal))
	})
	b.ask("Q-iscsi-refresh", func(a *Ask) {
		a.Fact("RefreshIScsiSendTargetPortalW", b.machine.RefreshSendTargetPortal(ctx, *b.Portal))
		a.Must(remove())
		a.Fact("of a portal that is not registered", b.machine.RefreshSendTargetPortal(ctx, *b.Portal))
	})
	b.ask("Q-iscsi-dead-portal", func(a *Ask) {
		dead := win.TargetPortal{Address: "127.0.0.1", Port: 9} // discard, where no target listens
		if registered(dead) {
			a.Skipf("portal %s is registered already; remove it", dead)
		}
		began := b.machine.Now()
		a.Fact("AddIScsiSendTargetPortalW", b.machine.AddSendTargetPortal(ctx, dead))
		a.Measured("took", b.machine.Now().Sub(began))
		now, err := b.machine.ReportSendTargetPortals(ctx)
		a.Must(err)
		kept := false
		for _, known := range now {
			if known.Portal.String() == dead.String() {
				kept = true
				a.Must(b.machine.RemoveSendTargetPortal(ctx, known))
			}
		}
		a.Fact("it is kept", kept)
	})
}
