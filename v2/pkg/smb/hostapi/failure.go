package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Advice for operators.
const (
	checkServer = "check its name, and that the node can reach its port 445; the node cannot resolve names of cluster services"
	noDFS       = "Windows cannot map DFS namespaces: name the server that holds the files"
)

// unreachable describes the failure to reach a server.
func unreachable(share string, err error) error {
	switch code := winerr.CodeOf(err); {
	case code == winerr.WorkstationNotStarted:
		return winerr.As(winerr.Unavailable, opMap, share, err, "start or restart the service LanmanWorkstation")
	case code == winerr.NoLogonServers:
		return winerr.Wrap(opMap, share, err)
	case code == winerr.HostUnreachable:
		return winerr.As(winerr.Unavailable, opMap, share, err, checkServer+"; "+noDFS)
	case code == 0 && errors.Is(err, context.DeadlineExceeded):
		return winerr.New(winerr.Unavailable, opMap, share, "the server has not answered for %v; %s", probeLimit, checkServer)
	case code == 0: // earlier calls hang, and the text says so
		return winerr.Wrap(opMap, share, err)
	default:
		return winerr.As(winerr.Unavailable, opMap, share, err, checkServer)
	}
}

// missing describes that a share is mapped, but lacks the directory of the request. It is nil if
// the share has it.
func missing(r mapRequest, cause error) error {
	if cause == nil {
		return nil
	}
	return winerr.New(winerr.NotFound, opMap, r.Remote, "the share has no directory %s: %w; create it on the server, or correct the path of the volume", r.dir, cause)
}

// denied describes that a new mapping opens neither the directory of the request nor its share. It is nil
// for any other answer, which says nothing about the directory.
func denied(r mapRequest, answer error) error {
	if causeOf(answer) != causeDenied {
		return nil
	}
	return winerr.As(winerr.Denied, opMap, r.Remote, answer, "the server accepts the account, but does not let it open "+cmp.Or(r.dir, r.Remote)+"; give it the right there")
}

// kept describes why a mapping that does not work is kept, and what uses it.
func kept(share string, seen condition, user string) error {
	const why = "the mapping is kept, because other volumes on the node use it"
	switch seen.cause {
	case causeUnencrypted:
		return winerr.New(winerr.InUse, opMap, share,
			"it is mapped without encryption, which is required, and the mapping is kept because %s uses it; remove the volumes that use the share from this node, or run csi-proxy with -require-privacy=false, or the library with RequirePrivacy(false)", user)
	case causeOtherUser:
		return winerr.New(winerr.InUse, opMap, share,
			"it is mapped for another user, or by another process for a user that is not known, and the mapping is kept because %s uses it; give the same user to all volumes of the share, or remove those that use it from this node, or run csi-proxy without -smb-refuse-other-user, or the library without RefuseOtherUser", user)
	case causeUnreachable, causeNoAnswer:
		return unreachable(share, seen.err)
	case causeDenied:
		return winerr.As(winerr.Denied, opMap, share, seen.err, "the server does not let the account that the share is mapped with open it; the mapping is kept, because volumes on the node use it; give the account the right, or remove them from this node")
	case causeUnclear:
		if errors.Is(seen.err, winerr.Invalid) { // it is not about the request
			return winerr.As(winerr.Internal, opMap, share, seen.err, "this is the answer to opening the share")
		}
		return winerr.Wrap(opMap, share, seen.err)
	case causeSessionLost:
		return winerr.As(winerr.Unavailable, opMap, share, seen.err, why+", and Windows may connect it again; it is recreated if this lasts for a minute")
	default:
		if errors.Is(seen.err, winerr.NotFound) {
			return winerr.As(winerr.NotFound, opMap, share, seen.err, why)
		}
		return winerr.As(winerr.Denied, opMap, share, seen.err, "this is the server's answer to the account that the share is mapped with; "+why)
	}
}

// tooMany describes that Windows has no room for another mapping. Users report that for some 700
// (github.com/kubernetes-sigs/azurefile-csi-driver/issues/1925,
// github.com/kubernetes-csi/csi-driver-smb/issues/1039).
func tooMany(share string, err error, mappings int) error {
	advice := "remove volumes from this node, or unmap shares that no pod uses, which csi-proxyctl node lists"
	if mappings > 0 {
		advice = fmt.Sprintf("this node has %d SMB mappings, and Windows is known to fail at some 700; ", mappings) + advice
	}
	return winerr.As(winerr.NoSpace, opMap, share, err, advice)
}

// refused describes why a mapping could not be made.
func refused(request win.SMBMappingRequest, err error) error {
	share := request.Remote
	as := func(kind winerr.Kind, advice string) error { return winerr.As(kind, opMap, share, err, advice) }
	if causeOf(err) == causeUnreachable {
		return unreachable(share, err)
	}
	switch winerr.CodeOf(err) {
	case winerr.LogonFailure, winerr.InvalidPassword:
		if !strings.ContainsAny(request.User, `\@`) {
			return as(winerr.Denied, `check both; the user name has no domain, and the server may want DOMAIN\user or user@domain`)
		}
		return as(winerr.Denied, "check both")
	case winerr.NoSuchLogonSession:
		// Reported for user names without a domain:
		// https://github.com/kubernetes-csi/csi-driver-smb/issues/161
		if request.User != "" && !strings.ContainsAny(request.User, `\@`) {
			return as(winerr.Invalid, `use DOMAIN\user; any domain works`)
		}
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
	case winerr.NoTrustSecret, winerr.NoTrustAccount, winerr.TrustedDomainFailure, winerr.TrustFailure:
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
