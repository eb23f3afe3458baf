package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskid"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/shared"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
)

// Query says which disk to find, by one key or several. A key that is nil, empty or 0 does not
// count. Texts are compared as they are, except that case does not matter in Path, Bus, EUI64, NGUID and
// Partition.
type Query struct {
	Number *uint32
	Path   string
	Bus    string
	Model  string
	// Serial is the whole serial number, SerialPrefix how it begins: on EC2 it is the volume's id
	// without its dash, and then an underscore and a number.
	Serial, SerialPrefix string
	Page83               string
	// LUN is the LUNID of the disk's location. Several disks can have the same LUN on different
	// adapters, so add the Adapter if the machine has more than one.
	//
	// If the Adapter is the name of an iSCSI target, LUN is that at the target. FindDisk then waits up to 30 s for Windows
	// to set the disk up. The target must have a session.
	LUN, Adapter string
	SCSI         *SCSIAddress
	NamespaceID  uint32
	EUI64, NGUID string
	Size         int64
	// Partition is the GUID of a GPT partition. Windows gives it to the partition's volume, \\?\Volume{GUID}\, so the disk
	// of a volume is found by it also while it is offline. Copies of a disk have the same.
	Partition string
}

// AmbiguousError says that more than one disk has the keys of a query. A caller that takes any of
// them may destroy the data of another.
type AmbiguousError struct {
	Query Query
	// Candidates are at least two. Through a daemon only their numbers are known.
	Candidates []Disk
}

// Error names the disks.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s %s: several disks match: %s; add a key to the query", opFind, e.Query, names(e.Candidates))
}

// Numbers returns the numbers of the candidates, at most as many as given.
func (e *AmbiguousError) Numbers(most int) []uint32 {
	var numbers []uint32
	for _, disk := range e.Candidates {
		if disk.Number != nil && len(numbers) < most {
			numbers = append(numbers, *disk.Number)
		}
	}
	return numbers
}

func names(disks []Disk) string {
	texts := make([]string, len(disks))
	for i, disk := range disks {
		texts[i] = disk.name()
	}
	return strings.Join(texts, ", ")
}

// Unwrap gives the error its class: the state of the node must change before a repetition helps.
func (e *AmbiguousError) Unwrap() error { return winerr.InUse }

const opFind = "find disk with"

// FindDisk returns the one disk that has all keys of the query. It never returns the disk that
// Windows runs from, and fails if Windows does not say which one that is.
//
// If several disks match, the error is an *AmbiguousError. If none does, errors.Is(err,
// fs.ErrNotExist) holds; a disk that was just attached may need Rescan of package disk first. If a
// disk does not report a key, so that it may match, the error is neither, even if another disk
// matches: try again later, or add the Path or Number. A disk that this Node has known with another value of
// the key, or that is mounted at a folder, does not count; nor does any if another disk matches and the query
// has a key that only one disk in the world has: Page83, EUI64 or NGUID.
//
// The disk has no volumes in its partitions; Describe adds them.
func (n *Node) FindDisk(ctx context.Context, query Query) (*Disk, error) {
	if query == (Query{}) {
		return nil, winerr.New(winerr.Invalid, opFind, "no keys", "the query is empty")
	}
	if win.CheckTargetName(query.Adapter) == nil {
		return n.findLUN(ctx, query)
	}
	disk, waited, err := n.searchFor(ctx, query, true)
	if err != nil && !waited { // it may be one that has not answered at once
		disk, _, err = n.searchFor(ctx, query, false)
	}
	return disk, err
}

// searchFor searches once. If it is brief it does not wait for disks that have said before what they are: most hang while
// another one is searched for. It reports whether it has waited for all.
func (n *Node) searchFor(ctx context.Context, query Query, brief bool) (disk *Disk, waited bool, err error) {
	found, err := n.lookForKeys(ctx, scope{query.LUN != "" || query.Adapter != "", brief})
	if err != nil {
		return nil, true, winerr.Wrap(opFind, query.String(), err)
	}
	disk, err = n.pick(ctx, query, found)
	return disk, found.waited, err
}

// findLUN finds the disk of an iSCSI target by its number, which its sessions say. They say it once more afterwards: another
// disk may have got the number in between.
func (n *Node) findLUN(ctx context.Context, query Query) (*Disk, error) {
	number, err := n.numberOf(ctx, query)
	switch {
	case err != nil:
		return nil, winerr.Wrap(opFind, query.String(), err)
	case query.Number != nil && *query.Number != number:
		return nil, winerr.New(winerr.NotFound, opFind, query.String(), "there the target has disk %d", number)
	}
	byNumber := query
	byNumber.Number, byNumber.LUN, byNumber.Adapter = &number, "", ""
	disk, err := n.FindDisk(ctx, byNumber)
	if err != nil {
		return nil, err
	}
	switch again, err := n.numberOf(ctx, query); {
	case err != nil:
		return nil, winerr.Wrap(opFind, query.String(), err)
	case again != number:
		return nil, winerr.New(winerr.Busy, opFind, query.String(), "its number was %d, and is %d; find it again", number, again)
	}
	return disk, nil
}

const (
	// findGather is how long a search waits for other callers: kubelet stages volumes at the same time.
	findGather = 2 * time.Millisecond

	// findMaxWait is how long a search waits for the one before. A healthy node takes less.
	findMaxWait = 300 * time.Millisecond

	// findTime is the least time of a caller that shares a search: others have time for disks that answer late.
	findTime = limit + findMaxWait + findGather
)

// searches are the searches for disks that are under way.
type searches = shared.Answers[scope, search]

// scope is what a search asks for, and whether it waits for disks that are known.
type scope struct{ locations, brief bool }

type search struct {
	disks      []Disk
	unanswered map[string]questions
	waited     bool // for all disks
}

// lookForKeys returns all disks with their keys. Callers share a search: when many volumes are staged at once,
// each asks all disks.
func (n *Node) lookForKeys(ctx context.Context, asked scope) (search, error) {
	find := func(ctx context.Context, s *search) (err error) {
		limited, cancel := context.WithTimeout(ctx, portion(ctx, limit, 3))
		defer cancel()
		if asked.brief {
			limited = tasks.WithShortWaits(limited, n.known.complete)
		}
		l := lookup{Node: n}
		s.disks, err = l.findable(limited, asked.locations)
		s.unanswered = l.unanswered
		s.waited = !asked.brief || !slices.ContainsFunc(s.disks, func(d Disk) bool { return s.unanswered[d.Path] != 0 && n.known.complete(d.Path) })
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < findTime {
		var alone search
		err := find(ctx, &alone)
		return alone, cmp.Or(ctx.Err(), err)
	}
	answer := n.searches.Join(ctx, asked, find)
	defer answer.Leave()
	if err := answer.Wait(ctx); err != nil {
		return search{}, cmp.Or(ctx.Err(), err)
	}
	return answer.Value, nil
}

// findable returns the disks with their keys, and which are the system's.
func (l *lookup) findable(ctx context.Context, withLocations bool) ([]Disk, error) {
	var disks []Disk
	var locations map[uint32]diskapi.DiskLocation
	var system []uint32
	askSystem := func(ctx context.Context) (err error) {
		if system, err = diskid.System(ctx, l.m); err != nil {
			return winerr.As(winerr.Unavailable, opFind, "", err, "Windows did not say which disks it runs from")
		}
		return nil
	}
	lists := append(l.diskLists(&disks, &locations),
		list{"the disk of Windows", askSystem})
	if !withLocations {
		lists = slices.DeleteFunc(lists, func(l list) bool { return l.what == "locations of disks" })
	}
	for _, err := range l.makeAll(ctx, lists...) {
		if err != nil {
			return nil, err
		}
	}
	addLocations(disks, locations)
	const forLocation = askNumber | askDescriptor | askAddress
	complete := !slices.ContainsFunc(disks, func(d Disk) bool { return l.unanswered[d.Path]&forLocation != 0 })
	for i, disk := range disks {
		// A disk with an address has a location, unless it is a file or did not answer in time.
		if disk.Location == nil && disk.SCSI != nil && disk.Bus != busName(win.BusTypeFileBackedVirtual) {
			l.unanswered[disk.Path] |= askLocation
		} else if withLocations && l.unanswered[disk.Path]&forLocation == 0 {
			l.known.locate(&disks[i], complete)
			if at := disks[i].Location; !complete && at != nil && at.LUNID == "" && disk.Bus == busName(win.BusTypeNVMe) {
				l.unanswered[disk.Path] |= askLocation // see ListDiskLocations
			}
		}
	}
	policy := win.SANOnlineAll
	if slices.ContainsFunc(disks, func(d Disk) bool { return d.Online != nil && !*d.Online }) {
		_ = l.sanPolicy(ctx, &policy) // only a reason
	}
	explainOffline(policy, disks)
	for i, disk := range disks {
		disks[i].System = disk.Number != nil && slices.Contains(system, *disk.Number)
	}
	return disks, nil
}

func (n *Node) pick(ctx context.Context, q Query, found search) (*Disk, error) {
	var matching, silent []Disk
	onlySystem := false
	for _, disk := range found.disks {
		known, unanswered := n.known.remembered(disk, found.unanswered[disk.Path])
		switch matches := q.matches(disk); {
		case matches && disk.System:
			onlySystem = true
		case matches && disk.Number == nil:
			silent = append(silent, known)
		case matches:
			matching = append(matching, disk)
		case !disk.System && q.mayMatch(known, unanswered) && !q.hasNumber(found.disks):
			silent = append(silent, known)
		}
	}
	switch {
	case len(matching) > 1:
		return nil, &AmbiguousError{Query: q, Candidates: matching}
	case len(matching) == 1 && q.isUnique():
		return &matching[0], nil
	}
	silent = slices.DeleteFunc(silent, func(d Disk) bool { return n.isMounted(ctx, d) })
	switch {
	case len(silent) > 0:
		return nil, winerr.New(winerr.Unavailable, opFind, q.String(), "%s may be it, but did not answer every question; try again later", names(silent))
	case len(matching) == 1:
		return &matching[0], nil
	case onlySystem:
		return nil, winerr.New(winerr.NotFound, opFind, q.String(), "only the disk that Windows runs from has these keys")
	default:
		return nil, winerr.New(winerr.NotFound, opFind, q.String(), "there is no such disk, or Windows has not seen it yet")
	}
}

// isUnique reports whether the query has a key that only one disk in the world has.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddstor/ne-ntddstor-_storage_identifier_type
func (q Query) isUnique() bool { return q.Page83 != "" || q.EUI64 != "" || q.NGUID != "" }

// questions are questions to a disk that keys are read from.
type questions uint8

const (
	askNumber questions = 1 << iota
	askDescriptor
	askIdentifiers
	askAddress
	askLocation
	askSize
	askLayout
	askAll = 1<<iota - 1
)

// unlessUnsupported returns the question if it failed, unless the disk has no answer to it.
func unlessUnsupported(question questions, err error) questions {
	if err == nil || errors.Is(err, winerr.Unsupported) {
		return 0
	}
	return question
}

type key struct {
	name        string
	want, have  string
	asked, same bool
	from        questions // that it is read from
}

// keys are all keys, compared with those of a disk.
func (q Query) keys(d Disk) []key {
	text := func(name, want, have string, from questions) key {
		return key{name, want, have, want != "", want == have, from}
	}
	folded := func(name, want, have string, from questions) key {
		return key{name, want, have, want != "", strings.EqualFold(want, have), from}
	}
	number := func(p *uint32) string {
		if p == nil {
			return ""
		}
		return strconv.FormatUint(uint64(*p), 10)
	}
	address := func(a *SCSIAddress) string {
		if a == nil {
			return ""
		}
		return a.String()
	}
	count := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	var at diskapi.DiskLocation
	if d.Location != nil {
		at = *d.Location
	}
	var size int64
	if d.Size != nil {
		size = *d.Size
	}
	var ids []string
	for _, p := range d.Partitions {
		ids = append(ids, p.ID)
	}
	prefix := key{"serial number beginning with", q.SerialPrefix, d.Serial, q.SerialPrefix != "", strings.HasPrefix(d.Serial, q.SerialPrefix), askDescriptor}
	return []key{
		text("number", number(q.Number), number(d.Number), askNumber),
		folded("path", q.Path, d.Path, 0),
		folded("bus", q.Bus, d.Bus, askDescriptor),
		text("model", q.Model, d.Model, askDescriptor),
		text("serial number", q.Serial, d.Serial, askDescriptor),
		prefix,
		text("page 83", q.Page83, d.Page83, askIdentifiers),
		text("LUN", q.LUN, at.LUNID, askNumber|askDescriptor|askAddress|askLocation),
		text("adapter", q.Adapter, at.Adapter, askNumber|askDescriptor|askAddress|askLocation),
		text("SCSI address", address(q.SCSI), address(d.SCSI), askAddress),
		text("namespace", count(int64(q.NamespaceID)), count(int64(d.NamespaceID)), 0),
		folded("EUI-64", q.EUI64, d.EUI64, askDescriptor|askIdentifiers),
		folded("NGUID", q.NGUID, d.NGUID, askDescriptor|askIdentifiers),
		text("size", count(q.Size), count(size), askSize),
		{"partition", q.Partition, strings.Join(ids, " "), q.Partition != "", slices.ContainsFunc(ids, func(id string) bool { return strings.EqualFold(id, q.Partition) }), askLayout},
	}
}

func (q Query) matches(d Disk) bool {
	return !slices.ContainsFunc(q.keys(d), func(k key) bool { return k.asked && !k.same })
}

// mayMatch reports whether only keys differ whose questions the disk did not answer.
func (q Query) mayMatch(d Disk, unanswered questions) bool {
	return !slices.ContainsFunc(q.keys(d), func(k key) bool {
		return k.asked && !k.same && (k.have != "" || unanswered&k.from == 0)
	})
}

// hasNumber reports whether the query asks for a number that a disk has reported. No other disk has it.
func (q Query) hasNumber(disks []Disk) bool {
	return q.Number != nil && slices.ContainsFunc(disks, func(d Disk) bool { return d.Number != nil && *d.Number == *q.Number })
}

// String names the keys: LUN "0", adapter "1".
func (q Query) String() string {
	var texts []string
	for _, k := range q.keys(Disk{}) {
		if k.asked {
			texts = append(texts, fmt.Sprintf("%s %q", k.name, k.want))
		}
	}
	return strings.Join(texts, ", ")
}

func (d Disk) name() string {
	if d.Number == nil {
		return "the disk " + d.Path
	}
	return fmt.Sprintf("disk %d", *d.Number)
}
