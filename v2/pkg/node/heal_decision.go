package node

import (
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// This file decides whether a staging link leads to something that is certainly gone. A driver that
// stages the volume again loses nothing when the link goes; a pod whose volume comes back by itself
// would. So a link goes only if nothing but a driver can bring its volume back.

type target int

const (
	toVolume target = iota
	toShare
)

func (t target) String() string { return [...]string{"volume", "share"}[t] }

// listStatus says whether Windows lists the volume, or a mapping of the share, and its status.
type listStatus int

const (
	unknown  listStatus = iota // Windows did not list them
	listed                     // the volume exists; the mapping is OK
	broken                     // the mapping is not OK
	unlisted                   // there is none
)

func (l listStatus) String() string {
	return [...]string{"unknown", "listed, OK", "listed, not OK", "not listed"}[l]
}

// openResult says what opening the volume or the directory on the share has shown.
type openResult int

const (
	opens openResult = iota
	missing
	noShare
	refused
	denied
	unclear
)

func (o openResult) String() string {
	return [...]string{"it opens", "not found (2, 3)", "no such share (67)", "credentials refused (86, 1219, 1272, 1312, 1326)", "access denied (5)", "anything else, or no answer"}[o]
}

// openCodes are the codes of Windows for the results that have some. The states of an account are
// unclear: an administrator changes them back.
var openCodes = map[target]map[openResult][]winerr.Code{
	toVolume: {missing: {winerr.FileNotFound, winerr.PathNotFound}},
	toShare: {
		missing: {winerr.FileNotFound, winerr.PathNotFound},
		noShare: {winerr.BadNetName},
		refused: {winerr.InvalidPassword, winerr.CredentialConflict, winerr.LogonFailure, winerr.GuestLogonBlocked, winerr.NoSuchLogonSession},
		denied:  {winerr.AccessDenied},
	},
}

func openResultOf(t target, err error) openResult {
	if err == nil {
		return opens
	}
	for o, codes := range openCodes[t] {
		if slices.Contains(codes, winerr.CodeOf(err)) {
			return o
		}
	}
	return unclear
}

// readiness says whether something on the node that is not ready could hold the volume.
type readiness int

const (
	allReady readiness = iota
	notReady
)

func (r readiness) String() string { return [...]string{"no", "yes"}[r] }

// origin says whether a pod can have used the link since Windows started.
type origin int

const (
	beforeStart origin = iota // it is older than the start, and its share has not worked since
	sinceStart                // it is younger, its share has worked, or that is unknown
)

func (o origin) String() string {
	return [...]string{"no", "yes, or unknown"}[o]
}

// verdict is what becomes of a link. The zero value is the one that does no harm.
type verdict int

const (
	keep verdict = iota
	live         // it is not a stale mount
	remove
)

func (v verdict) String() string { return [...]string{"keep", "live", "remove"}[v] }

type decision struct {
	verdict verdict
	why     string
}

type linkCheck struct {
	target target
	status listStatus
	opened openResult
	ready  readiness
	origin origin
}

// rule is a row of the table. A nil list matches every value.
type rule struct {
	targets   []target
	statuses  []listStatus
	opened    []openResult
	readiness []readiness
	origins   []origin
	decision
}

var (
	volumes = []target{toVolume}
	shares  = []target{toShare}

	notOpen      = []openResult{missing, noShare, refused, denied, unclear}
	noCredential = []listStatus{broken, unlisted}
	answered     = []openResult{missing, noShare, refused}
)

// rules is the table. Every check matches exactly one row, which a test verifies, and another one
// prints it into docs/heal-decisions.md.
var rules = []rule{
	{nil, nil, []openResult{opens}, nil, nil, decision{live, "it leads to a live object"}},

	{volumes, []listStatus{unknown}, notOpen, nil, nil, decision{keep, "Windows does not list its volumes"}},
	{volumes, []listStatus{listed, broken}, notOpen, nil, nil, decision{keep, "its volume exists"}},
	{volumes, []listStatus{unlisted}, []openResult{noShare, refused, denied, unclear}, nil, nil, decision{keep, "the answer to opening it does not say that its volume is gone"}},
	{volumes, []listStatus{unlisted}, []openResult{missing}, []readiness{notReady}, nil, decision{keep, "something that is not ready could hold its volume"}},
	{volumes, []listStatus{unlisted}, []openResult{missing}, []readiness{allReady}, nil, decision{remove, "all disks and volumes answer, and its volume is not among them"}},

	{shares, []listStatus{unknown}, notOpen, nil, nil, decision{keep, "Windows does not list its mappings"}},
	{shares, []listStatus{listed}, notOpen, nil, nil, decision{keep, "it works again when its server, its account or its directory does"}},
	{shares, noCredential, []openResult{unclear}, nil, nil, decision{keep, "its server may be slow to come back, or may let the link be used"}},
	{shares, []listStatus{unlisted}, []openResult{denied}, nil, nil, decision{keep, "an account that may not look can still use what is there, and it may never have had a mapping"}},
	{shares, []listStatus{broken}, []openResult{denied}, nil, []origin{sinceStart}, decision{keep, "pods may have used it since Windows started, and use it again when a driver maps its share"}},
	{shares, []listStatus{broken}, []openResult{denied}, nil, []origin{beforeStart}, decision{remove, "the start of Windows took the credentials of its mapping, it has not worked since, and its server denies access"}},
	{shares, noCredential, answered, nil, []origin{sinceStart}, decision{keep, "pods may have used it since Windows started, and use it again when a driver maps its share"}},
	{shares, noCredential, answered, nil, []origin{beforeStart}, decision{remove, "the start of Windows ended its mapping, it has not worked since, and its server refuses access without one"}},
}

func (r rule) matches(s linkCheck) bool {
	return oneOf(r.targets, s.target) && oneOf(r.statuses, s.status) && oneOf(r.opened, s.opened) &&
		oneOf(r.readiness, s.ready) && oneOf(r.origins, s.origin)
}

func oneOf[T comparable](list []T, value T) bool { return list == nil || slices.Contains(list, value) }

// decide looks a check up in the table.
func decide(s linkCheck) decision {
	for _, r := range rules {
		if r.matches(s) {
			return r.decision
		}
	}
	return decision{keep, "no rule matches"}
}
