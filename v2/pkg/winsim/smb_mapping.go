package winsim

import (
	"cmp"
	"context"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

type mapping struct {
	SMBMapping        // a stale one is listed, but conflicts with any user
	server     string // as spelled in Remote
}

// status is the status that Windows shows. It ignores changed passwords.
func (n *network) status(m *mapping) win.SMBStatus {
	if m.Stale || m.Idle || n.byName[winpath.Fold(m.server)].Down {
		return win.SMBDisconnected
	}
	return win.SMBOK
}

func (n *network) show(m *mapping) win.SMBMapping {
	return win.SMBMapping{Remote: m.Remote, Status: n.status(m), Plain: m.Plain, Private: !m.Plain}
}

func (n *network) SMBMapping(_ context.Context, remote string) (win.SMBMapping, error) {
	defer n.lock()()
	m := n.mappings[winpath.Fold(remote)]
	if m == nil {
		return win.SMBMapping{}, winerr.FileNotFound
	}
	return n.show(m), nil
}

func (n *network) SMBMappings(_ context.Context) ([]win.SMBMapping, error) {
	defer n.lock()()
	mappings := make([]win.SMBMapping, 0, len(n.mappings))
	for _, m := range n.mappings {
		mappings = append(mappings, n.show(m))
	}
	slices.SortFunc(mappings, func(a, b win.SMBMapping) int { return cmp.Compare(a.Remote, b.Remote) })
	return mappings, nil
}

func (n *network) CreateSMBMapping(ctx context.Context, request win.SMBMappingRequest) error {
	if err := n.awaitServer(ctx, request.Remote); err != nil {
		return err
	}
	defer n.lock()()
	return n.connect(request)
}

func (n *network) connect(request win.SMBMappingRequest) error {
	serverName, shareName, _ := splitUNC(request.Remote)
	made := &mapping{SMBMapping{
		Remote: request.Remote, User: request.User, Password: string(request.Password.Bytes()), Plain: !request.RequirePrivacy,
		Persistent: request.Persistent || n.alwaysPersistent,
	}, serverName}
	if made.User == "" {
		made.Password = "" // a guest needs no password
	}
	if err := n.conflict(made); err != nil {
		return err
	}
	s := n.byName[winpath.Fold(serverName)]
	if s == nil || s.Down {
		return winerr.BadNetPath
	}
	err := s.check(made.User, made.Password)
	s.logons = append(s.logons, SMBLogon{
		Share: shareName, User: made.User, Password: made.Password, Encrypted: request.RequirePrivacy, Refused: err != nil,
	})
	switch {
	case err != nil:
		return err
	case request.RequirePrivacy && s.NoEncryption:
		return winerr.NetworkAccessDenied
	case s.shares[winpath.Fold(shareName)] == nil:
		return winerr.BadNetName
	}
	n.mappings[winpath.Fold(request.Remote)] = made
	return nil
}

// conflict returns the error that Windows finds without asking a server: it allows one mapping
// per share and one user per server. A stale mapping conflicts with every user.
func (n *network) conflict(made *mapping) error {
	if same := n.mappings[winpath.Fold(made.Remote)]; same != nil && !same.Stale {
		return winerr.AlreadyAssigned
	}
	for _, other := range n.mappings {
		if winpath.Equal(other.server, made.server) && (other.Stale || !winpath.Equal(other.User, made.User)) {
			return winerr.CredentialConflict
		}
	}
	return nil
}

func (n *network) RemoveSMBMapping(_ context.Context, remote string, _ bool) error {
	defer n.lock()()
	if n.mappings[winpath.Fold(remote)] == nil {
		return winerr.FileNotFound
	}
	delete(n.mappings, winpath.Fold(remote))
	return nil
}

// restart leaves only persistent mappings, without their credentials.
func (n *network) restart() {
	for key, m := range n.mappings {
		if !m.Persistent {
			delete(n.mappings, key)
		}
		m.Stale, m.Password = true, ""
	}
}
