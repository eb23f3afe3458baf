package simulation

import (
	"slices"
	"strings"
)

// knownFaults are faults of the product that are not mended yet: how they show, after which event, and what they are. Who
// mends one deletes its row. 'go test -known=false' finds them.
var knownFaults = []struct{ invariant, says, after, what string }{
	{"I4", "mapping of", "nothing answers", "a search for links that the node did not answer is not repeated for ten minutes, and a driver that is not the mounter's asks once: the mapping stays until the next removal on its server"},
	{"I4", "mapping of", "will take", "a search for links that the node did not answer is not repeated for ten minutes, and a driver that is not the mounter's asks once: the mapping stays until the next removal on its server"},
}

// known says which known fault, or limit, a run has met, or nothing.
func (r *run) known() string {
	if strings.HasSuffix(r.failure.Error(), byNumber) {
		return byNumber
	}
	for _, k := range knownFaults {
		isAfter := func(line string) bool { return strings.Contains(line, "EVENT") && strings.Contains(line, k.after) }
		if r.invariant() == k.invariant && strings.Contains(r.failure.Error(), k.says) && slices.ContainsFunc(r.trace, isAfter) {
			return k.what
		}
	}
	return ""
}

// byNumber is a limit, not a fault: the published calls name a disk by its number, and nothing in them says which disk a
// driver means. If a disk leaves between the question of such a driver for the number and its call, the call is about the
// disk that has the number then. Drivers that use the mounter say it.
const byNumber = "; its driver knows disks by number, and the disk has left"

// limit returns byNumber if all these verbs are of such drivers, whose disks have left.
func (r *run) limit(verbs ...string) string {
	for _, verb := range verbs {
		if !slices.ContainsFunc(r.world.volumes, func(v *volume) bool {
			return !v.isMounters() && v.left && v.name == volumeOf(verb)
		}) {
			return ""
		}
	}
	return byNumber
}
