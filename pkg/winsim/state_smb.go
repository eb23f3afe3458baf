package winsim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// unsavedSecret replaces a wrong secret, which is not saved. No account or target has it.
const unsavedSecret = "\x00not saved"

// serverState is an SMB server without the passwords of its accounts.
type serverState struct {
	Server SMBServer
	Shares map[string]int `json:",omitzero"` // the indexes of their volumes by name
}

// mappingState is an SMB mapping without its password.
type mappingState struct {
	Remote string
	User   string `json:",omitzero"`
	// Admitted is true if the mapping has the right password.
	Admitted bool `json:",omitzero"`
	Plain    bool `json:",omitzero"`
	Stale    bool `json:",omitzero"`
	Idle     bool `json:",omitzero"`
}

func (m SMBServer) withoutPasswords() SMBServer {
	m.Accounts = slices.Clone(m.Accounts)
	for i := range m.Accounts {
		m.Accounts[i].Password = ""
	}
	return m
}

// account finds an account by its exact name.
func (m SMBServer) account(user string) (SMBAccount, bool) {
	i := slices.IndexFunc(m.Accounts, func(a SMBAccount) bool { return a.User == user })
	if i < 0 {
		return SMBAccount{}, false
	}
	return m.Accounts[i], true
}

// smbServer finds a server of the model.
func (m Model) smbServer(name string) SMBServer {
	for _, s := range m.SMBServers {
		if s.Name == name {
			return s
		}
	}
	return SMBServer{}
}

// checkPasswords returns an error if a password is not that of the model.
func (m Model) checkPasswords(server SMBServer) error {
	for _, account := range server.Accounts {
		if known, ok := m.smbServer(server.Name).account(account.User); !ok || known.Password != account.Password {
			return fmt.Errorf("the password of %s on %s differs from the model; changed passwords cannot be saved", account.User, server.Name)
		}
	}
	return nil
}

func (s *saver) network() (servers []serverState, mappings []mappingState, err error) {
	n := s.node.network
	for _, key := range slices.Sorted(maps.Keys(n.byName)) {
		server := n.byName[key]
		if key != winpath.Fold(server.Name) {
			continue // an alias
		}
		if err := s.node.model.checkPasswords(server.SMBServer); err != nil {
			return nil, nil, err
		}
		saved := serverState{Server: server.withoutPasswords(), Shares: map[string]int{}}
		saved.Server.Shares = slices.Clone(server.Shares)
		for i := range saved.Server.Shares {
			saved.Server.Shares[i].Files = nil // only used at the start
		}
		for _, name := range slices.Sorted(maps.Keys(server.shares)) {
			saved.Shares[name] = s.volumes.index(server.shares[name].volume)
		}
		servers = append(servers, saved)
	}
	for _, key := range slices.Sorted(maps.Keys(n.mappings)) {
		m := n.mappings[key]
		mappings = append(mappings, mappingState{
			Remote: m.remote, User: m.user, Admitted: n.byName[winpath.Fold(m.server)].knows(m.user, m.password),
			Plain: m.plain, Stale: m.stale, Idle: m.idle,
		})
	}
	return servers, mappings, nil
}

// knows reports whether this is the password of a user, in any state of the account.
func (s *server) knows(user, password string) bool {
	account, ok := s.accountOf(user)
	return ok && account.Password == password
}

func (l *loader) network(saved state) error {
	n := l.node.network
	n.byName, n.mappings = map[string]*server{}, map[string]*mapping{}
	for _, s := range saved.Servers {
		made := &server{SMBServer: s.Server, shares: map[string]*share{}}
		known := l.node.model.smbServer(s.Server.Name)
		for i, account := range made.Accounts {
			found, _ := known.account(account.User)
			made.Accounts[i].Password = cmp.Or(found.Password, unsavedSecret)
		}
		for _, m := range s.Server.Shares {
			key := winpath.Fold(m.Name)
			at, ok := s.Shares[key]
			v, err := pick(l.volumes, at)
			if err != nil || !ok {
				return fmt.Errorf(`the share \\%s\%s has no files`, s.Server.Name, m.Name)
			}
			if v.fileSystem() == nil {
				return fmt.Errorf(`the share \\%s\%s has no file system`, s.Server.Name, m.Name)
			}
			made.shares[key] = &share{server: made, label: m.Name, volume: v}
			v.share = made.shares[key]
		}
		for _, name := range append([]string{s.Server.Name}, s.Server.Aliases...) {
			n.byName[winpath.Fold(name)] = made
		}
	}
	for _, s := range saved.Mappings {
		m := &mapping{remote: s.Remote, user: s.User, plain: s.Plain, stale: s.Stale, idle: s.Idle}
		m.server, _, _ = splitUNC(s.Remote)
		from := n.byName[winpath.Fold(m.server)]
		if from == nil {
			return fmt.Errorf("%s is mapped, but its server is unknown", s.Remote)
		}
		if m.user != "" && !m.stale {
			m.password = unsavedSecret
			if account, ok := from.accountOf(m.user); s.Admitted && ok {
				m.password = account.Password
			}
		}
		n.mappings[winpath.Fold(s.Remote)] = m
	}
	return nil
}
