package mounter

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// stageShare connects a share and links the path to it. The link's path is locked; CSI Proxy orders
// calls about one server itself.
func (m *Mounter) stageShare(ctx context.Context, path string, share SMB) error {
	share.Remote = shareName(share.Remote)
	klog.FromContext(ctx).V(4).Info("Staging share", "remote", share.Remote, "path", path)
	if dir, ok := parent(path); ok {
		if err := m.node.makeDir(ctx, dir); err != nil {
			return err
		}
	}
	if err := m.begin(ctx, path, share, false); err != nil {
		return err
	}
	err := m.node.mapShare(ctx, share, path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if at, entryErr := m.entryAt(ctx, path); entryErr == nil && pathKey(at.target) == pathKey(share.Remote) {
		return err // it is the mapping that exists, and does not work
	}
	// The kubelet makes an empty folder at the staging path, and a link may lead nowhere any more.
	if cleared, clearErr := m.clearForLink(ctx, path); clearErr != nil {
		return clearErr
	} else if !cleared {
		return newError(failure.Exists, "link", path, "it is a link or mount of another volume; unstage that volume first")
	}
	return m.node.mapShare(ctx, share, path)
}

// shareName returns a share as links have it.
func shareName(remote string) string {
	return strings.TrimRight(strings.ReplaceAll(remote, "/", `\`), `\`)
}

// refusals are the logins that servers have refused. Publish is repeated for each pod, and servers lock accounts.
type refusals struct {
	seed maphash.Seed
	of   sync.Map // login to refusal
}

// login is a login to a server, without its secret.
type login struct {
	server string
	hash   uint64
}

type refusal struct {
	at   time.Time
	text string
}

// refusalPause is how long Publish does not try a login again that a server has refused.
const refusalPause = 10 * time.Minute

// Codes with which a server refuses a login, see https://learn.microsoft.com/windows/win32/debug/system-error-codes.
const (
	errorInvalidPassword    = 86   // ERROR_INVALID_PASSWORD
	errorLogonFailure       = 1326 // ERROR_LOGON_FAILURE
	errorPasswordExpired    = 1330 // ERROR_PASSWORD_EXPIRED
	errorAccountDisabled    = 1331 // ERROR_ACCOUNT_DISABLED
	errorPasswordMustChange = 1907 // ERROR_PASSWORD_MUST_CHANGE
	errorAccountLockedOut   = 1909 // ERROR_ACCOUNT_LOCKED_OUT
)

func (r *refusals) login(share SMB) login {
	server, _, _ := strings.Cut(strings.TrimLeft(pathKey(share.Remote), `\`), `\`)
	return login{server, maphash.String(r.seed, share.Username+"\x00"+share.Password)}
}

func (r *refusals) check(share SMB) error {
	value, known := r.of.Load(r.login(share))
	last, _ := value.(refusal)
	if !known || time.Since(last.at) >= refusalPause {
		return nil
	}
	return newError(failure.Denied, "connect share", share.Remote, "%s; this login is not tried again for %s, so that its account is not locked",
		last.text, (refusalPause - time.Since(last.at)).Round(time.Second))
}

func (r *refusals) note(share SMB, err error) {
	switch code, _ := failure.WindowsCode(err); code {
	case errorInvalidPassword, errorLogonFailure, errorPasswordExpired, errorAccountDisabled, errorPasswordMustChange, errorAccountLockedOut:
		r.of.Range(func(key, value any) bool { // passwords change, and the old ones do not come back
			if time.Since(value.(refusal).at) >= refusalPause {
				r.of.Delete(key)
			}
			return true
		})
		r.of.Store(r.login(share), refusal{time.Now(), failure.Message(err)})
	}
}

// clearForLink removes an empty folder or a link that leads nowhere, to make room for a link. It
// reports false if something is there that works.
func (m *Mounter) clearForLink(ctx context.Context, path string) (bool, error) {
	live, err := m.node.isLiveLink(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it has just gone
		return true, nil
	case err != nil:
		return false, err
	case live:
		return false, nil
	}
	return true, m.remove(ctx, path)
}

// unstageShare disconnects a share unless another link uses it, and removes the link at a path.
func (m *Mounter) unstageShare(ctx context.Context, path, remote string) error {
	if err := m.node.unmapShare(ctx, remote, path); err != nil {
		return err
	}
	return m.remove(ctx, path)
}
