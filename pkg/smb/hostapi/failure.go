package api

import (
	"context"
	"errors"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// unreachable reports whether a failure means that a server is not there, or that we cannot
// get so far as to ask it. What is wrong is not the mapping then.
func unreachable(err error) bool {
	switch winerr.CodeOf(err) {
	case winerr.BadNetPath, winerr.RemoteNotList, winerr.NetworkBusy, winerr.SemTimeout, winerr.NoNetOrBadPath, winerr.NoNetwork, winerr.ConnectionRefused,
		winerr.NetworkUnreachable, winerr.HostUnreachable, winerr.ProtocolUnreachable, winerr.PortUnreachable, winerr.NoLogonServers, winerr.WorkstationNotStarted:
		return true
	case 0:
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, winerr.Unavailable)
	default:
		return false
	}
}

// gone reports whether a failure to open a share means that its mapping does not work: the
// session is lost, the share is not there, or the server refuses the credentials.
func gone(err error) bool {
	code := winerr.CodeOf(err)
	switch code {
	case winerr.BadNetName, winerr.CredentialConflict,
		winerr.NetworkAccessDenied, winerr.DowngradeDetected, winerr.GuestLogonBlocked,
		winerr.AccountRestriction, winerr.InvalidLogonHours, winerr.InvalidWorkstation,
		winerr.AccountDisabled, winerr.LogonTypeNotGranted, winerr.AccountExpired, winerr.AccountLockedOut:
		return true
	default:
		return sessionLost(code) || wrongPassword(code)
	}
}

// sessionLost reports whether a code says that a session with a server has ended, as one does
// with a server that is restarted.
func sessionLost(code winerr.Code) bool {
	switch code {
	case winerr.DevNotExist, winerr.BadNetResp, winerr.UnexpectedNetErr, winerr.NetnameDeleted, winerr.ConnectionAborted, winerr.NotConnected:
		return true
	default:
		return false
	}
}

// wrongPassword reports whether a code says that only another password helps.
func wrongPassword(code winerr.Code) bool {
	switch code {
	case winerr.InvalidPassword, winerr.LogonFailure, winerr.PasswordExpired, winerr.PasswordMustChange:
		return true
	default:
		return false
	}
}

// What an operator can do.
const (
	checkServer = "check its name, and that the node can reach its port 445; the node does not know names of services in the cluster"
	noDFS       = "DFS namespaces cannot be mapped, name the server that holds the files"
)

// noAnswer is the failure to reach a server.
func noAnswer(share string, err error) error {
	switch code := winerr.CodeOf(err); {
	case code == winerr.WorkstationNotStarted:
		return winerr.As(winerr.Unavailable, opMap, share, err, "start, or restart, the service LanmanWorkstation")
	case code == winerr.NoLogonServers:
		return winerr.Wrap(opMap, share, err)
	case code == winerr.HostUnreachable:
		return winerr.As(winerr.Unavailable, opMap, share, err, checkServer+"; "+noDFS)
	case code == 0 && errors.Is(err, context.DeadlineExceeded):
		return winerr.New(winerr.Unavailable, opMap, share, "the server has not answered for %v; %s", probeLimit, checkServer)
	case code == 0: // calls to it hang, and the text says so
		return winerr.Wrap(opMap, share, err)
	default:
		return winerr.As(winerr.Unavailable, opMap, share, err, checkServer)
	}
}

// kept describes why a mapping that does not work is not made anew.
func kept(share string, seen sight) error {
	const why = "the mapping is kept, because other volumes on the node use it"
	code := winerr.CodeOf(seen.cause)
	switch {
	case unreachable(seen.cause):
		return noAnswer(share, seen.cause)
	case sessionLost(code):
		return winerr.As(winerr.Unavailable, opMap, share, seen.cause, why+", and Windows may connect it again; it is made anew if this lasts for a minute")
	case code == winerr.BadNetName:
		return winerr.As(winerr.NotFound, opMap, share, seen.cause, why)
	default:
		return winerr.As(winerr.Denied, opMap, share, seen.cause, "this is the server's answer to the account that the share is mapped with; "+why)
	}
}

// refused describes why a mapping could not be made.
func refused(request win.SMBMappingRequest, err error) error {
	share := request.Remote
	as := func(kind winerr.Kind, advice string) error { return winerr.As(kind, opMap, share, err, advice) }
	if winerr.CodeOf(err) != 0 && unreachable(err) {
		return noAnswer(share, err)
	}
	switch winerr.CodeOf(err) {
	case winerr.LogonFailure, winerr.InvalidPassword:
		if !strings.ContainsAny(request.User, `\@`) {
			return as(winerr.Denied, `check both; the user name has no domain, and the server may want DOMAIN\user or user@domain`)
		}
		return as(winerr.Denied, "check both")
	case winerr.AccountLockedOut:
		return as(winerr.Denied, "unlock it, and correct the password where it is wrong, or it will be locked again")
	case winerr.PasswordExpired, winerr.PasswordMustChange:
		return as(winerr.Denied, "set a new one")
	case winerr.GuestLogonBlocked:
		return as(winerr.Denied, "give a user name")
	case winerr.AccessDenied:
		if request.User == "" {
			return as(winerr.Denied, "the server admits no guests; give a user name")
		}
		return as(winerr.Denied, "the account has no permission for the share")
	case winerr.TimeSkew, winerr.NetTimeSkew:
		return as(winerr.Denied, "check the clock of both; Kerberos allows five minutes")
	case winerr.WrongTargetName, winerr.MutualAuthFailed:
		return as(winerr.Denied, "use the server's own name, or register the alias with the domain as a service principal name: setspn -S cifs/alias server")
	case winerr.NoTrustSecret, winerr.NoTrustAccount, winerr.TrustFailure:
		return as(winerr.Denied, "join the node to its domain again, or give a user of the server itself")
	case winerr.TooManyConnections:
		return as(winerr.Unavailable, "raise the limit of the share or the server, or close sessions there; desktop editions of Windows allow 20")
	case winerr.BadNetName:
		return as(winerr.NotFound, "check its name; "+noDFS)
	case winerr.CredentialConflict:
		return as(winerr.InUse, "Windows allows one user per server: use the same one for all of its shares, or another of the server's names or addresses")
	case winerr.NetworkAccessDenied, winerr.NotSupported:
		if request.RequirePrivacy {
			return as(winerr.InUse, "the server may lack encryption, which is required unless csi-proxy runs with -require-privacy=false, or the library with RequirePrivacy(false)")
		}
	case winerr.InvalidParameter:
		return as(winerr.Invalid, `the server may want the user name in another form: DOMAIN\user, user@domain or user`)
	default:
	}
	return winerr.Wrap(opMap, share, err)
}
