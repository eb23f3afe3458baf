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

// TargetPortal is the network address of a server that offers targets. The tags
// are the names that Windows' own tools print.
type TargetPortal struct {
	// Address is a host name or an IP address.
	Address string `json:"TargetPortalAddress"`
	// Port is a TCP port, never 0.
	Port uint32 `json:"TargetPortalPortNumber"`
}

// HostAPI is a machine with an iSCSI initiator. Portals are never nil and names
// never empty when package iscsi calls it.
//
// A host may also have a method WithContext(context.Context) HostAPI; package
// iscsi then calls the host it returns, bound to the context of the request.
type HostAPI interface {
	// AddTargetPortal registers a portal for discovery.
	AddTargetPortal(portal *TargetPortal) error

	// DiscoverTargetPortal asks a portal for its targets and returns their
	// qualified names.
	DiscoverTargetPortal(portal *TargetPortal) ([]string, error)

	// ListTargetPortals returns the registered portals.
	ListTargetPortals() ([]TargetPortal, error)

	// RemoveTargetPortal takes back the registration of a portal.
	RemoveTargetPortal(portal *TargetPortal) error

	// ConnectTarget logs in to a target. The type of authentication is NONE,
	// ONEWAYCHAP or MUTUALCHAP; user and secret matter to the last two.
	ConnectTarget(portal *TargetPortal, iqn string, authType string,
		chapUser string, chapSecret string) error

	// DisconnectTarget logs out of a target.
	DisconnectTarget(portal *TargetPortal, iqn string) error

	// GetTargetDisks returns the numbers, in decimal, of the disks of a target
	// that is logged in.
	GetTargetDisks(portal *TargetPortal, iqn string) ([]string, error)

	// SetMutualChapSecret sets the node's secret for mutual CHAP.
	SetMutualChapSecret(mutualChapSecret string) error
}
