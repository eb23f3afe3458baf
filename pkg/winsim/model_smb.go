package winsim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
)

// SMBServer is a file server in the node's network. It lives on when the node is restarted.
type SMBServer struct {
	// Name is how the node finds the server: a name or an address.
	Name string `yaml:"name"`
	// Aliases are other names and addresses of it. To Windows each is a server of its own.
	Aliases []string `yaml:"aliases"`
	// Shares are what it offers.
	Shares []SMBShare `yaml:"shares"`
	// Accounts are who may use them.
	Accounts []SMBAccount `yaml:"accounts"`
	// Guest lets in those who give no user name.
	Guest bool `yaml:"guest"`
	// NoEncryption makes the server refuse those who insist on it, with code 65.
	NoEncryption bool `yaml:"noEncryption"`
	// Down takes the server off the network: code 53.
	Down bool `yaml:"down"`
	// Delay is how long the server takes for each answer, on the node's clock. A server
	// that is down takes as long to be given up on.
	Delay time.Duration `yaml:"delay"`
}

// SMBShare is a share of a server, with a file tree of its own.
type SMBShare struct {
	Name string `yaml:"name"`
	// Files are there at the start; their paths begin at the root of the share.
	Files []File `yaml:"files"`
}

// SMBAccount is a user of a server.
type SMBAccount struct {
	// User is the name. One with a domain, as DOMAIN\user, must be given so; one without
	// is found with any domain or none, as Samba does it.
	User     string `yaml:"user"`
	Password string `yaml:"password"`
	// State is empty for an account that can be used.
	State SMBAccountState `yaml:"state"`
}

// SMBAccountState says why an account cannot be used.
type SMBAccountState string

// The states.
const (
	SMBAccountLocked          SMBAccountState = "locked"           // code 1909
	SMBAccountDisabled        SMBAccountState = "disabled"         // code 1331
	SMBAccountExpired         SMBAccountState = "expired"          // code 1793
	SMBAccountPasswordExpired SMBAccountState = "password-expired" // code 1330
)

// newNetwork makes the servers of a model.
func newNetwork(servers []SMBServer) (network, *ModelError) {
	n := network{byName: map[string]*server{}, mappings: map[string]*mapping{}}
	for i, model := range servers {
		if err := n.add(model); err != nil {
			return n, err.at("smbServers", i)
		}
	}
	return n, nil
}

func (n *network) add(model SMBServer) *ModelError {
	s := &server{shares: map[string]*share{}}
	if err := s.configure(model); err != nil {
		return err
	}
	for i, name := range append([]string{model.Name}, model.Aliases...) {
		if n.byName[winpath.Fold(name)] != nil {
			if i == 0 {
				return problem("name", "%q is used twice", name)
			}
			return problem(fmt.Sprintf("aliases[%d]", i-1), "%q is used twice", name)
		}
		n.byName[winpath.Fold(name)] = s
	}
	return nil
}

// configure makes the server what the model says. Shares that it has keep their files.
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
	for i, name := range append([]string{m.Name}, m.Aliases...) {
		if _, err := unc.Parse("", `\\`+name+`\x`); err != nil || strings.ContainsAny(name, `\/`) {
			field := "name"
			if i > 0 {
				field = fmt.Sprintf("aliases[%d]", i-1)
			}
			return problem(field, "%q is not the name or address of a server", name)
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
