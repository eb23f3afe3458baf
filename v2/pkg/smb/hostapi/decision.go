package api

import (
	"context"
	"errors"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// This file decides what becomes of the mapping of a share that a caller asks for. Windows
// does not create a mapping while an old one exists, so nothing proves in advance that the
// server would accept the new one. An old mapping therefore goes only if no other link uses it,
// or if only a new one can help those that do.

// state says whether Windows has a mapping of the share, and its status there.
type state int

const (
	stateAbsent       state = iota
	stateConnected          // status OK
	stateDisconnected       // any other status, also after the share was opened
)

func (s state) String() string {
	return [...]string{"not mapped", "OK", "not OK"}[s]
}

// cause says what opening the share has shown.
type cause int

const (
	causeOpens       cause = iota
	causeUnencrypted       // it opens, but encryption is required and the mapping lacks it
	causeOtherUser         // it opens, but the request refuses the mapping's user
	causeDenied            // so is the directory of the request, and no other link opens
	causeUnreachable
	causeNoAnswer
	causeConflict
	causePassword
	causeSessionLost
	causeRefused
	causeUnclear // a code that says nothing about the mapping, or that is not known
)

func (c cause) String() string {
	return [...]string{
		"it opens", "it opens without the required encryption", "it opens for another or an unknown user, which the request refuses", "access denied", "server unreachable", "no answer in time",
		"credentials lost, or of another user", "password refused", "session lost", "account or share refused", "any other failure",
	}[c]
}

// causeCodes are the codes of Windows for the causes that have some.
// ERROR_INVALID_PARAMETER (87) is reported for mappings that have lapsed (github.com/moby/moby/issues/37863), but
// also for containers that open anything, so it stays unclear. ERROR_FILE_NOT_FOUND (2) and ERROR_PATH_NOT_FOUND (3)
// are those of the share itself, see open.
var causeCodes = map[cause][]winerr.Code{
	causeDenied: {winerr.AccessDenied},
	causeUnreachable: {
		winerr.RemoteNotList, winerr.BadNetPath, winerr.NetworkBusy, winerr.SemTimeout, winerr.NoNetOrBadPath, winerr.NoNetwork, winerr.ConnectionRefused,
		winerr.NetworkUnreachable, winerr.HostUnreachable, winerr.ProtocolUnreachable, winerr.PortUnreachable, winerr.NoLogonServers, winerr.Timeout, winerr.WorkstationNotStarted,
	},
	causeConflict:    {winerr.CredentialConflict, winerr.NoSuchLogonSession},
	causePassword:    {winerr.InvalidPassword, winerr.LogonFailure, winerr.PasswordExpired, winerr.PasswordMustChange},
	causeSessionLost: {winerr.DevNotExist, winerr.BadNetResp, winerr.UnexpectedNetErr, winerr.NetnameDeleted, winerr.ConnectionAborted, winerr.NotConnected},
	causeRefused: {
		winerr.FileNotFound, winerr.PathNotFound, winerr.NetworkAccessDenied, winerr.BadNetName, winerr.DowngradeDetected, winerr.GuestLogonBlocked,
		winerr.LoginWorkstation, winerr.AccountRestriction, winerr.InvalidLogonHours, winerr.InvalidWorkstation,
		winerr.AccountDisabled, winerr.TooManyContextIDs, winerr.LogonTypeNotGranted, winerr.AccountExpired, winerr.AccountLockedOut,
		winerr.WrongTargetName, winerr.MutualAuthFailed, winerr.TimeSkew, winerr.NetTimeSkew,
		winerr.NoTrustSecret, winerr.NoTrustAccount, winerr.TrustedDomainFailure, winerr.TrustFailure,
	},
	causeUnclear: {winerr.InvalidParameter},
}

// causeOf classifies the answer to opening a share.
func causeOf(err error) cause {
	code := winerr.CodeOf(err)
	switch {
	case err == nil:
		return causeOpens
	case code == 0 && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, winerr.Unavailable)):
		return causeNoAnswer
	}
	for c, codes := range causeCodes {
		if slices.Contains(codes, code) {
			return c
		}
	}
	return causeUnclear
}

// owner says who uses the mapping besides the link of the request, and for which account this
// process created it, compared with the account of the request.
type owner int

const (
	ownerNone        owner = iota // no other link uses it
	ownerSameAccount              // used, same user and password
	ownerNewPassword              // used, same user, another password
	ownerOtherUser                // used, another user
	ownerUnknown                  // used, or perhaps used, and this process did not create it
)

func (o owner) String() string {
	return [...]string{"no", "the same account", "the same user with another password", "another user", "an unknown user"}[o]
}

// age says for how long the mapping is known not to work.
type age int

const (
	ageRecent  age = iota
	ageLasting     // for brokenLimit or longer
)

func (a age) String() string {
	return [...]string{"less than a minute", "a minute or more"}[a]
}

// action is what happens to a mapping. The zero value is the one that does no harm.
type action int

const (
	actionFail     action = iota // keep it, and fail
	actionUse                    // keep it, and succeed
	actionCreate                 // create it
	actionRecreate               // remove it, and create it again
	// actionAsk creates it without removing it first, to learn what Windows knows: it answers
	// ERROR_SESSION_CREDENTIAL_CONFLICT (1219) about a mapping whose credentials a restart has
	// lost, which is then recreated, and that the mapping exists if it still has them.
	actionAsk
)

func (a action) String() string {
	return [...]string{"keep, fail", "keep, succeed", "create", "recreate", "ask Windows"}[a]
}

type decision struct {
	action action
	why    string
}

// rule is a row of the table. A nil list matches every value.
type rule struct {
	states []state
	causes []cause
	owners []owner
	ages   []age
	decision
}

var (
	absent       = []state{stateAbsent}
	connected    = []state{stateConnected}
	disconnected = []state{stateDisconnected}
	mapped       = []state{stateConnected, stateDisconnected}

	unused       = []owner{ownerNone}
	inUse        = []owner{ownerSameAccount, ownerNewPassword, ownerOtherUser, ownerUnknown}
	notOtherUser = []owner{ownerSameAccount, ownerNewPassword, ownerUnknown}
	otherUser    = []owner{ownerOtherUser}

	recent  = []age{ageRecent}
	lasting = []age{ageLasting}
)

func on(causes ...cause) []cause { return causes }

// rules is the table. Every combination matches exactly one row, which a test verifies, and
// another one prints it into docs/api/smb-decisions.md.
var rules = []rule{
	{absent, nil, nil, nil, decision{actionCreate, "the share has no mapping"}},

	{connected, on(causeOpens), nil, nil, decision{actionUse, "it works, with the credentials it was created with"}},
	{disconnected, on(causeOpens), nil, nil, decision{actionRecreate, "the node's own account opened the share, not the mapping"}},

	{mapped, on(causeUnencrypted), unused, nil, decision{actionRecreate, "encryption is required"}},
	{mapped, on(causeUnencrypted), inUse, nil, decision{actionFail, "its users would lose it if the server refused encryption"}},

	{mapped, on(causeOtherUser), unused, nil, decision{actionRecreate, "no other link uses it"}},
	{mapped, on(causeOtherUser), inUse, nil, decision{actionFail, "its users would lose it"}},

	{connected, on(causeUnreachable), nil, nil, decision{actionFail, "it works again when the server is back"}},
	{disconnected, on(causeUnreachable), nil, nil, decision{actionAsk, "a mapping that a restart left can look like this"}},
	{mapped, on(causeNoAnswer), nil, nil, decision{actionFail, "it works again when the server answers"}},

	{disconnected, on(causeDenied), nil, nil, decision{actionRecreate, "a restart leaves this"}},
	{connected, on(causeDenied), unused, nil, decision{actionRecreate, "no other link uses it"}},
	{connected, on(causeDenied), inUse, nil, decision{actionFail, "it works again when the account has the right"}},

	{mapped, on(causeConflict), nil, nil, decision{actionRecreate, "Windows has lost its credentials"}},

	{disconnected, on(causePassword), nil, nil, decision{actionRecreate, "a restart leaves this"}},
	{connected, on(causePassword), unused, nil, decision{actionRecreate, "no other link uses it"}},
	{connected, on(causePassword), []owner{ownerNewPassword, ownerUnknown}, nil, decision{actionRecreate, "the request may have the new password"}},
	{connected, on(causePassword), []owner{ownerSameAccount}, recent, decision{actionFail, "the server has just refused the same password"}},
	{connected, on(causePassword), []owner{ownerSameAccount}, lasting, decision{actionRecreate, "it has not come back by itself"}},
	{connected, on(causePassword), otherUser, nil, decision{actionFail, "it belongs to another user"}},

	{mapped, on(causeSessionLost), unused, nil, decision{actionRecreate, "no other link uses it"}},
	{connected, on(causeSessionLost), notOtherUser, recent, decision{actionFail, "Windows may connect it again"}},
	{disconnected, on(causeSessionLost), notOtherUser, recent, decision{actionAsk, "Windows may connect it again, or a restart left it"}},
	{mapped, on(causeSessionLost), notOtherUser, lasting, decision{actionRecreate, "Windows has not connected it again"}},
	{connected, on(causeSessionLost), otherUser, nil, decision{actionFail, "it belongs to another user"}},
	{disconnected, on(causeSessionLost), otherUser, nil, decision{actionAsk, "it belongs to another user, or a restart left it"}},

	{mapped, on(causeRefused), unused, nil, decision{actionRecreate, "no other link uses it"}},
	{connected, on(causeRefused), inUse, nil, decision{actionFail, "it works again when the account or the share does"}},
	{disconnected, on(causeRefused), inUse, nil, decision{actionAsk, "it works again when the account or the share does, or a restart left it"}},

	{connected, on(causeUnclear), nil, nil, decision{actionFail, "this says nothing about the mapping"}},
	{disconnected, on(causeUnclear), unused, nil, decision{actionRecreate, "no other link uses it"}},
	{disconnected, on(causeUnclear), inUse, recent, decision{actionAsk, "a restart may have left it"}},
	{disconnected, on(causeUnclear), inUse, lasting, decision{actionRecreate, "it has not come back by itself"}},
}

func (r rule) matches(s state, c cause, o owner, a age) bool {
	return oneOf(r.states, s) && oneOf(r.causes, c) && oneOf(r.owners, o) && oneOf(r.ages, a)
}

func oneOf[T comparable](list []T, value T) bool { return list == nil || slices.Contains(list, value) }

// decide looks a combination up in the table.
func decide(s state, c cause, o owner, a age) decision {
	for _, r := range rules {
		if r.matches(s, c, o, a) {
			return r.decision
		}
	}
	return decision{actionFail, "no rule matches"}
}

// ownerMatters reports whether the table asks who uses a mapping, which takes calls to Windows.
func ownerMatters(s state, c cause) bool {
	return slices.ContainsFunc(rules, func(r rule) bool {
		return r.owners != nil && oneOf(r.states, s) && oneOf(r.causes, c)
	})
}
