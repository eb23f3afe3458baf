// Package v1 has the extensions: services of ours beside the published API, each on the endpoints of one of
// its groups. The daemons of other projects do not have them, and they answer Unimplemented. The file api.proto
// has the rules that all of them share, such as what a caller must escape.
package v1

// The states of a Volume.
const (
	VolumeUnknown   = ""
	VolumeFormatted = "formatted"
	VolumeRaw       = "RAW" // Windows recognises no file system
	VolumeLocked    = "locked"
	VolumeOffline   = "offline"
)

// The types of an Entry.
const (
	EntryFile      = "file"
	EntryDirectory = "directory"
	EntryLink      = "link"  // a symbolic link or a junction
	EntryMount     = "mount" // a mounted folder
	EntryOther     = "other" // another reparse point, or a link that cannot be read
)

// The states of a Link that Heal returns.
const (
	StaleKept      = "kept"
	StaleRemovable = "removable"
	StaleRemoved   = "removed"
)

// The kinds of a Problem.
const (
	ProblemSilence = "silence" // there was no answer in time
	ProblemFailure = "failure"
)

// Operator is the gRPC user-agent of csi-proxyctl: what people look for and do not find is not among a node's failed calls.
const Operator = "csi-proxyctl"
