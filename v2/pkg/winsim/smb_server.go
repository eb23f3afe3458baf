package winsim

import (
	"context"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// network is the SMB servers that a node can reach, and its mappings.
type network struct {
	*clock
	byName   map[string]*server  // by folded name or alias
	mappings map[string]*mapping // by folded \\server\share

	alwaysPersistent bool
}

type server struct {
	SMBServer
	shares map[string]*share // by folded name
	logons []SMBLogon
}

// share is a share. Its files are on a volume outside the node.
type share struct {
	server *server
	label  string
	volume *volume
}

// SMBLogon is one logon attempt at a server.
type SMBLogon struct {
	Share          string
	User, Password string // both empty for a guest
	Encrypted      bool
	Refused        bool
}

func newShare(s *server, m SMBShare) (*share, *ModelError) {
	v, err := Volume{ID: "5ba4e000-0000-0000-0000-000000000000", Files: m.Files}.build(nil)
	if err != nil {
		return nil, err
	}
	v.present = true
	made := &share{server: s, label: m.Name, volume: v}
	v.share = made
	return made, nil
}

// names are \\server\share with each name of the server.
func (s *share) names() (all []string) {
	for _, server := range s.server.names() {
		all = append(all, `\\`+server+`\`+s.label)
	}
	return all
}

func splitUNC(path string) (server, share, names string) {
	server, rest, _ := strings.Cut(strings.TrimPrefix(path, `\\`), `\`)
	share, names, _ = strings.Cut(rest, `\`)
	return server, share, names
}

// awaitServer waits for the server of a network path, as long as its Delay.
func (n *network) awaitServer(ctx context.Context, path string) error {
	if !strings.HasPrefix(path, `\\`) || strings.HasPrefix(path, `\\?\`) {
		return nil
	}
	name, _, _ := splitUNC(path)
	n.lock()
	s := n.byName[winpath.Fold(name)]
	n.mu.Unlock()
	if s == nil || s.Delay == 0 {
		return nil
	}
	return n.Sleep(ctx, s.Delay)
}

// startOnShare is startOf for network paths. The node has credentials only for server names
// that are mapped in the same spelling.
func (n *network) startOnShare(path string) (v *volume, root, names string, err error) {
	serverName, shareName, names := splitUNC(path)
	s := n.byName[winpath.Fold(serverName)]
	switch {
	case s == nil || s.Down:
		return nil, "", "", winerr.BadNetPath
	case shareName == "":
		return nil, "", "", winerr.BadPathname
	}
	root = `\\` + serverName + `\` + shareName
	if err := n.checkAccess(root, true); err != nil {
		return nil, "", "", err
	}
	found := s.shares[winpath.Fold(shareName)]
	if found == nil {
		return nil, "", "", winerr.BadNetName
	}
	return found.volume, root, strings.Trim(names, winpath.Separator), nil
}

// checkAccess returns the server's answer to the credentials that the node has for a share. A session that has ended
// begins again if reconnect is set.
func (n *network) checkAccess(root string, reconnect bool) error {
	m := n.mappings[winpath.Fold(root)]
	if m == nil || m.Stale {
		return winerr.LogonFailure
	}
	s := n.byName[winpath.Fold(m.server)]
	if s.KeepsSessions && !m.Idle {
		return nil
	}
	err := s.check(m.User, m.Password)
	if m.Idle && err == nil && reconnect {
		m.Idle = false
	}
	return err
}

// checkShare returns the error of an access to an open file of a share. Any name of the server
// will do.
func (n *network) checkShare(s *share, reconnect bool) error {
	if s.server.Down {
		return winerr.BadNetPath
	}
	if s.server.shares[winpath.Fold(s.label)] != s {
		return winerr.BadNetName
	}
	var failure error = winerr.LogonFailure
	for _, name := range s.names() {
		err := n.checkAccess(name, reconnect)
		if err == nil {
			return nil
		}
		failure = err
	}
	return failure
}

func (s *server) check(user, password string) error {
	if user == "" {
		if s.Guest {
			return nil
		}
		return winerr.AccessDenied
	}
	if s.DomainRequired && !strings.ContainsAny(user, `\@`) {
		return winerr.NoSuchLogonSession
	}
	account, ok := s.accountOf(user)
	if !ok {
		return winerr.LogonFailure
	}
	right := account.Password == password
	switch account.State {
	case SMBAccountLocked: // with any password, like the next two
		return winerr.AccountLockedOut
	case SMBAccountDisabled:
		return winerr.AccountDisabled
	case SMBAccountExpired:
		return winerr.AccountExpired
	case SMBAccountPasswordExpired:
		if right {
			return winerr.PasswordExpired
		}
	}
	if !right {
		return winerr.LogonFailure
	}
	return nil
}

func (s *server) accountOf(user string) (SMBAccount, bool) {
	for _, account := range s.Accounts {
		if account.isNamed(user) {
			return account, true
		}
	}
	return SMBAccount{}, false
}

func (a SMBAccount) isNamed(user string) bool {
	if !strings.ContainsAny(a.User, `\@`) {
		if i := strings.LastIndexByte(user, '\\'); i >= 0 {
			user = user[i+1:]
		}
		user, _, _ = strings.Cut(user, "@")
	}
	return winpath.Equal(a.User, user)
}

// endSessionsWith ends the sessions with a server that keeps them. mu is held.
func (n *network) endSessionsWith(s *server) {
	for _, m := range n.mappings {
		if s.KeepsSessions && n.byName[winpath.Fold(m.server)] == s {
			m.Idle = true
		}
	}
}
