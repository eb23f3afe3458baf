package iscsi

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"

// AuthenticationType is how initiator and target authenticate at a login.
type AuthenticationType uint32

// The ways to authenticate, numbered as on the wire.
const (
	// NONE means no authentication.
	NONE = 0
	// ONE_WAY_CHAP means the initiator proves itself to the target.
	ONE_WAY_CHAP = 1
	// MUTUAL_CHAP means initiator and target prove themselves to each other.
	MUTUAL_CHAP = 2
)

// AuthTypeToString returns the name by which hosts know an authentication type.
func AuthTypeToString(authType AuthenticationType) (string, error) {
	switch authType {
	case NONE:
		return "NONE", nil
	case ONE_WAY_CHAP:
		return "ONEWAYCHAP", nil
	case MUTUAL_CHAP:
		return "MUTUALCHAP", nil
	}
	return "", winerr.New(winerr.Invalid, "choose authentication type", "",
		"%d is invalid; use 0 (none), 1 (one-way CHAP) or 2 (mutual CHAP)", uint32(authType))
}

// TargetPortal is the network address of a server that offers targets.
type TargetPortal struct {
	// TargetAddress is a host name or an IP address, of up to 255 bytes.
	TargetAddress string
	// TargetPort is a TCP port; 0 means 3260, the usual one.
	TargetPort uint32
}

// AddTargetPortalRequest names the portal to register.
type AddTargetPortalRequest struct {
	// TargetPortal must not be nil.
	TargetPortal *TargetPortal
}

// AddTargetPortalResponse is empty: the portal is registered.
type AddTargetPortalResponse struct{}

// ConnectTargetRequest says how to log in to a target.
type ConnectTargetRequest struct {
	// TargetPortal is the portal to log in through. It must not be nil.
	TargetPortal *TargetPortal
	// IQN is the name of the target: iqn.2001-04.com.example:storage, or one that
	// begins with eui. or naa. Case does not matter.
	IQN string
	// AuthType defaults to NONE.
	AuthType AuthenticationType
	// ChapUsername is the name the initiator gives with CHAP: up to 255 printable
	// ASCII characters. Empty means the initiator's own name. It is ignored without
	// CHAP.
	ChapUsername string
	// ChapSecret is the secret by which the initiator proves itself with CHAP: 12 to
	// 16 bytes. It is never logged, and ignored without CHAP.
	ChapSecret string
}

// ConnectTargetResponse is empty: the target is logged in.
type ConnectTargetResponse struct{}

// DisconnectTargetRequest names the target to log out of.
type DisconnectTargetRequest struct {
	// TargetPortal is the portal of the login. It must not be nil.
	TargetPortal *TargetPortal
	// IQN is the qualified name of the target.
	IQN string
}

// DisconnectTargetResponse is empty: the target is logged out.
type DisconnectTargetResponse struct{}

// DiscoverTargetPortalRequest names the portal to ask.
type DiscoverTargetPortalRequest struct {
	// TargetPortal must not be nil.
	TargetPortal *TargetPortal
}

// DiscoverTargetPortalResponse holds what the portal offers.
type DiscoverTargetPortalResponse struct {
	// IQNs are the qualified names of the targets.
	IQNs []string
}

// GetTargetDisksRequest names a target that is logged in.
type GetTargetDisksRequest struct {
	// TargetPortal is the portal of the login. It must not be nil.
	TargetPortal *TargetPortal
	// IQN is the qualified name of the target.
	IQN string
}

// GetTargetDisksResponse holds the disks of a target.
type GetTargetDisksResponse struct {
	// DiskIDs are disk numbers in decimal.
	DiskIDs []string
}

// ListTargetPortalsRequest asks for the registered portals.
type ListTargetPortalsRequest struct{}

// ListTargetPortalsResponse holds the registered portals.
type ListTargetPortalsResponse struct {
	// TargetPortals holds no nil. The caller owns it.
	TargetPortals []*TargetPortal
}

// RemoveTargetPortalRequest names the portal to forget.
type RemoveTargetPortalRequest struct {
	// TargetPortal must not be nil.
	TargetPortal *TargetPortal
}

// RemoveTargetPortalResponse is empty: the portal is not registered.
type RemoveTargetPortalResponse struct{}

// SetMutualChapSecretRequest holds the node's secret for mutual CHAP.
type SetMutualChapSecretRequest struct {
	// MutualChapSecret has 12 to 16 bytes. It is never logged.
	MutualChapSecret string
}

// SetMutualChapSecretResponse is empty: the secret is set.
type SetMutualChapSecretResponse struct{}
