// Package api is the host side of the SMB group: what pkg/smb needs from a machine (HostAPI),
// and our implementation of it.
//
// Drivers call package smb. They need this package only for New, or to write a host of their
// own for tests. The package clause is older than the directory's name and stays, so that
// existing imports compile; import it as smbapi.
//
// All hosts made here are safe for concurrent use.
package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
)

// HostAPI is a machine with an SMB client. Package smb passes shares to the methods about
// mappings as \\server\share in lower case.
type HostAPI interface {
	// IsSMBMapped reports whether the share has a mapping whose status is OK.
	IsSMBMapped(remotePath string) (bool, error)

	// NewSMBLink makes a link at localPath to a path on a share.
	NewSMBLink(remotePath, localPath string) error

	// NewSMBGlobalMapping connects the machine to a share. An empty user name
	// means the computer account in a domain, and a guest elsewhere.
	NewSMBGlobalMapping(remotePath, username, password string) error

	// RemoveSMBGlobalMapping disconnects the machine from a share.
	RemoveSMBGlobalMapping(remotePath string) error
}

// Extended is HostAPI with what was added since it was published: hosts that drivers have written still compile. Those of
// this package have it.
type Extended interface {
	HostAPI

	// WithContext returns the same host, its calls bounded by ctx.
	WithContext(ctx context.Context) HostAPI
	// Within returns the same host, limited by a policy. Nil means no limits.
	Within(p *policy.Policy) HostAPI
	// WithPrivacy returns the same host, which maps shares of servers that do not encrypt only
	// if encryption is not required.
	WithPrivacy(required bool) HostAPI
	// WithSameUser returns the same host. If required, it does not use a mapping that was
	// created for another user, or by another process, whose user it does not know.
	WithSameUser(required bool) HostAPI

	// MapSMBShare makes sure that a working mapping of the share of a remote path exists,
	// and if localPath is not empty, that a link at it leads to the remote path. It checks both paths. The mapping cannot be
	// removed in between.
	MapSMBShare(remotePath, localPath, username, password string) error
	// RemoveSMBGlobalMappingExcept disconnects the machine from a share, unless a link uses it that is not at localPath.
	RemoveSMBGlobalMappingExcept(remotePath, localPath string) error
	// LinksGone removes the mappings whose removal waits for links at or below a local path, if
	// no link uses them any more. It never fails, and takes at most a few seconds.
	LinksGone(path string)

	// MappingFacts returns what this process knows about the mapping of a share, and Windows does not list, without a call to
	// Windows.
	MappingFacts(remotePath string) MappingFacts
	// LiveLinks returns the links into a share that this process knows, by path, without those
	// that are gone. It reads each of them, and asks no file server.
	LiveLinks(ctx context.Context, remotePath string) []string
	// Exclusively calls do while no call changes mappings of the server of a remote path, or
	// links to it. The context of do goes on after ctx has ended. Package node needs it to
	// remove the link to a share that is gone: a driver may map the share at the same time, and would
	// get the answer that the link exists.
	Exclusively(ctx context.Context, remotePath, localPath string, do func(ctx context.Context) error) error
}

// New returns the host of the machine this program runs on. It is cheap: drivers create one for
// every call. All hosts it returns share their locks and what they know about links.
func New() HostAPI { return newHost(local.Machine(), &thisMachine) }

// NewOn returns the host of a given machine. Code outside this module can pass only emulated
// machines: NewOn(node) with a *winsim.Node. Two hosts of the same machine made this way do not
// know about each other's calls.
func NewOn(m win.Machine) HostAPI { return newHost(m, &machineState{}) }

var thisMachine machineState

func newHost(m win.Machine, s *machineState) boundHost {
	return boundHost{
		host: host{m: m, state: s, privacy: true},
		ctx:  context.Background(), //nolint:forbidigo // the published HostAPI has no context; WithContext replaces this one
	}
}
