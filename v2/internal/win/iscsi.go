package win

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// ISCSI is the part of a machine that is its iSCSI initiator, one method per function of
// iscsidsc.dll. The functions answer statuses of their own, such as winerr.ISCSITargetNotFound,
// besides codes of Windows; both are winerr.Codes.
//
// If the service MSiSCSI does not run, every method fails with winerr.ISCSIServiceNotRunning,
// winerr.ISCSIServiceDidNotRespond or RPC_S_SERVER_UNAVAILABLE (1722).
//
// https://learn.microsoft.com/windows/win32/iscsidisc/iscsi-discovery-library-api-reference
type ISCSI interface {
	// ReportSendTargetPortals lists the portals that are registered for discovery:
	// ReportIScsiSendTargetPortalsW.
	ReportSendTargetPortals(ctx context.Context) ([]SendTargetPortal, error)

	// AddSendTargetPortal registers a portal, for good, and asks it for its targets:
	// AddIScsiSendTargetPortalW, with any initiator and any of its ports.
	// It fails with winerr.ISCSIPortalAlreadyExists if the portal is registered.
	AddSendTargetPortal(ctx context.Context, portal TargetPortal) error

	// RefreshSendTargetPortal asks a registered portal for its targets again:
	// RefreshIScsiSendTargetPortalW. One that is not registered answers
	// winerr.ISCSIPortalNotFound.
	RefreshSendTargetPortal(ctx context.Context, portal TargetPortal) error

	// RemoveSendTargetPortal takes a registration back: RemoveIScsiSendTargetPortalW. It
	// takes an entry of ReportSendTargetPortals.
	RemoveSendTargetPortal(ctx context.Context, portal SendTargetPortal) error

	// ReportTargets lists the names of the targets that were discovered, without asking
	// their portals: ReportIScsiTargetsW.
	ReportTargets(ctx context.Context) ([]string, error)

	// ReportTargetPortals lists the portals of a target that was discovered:
	// ReportIScsiTargetPortalsW.
	ReportTargetPortals(ctx context.Context, target string) ([]TargetPortal, error)

	// Login logs in to a target that was discovered, for this run of the machine:
	// LoginIScsiTargetW. It takes as long as the target, often many seconds, and goes on
	// after ctx has ended. It sometimes fails with ERROR_INSUFFICIENT_BUFFER (122) for no
	// reason; a retry succeeds.
	Login(ctx context.Context, login Login) (SessionID, error)

	// Sessions lists the sessions of all targets: GetIScsiSessionListW.
	Sessions(ctx context.Context) ([]Session, error)

	// DevicesForSession lists the devices that a session has brought:
	// GetDevicesForIScsiSessionW. It answers winerr.ISCSIDeviceBusy or
	// winerr.ISCSISessionBusy while the session is new.
	DevicesForSession(ctx context.Context, id SessionID) ([]SessionDevice, error)

	// Logout ends a session: LogoutIScsiTarget. While a disk of the session is in use it
	// answers winerr.ISCSIDeviceBusy or winerr.ISCSISessionBusy. It can take minutes, and
	// goes on after ctx has ended.
	Logout(ctx context.Context, id SessionID) error

	// PersistentLogins lists the logins that Windows repeats when it starts:
	// ReportIScsiPersistentLoginsW.
	PersistentLogins(ctx context.Context) ([]PersistentLogin, error)

	// RemovePersistentTarget takes one of them off the list: RemoveIScsiPersistentTargetW.
	// It takes an entry of PersistentLogins.
	RemovePersistentTarget(ctx context.Context, login PersistentLogin) error

	// SetInitiatorCHAPSharedSecret sets the secret by which targets prove themselves:
	// SetIScsiInitiatorCHAPSharedSecret. There is one for the whole machine.
	SetInitiatorCHAPSharedSecret(ctx context.Context, secret Secret) error
}

// TargetPortal is ISCSI_TARGET_PORTAL: where a server offers targets.
type TargetPortal struct {
	SymbolicName string // not used by us, but Windows compares it
	Address      string // a host name or an IP address, without brackets
	Port         uint16
}

// String is the portal as people write it: 10.0.0.10:3260, [fe80::1]:3260.
func (p TargetPortal) String() string {
	return net.JoinHostPort(p.Address, strconv.FormatUint(uint64(p.Port), 10))
}

// AnyInitiatorPort is ISCSI_ANY_INITIATOR_PORT: Windows chooses the network interface.
const AnyInitiatorPort uint32 = 0xFFFFFFFF

// SendTargetPortal is the part of ISCSI_TARGET_PORTAL_INFO that we use: a registered portal.
type SendTargetPortal struct {
	Portal            TargetPortal
	InitiatorInstance string // the adapter; empty means any
	InitiatorPort     uint32
}

// AuthType is ISCSI_AUTH_TYPES, how a login proves who is who.
type AuthType uint32

// The types.
const (
	NoAuth     AuthType = 0
	OneWayCHAP AuthType = 1
	MutualCHAP AuthType = 2
)

// Login says how to log in to a target.
type Login struct {
	Target string
	Portal TargetPortal
	Auth   AuthType
	// User and Secret are used with CHAP only. An empty user means the name of the initiator.
	User   string
	Secret Secret
	// Multipath allows a session beside others of the target. Without multipathing software, that is MPIO,
	// "data corruption will occur on the target":
	// https://learn.microsoft.com/windows/win32/api/iscsidsc/ns-iscsidsc-iscsi_login_options
	Multipath bool
}

// SessionID is ISCSI_UNIQUE_SESSION_ID.
type SessionID struct {
	AdapterUnique   uint64
	AdapterSpecific uint64
}

// String is the id as text.
func (id SessionID) String() string {
	return fmt.Sprintf("%x-%x", id.AdapterUnique, id.AdapterSpecific)
}

// Session is the part of ISCSI_SESSION_INFO that we use. Microsoft's page and published code
// disagree on which of the two names is the target's; compare both.
type Session struct {
	ID             SessionID
	TargetNodeName string
	TargetName     string
	Connections    uint32 // 0 while Windows tries to connect again
	// Portals are where the connections lead. A target may have redirected a login to another of its portals.
	Portals []TargetPortal
}

// IsOf reports whether it is a session of a target.
func (s Session) IsOf(target string) bool {
	return SameTarget(s.TargetNodeName, target) || SameTarget(s.TargetName, target)
}

// SessionDevice is the part of ISCSI_DEVICE_ON_SESSION that we use.
type SessionDevice struct {
	LUN        uint8
	Device     DeviceNumber
	LegacyName string // \\.\PhysicalDrive3; empty until Plug and Play has finished
}

// NoDeviceNumber is the number of a device that Plug and Play has not finished with.
const NoDeviceNumber uint32 = 0xFFFFFFFF

// PersistentLogin is the part of PERSISTENT_ISCSI_LOGIN_INFO that we use.
type PersistentLogin struct {
	Target            string
	InitiatorInstance string
	InitiatorPort     uint32
	Portal            TargetPortal // its address may be empty: any portal of the target
}
