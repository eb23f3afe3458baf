// Package api is the host side of the SMB group: what pkg/smb needs from a machine (HostAPI),
// and our implementation of it.
//
// Drivers call package smb and come here only for New, or to write a host of
// their own for tests. The package clause is older than the directory's name and
// stays, so that existing imports compile; import it as smbapi.
//
// It compiles on every system. Elsewhere than on Windows the methods of the host that
// New returns fail with an error that matches errors.ErrUnsupported; tests use the
// emulated node of pkg/winsim instead. All hosts made here are safe for concurrent use.
package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
)

// HostAPI is a machine with an SMB client. Package smb calls the methods that
// deal in mappings with \\server\share in lower case.
//
// A host may also have a method WithContext(context.Context) HostAPI; package smb
// then calls the host it returns, bound to the context of the request. And it may be a
// Mapper, as those made here are.
type HostAPI interface {
	// IsSMBMapped tells whether the share has a mapping whose status is good.
	IsSMBMapped(remotePath string) (bool, error)

	// NewSMBLink makes a link at localPath to a path on a share.
	NewSMBLink(remotePath, localPath string) error

	// NewSMBGlobalMapping connects the machine to a share. An empty user name
	// means guest.
	NewSMBGlobalMapping(remotePath, username, password string) error

	// RemoveSMBGlobalMapping disconnects the machine from a share.
	RemoveSMBGlobalMapping(remotePath string) error
}

// Mapper is a host that maps a share and links a folder to it in one step. Nobody can remove
// the mapping between the two, and the host sees by itself whether a mapping that is there
// still works. Package smb prefers it to the other methods.
type Mapper interface {
	// MapSMBShare makes sure that a working mapping of the share of a remote path exists,
	// and if localPath is not empty, that a link at it leads to the remote path.
	MapSMBShare(remotePath, localPath, username, password string) error
}

var _ interface {
	HostAPI
	Mapper
} = host{}

// New returns the host of the machine we run on. It is cheap, and all hosts it returns share
// their locks and what they know of links: drivers make a new one for every call.
func New() HostAPI { return newHost(local.Machine(), &thisMachine) }

// NewOn returns the host of a given machine. Outside this module the only machines to be
// had are emulated ones: NewOn(node) with a *winsim.Node. Calls through two hosts of the
// same machine made so do not know of each other.
func NewOn(m win.Machine) HostAPI { return newHost(m, &machineState{}) }

// thisMachine is what all calls to the machine we run on share.
var thisMachine machineState

func newHost(m win.Machine, s *machineState) host {
	return host{m: m, state: s, privacy: true, ctx: context.Background()} //nolint:forbidigo // the published HostAPI has no context; WithContext replaces this one
}
