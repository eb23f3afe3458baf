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

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hostctx"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
)

// HostAPI is a machine with an SMB client. Package smb passes shares to the methods about
// mappings as \\server\share in lower case.
//
// A host can also implement the other interfaces of this package, as those made here do.
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

// Mapper is a host that maps a share and links a folder to it in one step, so that the mapping
// cannot be removed in between. It checks both paths, and finds out whether an existing mapping
// still works. Package smb prefers it to the methods of HostAPI.
type Mapper interface {
	// MapSMBShare makes sure that a working mapping of the share of a remote path exists,
	// and if localPath is not empty, that a link at it leads to the remote path.
	MapSMBShare(remotePath, localPath, username, password string) error
}

// Unmapper is a host that can remove a mapping before the last link to its share. RemoveSMBGlobalMappingRequest.ExceptLink
// of package smb needs it.
type Unmapper interface {
	// RemoveSMBGlobalMappingExcept disconnects the machine from a share, unless a link uses it that is not at localPath.
	RemoveSMBGlobalMappingExcept(remotePath, localPath string) error
}

// ContextBinder is a host whose calls can be bound to a context. Package smb binds such a host
// to the context of each request. Hosts that drivers write need not implement it.
type ContextBinder interface {
	// WithContext returns the same host, its calls bounded by ctx.
	WithContext(ctx context.Context) HostAPI
}

// Limiter is a host that can be limited to working directories. The option WorkingDirs of
// package smb needs it. Only hosts of this module can implement it, because the type of the
// policy is internal.
type Limiter interface {
	// Within returns the same host, limited by a policy. Nil means no limits.
	Within(p *policy.Policy) HostAPI
}

// PrivacySetter is a host that can be set to make servers encrypt. The option
// RequirePrivacy of package smb needs it.
type PrivacySetter interface {
	// WithPrivacy returns the same host, which maps shares of servers that do not encrypt only
	// if encryption is not required.
	WithPrivacy(required bool) HostAPI
}

// UserChecker is a host that can refuse to use the mapping of another user. The option
// RefuseOtherUser of package smb needs it.
type UserChecker interface {
	// WithSameUser returns the same host. If required, it does not use a mapping that was
	// created for another user, or by another process, whose user it does not know.
	WithSameUser(required bool) HostAPI
}

// LinkWatcher is a host that removes a mapping when the last link to its share goes. SMB.LinksGone
// of package smb needs it.
type LinkWatcher interface {
	// LinksGone removes the mappings whose removal waits for links at or below a local path, if
	// no link uses them any more. It never fails, and takes at most a few seconds.
	LinksGone(path string)
}

// Excluder is a host that can keep its own changes away from a server. Package node needs it to
// remove the link to a share that is gone: a driver may map the share at the same time, and would
// get the answer that the link exists.
type Excluder interface {
	// Exclusively calls do while no call changes mappings of the server of a remote path, or
	// links to it. The context of do goes on after that of the host has ended.
	Exclusively(remotePath, localPath string, do func(ctx context.Context) error) error
}

// What package smb asserts of any HostAPI is the same.
var (
	_ hostctx.Binder[HostAPI] = ContextBinder(nil)
	_ policy.Limiter[HostAPI] = Limiter(nil)
)

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
