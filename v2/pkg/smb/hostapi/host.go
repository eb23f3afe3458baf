package api

import (
	"context"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/queue"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

const (
	opMap   = "map share"
	opLink  = "link folder"
	opUnmap = "unmap share"
	// opUnused is the removal of a mapping that was postponed.
	opUnused       = "unmap unused share"
	opMappingFacts = "describe mapping"
	opCheck        = "check link"
)

// host is a machine with an SMB client, and what its callers may do there.
type host struct {
	m       win.Machine
	state   *machineState
	privacy bool           // servers must encrypt
	limits  *policy.Policy // where callers may make links
	// sameUser refuses the mapping of another user.
	sameUser bool
}

// machineState is what all hosts of a machine have in common. The zero value is ready.
type machineState struct {
	changes  queue.Queues[change]
	mappings mappings
	links    links
	scans    scans
	trying   sync.Map // shares, see tryLater
}

// change is a change of a server's mappings, or of links to its shares. Windows has one
// session and one user per server, so changes of one server wait for each other.
type change struct {
	op      string
	server  string
	remote  string
	local   string
	account account
	privacy bool
	limits  *policy.Policy // of its callers
	// sameUser is that of the host.
	sameUser bool
}

func (c change) Objects() []string { return []string{c.server} }

// Fresh implements queue.Change. A removal that has begun may have been stopped by a link that
// is gone since.
func (c change) Fresh() bool { return c.op == opUnmap || c.op == opUnused || c.op == opCheck }

func (c change) object() string {
	if c.local == "" {
		return c.remote
	}
	return c.local + " to " + c.remote
}

// workLimit bounds a change whose callers may all have left. Windows gives up on a server
// after about a minute.
const workLimit = 2 * time.Minute

// change runs do when it is its turn. A caller whose context ends leaves at once. A change that
// has begun by then goes on, and a retry joins it. One that has not begun never does, unless
// another caller waits for it.
func (h host) change(ctx context.Context, c change, do func(ctx context.Context) error) error {
	c.privacy, c.limits, c.sameUser = h.privacy, h.limits, h.sameUser
	return winerr.Wrap(c.op, c.object(), h.state.changes.Do(ctx, c, workLimit, do))
}

func (b boundHost) IsSMBMapped(remotePath string) (bool, error) {
	ctx, h := b.ctx, b.host
	const op = "look for SMB mapping"
	remote, err := unc.Parse(op, remotePath)
	if err != nil {
		return false, err
	}
	mapping, err := h.m.SMBMapping(ctx, remote.Share())
	if notMapped(err) {
		return false, nil
	}
	return err == nil && mapping.Status == win.SMBOK, winerr.Wrap(op, remote.Share(), err)
}

func (h host) mapShare(ctx context.Context, remotePath, localPath, username, password string) error {
	remote, local, err := h.check(opMap, remotePath, localPath)
	if err != nil {
		return err
	}
	by := newAccount(username, password, h.privacy)
	c := change{op: opMap, server: remote.Server(), remote: remote.Directory(), local: local, account: by}
	err = h.change(ctx, c, func(ctx context.Context) error {
		folder, err := h.openFolder(ctx, remote, local)
		if err != nil {
			return err
		}
		defer folder.Close()
		secret := win.NewSecret(password)
		defer secret.Wipe()
		request := win.SMBMappingRequest{Remote: remote.Share(), User: username, Password: secret, RequirePrivacy: h.privacy}
		r := mapRequest{SMBMappingRequest: request, server: remote.Server(), local: local, account: by}
		r.needs = needs{privacy: h.privacy, sameUser: h.sameUser, user: by.user, linked: folder.linked, local: local}
		if local != "" {
			r.dir = remote.Inside()
		}
		first, err := h.connect(ctx, r)
		if err != nil {
			return err
		}
		if !folder.linked && !queue.Awaited(ctx) { // a server can take minutes, and the volume may have been unstaged since
			if first {
				h.undo(ctx, r)
			}
			return winerr.New(winerr.Unavailable, opMap, c.object(), "its caller has left, so nothing is mapped; call again")
		}
		h.state.links.cancelRemoval(remote)
		if err := h.link(ctx, remote, folder); err != nil {
			return err
		}
		h.removePostponed(ctx, remote)
		return nil
	})
	if err == nil && local != "" {
		h.linksGone(ctx, local) // the link may have led to another share
	}
	return err
}

func (b boundHost) NewSMBLink(remotePath, localPath string) error {
	ctx, h := b.ctx, b.host
	remote, local, err := h.check(opLink, remotePath, localPath)
	switch {
	case err != nil:
		return err
	case local == "":
		return winerr.New(winerr.Invalid, opLink, "", "the local path is empty")
	}
	c := change{op: opLink, server: remote.Server(), remote: remote.Directory(), local: local}
	return h.change(ctx, c, func(ctx context.Context) error {
		folder, err := h.openFolder(ctx, remote, local)
		if err != nil {
			return err
		}
		defer folder.Close()
		h.state.links.cancelRemoval(remote)
		return h.link(ctx, remote, folder)
	})
}

// Exclusively does something about a link to a share when it is the turn of its server.
func (b boundHost) Exclusively(ctx context.Context, remotePath, localPath string, do func(ctx context.Context) error) error {
	remote, err := unc.Parse(opCheck, remotePath)
	if err != nil {
		return err
	}
	return b.host.change(ctx, change{op: opCheck, server: remote.Server(), remote: remote.Directory(), local: localPath}, do)
}

// check refuses paths by their spelling alone, before any work begins.
func (h host) check(op, remotePath, localPath string) (remote unc.Path, local string, err error) {
	if remote, err = unc.Parse(op, remotePath); err != nil {
		return remote, "", err
	}
	if err := remote.CheckMappable(op); err != nil || localPath == "" {
		return remote, "", err
	}
	if local, err = winpath.Clean(localPath); err != nil {
		return remote, "", winerr.As(winerr.Invalid, opLink, "", err, "")
	}
	if err := h.limits.Check(opLink, local, policy.Link); err != nil {
		return remote, "", err
	}
	if _, ok := winpath.Parent(local); !ok {
		return remote, "", winerr.New(winerr.Exists, opLink, local, "the root of a drive cannot be a link")
	}
	return remote, local, nil
}
