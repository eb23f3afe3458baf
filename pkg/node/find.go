package node

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
)

// Query says which disk to find, by one key or several. A key that is nil, empty or 0 does not
// count. Texts are compared as they are, except that case does not matter in Path, Bus, EUI64 and
// NGUID.
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
	LUN, Adapter string
	SCSI         *SCSIAddress
	NamespaceID  uint32
	EUI64, NGUID string
	Size         int64
}

// AmbiguousError says that more than one disk has the keys of a query. A caller that takes any of
// them may destroy the data of another.
type AmbiguousError struct {
	Query      Query
	Candidates []Disk // at least two
}

// Error names the disks.
func (e *AmbiguousError) Error() string {
	names := make([]string, len(e.Candidates))
	for i, disk := range e.Candidates {
		names[i] = disk.name()
	}
	return fmt.Sprintf("%s %s: several disks match: %s; add a key to the query", opFind, e.Query, strings.Join(names, ", "))
}

const opFind = "find disk with"

// FindDisk returns the one disk that has all keys of the query. It never returns the disk that
// Windows runs from, and fails if Windows does not say which one that is.
//
// If several disks match, the error is an *AmbiguousError. If none does, errors.Is(err,
// fs.ErrNotExist) holds; a disk that was just attached may need Rescan of package disk first. If a
// disk does not answer, so that it may be the one, the error is neither: try again later.
//
// The disk has no volumes in its partitions; Describe adds them.
func (n *Node) FindDisk(ctx context.Context, query Query) (*Disk, error) {
	if query == (Query{}) {
		return nil, winerr.New(winerr.Invalid, opFind, "no keys", "the query is empty")
	}
	limited, cancel := context.WithTimeout(ctx, portion(ctx, limit, 3))
	defer cancel()

	l := look{Node: n}
	disks, err := l.findable(limited, query)
	if err := ctx.Err(); err != nil {
		return nil, winerr.Wrap(opFind, query.String(), err)
	}
	if err != nil {
		return nil, winerr.Wrap(opFind, query.String(), err)
	}
	return query.pick(disks)
}

// findable returns the disks with their keys, and which are the system's.
func (l *look) findable(ctx context.Context, query Query) ([]Disk, error) {
	var disks []Disk
	var locations map[uint32]diskapi.DiskLocation
	var system []uint32
	lists := append(l.diskLists(&disks, &locations, false),
		list{"the disk of Windows", func(ctx context.Context) (err error) { system, err = l.systemDisks(ctx); return err }})
	if query.LUN == "" && query.Adapter == "" {
		lists = slices.DeleteFunc(lists, func(l list) bool { return l.what == "locations of disks" })
	}
	for _, err := range l.makeAll(ctx, lists...) {
		if err != nil {
			return nil, err
		}
	}
	addLocations(disks, locations)
	l.explainOffline(ctx, disks)
	for i, disk := range disks {
		disks[i].System = disk.Number != nil && slices.Contains(system, *disk.Number)
	}
	return disks, nil
}

// systemDisks returns the disks that Windows and its boot files are on.
func (l *look) systemDisks(ctx context.Context) ([]uint32, error) {
	const advice = "Windows did not say which disks it runs from"
	volumes, err := l.m.SystemVolumes(ctx)
	if err != nil {
		return nil, winerr.As(winerr.Unavailable, opFind, "", err, advice)
	}
	var system []uint32
	for _, volume := range volumes {
		extents, err := l.m.VolumeExtents(ctx, volume)
		if err != nil {
			return nil, winerr.As(winerr.Unavailable, opFind, string(volume), err, advice)
		}
		for _, extent := range extents {
			system = append(system, extent.Disk)
		}
	}
	if len(system) == 0 {
		return nil, winerr.New(winerr.Unavailable, opFind, "", advice)
	}
	return system, nil
}

// pick returns the one disk that matches.
func (q Query) pick(disks []Disk) (*Disk, error) {
	var matching []Disk
	var silent []string
	onlySystem := false
	for _, disk := range disks {
		switch matches := q.matches(disk); {
		case matches && disk.System:
			onlySystem = true
		case matches && disk.Number == nil:
			silent = append(silent, disk.name())
		case matches:
			matching = append(matching, disk)
		case len(disk.Problems) > 0 && !disk.System && q.mayMatch(disk):
			silent = append(silent, disk.name())
		}
	}
	switch {
	case len(matching) == 1:
		return &matching[0], nil
	case len(matching) > 1:
		return nil, &AmbiguousError{Query: q, Candidates: matching}
	case len(silent) > 0:
		return nil, winerr.New(winerr.Unavailable, opFind, q.String(), "%s may be it, but did not answer every question; try again later", strings.Join(silent, ", "))
	case onlySystem:
		return nil, winerr.New(winerr.NotFound, opFind, q.String(), "only the disk that Windows runs from has these keys")
	default:
		return nil, winerr.New(winerr.NotFound, opFind, q.String(), "there is no such disk; rescan the disks if it was just attached")
	}
}

// key is one key of a query.
type key struct {
	name        string
	want, have  string
	asked, same bool
}

// keys are all keys, compared with those of a disk.
func (q Query) keys(d Disk) []key {
	text := func(name, want, have string) key { return key{name, want, have, want != "", want == have} }
	folded := func(name, want, have string) key {
		return key{name, want, have, want != "", strings.EqualFold(want, have)}
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
		return fmt.Sprintf("%d:%d:%d:%d", a.Port, a.Path, a.Target, a.LUN)
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
	prefix := key{"serial number beginning with", q.SerialPrefix, d.Serial, q.SerialPrefix != "", strings.HasPrefix(d.Serial, q.SerialPrefix)}
	return []key{
		text("number", number(q.Number), number(d.Number)),
		folded("path", q.Path, d.Path),
		folded("bus", q.Bus, d.Bus),
		text("model", q.Model, d.Model),
		text("serial number", q.Serial, d.Serial),
		prefix,
		text("page 83", q.Page83, d.Page83),
		text("LUN", q.LUN, at.LUNID),
		text("adapter", q.Adapter, at.Adapter),
		text("SCSI address", address(q.SCSI), address(d.SCSI)),
		text("namespace", count(int64(q.NamespaceID)), count(int64(d.NamespaceID))),
		folded("EUI-64", q.EUI64, d.EUI64),
		folded("NGUID", q.NGUID, d.NGUID),
		text("size", count(q.Size), count(size)),
	}
}

func (q Query) matches(d Disk) bool {
	return !slices.ContainsFunc(q.keys(d), func(k key) bool { return k.asked && !k.same })
}

// mayMatch reports whether only keys that the disk does not tell differ.
func (q Query) mayMatch(d Disk) bool {
	return !slices.ContainsFunc(q.keys(d), func(k key) bool { return k.asked && !k.same && k.have != "" })
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

// name is the name of a disk in errors.
func (d Disk) name() string {
	if d.Number == nil {
		return "the disk " + d.Path
	}
	return fmt.Sprintf("disk %d", *d.Number)
}
