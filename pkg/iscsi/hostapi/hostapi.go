// Package api says what package iscsi needs from the machine below it, and
// provides that machine.
//
// Drivers call package iscsi and come here only for New, or to write a host of
// their own for tests. The package clause is older than the directory's name and
// stays, so that existing imports compile; import it as iscsiapi.
//
// It compiles on every system. The host that New returns is safe for concurrent
// use.
package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
)

// TargetPortal is the network address of a server that offers targets. The tags
// are the names that Windows' own tools print.
type TargetPortal struct {
	// Address is a host name or an IP address.
	Address string `json:"TargetPortalAddress"`
	// Port is a TCP port, never 0.
	Port uint32 `json:"TargetPortalPortNumber"`
}

// HostAPI is a machine with an iSCSI initiator. Portals, names and credentials have
// the right form when package iscsi calls it: portals are never nil, for instance,
// and user and secret are empty unless CHAP is asked for. Every method may be called
// again with the same arguments.
//
// A host may also have a method WithContext(context.Context) HostAPI; package
// iscsi then calls the host it returns, bound to the context of the request.
type HostAPI interface {
	// AddTargetPortal registers a portal for discovery, and asks it for its
	// targets.
	AddTargetPortal(portal *TargetPortal) error

	// DiscoverTargetPortal asks a registered portal for its targets and returns
	// their qualified names.
	DiscoverTargetPortal(portal *TargetPortal) ([]string, error)

	// ListTargetPortals returns the registered portals.
	ListTargetPortals() ([]TargetPortal, error)

	// RemoveTargetPortal takes back the registration of a portal.
	RemoveTargetPortal(portal *TargetPortal) error

	// ConnectTarget logs in to a target, unless there is a session. The type of
	// authentication is NONE, ONEWAYCHAP or MUTUALCHAP; user and secret matter to
	// the last two.
	ConnectTarget(portal *TargetPortal, iqn string, authType string,
		chapUser string, chapSecret string) error

	// DisconnectTarget logs out of a target, of all its sessions.
	DisconnectTarget(portal *TargetPortal, iqn string) error

	// GetTargetDisks returns the numbers, in decimal, of the disks of a target
	// that is logged in.
	GetTargetDisks(portal *TargetPortal, iqn string) ([]string, error)

	// SetMutualChapSecret sets the node's secret for mutual CHAP.
	SetMutualChapSecret(mutualChapSecret string) error
}

// New returns the host of the machine we run on. It is cheap, and all hosts it returns share
// their locks. Elsewhere than on Windows its methods fail with an error for which
// errors.Is(err, errors.ErrUnsupported) holds.
func New() HostAPI { return newHost(local.Machine(), &thisMachine) }

// NewOn returns the host of a given machine. Outside this module the only machines to be had
// are emulated ones: NewOn(node) with a *winsim.Node. Calls through two hosts of the same
// machine made so do not know of each other.
func NewOn(m win.Machine) HostAPI { return newHost(m, &shared{}) }

// thisMachine is what all calls to the machine we run on share.
var thisMachine shared

func newHost(m win.Machine, s *shared) host {
	return host{m: m, shared: s, ctx: context.Background()} //nolint:forbidigo // the published HostAPI has no context; WithContext replaces this one
}
