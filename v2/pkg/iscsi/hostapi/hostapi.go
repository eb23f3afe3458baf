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
	"sync"

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
type HostAPI interface {
	// AddTargetPortal registers a portal for discovery, and asks it for its
	// targets.
	AddTargetPortal(portal *TargetPortal) error

	// DiscoverTargetPortal asks a registered portal for its targets and returns
	// their qualified names.
	DiscoverTargetPortal(portal *TargetPortal) ([]string, error)

	// ListTargetPortals returns the registered portals.
	ListTargetPortals() ([]TargetPortal, error)

	// RemoveTargetPortal removes the registration of a portal.
	RemoveTargetPortal(portal *TargetPortal) error

	// ConnectTarget logs in to a target, unless there is a session. The type of
	// authentication: NONE, ONEWAYCHAP or MUTUALCHAP; user and secret matter to
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
// their queues. On other systems than Windows its methods fail with an error for which
// errors.Is(err, errors.ErrUnsupported) holds.
func New() HostAPI { return bind(thisMachine()) }

// NewOn returns the host of a given machine. Outside this module that is an emulated one:
// NewOn(node) with a *winsim.Node. Two hosts made so for the same machine do not share their
// queues.
func NewOn(m win.Machine) HostAPI { return bind(&host{m: m}) }

// thisMachine is made when it is first used: importing a package does no work.
var thisMachine = sync.OnceValue(func() *host { return &host{m: local.Machine()} })
