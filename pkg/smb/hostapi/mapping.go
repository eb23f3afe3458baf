package api

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/unc"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
)

// state is what has become of a mapping.
type state int

const (
	absent  state = iota
	healthy       // Windows says that it is connected, and the share can be opened
	dead          // it stays so until it is made anew
	cut           // Windows says that it is not connected, and the server cannot be reached
)

// connect makes sure that a working mapping of a share exists. One that works is kept with the
// credentials it was made with. One that does not is removed and made anew: after a restart,
// or when the password was changed, Windows neither uses it nor lets another take its place.
func (h host) connect(ctx context.Context, remote unc.Path, request win.SMBMappingRequest) error {
	found, away := h.look(ctx, request.Remote)
	switch {
	case found == healthy:
		return nil
	case away != nil && found != cut:
		return away
	case found == dead:
		klog.FromContext(ctx).V(2).Info("The mapping of a share does not work and is made anew", "share", request.Remote)
		if err := h.drop(ctx, request.Remote); err != nil {
			return winerr.Wrap(opMap, request.Remote, err)
		}
	}
	err := h.m.CreateSMBMapping(ctx, request)
	switch {
	case found == cut && winerr.CodeOf(err) == winerr.CredentialConflict:
		err = h.remake(ctx, request)
	case found == cut && inTheWay(err):
		return away // Windows still has its credentials, so nothing is wrong with it
	case inTheWay(err):
		err = h.replace(ctx, request, err)
	}
	if winerr.CodeOf(err) == winerr.CredentialConflict {
		err = h.outliveOthers(ctx, remote, request, err)
	}
	return refused(request, err)
}

// inTheWay reports whether a mapping cannot be made because of one that exists.
func inTheWay(err error) bool {
	switch winerr.CodeOf(err) {
	case winerr.AlreadyAssigned, winerr.DeviceAlreadyRemembered, winerr.CredentialConflict:
		return true
	default:
		return false
	}
}

// replace makes a mapping in place of one that was not there when it was looked for: somebody
// else has made it just now, or Windows keeps it without showing it. The failure that led here
// stays if there is nothing to replace.
func (h host) replace(ctx context.Context, request win.SMBMappingRequest, failure error) error {
	found, err := h.look(ctx, request.Remote)
	if err != nil || found == healthy {
		return err
	}
	switch err := h.m.RemoveSMBMapping(ctx, request.Remote, true); {
	case notMapped(err) && winerr.CodeOf(failure) == winerr.CredentialConflict:
		return failure // it is another share's
	case err != nil && !notMapped(err):
		return err
	}
	return h.m.CreateSMBMapping(ctx, request)
}

// remake removes a mapping whose credentials Windows has lost, and makes it anew. To who opens
// a share such a mapping may look as if the server were away.
func (h host) remake(ctx context.Context, request win.SMBMappingRequest) error {
	klog.FromContext(ctx).V(2).Info("The credentials of a mapping are lost, and it is made anew", "share", request.Remote)
	if err := h.drop(ctx, request.Remote); err != nil {
		return err
	}
	return h.m.CreateSMBMapping(ctx, request)
}

// outliveOthers deals with a conflict about the user that is not the share's own. After a
// restart all mappings of a server are in the way of each other until they are gone, and they
// are dead. Those that work belong to somebody, and win.
func (h host) outliveOthers(ctx context.Context, remote unc.Path, request win.SMBMappingRequest, failure error) error {
	mappings, err := h.m.SMBMappings(ctx)
	if err != nil {
		return err
	}
	removed := false
	for _, mapping := range mappings {
		other, err := unc.Parse(opMap, mapping.Remote)
		if err != nil || other.Server() != remote.Server() || other.Share() == request.Remote {
			continue
		}
		found, err := h.look(ctx, other.Share())
		if err != nil || found != dead {
			continue
		}
		klog.FromContext(ctx).V(2).Info("The mapping of another share of the server does not work, is in the way, and is removed",
			"share", request.Remote, "other", other.Share())
		if err := h.drop(ctx, other.Share()); err != nil {
			return err
		}
		removed = true
	}
	if !removed {
		return failure
	}
	return h.m.CreateSMBMapping(ctx, request)
}

// drop removes a mapping, also if somebody has files open through it.
func (h host) drop(ctx context.Context, share string) error {
	err := h.m.RemoveSMBMapping(ctx, share, true)
	if notMapped(err) {
		return nil
	}
	return err
}

// notMapped reports whether a call about a mapping failed because there is none.
func notMapped(err error) bool { return winerr.CodeOf(err) == winerr.FileNotFound }

// look tells what has become of the mapping of a share. That its server cannot be reached is
// an error, with cut as with absent: nothing that could be done to the mapping would help, and
// Windows uses it again when the server is back, for all who rely on it.
func (h host) look(ctx context.Context, share string) (state, error) {
	mapping, err := h.m.SMBMapping(ctx, share)
	switch {
	case notMapped(err):
		return absent, nil
	case err != nil:
		return absent, winerr.Wrap(opMap, share, err)
	}
	err = h.probe(ctx, share)
	switch {
	case ctx.Err() != nil: // the caller's, or ours: it says nothing about the share
		return absent, ctx.Err()
	case unreachable(err) && winerr.CodeOf(err) != 0 && mapping.Status != win.SMBOK:
		return cut, noAnswer(share, err)
	case unreachable(err):
		return absent, noAnswer(share, err)
	case gone(err):
		return dead, nil
	case err != nil && winerr.CodeOf(err) != winerr.AccessDenied: // who may not look at a share may still use what is in it
		return absent, winerr.Wrap(opMap, share, err)
	case mapping.Status == win.SMBOK:
		return healthy, nil
	}
	// Opening the share makes Windows connect again, if it can. If it still says otherwise,
	// it was not this mapping that opened it, but the account of the machine.
	mapping, err = h.m.SMBMapping(ctx, share)
	switch {
	case notMapped(err):
		return absent, nil
	case err != nil:
		return absent, winerr.Wrap(opMap, share, err)
	case mapping.Status == win.SMBOK:
		return healthy, nil
	default:
		return dead, nil
	}
}

// probeLimit is how long a share may take to be opened. Windows itself is more patient with
// servers that are gone than callers are.
const probeLimit = 10 * time.Second

// probe opens a share, as everybody does who uses it. The status of a mapping alone says
// little: it stays as it is when the password is changed.
func (h host) probe(ctx context.Context, share string) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	_, err := h.m.FileInfo(ctx, win.Following(share))
	return err
}
