package api

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// condition is what examine has found out about a mapping.
type condition struct {
	state state
	cause cause
	err   error // what opening the share answered
	// missing is why the directory that the request is about cannot be used, if the share opens.
	missing error
}

// needs are what a request needs of a mapping that works.
type needs struct {
	privacy  bool
	sameUser bool
	user     [sha256.Size]byte
	// linked means that the link of the request exists. An unknown user is then accepted: the
	// pods of the volume use the mapping already.
	linked bool
}

// examine returns in which condition the mapping of a share is. The status alone says little: it
// stays OK when the password is changed. So it opens the share, as users of the mapping do, by a
// directory in it if one is given.
func (h host) examine(ctx context.Context, share, dir string, need needs) (condition, error) {
	state, mapping, err := h.mappingState(ctx, share)
	if state == stateAbsent || err != nil {
		return condition{}, err
	}
	missing, err := h.probe(ctx, share, dir)
	if ctx.Err() != nil { // the caller's, or ours: it says nothing about the share
		return condition{}, ctx.Err()
	}
	c, known := causeOf(err)
	switch {
	case !known:
		return condition{}, winerr.Wrap(opMap, share, err)
	case c != causeOpens:
		return condition{state: state, cause: c, err: err}, nil
	case state == stateDisconnected:
		// Opening the share makes Windows connect an idle mapping again.
		if state, mapping, err = h.mappingState(ctx, share); state != stateConnected || err != nil {
			return condition{state: state}, err
		}
	}
	h.state.mappings.works(share)
	switch by, ours := h.state.mappings.of(share); {
	case need.privacy && mapping.Plain && !by.private:
		return condition{state: state, cause: causeUnencrypted}, nil
	case need.sameUser && ours && by.user != need.user, need.sameUser && !ours && !need.linked:
		return condition{state: state, cause: causeOtherUser}, nil
	}
	return condition{state: state, missing: missing}, nil
}

func (h host) mappingState(ctx context.Context, share string) (state, win.SMBMapping, error) {
	mapping, err := h.m.SMBMapping(ctx, share)
	switch {
	case notMapped(err):
		h.state.mappings.gone(share)
		return stateAbsent, mapping, nil
	case err != nil:
		return stateAbsent, mapping, winerr.Wrap(opMap, share, err)
	case mapping.Status != win.SMBOK:
		return stateDisconnected, mapping, nil
	}
	return stateConnected, mapping, nil
}

// probeLimit is how long a share may take to be opened. For servers that are gone, Windows
// itself waits longer than callers do.
const probeLimit = 10 * time.Second

// probeRetry is how a share is opened again whose session was lost: opening it makes Windows
// connect again, and a server that restarts gives many answers. It makes three attempts.
var probeRetry = win.Backoff{First: 400 * time.Millisecond, Longest: time.Second, Limit: 1200 * time.Millisecond}

// probe opens a share, as users of its mapping do, by a directory in it if one is given.
func (h host) probe(ctx context.Context, share, dir string) (missing, answer error) {
	_, err := win.Poll(ctx, h.m, probeRetry, func(time.Duration) (bool, error) {
		missing, answer = h.open(ctx, share, dir)
		return !hasCause(answer, causeSessionLost), nil
	})
	if err != nil {
		return nil, err
	}
	return missing, answer
}

// open opens a directory in a share, or the share if there is none or if the answer says nothing
// about the share. ERROR_FILE_NOT_FOUND (2) and ERROR_PATH_NOT_FOUND (3) show that the share opens
// without the directory. ERROR_ACCESS_DENIED (5) does not: the account can lack the right to look.
func (h host) open(ctx context.Context, share, dir string) (missing, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	if dir == "" {
		_, err = h.m.FileInfo(ctx, win.Following(share))
		return nil, err
	}
	info, err := h.m.FileInfo(ctx, win.Following(dir))
	switch code := winerr.CodeOf(err); {
	case err == nil && !info.Directory:
		return winerr.Directory, nil
	case code == winerr.FileNotFound || code == winerr.PathNotFound:
		return err, nil
	}
	if _, known := causeOf(err); !known && ctx.Err() == nil {
		_, err = h.m.FileInfo(ctx, win.Following(share))
	}
	return nil, err
}
