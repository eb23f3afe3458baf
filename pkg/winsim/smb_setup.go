package winsim

import (
	"maps"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// AddSMBServer adds a server to the node's network.
func (n *Node) AddSMBServer(model SMBServer) error {
	const op = "add SMB server"
	n.lock()
	defer n.mu.Unlock()
	for _, name := range append([]string{model.Name}, model.Aliases...) {
		if n.network.byName[winpath.Fold(name)] != nil {
			return winerr.New(winerr.Exists, op, name, "the name is in use")
		}
	}
	if err := n.network.add(model, nil); err != nil {
		return winerr.New(winerr.Invalid, op, model.Name, "%w", err)
	}
	n.changed()
	return nil
}

// SMBServers describes the servers by name, without passwords and files.
func (n *Node) SMBServers() []SMBServer {
	n.lock()
	defer n.mu.Unlock()
	var all []SMBServer
	for _, key := range slices.Sorted(maps.Keys(n.network.byName)) {
		s := n.network.byName[key]
		if key != winpath.Fold(s.Name) {
			continue // an alias
		}
		described := s.describe()
		for i := range described.Accounts {
			described.Accounts[i].Password = ""
		}
		all = append(all, described)
	}
	return all
}

// describe returns a copy of the server without files.
func (s *server) describe() SMBServer {
	m := s.SMBServer
	m.Aliases, m.Accounts, m.Shares = slices.Clone(m.Aliases), slices.Clone(m.Accounts), slices.Clone(m.Shares)
	for i := range m.Shares {
		m.Shares[i].Files = nil
	}
	return m
}

// SMBMappingInfo is a snapshot of a global mapping.
type SMBMappingInfo struct {
	Remote    string // \\server\share
	Connected bool   // Windows shows it as connected
}

// SMBMappingInfos describes the mappings, sorted by Remote.
func (n *Node) SMBMappingInfos() []SMBMappingInfo {
	n.lock()
	defer n.mu.Unlock()
	var all []SMBMappingInfo
	for _, key := range slices.Sorted(maps.Keys(n.network.mappings)) {
		m := n.network.mappings[key]
		all = append(all, SMBMappingInfo{Remote: m.Remote, Connected: n.network.status(m) == win.SMBOK})
	}
	return all
}

// MkdirOnShare creates a directory and its missing parents on a share, \\server\share\dir, as
// another client of the server does. The node needs no mapping, and the server can be down. It
// does not follow links.
func (n *Node) MkdirOnShare(path string) error {
	const op = "create"
	n.lock()
	defer n.mu.Unlock()
	serverName, shareName, rest := splitUNC(strings.ReplaceAll(path, "/", winpath.Separator))
	s := n.network.byName[winpath.Fold(serverName)]
	if s == nil {
		return winerr.New(winerr.NotFound, op, path, "server %s not found", serverName)
	}
	on := s.shares[winpath.Fold(shareName)]
	if on == nil {
		return winerr.New(winerr.NotFound, op, path, `share \\%s\%s not found`, serverName, shareName)
	}
	names, problem := normalNames(rest)
	if problem != nil {
		problem.Path = path
		return winerr.As(winerr.Invalid, op, "", problem, "")
	}
	n.changed() // parents are created even if the rest fails
	fs := on.volume.fileSystem()
	at := resolvedPath{volume: on.volume, fs: fs, entry: fs.root}
	for _, name := range names {
		var err error
		if at, err = at.lookUp(at.entry, name, true); err != nil {
			return winerr.Wrap(op, path, err)
		}
		switch {
		case at.entry == nil && at.suffix.kind == noSuffix:
			at.entry = newDirectory()
			at.add(at.entry)
		case at.entry == nil || at.entry.children == nil || isLink(at.entry):
			return winerr.New(winerr.Exists, op, path, "%s is not a directory", name)
		}
	}
	return nil
}

// EndSMBSessions ends all sessions, as Windows does with idle ones. Mappings are disconnected
// until the next access.
func (n *Node) EndSMBSessions() {
	n.lock()
	defer n.mu.Unlock()
	n.changed()
	for _, m := range n.network.mappings {
		m.Idle = true
	}
}

// ChangeSMBServer changes a server while the node runs: whether it is down, its shares,
// accounts and passwords. Its names stay. Existing shares keep their files; new shares start
// with Files.
func (n *Node) ChangeSMBServer(name string, change func(*SMBServer)) error {
	const op = "change SMB server"
	n.lock()
	defer n.mu.Unlock()
	s := n.network.byName[winpath.Fold(name)]
	if s == nil {
		return winerr.New(winerr.NotFound, op, name, "server not found")
	}
	model := s.SMBServer
	model.Shares, model.Accounts = slices.Clone(model.Shares), slices.Clone(model.Accounts)
	change(&model)
	model.Name, model.Aliases = s.Name, s.Aliases
	if err := s.configure(model, nil); err != nil {
		return winerr.New(winerr.Invalid, op, name, "%w", err)
	}
	if model.Down {
		n.network.endSessionsWith(s)
	}
	n.changed()
	return nil
}

// SMBLogons returns the logon attempts at a server, oldest first.
func (n *Node) SMBLogons(name string) []SMBLogon {
	n.lock()
	defer n.mu.Unlock()
	if s := n.network.byName[winpath.Fold(name)]; s != nil {
		return slices.Clone(s.logons)
	}
	return nil
}
