package api

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

type mapRequest struct {
	win.SMBMappingRequest
	server  string
	local   string // the link that it is for, if any
	dir     string // the directory in the share that the link leads to, if any
	account account
	needs   needs
}

// connect makes sure that a working mapping of a share exists, as the table in decision.go says,
// and that the directory of the request is on the share. It reports whether it made one where there was none.
func (h host) connect(ctx context.Context, r mapRequest) (first bool, err error) {
	seen, err := h.examine(ctx, r.Remote, r.dir, r.needs)
	if err != nil {
		return false, err
	}
	decided, user := h.judge(ctx, r, r.Remote, seen)
	if decided.action == actionUse {
		return false, missing(r, seen.missing)
	}
	made, err := h.act(ctx, r, seen, decided, user)
	first = made && seen.state == stateAbsent
	if err != nil || r.local == "" && seen.state == stateAbsent {
		return first, err
	}
	absent, answer := h.open(ctx, r.Remote, r.dir)
	err = cmp.Or(missing(r, absent), denied(r, answer))
	if err != nil && first {
		h.undo(ctx, r)
	}
	return first, err
}

// act does what was decided about a mapping that cannot be used as it is. It reports whether it made
// one.
func (h host) act(ctx context.Context, r mapRequest, seen condition, decided decision, user string) (made bool, err error) {
	switch decided.action {
	case actionCreate:
		return h.create(ctx, r)
	case actionRecreate:
		return h.recreate(ctx, r, seen, decided)
	case actionAsk:
		err := h.m.CreateSMBMapping(ctx, r.SMBMappingRequest)
		switch {
		case winerr.CodeOf(err) == winerr.CredentialConflict:
			return h.recreate(ctx, r, seen, decided)
		case mappingExists(err):
			return false, kept(r.Remote, seen, user)
		}
		return err == nil, h.created(ctx, r, err)
	case actionUse, actionFail:
	}
	return false, kept(r.Remote, seen, user)
}

// undo removes the mapping that a request has created, which has failed or lost its callers, unless a known link uses it. If the
// scan for links fails, it removes it too: other requests about the server wait, so that none can
// have made a link with it, and links from before did not work without it.
func (h host) undo(ctx context.Context, r mapRequest) {
	if remote, err := unc.Parse(opMap, r.Remote); err == nil {
		h.state.links.postponeRemoval(remote)
		_ = h.learnLinks(ctx)
		h.dropUnlinked(ctx, remote)
	}
}

// judge gathers what the table asks for about a mapping, and decides. It returns what uses the
// mapping, if it had to find out.
func (h host) judge(ctx context.Context, r mapRequest, share string, seen condition) (decided decision, user string) {
	o, a := ownerNone, ageRecent
	if ownerMatters(seen.state, seen.cause) {
		since := h.m.Elapsed()
		if seen.cause != causeUnencrypted && seen.cause != causeOtherUser { // those work
			since = h.state.mappings.brokenSince(share, since)
		}
		o, user = h.ownerOf(ctx, share, seen.cause, r)
		if h.m.Elapsed()-since >= brokenLimit {
			a = ageLasting
		}
	}
	return decide(seen.state, seen.cause, o, a), user
}

// brokenLimit is how long a mapping that others use is left to Windows.
const brokenLimit = time.Minute

// ownerOf finds out what uses a mapping besides the link of a request, and for whom it was
// created. Where access is denied that link counts too: pods can use what is below a directory
// that they may not look at, until the mapping goes.
func (h host) ownerOf(ctx context.Context, share string, c cause, r mapRequest) (o owner, user string) {
	except := r.local
	if c == causeDenied {
		except = ""
	}
	user, used := h.usedBy(ctx, share, except)
	if !used {
		return ownerNone, ""
	}
	switch by, ours := h.state.mappings.of(share); {
	case !ours:
		return ownerUnknown, user
	case by.user != r.account.user:
		return ownerOtherUser, user
	case by.login != r.account.login:
		return ownerNewPassword, user
	}
	return ownerSameAccount, user
}

// usedBy returns what uses a mapping besides the link at a path. If that cannot be known it is
// used.
func (h host) usedBy(ctx context.Context, share, except string) (user string, used bool) {
	if _, ours := h.state.mappings.of(share); !ours && h.limits == nil {
		return "perhaps the process that created it", true
	}
	if err := h.learnLinks(ctx); err != nil {
		return "perhaps a link that the scan did not find", true
	}
	path, found, _ := h.firstLive(ctx, share, except)
	return path, found
}

// create makes a mapping where examine has seen none.
func (h host) create(ctx context.Context, r mapRequest) (made bool, err error) {
	err = h.m.CreateSMBMapping(ctx, r.SMBMappingRequest)
	made = err == nil
	if mappingExists(err) {
		made, err = h.replace(ctx, r, err)
	}
	if winerr.CodeOf(err) == winerr.CredentialConflict {
		err = h.removeStale(ctx, r, err)
		made = err == nil
	}
	return made, h.created(ctx, r, err)
}

// recreate removes a mapping and creates it again.
func (h host) recreate(ctx context.Context, r mapRequest, seen condition, decided decision) (made bool, err error) {
	klog.FromContext(ctx).V(2).Info("Recreating the mapping of a share", "share", r.Remote,
		"status", seen.state, "cause", seen.cause, "reason", decided.why)
	if err := h.drop(ctx, r.Remote); err != nil {
		return false, winerr.Wrap(opMap, r.Remote, err)
	}
	return h.create(ctx, r)
}

// replace creates a mapping that Windows says exists, although examine saw none: another
// process has created it in between, or Windows hides it. The failure that led here stays if
// there is nothing to replace.
func (h host) replace(ctx context.Context, r mapRequest, failure error) (made bool, err error) {
	seen, err := h.examine(ctx, r.Remote, r.dir, r.needs)
	if err != nil {
		return false, err
	}
	switch decided, user := h.judge(ctx, r, r.Remote, seen); decided.action {
	case actionUse:
		return false, nil
	case actionFail, actionAsk: // Windows has been asked
		return false, kept(r.Remote, seen, user)
	case actionCreate, actionRecreate:
	}
	switch err := h.m.RemoveSMBMapping(ctx, r.Remote, true); {
	case notMapped(err) && winerr.CodeOf(failure) == winerr.CredentialConflict:
		return false, failure // it is another share's
	case err != nil && !notMapped(err):
		return false, err
	}
	err = h.m.CreateSMBMapping(ctx, r.SMBMappingRequest)
	return err == nil, err
}

// created is the end of an attempt to create a mapping.
func (h host) created(ctx context.Context, r mapRequest, err error) error {
	if err == nil {
		h.state.mappings.made(r.Remote, r.account)
	}
	if errors.Is(err, winerr.NoSpace) {
		mappings, _ := h.m.SMBMappings(ctx)
		return tooMany(r.Remote, err, len(mappings))
	}
	return refused(r.SMBMappingRequest, err)
}

// drop removes a mapping, also if files are open through it.
func (h host) drop(ctx context.Context, share string) error {
	err := h.m.RemoveSMBMapping(ctx, share, true)
	if err != nil && !notMapped(err) {
		return err
	}
	h.state.mappings.gone(share)
	return nil
}

// notMapped reports whether a call about a mapping failed because it does not exist.
func notMapped(err error) bool { return winerr.CodeOf(err) == winerr.FileNotFound }

// mappingExists reports whether a mapping cannot be created because of one that exists.
func mappingExists(err error) bool {
	switch winerr.CodeOf(err) {
	case winerr.AlreadyAssigned, winerr.DeviceAlreadyRemembered, winerr.CredentialConflict:
		return true
	default:
		return false
	}
}
