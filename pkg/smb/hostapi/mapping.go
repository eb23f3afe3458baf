package api

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// wish is a mapping that a caller wants.
type wish struct {
	win.SMBMappingRequest
	server string
	local  string // the link that it is for, if any
	who    who
}

// sight is what has become of a mapping.
type sight struct {
	state     state
	connected bool  // as Windows sees it, or nobody knows
	cause     error // of what is away or broken: what opening the share answered
}

type state int

const (
	absent  state = iota
	healthy       // Windows says that it is connected, and the share can be opened
	plain         // so it is, but without the encryption that is required
	away          // the server cannot be reached
	broken        // the session is lost, or the server refuses it
	foreign       // the share can be opened, but not by this mapping
)

// connect makes sure that a working mapping of a share exists. One that works is kept with the
// credentials it was made with. One that does not is made anew: after a restart, or when the
// password was changed, Windows neither uses it nor lets another take its place. What others
// may still use again is not removed before it is known that it cannot.
func (h host) connect(ctx context.Context, w wish) error {
	seen, err := h.look(ctx, w.Remote)
	switch {
	case err != nil:
		return err
	case seen.state == healthy:
		return nil
	case seen.state == absent:
		return h.create(ctx, w)
	case seen.state == plain:
		return h.encrypt(ctx, w)
	case h.hopeless(ctx, w, w.Remote, seen):
		return h.remake(ctx, w)
	case seen.connected:
		return kept(w.Remote, seen)
	}
	// To who opens a share, what a restart has left may look as if the server were away.
	// Windows tells when it is asked for the mapping once more: there is a conflict with
	// credentials that it has lost, but a mapping in the way only if it still has them.
	err = h.m.CreateSMBMapping(ctx, w.SMBMappingRequest)
	switch {
	case winerr.CodeOf(err) == winerr.CredentialConflict:
		return h.remake(ctx, w)
	case inTheWay(err):
		return kept(w.Remote, seen)
	}
	return h.created(w, err)
}

// created is the end of an attempt to make a mapping.
func (h host) created(w wish, err error) error {
	if err == nil {
		h.shared.mappings.made(w.Remote, w.who)
	}
	return refused(w.SMBMappingRequest, err)
}

// remake removes a mapping that is of no use, and makes it anew.
func (h host) remake(ctx context.Context, w wish) error {
	klog.FromContext(ctx).V(2).Info("The mapping of a share does not work and is made anew", "share", w.Remote)
	if err := h.drop(ctx, w.Remote); err != nil {
		return winerr.Wrap(opMap, w.Remote, err)
	}
	return h.create(ctx, w)
}

// create makes a mapping where none is to be seen.
func (h host) create(ctx context.Context, w wish) error {
	err := h.m.CreateSMBMapping(ctx, w.SMBMappingRequest)
	if inTheWay(err) {
		err = h.replace(ctx, w, err)
	}
	if winerr.CodeOf(err) == winerr.CredentialConflict {
		err = h.outliveOthers(ctx, w, err)
	}
	return h.created(w, err)
}

// encrypt makes a mapping anew that works, but does not require encryption. Those who use it
// would lose it if the server refused the new one, so they come first.
func (h host) encrypt(ctx context.Context, w wish) error {
	if err := h.needed(ctx, w); err != nil {
		return err
	}
	return h.remake(ctx, w)
}

// needed fails if a mapping without encryption is used.
func (h host) needed(ctx context.Context, w wish) error {
	user, used := h.usedBy(ctx, w.Remote, w.local)
	if !used {
		return nil
	}
	return winerr.New(winerr.InUse, opMap, w.Remote,
		"it is mapped without encryption, which is required, and the mapping is kept because %s uses it; remove the volumes that use the share from this node, or allow it with -require-privacy=false, or RequirePrivacy(false) in the library", user)
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
func (h host) replace(ctx context.Context, w wish, failure error) error {
	seen, err := h.look(ctx, w.Remote)
	switch {
	case err != nil || seen.state == healthy:
		return err
	case seen.state == plain:
		if err := h.needed(ctx, w); err != nil {
			return err
		}
	case seen.state != absent && !h.hopeless(ctx, w, w.Remote, seen):
		return kept(w.Remote, seen)
	}
	switch err := h.m.RemoveSMBMapping(ctx, w.Remote, true); {
	case notMapped(err) && winerr.CodeOf(failure) == winerr.CredentialConflict:
		return failure // it is another share's
	case err != nil && !notMapped(err):
		return err
	}
	return h.m.CreateSMBMapping(ctx, w.SMBMappingRequest)
}

// lookAtMost is how many mappings that are not connected are looked at before all of a server
// count as what a restart has left. They have one session, so one would do.
const lookAtMost = 3

// outliveOthers deals with a conflict about the user that is not the share's own. After a
// restart all mappings of a server are in the way of each other until they are gone. Those
// that work, or will when the server is back, belong to somebody, and win.
func (h host) outliveOthers(ctx context.Context, w wish, failure error) error {
	mappings, err := h.m.SMBMappings(ctx)
	if err != nil {
		return err
	}
	var connected, others []string
	for _, mapping := range mappings {
		other, err := unc.Parse(opMap, mapping.Remote)
		switch {
		case err != nil || other.Server() != w.server || other.Share() == w.Remote:
		case mapping.Status == win.SMBOK:
			connected = append(connected, other.Share())
		default:
			others = append(others, other.Share())
		}
	}
	// The first one that is somebody's decides.
	for _, share := range slices.Concat(connected, others[:min(len(others), lookAtMost)]) {
		lost, err := h.lost(ctx, w, share)
		if err != nil {
			return err
		}
		if !lost {
			return failure
		}
	}
	if len(connected)+len(others) == 0 {
		return failure
	}
	for _, share := range slices.Concat(connected, others) {
		klog.FromContext(ctx).V(2).Info("The mapping of another share of the server does not work, is in the way, and is removed",
			"share", w.Remote, "other", share)
		if err := h.drop(ctx, share); err != nil {
			return err
		}
	}
	return h.m.CreateSMBMapping(ctx, w.SMBMappingRequest)
}

// lost reports whether the mapping of another share is of no use to anybody any more. It asks
// Windows as connect does: about a mapping whose credentials Windows has, it says that it
// exists, whoever asks.
func (h host) lost(ctx context.Context, w wish, share string) (bool, error) {
	seen, err := h.look(ctx, share)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return false, nil //nolint:nilerr // what cannot be judged is somebody's
	case seen.state == healthy || seen.state == plain:
		return false, nil
	case seen.state == absent || h.hopeless(ctx, w, share, seen):
		return true, nil
	case seen.connected:
		return false, nil
	}
	request := w.SMBMappingRequest
	request.Remote = share
	return winerr.CodeOf(h.m.CreateSMBMapping(ctx, request)) == winerr.CredentialConflict, nil
}

// drop removes a mapping, also if somebody has files open through it.
func (h host) drop(ctx context.Context, share string) error {
	err := h.m.RemoveSMBMapping(ctx, share, true)
	if err != nil && !notMapped(err) {
		return err
	}
	h.shared.mappings.gone(share)
	return nil
}

// notMapped reports whether a call about a mapping failed because there is none.
func notMapped(err error) bool { return winerr.CodeOf(err) == winerr.FileNotFound }

// hopeless reports whether a mapping that does not work can go: it never will work again, or
// nobody else uses it, or it has not worked for so long that making it anew is the better bet.
// The mapping cannot be made before the old one is removed, so nothing proves that the server
// accepts who asks for it.
func (h host) hopeless(ctx context.Context, w wish, share string, seen sight) bool {
	code := winerr.CodeOf(seen.cause)
	switch {
	case seen.state == away:
		return false
	case seen.state == foreign || code == winerr.CredentialConflict:
		return true
	case wrongPassword(code) && !seen.connected: // what a restart leaves, or no better
		return true
	}
	since := h.shared.mappings.brokenSince(share, h.m.Now())
	if _, used := h.usedBy(ctx, share, w.local); !used {
		return true
	}
	known, ours := h.shared.mappings.of(share)
	switch {
	case ours && known.user != w.who.user:
		return false // a stranger is no reason
	case wrongPassword(code) && (!ours || known.account != w.who.account):
		return true // the password was changed, and here is the new one
	case wrongPassword(code) || sessionLost(code):
		return h.m.Now().Sub(since) >= brokenLimit
	default:
		return false // it works again when the account, or the share, does
	}
}

// brokenLimit is how long a mapping that others use is left to Windows.
const brokenLimit = time.Minute

// usedBy tells what uses a mapping besides the link at a path. If that cannot be known it is
// used.
func (h host) usedBy(ctx context.Context, share, except string) (user string, used bool) {
	if _, ours := h.shared.mappings.of(share); !ours && h.limits == nil {
		return "perhaps the process that made it", true
	}
	if err := h.learnLinks(ctx); err != nil {
		return "perhaps a link that could not be looked for", true
	}
	return h.firstLive(ctx, share, except)
}

// look tells what has become of the mapping of a share.
func (h host) look(ctx context.Context, share string) (sight, error) {
	mapping, err := h.m.SMBMapping(ctx, share)
	switch {
	case notMapped(err):
		h.shared.mappings.gone(share)
		return sight{}, nil
	case err != nil:
		return sight{}, winerr.Wrap(opMap, share, err)
	}
	connected := mapping.Status == win.SMBOK
	err = h.probe(ctx, share)
	switch {
	case ctx.Err() != nil: // the caller's, or ours: it says nothing about the share
		return sight{}, ctx.Err()
	case unreachable(err):
		return sight{away, connected || winerr.CodeOf(err) == 0, err}, nil
	case gone(err):
		return sight{broken, connected, err}, nil
	case err != nil && winerr.CodeOf(err) != winerr.AccessDenied: // who may not look at a share may still use what is in it
		return sight{}, winerr.Wrap(opMap, share, err)
	}
	if !connected {
		// Opening the share makes Windows connect again, if it can. If it still says
		// otherwise, it was not this mapping that opened it, but the account of the machine.
		mapping, err = h.m.SMBMapping(ctx, share)
		switch {
		case notMapped(err):
			h.shared.mappings.gone(share)
			return sight{}, nil
		case err != nil:
			return sight{}, winerr.Wrap(opMap, share, err)
		case mapping.Status != win.SMBOK:
			return sight{state: foreign}, nil
		}
	}
	h.shared.mappings.works(share)
	if h.privacy && mapping.Plain && !h.shared.mappings.private(share) {
		return sight{state: plain, connected: true}, nil
	}
	return sight{state: healthy, connected: true}, nil
}

// probeLimit is how long a share may take to be opened. Windows itself is more patient with
// servers that are gone than callers are.
const probeLimit = 10 * time.Second

// probeWaits are before the attempts to open a share whose session was lost: Windows makes it
// anew when the share is opened, and a server that is being restarted says many things.
var probeWaits = [...]time.Duration{250 * time.Millisecond, time.Second}

// probe opens a share, as everybody does who uses it. The status of a mapping alone says
// little: it stays as it is when the password is changed.
func (h host) probe(ctx context.Context, share string) error {
	err := h.open(ctx, share)
	for _, wait := range probeWaits {
		if !sessionLost(winerr.CodeOf(err)) {
			break
		}
		if err := h.m.Sleep(ctx, wait); err != nil {
			return err
		}
		err = h.open(ctx, share)
	}
	return err
}

func (h host) open(ctx context.Context, share string) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	_, err := h.m.FileInfo(ctx, win.Following(share))
	return err
}
