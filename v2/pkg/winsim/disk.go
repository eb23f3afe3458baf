package winsim

import (
	"cmp"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// disk is a disk: the data on the backend, and what Windows knows of it.
type disk struct {
	Disk // as described, without what follows

	device      string // the path of its device interface
	adapter     string
	identifiers []win.DeviceIdentifier
	sector      int64
	hanging     chan struct{} // closed by HealDisk; nil unless HangDisk
	nameless    bool          // not visible; holds a volume of the model without a disk
	lun         bool          // of an iSCSI target, where its LUN is unit
	unit        uint8
	mpio        bool   // claimed by MPIO
	generation  uint32 // how many disks had left when it arrived
	relapses    int    // how often it still goes offline again

	size        int64 // on the backend
	visibleSize int64 // as Windows shows it
	table       table
	attributes  win.DiskAttributes

	// The content. The keys of file systems are offsets: a file system outlives its partition
	// table and comes back with it.
	content     sparse
	fileSystems map[int64]*fileSystem
}

// disks are the disks of a node, the adapters they are at, and what Windows stores about them.
type disks struct {
	*clock
	storage Storage // of the model
	volumes *volumes

	byNumber   map[uint32]*disk
	devices    map[string]*disk            // by folded path, \\.\PhysicalDriveN and the interface
	unseen     []*disk                     // attached, but not found yet
	detached   []*disk                     // with the number they had, the last one last
	departures uint32                      // how often a disk was detached
	persisted  map[SCSI]win.DiskAttributes // stored attributes by address
	guids      uint32                      // created so far
	hanging    atomic.Int32                // how many hang; most calls need not look for them
}

type table struct {
	style      win.PartitionStyle
	id         win.GUID // GPT
	signature  uint32   // MBR
	size       int64    // GPT: the size of the disk for which it was written
	partitions []*partition
}

type partition struct {
	win.Partition
	volume *volume
}

func (m Disk) build(number uint32) (*disk, *ModelError) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	d := &disk{
		Disk:        m,
		sector:      int64(cmp.Or(m.SectorSize, 512)),
		size:        int64(m.Size),
		attributes:  win.DiskAttributes{Offline: m.Offline, ReadOnly: m.ReadOnly},
		table:       table{style: win.StyleRaw},
		content:     sparse{},
		fileSystems: map[int64]*fileSystem{},
	}
	d.Number, d.Partitions, d.Bytes, d.LogOpened = number, nil, nil, 0
	if m.Hanging {
		d.hanging = make(chan struct{})
	}
	d.visibleSize = int64(cmp.Or(m.Visible, m.Size))
	d.device = d.interfacePath()
	d.adapter = adapterID(m.Bus, m.SCSI)
	for i, identifier := range m.Page83 {
		built, err := identifier.build()
		if err != nil {
			return nil, err.at("page83", i)
		}
		d.identifiers = append(d.identifiers, built)
	}
	if err := d.partition(m); err != nil {
		return nil, err
	}
	for i, bytes := range m.Bytes {
		if err := bytes.put(d.content, 0, d.size); err != nil {
			return nil, err.at("bytes", i)
		}
	}
	return d, nil
}

func (m Disk) validate() *ModelError {
	if _, ok := busTypes[m.Bus]; !ok {
		return oneOf("bus", m.Bus, busATA, busFibre, BusFileBacked, BusISCSI, BusNVMe, busRAID, BusSAS, busSATA, BusSCSI, busSpaces, busUSB, busVirtual)
	}
	switch {
	case m.Presence != "" && m.Presence != DiskDetached:
		return problem("presence", "%q is only in a description", m.Presence)
	case m.SectorSize != 0 && m.SectorSize != 512 && m.SectorSize != 4096:
		return problem("sectorSize", "%d is not 512 or 4096", m.SectorSize)
	case !m.Size.plausible():
		return problem("size", "%s is not a valid disk size; use a multiple of 4096 bytes from 1MiB to 1024TiB", m.Size)
	case m.Visible != 0 && !m.Visible.plausible():
		return problem("visible", "%s is not a valid disk size", m.Visible)
	case m.GrowsTo != 0 && (m.GrowsTo < m.Size || !m.GrowsTo.plausible()):
		return problem("growsTo", "%s is smaller than the disk or not a multiple of 4096 bytes", m.GrowsTo)
	case m.Path != "" && (!strings.HasPrefix(m.Path, `\\?\`) || isVolume(win.Device(m.Path))):
		return problem("path", `%q is not a device interface, which begins with \\?\`, m.Path)
	case m.ID != "" && m.Layout != LayoutGPT && m.Layout != LayoutMBR:
		return problem("id", "only disks with a partition table have an id; set layout to %s or %s", LayoutGPT, LayoutMBR)
	case m.Hidden && (m.System || m.Layout != "" && m.Layout != LayoutRaw):
		return problem("hidden", "a hidden disk shows no volumes; leave out layout and system")
	case m.Online && (m.Offline || m.ReadOnly):
		return problem("online", "an online disk cannot be offline or read-only")
	}
	return oneOf("layout", m.Layout, LayoutRaw, LayoutGPT, LayoutMBR, LayoutSuperfloppy)
}

// interfacePath is the disk's device interface as SetupDi names it. Unlike a real path it
// contains the disk number, to make logs readable. The generation distinguishes disks that used
// the same number one after another: an old path never opens a later disk. A path that the model
// gives stays, because many real ones name a slot.
func (d *disk) interfacePath() string {
	if d.Path != "" {
		return d.Path
	}
	enumerator := "scsi"
	switch {
	case d.mpio:
		enumerator = "mpio"
	case d.Bus == BusNVMe:
		enumerator = "nvme"
	}
	class := "53f56307-b6bf-11d0-94f2-00a0c91efb8b"
	if d.Hidden {
		class = "7fccc86c-228a-40ad-8a58-f590af7bfdce"
	}
	return fmt.Sprintf(`\\?\%s#disk&ven_winsim&prod_disk#5&%07x&0&%06x#{%s}`, enumerator, d.Number, d.generation, class)
}

// diskOf finds a disk by its device. mu is held.
func (m *disks) diskOf(device win.Device) *disk {
	return m.devices[winpath.Fold(string(device))]
}

// writable returns the error of a write to the disk, if it refuses writes.
func (d *disk) writable() error {
	switch {
	case d.attributes.Offline:
		return winerr.NotReady
	case d.attributes.ReadOnly:
		return winerr.WriteProtect
	}
	return nil
}
