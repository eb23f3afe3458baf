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
	Name           string        `yaml:"name"`           // the host name or address of the server
	Aliases        []string      `yaml:"aliases"`        // more names and addresses. Windows treats each as a separate server.
	Shares         []SMBShare    `yaml:"shares"`         // its shares
	Accounts       []SMBAccount  `yaml:"accounts"`       // the users of the server
	Guest          bool          `yaml:"guest"`          // allows access without a user name. Otherwise that fails with ERROR_ACCESS_DENIED (5).
	NoEncryption   bool          `yaml:"noEncryption"`   // makes the server refuse encrypted connections with ERROR_NETWORK_ACCESS_DENIED (65)
	DomainRequired bool          `yaml:"domainRequired"` // makes Windows refuse users without a domain: ERROR_NO_SUCH_LOGON_SESSION (1312), csi-driver-smb#161
	KeepsSessions  bool          `yaml:"keepsSessions"`  // lets sessions go on after a password was changed, until they end
	Down           bool          `yaml:"down"`           // makes the server unreachable: ERROR_BAD_NETPATH (53)
	Delay          time.Duration `yaml:"delay"`          // the server's response time on the node's clock, and the timeout while it is down
}

// SMBShare is a share of a server with its own file tree.
type SMBShare struct {
	Name      string `yaml:"name"`
	Files     []File `yaml:"files"`     // on the share at the start. Paths start at its root.
	MappedFor string `yaml:"mappedFor"` // the account for which the node has mapped the share before the start, persistently; empty for none
}

// SMBMapping is a global mapping of a share. Opening a path on the share needs a mapping with the same server name whose
// user and password the server accepts now; otherwise it fails with 53, 67, 1326 or the code of the account's state. A
// second mapping of a share fails with 85, another user for the same server with 1219. Links in a share fail with 1463.
type SMBMapping struct {
	Remote     string `yaml:"remote"` // \\server\share
	User       string `yaml:"user"`   // empty for a guest
	Password   string `yaml:"password"`
	Plain      bool   `yaml:"plain"`      // it was created without required encryption
	Persistent bool   `yaml:"persistent"` // a restart of the node leaves it, without its credentials
	Stale      bool   `yaml:"stale"`      // a restart of the node took its credentials
	Idle       bool   `yaml:"idle"`       // Windows has ended its session. The next access begins another.
}

// SMBAccount is a user of a server.
type SMBAccount struct {
	// User is the name. DOMAIN\user matches only as a whole, a name without a domain matches any, as in Samba.
	User     string          `yaml:"user"`
	Password string          `yaml:"password"`
	State    SMBAccountState `yaml:"state"` // empty for a usable account
}

// SMBAccountState is the reason why an account cannot be used.
type SMBAccountState string

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

func newNetwork(c *clock, node Model) (*network, *ModelError) {
	n := &network{clock: c, alwaysPersistent: node.SMBAlwaysPersistent, byName: map[string]*server{}, mappings: map[string]*mapping{}}
	for i, model := range node.SMBServers {
		if err := n.add(model); err != nil {
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

func (n *network) add(model SMBServer) *ModelError {
	s := &server{shares: map[string]*share{}}
	if err := s.configure(model); err != nil {
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
func (s *server) configure(model SMBServer) *ModelError {
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
		made, err := newShare(s, m)
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
	return nil
}
