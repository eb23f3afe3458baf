package simulation

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	kubeletDir = `C:\var\lib\kubelet`
	plugins    = kubeletDir + `\plugins\kubernetes.io\csi\simulated`
	pods       = kubeletDir + `\pods`
	portal     = "10.0.0.10:3260"
	portal2    = "10.0.0.11:3260"
	account    = "csi"
	// secret is in every password and CHAP secret, and nowhere else.
	secret = "Pa55-w0"
)

// world is what the run is about, and what is true of it.
type world struct {
	volumes []*volume
	others  []*volume // disks of others
	absent  []string  // those of them that are not attached
	drivers []*driver
	daemon  *process
}

// volume is a volume of the cluster. The scheduler alone changes it, in steps and checks.
type volume struct {
	name          string
	serial        string // of its disk; empty for a share
	target        string // its iSCSI target, or empty
	lun           uint16
	chap          mounter.CHAP
	server, share string // empty for a disk
	driver        *driver
	keys          int  // which keys of the disk the driver uses
	offline       bool // the driver takes the disk offline
	pods          [2]podUse
	size          winsim.Size

	attached  bool   // the controller has attached it
	written   string // the last that a pod wrote
	stable    string // what must be there, as it was before an Unstage that said OK
	flushed   bool   // since the last write
	writtenAt int64  // the period of the last write
	loss      bool   // the run caused one
	left      bool   // its disk has left while it was used
	hungAt    time.Time
	hungFor   time.Duration // at most
	badAt     time.Time     // since when its disk hangs, fails or is not here
	leftAt    time.Time     // when the first Unstage since the last Stage was asked for
	troubled  int           // counts what befell it
	random    *rand.Rand    // of its life

	flushErrors int         // in a row, since it was staged
	saidGone    atomic.Bool // to its driver, in Unstage
	run         *run
}

// podUse says whether a pod uses the volume, from the OK of Publish until Unpublish begins, and whether it wrote.
type podUse struct{ uses, wrote bool }

// isMounters reports whether its driver uses the mounter. The others speak the API of the daemon.
func (v *volume) isMounters() bool { return strings.HasPrefix(v.driver.name, "mounter") }

func (v *volume) staging() string { return plugins + `\` + v.name + `\globalmount` }

func (v *volume) targetPath(pod int) string {
	return fmt.Sprintf(`%s\%s-%d\volumes\kubernetes.io~csi\pv\mount`, pods, v.name, pod)
}

// build makes a node, its volumes and its drivers.
func (r *run) build() error {
	random := r.random
	model := winsim.Default()
	model.RealTime = true // which is virtual in a bubble
	model.Seed = r.seed
	model.Disks = model.Disks[:1]
	model.SMBServers, model.ISCSI.Targets = nil, nil
	model.ISCSI.Portals = []winsim.ISCSIPortal{{Address: "10.0.0.10"}, {Address: "10.0.0.11"}}
	model.ISCSI.MPIO = random.IntN(3) == 0
	model.ISCSI.PnPDelay = pickOne(random, 0, 300*time.Millisecond, 4*time.Second)
	model.Storage = winsim.Storage{
		SANPolicy:       pickOne(random, winsim.OnlineAll, winsim.OfflineShared, winsim.OfflineAll),
		AttachByRescan:  random.IntN(3) == 0,
		VolumeArrival:   pickOne(random, 0, 200*time.Millisecond),
		FormatTime:      pickOne(random, 0, 3*time.Second),
		CreateDiskMSR:   pickOne(random, winsim.MSRNever, winsim.MSRAtOnce),
		CapacityFollows: winsim.CapacityAtOnce,
	}
	iscsi, smb := random.IntN(2) == 0, random.IntN(2) == 0
	model.Storage.AttachByRescan = model.Storage.AttachByRescan && !iscsi // logins rescan their adapter
	r.world.drivers = newDrivers()
	for i := range 1 + random.IntN(4) {
		v := &volume{name: fmt.Sprintf("disk-%d", i), serial: fmt.Sprintf("SIM%04d", i), size: winsim.GiB, driver: pickOne(random, r.world.drivers[:4]...)}
		d := backendDisk(v.serial, i)
		d.Presence = winsim.DiskDetached
		if random.IntN(2) == 0 {
			r.fill(&d, v, i)
		}
		model.Disks = append(model.Disks, d)
		r.world.volumes = append(r.world.volumes, v)
	}
	if iscsi {
		target, chap := winsim.ISCSITarget{IQN: "iqn.2001-04.com.example:array"}, mounter.CHAP{}
		if random.IntN(2) == 0 {
			chap = mounter.CHAP{Username: account, Secret: secret + "-chap-1"}
			target.CHAP = &winsim.CHAP{User: chap.Username, Secret: chap.Secret}
		}
		owner := pickOne(random, r.world.drivers[:2]...) // drivers do not share targets
		for lun := range 1 + random.IntN(3) {
			v := &volume{driver: owner, name: fmt.Sprintf("lun-%d", lun), serial: fmt.Sprintf("LUN%04d", lun), target: target.IQN, chap: chap, lun: uint16(lun), size: winsim.GiB}
			target.LUNs = append(target.LUNs, winsim.Disk{Size: v.size, Serial: v.serial})
			r.world.volumes = append(r.world.volumes, v)
		}
		model.ISCSI.Targets = []winsim.ISCSITarget{target}
	}
	if smb {
		server := winsim.SMBServer{Name: "files", Accounts: []winsim.SMBAccount{{User: account, Password: r.password()}}}
		for i := range 1 + random.IntN(2) {
			v := &volume{name: fmt.Sprintf("share-%d", i), server: server.Name, share: fmt.Sprintf("data%d", i), driver: r.world.drivers[pickOne(random, 0, 1, 4)]}
			server.Shares = append(server.Shares, winsim.SMBShare{Name: v.share})
			r.world.volumes = append(r.world.volumes, v)
		}
		model.SMBServers = []winsim.SMBServer{server}
	}
	for i := range 2 { // disks of others: one blank, one with data
		serial := fmt.Sprintf("OTHER%04d", i)
		other := &volume{name: fmt.Sprintf("other-%d", i), serial: serial}
		d := backendDisk(serial, 20+i)
		if i == 1 {
			r.fill(&d, other, 20+i)
		}
		if random.IntN(4) > 0 {
			d.Presence = winsim.DiskDetached
			r.world.absent = append(r.world.absent, serial)
		}
		model.Disks = append(model.Disks, d)
		r.world.others = append(r.world.others, other)
	}
	for i, v := range r.world.volumes {
		v.run, v.random, v.keys, v.offline = r, rand.New(rand.NewPCG(r.seed, uint64(2+i))), random.IntN(3), random.IntN(2) == 0
		model.Files = append(model.Files, winsim.File{Path: parentOf(v.staging())})
	}
	model.Files = append(model.Files, winsim.File{Path: pods})
	node, err := winsim.New(model)
	if err == nil {
		_, err = node.Inject(winsim.Fault{Object: "nothing", Error: 1}) // so that all calls have bounds, as on Windows
	}
	r.node = node
	return err
}

// backendDisk is a disk of one of the clouds.
func backendDisk(serial string, i int) winsim.Disk {
	d := winsim.Disk{Number: uint32(1 + i), Size: winsim.GiB, Serial: serial, Vendor: "SIM", Page83: []winsim.Identifier{{Text: "SIM " + serial}}, SCSI: &winsim.SCSI{Port: 1, LUN: uint8(i), BusNumber: "0"}}
	d.Bus = []winsim.Bus{winsim.BusSCSI, winsim.BusNVMe, winsim.BusSAS}[i%3]
	d.Location = fmt.Sprintf("Adapter 1 : Port 1 : Target 0 : LUN %d", i)
	return d
}

// fill gives a disk a file system with a file of its owner.
func (r *run) fill(d *winsim.Disk, v *volume, i int) {
	v.stable = v.name + " from before"
	d.Layout = winsim.LayoutGPT
	d.Partitions = []winsim.Partition{{Type: "msr", Size: 16 * winsim.MiB}, {Volume: &winsim.Volume{
		ID: fmt.Sprintf("5eed0000-0000-0000-0000-%012d", i), Files: []winsim.File{{Path: dataFile, Content: v.stable}},
	}}}
}

// dataFile is what pods write on a volume.
const dataFile = "data"

// allDisks are the disks of the node and of its targets.
func (r *run) allDisks() []winsim.Disk {
	described := r.node.Describe()
	for _, t := range described.ISCSI.Targets {
		described.Disks = append(described.Disks, t.LUNs...)
	}
	return described.Disks
}

// disk returns the disk of a serial number as it is now.
func (r *run) disk(serial string) (winsim.Disk, bool) {
	all := r.allDisks()
	i := slices.IndexFunc(all, func(d winsim.Disk) bool { return d.Serial == serial })
	return append(all, winsim.Disk{})[max(i, 0)], i >= 0
}

// here reports whether the node has the disk of a volume, and its number.
func (r *run) here(serial string) (uint32, bool) {
	d, ok := r.disk(serial)
	return d.Number, ok && (d.Presence == winsim.DiskAttached || d.Presence == winsim.DiskUnseen || d.Presence == "")
}

// volumeID is how Windows names a volume.
var volumeID = regexp.MustCompile(`Volume\{[-0-9a-fA-F]*\}`)

// volumesOnDisks are the data volumes of all disks, by serial number.
func (r *run) volumesOnDisks() map[string]string {
	volumes := map[string]string{}
	for _, d := range r.allDisks() {
		for _, p := range d.Partitions {
			if p.Volume != nil && p.Type != "msr" && !d.System {
				volumes[d.Serial] = volumeID.FindString(p.Volume.ID)
			}
		}
	}
	return volumes
}

// truth is what is on a volume itself, whatever paths lead to it. It fails if Windows does not have the volume now.
func (r *run) truth(v *volume) (string, error) {
	if v.server != "" {
		return r.node.ReadFile(v.remote() + `\` + dataFile)
	}
	if id := r.volumesOnDisks()[v.serial]; id != "" {
		return r.node.ReadFile(`\\?\` + id + `\` + dataFile)
	}
	return "", errNoVolume
}

func parentOf(path string) string { return path[:strings.LastIndex(path, `\`)] }

// password is that of the shares now.
func (r *run) password() string { return fmt.Sprintf("%s-smb-%d", secret, r.passwords) }
