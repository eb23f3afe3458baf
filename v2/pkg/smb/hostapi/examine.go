package api

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
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
	local  string // where that link is or will be, if any
}

// examine returns in which condition the mapping of a share is. The status alone says little: it
// stays OK when the password is changed. So it opens the share, as users of the mapping do, by a
// directory in it if one is given.
func (h host) examine(ctx context.Context, share, dir string, need needs) (condition, error) {
	state, mapping, err := h.mappingState(ctx, share)
	if state == stateAbsent || err != nil {
		return condition{}, err
	}
	missing, answer := h.probe(ctx, share, dir)
	if ctx.Err() != nil { // the caller's, or ours: it says nothing about the share
		return condition{}, ctx.Err()
	}
	c := causeOf(answer)
	switch c {
	case causeOpens, causeDenied, causeUnclear:
		if state == stateConnected {
			break
		}
		// Opening the share makes Windows connect an idle mapping again.
		if state, mapping, err = h.mappingState(ctx, share); state != stateConnected || err != nil {
			return condition{state: state, cause: c, err: answer}, err
		}
	default:
	}
	if c != causeOpens && (c != causeDenied || !h.anotherOpens(ctx, share, need.local)) {
		return condition{state: state, cause: c, err: answer}, nil
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
		return causeOf(answer) != causeSessionLost, nil
	})
	if err != nil {
		return nil, err
	}
	return missing, answer
}

// open opens a directory in a share, or the share if there is none or if the answer says nothing
// about the share. ERROR_FILE_NOT_FOUND (2) and ERROR_PATH_NOT_FOUND (3) show that the share opens
// without the directory. ERROR_ACCESS_DENIED (5) does not: the account can lack the right to look at a
// directory of a share that opens, and still use what is in it.
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
	if c := causeOf(err); (c == causeDenied || c == causeUnclear) && ctx.Err() == nil {
		_, err = h.m.FileInfo(ctx, win.Following(share))
	}
	return nil, err
}

// anotherOpens reports whether a link into a share opens that is not at a given path: an account that may
// not look at a share can have rights below it.
func (h host) anotherOpens(ctx context.Context, share, except string) bool {
	_ = h.learnLinks(ctx) // the known ones will do
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	return slices.ContainsFunc(h.state.links.of(share), func(known link) bool {
		if winpath.Equal(known.path, except) {
			return false
		}
		if leads, _ := h.leadsInto(ctx, known, share); !leads {
			return false
		}
		_, err := h.m.FileInfo(ctx, win.Following(known.path))
		return err == nil
	})
}
