package winsim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// SMBServer is a file server in the node's network. A reboot of the node does not affect it.
type SMBServer struct {
	// Name is the host name or address of the server.
	Name string `yaml:"name" json:"name,omitzero"`
	// Aliases are more names and addresses. Windows treats each as a separate server.
	Aliases []string `yaml:"aliases" json:"aliases,omitzero"`
	// Shares are its shares.
	Shares []SMBShare `yaml:"shares" json:"shares,omitzero"`
	// Accounts are the users of the server.
	Accounts []SMBAccount `yaml:"accounts" json:"accounts,omitzero"`
	// Guest allows access without a user name. Otherwise that fails with ERROR_ACCESS_DENIED (5).
	Guest bool `yaml:"guest" json:"guest,omitzero"`
	// NoEncryption makes the server refuse encrypted connections with
	// ERROR_NETWORK_ACCESS_DENIED (65).
	NoEncryption bool `yaml:"noEncryption" json:"noEncryption,omitzero"`
	// DomainRequired makes Windows refuse user names without a domain with
	// ERROR_NO_SUCH_LOGON_SESSION (1312), as in
	// https://github.com/kubernetes-csi/csi-driver-smb/issues/161.
	DomainRequired bool `yaml:"domainRequired" json:"domainRequired,omitzero"`
	// KeepsSessions lets sessions go on after a password was changed, until they end, as
	// servers do: they check a password when a session begins.
	KeepsSessions bool `yaml:"keepsSessions" json:"keepsSessions,omitzero"`
	// Down makes the server unreachable: ERROR_BAD_NETPATH (53).
	Down bool `yaml:"down" json:"down,omitzero"`
	// Delay is the server's response time on the node's clock, and the timeout while it is
	// down.
	Delay time.Duration `yaml:"delay" json:"delay,omitzero"`
}

// SMBShare is a share of a server with its own file tree.
type SMBShare struct {
	Name string `yaml:"name" json:"name,omitzero"`
	// Files are on the share at the start. Paths start at its root.
	Files []File `yaml:"files" json:"files,omitzero"`
	// MappedFor is the account for which the node has mapped the share before the start, persistently, also
	// if the server is down since; empty for none.
	MappedFor string `yaml:"mappedFor" json:"mappedFor,omitzero"`
}

// SMBMapping is a global mapping of a share.
//
//   - Opening a path on a share needs a mapping with the same server name whose user and password the server accepts
//     now. Otherwise it fails: 53 if the server is unreachable, 67 if the share is missing, 1326 or the code of the
//     account's state.
//   - The status shows whether the server is down, but not that a password has changed.
//   - A second mapping of a share fails with 85, another user for the same server with 1219.
//   - Links inside a share are not followed: 1463.
type SMBMapping struct {
	Remote   string `yaml:"remote" json:"remote,omitzero"` // \\server\share
	User     string `yaml:"user" json:"user,omitzero"`     // empty for a guest
	Password string `yaml:"password" json:"password,omitzero"`
	// Plain means that it was created without required encryption.
	Plain bool `yaml:"plain" json:"plain,omitzero"`
	// Persistent means that a restart of the node leaves it, without its credentials.
	Persistent bool `yaml:"persistent" json:"persistent,omitzero"`
	// Stale means that a restart of the node took its credentials.
	Stale bool `yaml:"stale" json:"stale,omitzero"`
	// Idle means that Windows has ended its session. The next access begins another.
	Idle bool `yaml:"idle" json:"idle,omitzero"`
}

// SMBAccount is a user of a server.
type SMBAccount struct {
	// User is the name. A name with a domain, DOMAIN\user, matches only as a whole; a name
	// without one matches any domain, as in Samba.
	User     string `yaml:"user" json:"user,omitzero"`
	Password string `yaml:"password" json:"password,omitzero"`
	// State is empty for a usable account.
	State SMBAccountState `yaml:"state" json:"state,omitzero"`
}

// SMBAccountState is the reason why an account cannot be used.
type SMBAccountState string

// The states.
const (
	SMBAccountLocked          SMBAccountState = "locked"           // ERROR_ACCOUNT_LOCKED_OUT (1909)
	SMBAccountDisabled        SMBAccountState = "disabled"         // ERROR_ACCOUNT_DISABLED (1331)
	SMBAccountExpired         SMBAccountState = "expired"          // ERROR_ACCOUNT_EXPIRED (1793)
	SMBAccountPasswordExpired SMBAccountState = "password-expired" // ERROR_PASSWORD_EXPIRED (1330)
)

func (m SMBServer) names() []string { return append([]string{m.Name}, m.Aliases...) }

func (m SMBServer) nameField(i int) string {
	if i == 0 {
		return "name"
	}
	return fmt.Sprintf("aliases[%d]", i-1)
}

func newNetwork(c *clock, node Model, now *resumption) (*network, *ModelError) {
	n := &network{clock: c, alwaysPersistent: node.SMBAlwaysPersistent, byName: map[string]*server{}, mappings: map[string]*mapping{}}
	for i, model := range node.SMBServers {
		if err := n.add(model, now); err != nil {
			return n, err.at("smbServers", i)
		}
	}
	for i, m := range node.SMBMappings {
		name, _, _ := splitUNC(m.Remote)
		if n.byName[winpath.Fold(name)] == nil {
			return n, problem("remote", "%q is not on a server of the model", m.Remote).at("smbMappings", i)
		}
		n.mappings[winpath.Fold(m.Remote)] = &mapping{m, name}
	}
	return n, nil
}

func (n *network) add(model SMBServer, now *resumption) *ModelError {
	s := &server{shares: map[string]*share{}}
	if err := s.configure(model, now); err != nil {
		return err
	}
	for i, name := range model.names() {
		if n.byName[winpath.Fold(name)] != nil {
			return problem(model.nameField(i), "%q is used twice", name)
		}
		n.byName[winpath.Fold(name)] = s
	}
	for i, share := range model.Shares {
		if share.MappedFor == "" {
			continue
		}
		account, ok := s.accountOf(share.MappedFor)
		if !ok {
			return problem("mappedFor", "the server has no account %q", share.MappedFor).at("shares", i)
		}
		remote := `\\` + model.Name + `\` + share.Name
		n.mappings[winpath.Fold(remote)] = &mapping{SMBMapping{Remote: remote, User: share.MappedFor, Password: account.Password, Persistent: true}, model.Name}
	}
	return nil
}

// configure applies the model to the server. Existing shares keep their files.
func (s *server) configure(model SMBServer, now *resumption) *ModelError {
	if err := model.validate(); err != nil {
		return err
	}
	shares := map[string]*share{}
	for i, m := range model.Shares {
		key := winpath.Fold(m.Name)
		if shares[key] != nil {
			return problem("name", "%q is used twice", m.Name).at("shares", i)
		}
		if shares[key] = s.shares[key]; shares[key] != nil {
			continue
		}
		made, err := newShare(s, m, now)
		if err != nil {
			return err.at("shares", i)
		}
		shares[key] = made
	}
	s.SMBServer, s.shares = model, shares
	return nil
}

func (m SMBServer) validate() *ModelError {
	for i, name := range m.names() {
		if _, err := unc.Parse("", `\\`+name+`\x`); err != nil || strings.ContainsAny(name, `\/`) {
			return problem(m.nameField(i), "%q is not the name or address of a server", name)
		}
	}
	for i, share := range m.Shares {
		path, err := unc.Parse("", `\\x\`+share.Name)
		if err != nil || path.CheckMappable("") != nil || strings.ContainsAny(share.Name, `\/`) {
			return problem("name", "%q is not the name of a share", share.Name).at("shares", i)
		}
	}
	for i, account := range m.Accounts {
		same := func(other SMBAccount) bool { return winpath.Equal(other.User, account.User) }
		switch {
		case account.User == "":
			return problem("user", "user is missing; to allow access without a user, set guest").at("accounts", i)
		case slices.ContainsFunc(m.Accounts[:i], same):
			return problem("user", "%q is used twice", account.User).at("accounts", i)
		}
		if err := oneOf("state", account.State, SMBAccountLocked, SMBAccountDisabled, SMBAccountExpired, SMBAccountPasswordExpired); err != nil {
			return err.at("accounts", i)
		}
	}
	return notNegative("delay", m.Delay)
}
