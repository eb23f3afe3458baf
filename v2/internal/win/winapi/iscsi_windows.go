package winapi

import (
	"runtime"
	"unsafe"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

//sys	reportSendTargetPortals(count *uint32, portals *byte) (status isdscStatus) = iscsidsc.ReportIScsiSendTargetPortalsW
//sys	addSendTargetPortal(initiator *uint16, port uint32, options *byte, security uint64, portal *byte) (status isdscStatus) = iscsidsc.AddIScsiSendTargetPortalW
//sys	refreshSendTargetPortal(initiator *uint16, port uint32, portal *byte) (status isdscStatus) = iscsidsc.RefreshIScsiSendTargetPortalW
//sys	removeSendTargetPortal(initiator *uint16, port uint32, portal *byte) (status isdscStatus) = iscsidsc.RemoveIScsiSendTargetPortalW
//sys	reportTargets(ask bool, size *uint32, names *byte) (status isdscStatus) = iscsidsc.ReportIScsiTargetsW
//sys	reportTargetPortals(initiator *uint16, target *uint16, tag *uint16, count *uint32, portals *byte) (status isdscStatus) = iscsidsc.ReportIScsiTargetPortalsW
//sys	loginTarget(target *uint16, informational bool, initiator *uint16, port uint32, portal *byte, security uint64, mappings *byte, options *byte, keySize uint32, key *byte, persistent bool, session *byte, connection *byte) (status isdscStatus) = iscsidsc.LoginIScsiTargetW
//sys	getSessionList(size *uint32, count *uint32, sessions *byte) (status isdscStatus) = iscsidsc.GetIScsiSessionListW
//sys	getDevicesForSession(session *byte, count *uint32, devices *byte) (status isdscStatus) = iscsidsc.GetDevicesForIScsiSessionW
//sys	logoutTarget(session *byte) (status isdscStatus) = iscsidsc.LogoutIScsiTarget
//sys	reportPersistentLogins(count *uint32, logins *byte, size *uint32) (status isdscStatus) = iscsidsc.ReportIScsiPersistentLoginsW
//sys	removePersistentTarget(initiator *uint16, port uint32, target *uint16, portal *byte) (status isdscStatus) = iscsidsc.RemoveIScsiPersistentTargetW
//sys	setCHAPSharedSecret(length uint32, secret *byte) (status isdscStatus) = iscsidsc.SetIScsiInitiatorCHAPSharedSecret

// Structures come and go as bytes; package winlayout makes and reads them. None of the
// functions needs more than the handles of the calling process, but all of them need the
// service MSiSCSI.

// haveInitiator fails where the library is missing, or is a stub: there the first call would
// panic.
func haveInitiator() error {
	if procGetIScsiSessionListW.Find() != nil {
		return winerr.NotSupported
	}
	return nil
}

// SendTargetPortals is an array of ISCSI_TARGET_PORTAL_INFOW of that size each.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-reportiscsisendtargetportalsw
func SendTargetPortals(size int) (portals []byte, err error) {
	if err := haveInitiator(); err != nil {
		return nil, err
	}
	return list{unit: size, slack: 8}.fetch(func(buffer []byte, room uint32) (uint32, error) {
		status := reportSendTargetPortals(&room, unsafe.SliceData(buffer))
		return room, status.err()
	})
}

// AddSendTargetPortal registers an ISCSI_TARGET_PORTALW, with any initiator and without
// credentials of its own.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-addiscsisendtargetportalw
func AddSendTargetPortal(initiatorPort uint32, portal []byte) error {
	if err := haveInitiator(); err != nil {
		return err
	}
	return addSendTargetPortal(nil, initiatorPort, nil, 0, unsafe.SliceData(portal)).err()
}

// RefreshSendTargetPortal asks an ISCSI_TARGET_PORTALW for its targets.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-refreshiscsisendtargetportalw
func RefreshSendTargetPortal(initiatorPort uint32, portal []byte) error {
	if err := haveInitiator(); err != nil {
		return err
	}
	return refreshSendTargetPortal(nil, initiatorPort, unsafe.SliceData(portal)).err()
}

// RemoveSendTargetPortal takes back the registration of an ISCSI_TARGET_PORTALW.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-removeiscsisendtargetportalw
func RemoveSendTargetPortal(initiator string, initiatorPort uint32, portal []byte) error {
	if err := haveInitiator(); err != nil {
		return err
	}
	name, err := optionalPtr(initiator)
	if err != nil {
		return err
	}
	return removeSendTargetPortal(name, initiatorPort, unsafe.SliceData(portal)).err()
}

// ISCSITargets is a list of names, in UTF-16, each ended by a NUL and the last one by two.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-reportiscsitargetsw
func ISCSITargets() (names []byte, err error) {
	if err := haveInitiator(); err != nil {
		return nil, err
	}
	const fromPortals = false // ForceUpdate; what is known already is enough
	return list{unit: 2, slack: 4096}.fetch(func(buffer []byte, room uint32) (uint32, error) {
		status := reportTargets(fromPortals, &room, unsafe.SliceData(buffer))
		return room, status.err()
	})
}

// ISCSITargetPortals is an array of ISCSI_TARGET_PORTALW of that size each.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-reportiscsitargetportalsw
func ISCSITargetPortals(target string, size int) (portals []byte, err error) {
	if err := haveInitiator(); err != nil {
		return nil, err
	}
	name, err := utf16Ptr(target)
	if err != nil {
		return nil, err
	}
	return list{unit: size, slack: 8}.fetch(func(buffer []byte, room uint32) (uint32, error) {
		status := reportTargetPortals(nil, name, nil, &room, unsafe.SliceData(buffer))
		return room, status.err()
	})
}

// ISCSILogin has the parameters of LoginISCSITarget.
type ISCSILogin struct {
	Target        string
	InitiatorPort uint32
	Portal        []byte // ISCSI_TARGET_PORTALW
	User, Secret  []byte
	// Options fills in an ISCSI_LOGIN_OPTIONS of OptionsSize bytes, which points to user and
	// secret. They stay where they are until the login has ended.
	OptionsSize int
	Options     func(options []byte, user, secret uint64) error
	SessionSize int // of an ISCSI_UNIQUE_SESSION_ID
}

// LoginISCSITarget logs in for this run of Windows, and returns an ISCSI_UNIQUE_SESSION_ID.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-loginiscsitargetw
func LoginISCSITarget(login ISCSILogin) (session []byte, err error) {
	if err := haveInitiator(); err != nil {
		return nil, err
	}
	target, err := utf16Ptr(login.Target)
	if err != nil {
		return nil, err
	}
	// The structure holds their addresses as numbers, of which the garbage collector knows
	// nothing.
	var pinner runtime.Pinner
	defer pinner.Unpin()
	options := make([]byte, login.OptionsSize)
	if err := login.Options(options, pin(&pinner, login.User), pin(&pinner, login.Secret)); err != nil {
		return nil, err
	}
	defer clear(options)
	session, connection := make([]byte, login.SessionSize), make([]byte, login.SessionSize)
	const (
		informational = false // a session without disks
		// persistent would only note the login for the next start, and not log in.
		persistent = false
	)
	status := loginTarget(target, informational, nil, login.InitiatorPort, unsafe.SliceData(login.Portal), 0, nil,
		unsafe.SliceData(options), 0, nil, persistent, unsafe.SliceData(session), unsafe.SliceData(connection))
	return session, status.err()
}

// pin keeps bytes where they are and returns their address, 0 if there are none.
func pin(pinner *runtime.Pinner, b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	pinner.Pin(unsafe.SliceData(b))
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// ISCSISessions is an array of count ISCSI_SESSION_INFOW, followed by what they point to. Base
// is the address at which the pointers take the array to be.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-getiscsisessionlistw
func ISCSISessions() (sessions []byte, base uint64, count uint32, err error) {
	if err := haveInitiator(); err != nil {
		return nil, 0, 0, err
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	_, err = list{unit: 1, slack: 16 << 10}.fetch(func(buffer []byte, room uint32) (uint32, error) {
		base, sessions = pin(&pinner, buffer), buffer
		status := getSessionList(&room, &count, unsafe.SliceData(buffer))
		return room, status.err()
	})
	return sessions, base, count, err
}

// ISCSISessionDevices is an array of ISCSI_DEVICE_ON_SESSIONW of that size each. Session is an
// ISCSI_UNIQUE_SESSION_ID.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-getdevicesforiscsisessionw
func ISCSISessionDevices(session []byte, size int) (devices []byte, err error) {
	if err := haveInitiator(); err != nil {
		return nil, err
	}
	return list{unit: size, slack: 20}.fetch(func(buffer []byte, room uint32) (uint32, error) {
		status := getDevicesForSession(unsafe.SliceData(session), &room, unsafe.SliceData(buffer))
		return room, status.err()
	})
}

// LogoutISCSITarget ends a session, an ISCSI_UNIQUE_SESSION_ID.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-logoutiscsitarget
func LogoutISCSITarget(session []byte) error {
	if err := haveInitiator(); err != nil {
		return err
	}
	return logoutTarget(unsafe.SliceData(session)).err()
}

// ISCSIPersistentLogins is an array of count PERSISTENT_ISCSI_LOGIN_INFOW, followed by what
// they point to. The latter contains credentials; wipe it.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-reportiscsipersistentloginsw
func ISCSIPersistentLogins() (logins []byte, count uint32, err error) {
	if err := haveInitiator(); err != nil {
		return nil, 0, err
	}
	logins, err = list{unit: 1, slack: 16 << 10}.fetch(func(buffer []byte, room uint32) (uint32, error) {
		status := reportPersistentLogins(&count, unsafe.SliceData(buffer), &room)
		return room, status.err()
	})
	return logins, count, err
}

// RemoveISCSIPersistentLogin takes a login off that list. Portal is an ISCSI_TARGET_PORTALW.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-removeiscsipersistenttargetw
func RemoveISCSIPersistentLogin(initiator string, initiatorPort uint32, target string, portal []byte) error {
	if err := haveInitiator(); err != nil {
		return err
	}
	instance, err := optionalPtr(initiator)
	if err != nil {
		return err
	}
	name, err := utf16Ptr(target)
	if err != nil {
		return err
	}
	return removePersistentTarget(instance, initiatorPort, name, unsafe.SliceData(portal)).err()
}

// SetISCSISharedSecret sets the secret by which targets prove themselves to this machine.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-setiscsiinitiatorchapsharedsecret
func SetISCSISharedSecret(secret []byte) error {
	if err := haveInitiator(); err != nil {
		return err
	}
	return setCHAPSharedSecret(Length(secret), unsafe.SliceData(secret)).err()
}

// optionalPtr is utf16Ptr for names that may be left out.
func optionalPtr(name string) (*uint16, error) {
	if name == "" {
		return nil, nil // NULL
	}
	return utf16Ptr(name)
}
