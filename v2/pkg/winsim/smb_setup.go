package winsim

import (
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// mkdir creates a directory and its missing parents on a share, \\server\share\dir, as another client
// of the server does: the node needs no mapping, and the server can be down.
func (n *network) mkdir(path string) error {
	const op = "create"
	serverName, shareName, rest := splitUNC(path)
	s := n.byName[winpath.Fold(serverName)]
	if s == nil {
		return winerr.New(winerr.NotFound, op, path, "server %s not found", serverName)
	}
	on := s.shares[winpath.Fold(shareName)]
	if on == nil {
		return winerr.New(winerr.NotFound, op, path, `share \\%s\%s not found`, serverName, shareName)
	}
	if err := on.volume.fileSystem().addFile(File{Path: rest}, newDirectory()); err != nil {
		return winerr.New(winerr.Invalid, op, path, "%s", err.Problem)
	}
	return nil
}

// EndSMBSessions ends all sessions, as Windows does with idle ones, until the next access.
func (n *Node) EndSMBSessions() {
	defer n.lock()()
	for _, m := range n.network.mappings {
		m.Idle = true
	}
}

// ChangeSMBServer changes a server: whether it is down, its shares, accounts and passwords. Its names stay, and existing
// shares keep their files.
func (n *Node) ChangeSMBServer(name string, change func(*SMBServer)) error {
	const op = "change SMB server"
	defer n.lock()()
	s := n.network.byName[winpath.Fold(name)]
	if s == nil {
		return winerr.New(winerr.NotFound, op, name, "server not found")
	}
	model := s.SMBServer
	model.Shares, model.Accounts = slices.Clone(model.Shares), slices.Clone(model.Accounts)
	change(&model)
	model.Name, model.Aliases = s.Name, s.Aliases
	if err := s.configure(model); err != nil {
		return winerr.New(winerr.Invalid, op, name, "%w", err)
	}
	if model.Down {
		n.network.endSessionsWith(s)
	}
	return nil
}

// SMBLogons returns the logon attempts at a server, oldest first.
func (n *Node) SMBLogons(name string) []SMBLogon {
	defer n.lock()()
	if s := n.network.byName[winpath.Fold(name)]; s != nil {
		return slices.Clone(s.logons)
	}
	return nil
}
