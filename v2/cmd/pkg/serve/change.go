package serve

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Change is what the storage backend, the network and an operator do to a node, in this order. Disks and servers
// have the words of a winsim.Model. For example:
//
//	attach: [{size: 10GiB, serial: disk-7}]
//	hang: [2]
type Change struct {
	// Detach are the numbers of disks to detach, and Reattach those that detached disks had.
	Detach   []uint32 `yaml:"detach"`
	Reattach []uint32 `yaml:"reattach"`
	// Attach are the disks to attach.
	Attach []Attachment `yaml:"attach"`
	// Grow enlarges disks. Windows may see it only after a rescan.
	Grow []Growth `yaml:"grow"`
	// Fail makes all reads and writes of disks fail, Hang lets them wait, and Heal ends both.
	Fail []uint32 `yaml:"fail"`
	Hang []uint32 `yaml:"hang"`
	Heal []uint32 `yaml:"heal"`
	// SMBServers, SMBShares and SMBAccounts are to add, SMBPasswords to change.
	SMBServers   []winsim.SMBServer `yaml:"smbServers"`
	SMBShares    []Share            `yaml:"smbShares"`
	SMBAccounts  []Account          `yaml:"smbAccounts"`
	SMBPasswords []Account          `yaml:"smbPasswords"`
	// StopSMBServers makes servers unreachable, StartSMBServers reachable again.
	StopSMBServers  []string `yaml:"stopSMBServers"`
	StartSMBServers []string `yaml:"startSMBServers"`
	// EndSMBSessions ends all SMB sessions of the node, as Windows does with idle ones.
	EndSMBSessions bool `yaml:"endSMBSessions"`
	// Directories are to create, on drives or shares, with missing parents.
	Directories []string `yaml:"directories"`
	// Faults replace those of earlier changes; an empty list removes them.
	Faults []winsim.Fault `yaml:"faults"`
	// RestartDaemon kills the daemon without clean-up, and starts another one on the node, which lives on.
	RestartDaemon bool `yaml:"restartDaemon"`
	// Reboot restarts the node, and the daemon with it.
	Reboot bool `yaml:"reboot"`
}

// Attachment is a disk to attach.
type Attachment struct {
	winsim.Disk `yaml:",inline"`
	// Like is the number of a disk with the same bus, model, sector size and adapter. The default is a SCSI disk on
	// adapter 1.
	Like *uint32 `yaml:"like"`
	// LUN is that on the adapter, unless scsi says more; the default is the lowest free one. NVMe disks have none.
	LUN *uint8 `yaml:"lun"`
	// CloneOf is the number of the disk to copy, as a restored snapshot.
	CloneOf *uint32 `yaml:"cloneOf"`
}

// Growth is the new size of a disk.
type Growth struct {
	Disk uint32      `yaml:"disk"`
	Size winsim.Size `yaml:"size"`
}

// Share is an empty share of a server.
type Share struct {
	Server string `yaml:"server"`
	Name   string `yaml:"name"`
}

// Account is a user of a server.
type Account struct {
	Server   string `yaml:"server"`
	User     string `yaml:"user"`
	Password string `yaml:"password"`
}

// Changed is what a change has made.
type Changed struct {
	// Disks are the numbers of the disks of Reattach, then of Attach.
	Disks []uint32 `yaml:"disks"`
}

// apply makes a change. With an error it returns the field that is wrong.
func (c *changer) apply(change Change, changed *Changed) (field string, err error) {
	node := c.node
	attached := func(number uint32, err error) error {
		if err == nil {
			changed.Disks = append(changed.Disks, number)
		}
		return err
	}
	down := func(down bool) func(string) error {
		return func(name string) error {
			return node.ChangeSMBServer(name, func(s *winsim.SMBServer) { s.Down = down })
		}
	}
	for _, step := range []func() (string, error){
		each("detach", change.Detach, func(disk uint32) error { return c.onData("detach disk", disk, node.DetachDisk) }),
		each("reattach", change.Reattach, func(disk uint32) error { return attached(node.ReattachDisk(disk)) }),
		each("attach", change.Attach, func(a Attachment) error { return attached(c.attach(a)) }),
		each("grow", change.Grow, func(g Growth) error { return node.GrowDisk(g.Disk, g.Size) }),
		each("fail", change.Fail, func(disk uint32) error { return c.onData("fail disk", disk, node.FailDisk) }),
		each("hang", change.Hang, func(disk uint32) error { return c.onData("hang disk", disk, node.HangDisk) }),
		each("heal", change.Heal, node.HealDisk),
		each("smbServers", change.SMBServers, func(s winsim.SMBServer) error { return node.Add(winsim.Model{SMBServers: []winsim.SMBServer{s}}) }),
		each("smbShares", change.SMBShares, c.addShare),
		each("smbAccounts", change.SMBAccounts, c.addAccount),
		each("smbPasswords", change.SMBPasswords, c.setPassword),
		each("stopSMBServers", change.StopSMBServers, down(true)),
		each("startSMBServers", change.StartSMBServers, down(false)),
		each("directories", change.Directories, c.makeDirectory),
	} {
		if field, err := step(); err != nil {
			return field, err
		}
	}
	if change.EndSMBSessions {
		node.EndSMBSessions()
	}
	if change.Faults != nil {
		for _, f := range c.faults {
			f.Remove()
		}
		c.faults = nil
	}
	field, err = each("faults", change.Faults, func(f winsim.Fault) error {
		injection, err := node.Inject(f)
		if err != nil {
			return winerr.As(winerr.Invalid, "inject fault", "", err, "")
		}
		c.faults = append(c.faults, injection)
		return nil
	})()
	switch {
	case err != nil:
		return field, err
	case change.Reboot:
		return "reboot", c.daemons.restart("reboot", node.Reboot)
	case change.RestartDaemon:
		return "restartDaemon", c.daemons.restart("restart daemon", func() {})
	}
	return "", nil
}

// each returns a step that does something with each element of a list. With an error it returns which one is wrong.
func each[T any](list string, elements []T, do func(T) error) func() (field string, err error) {
	return func() (string, error) {
		for i, element := range elements {
			if err := do(element); err != nil {
				return fmt.Sprintf("%s[%d]", list, i), err
			}
		}
		return "", nil
	}
}

const attachOp = "attach disk"

func (c *changer) attach(a Attachment) (number uint32, err error) {
	const maxDisk = 1 << 16 // Windows gives low numbers
	disk := a.Disk
	if disk.Number > maxDisk {
		return 0, winerr.New(winerr.Invalid, attachOp, fmt.Sprint(disk.Number), "the number is too large; use at most %d", maxDisk)
	}
	if disk.System {
		return 0, winerr.New(winerr.Invalid, attachOp, "", "a node has one system disk, from its start; leave system out")
	}
	port, location := uint8(1), "Integrated : Bus 0 : Device 63667 : Function 30747 : Adapter 1 : Port 0 : Target 0 : LUN 0"
	bus := "0"
	if a.Like != nil {
		like, err := c.node.DiskInfo(*a.Like)
		if err != nil {
			return 0, err
		}
		disk.Bus, disk.SectorSize = cmp.Or(disk.Bus, like.Bus), cmp.Or(disk.SectorSize, like.SectorSize)
		disk.Vendor, disk.Product = cmp.Or(disk.Vendor, like.Vendor), cmp.Or(disk.Product, like.Product)
		if like.SCSI != nil {
			port, bus, location = like.SCSI.Port, like.SCSI.BusNumber, like.Location
		}
	} else {
		disk.Vendor, disk.Product = cmp.Or(disk.Vendor, "WINSIM"), cmp.Or(disk.Product, "Disk")
	}
	if disk.SCSI == nil && (disk.Bus != winsim.BusNVMe || a.LUN != nil) {
		lun, err := c.freeLUN(port, a.LUN)
		if err != nil {
			return 0, err
		}
		disk.SCSI = &winsim.SCSI{Port: port, LUN: lun, BusNumber: bus}
		disk.Location = cmp.Or(disk.Location, lastNumber.ReplaceAllString(location, fmt.Sprintf("LUN %d", lun)))
	}
	if a.CloneOf != nil {
		return c.node.CloneDisk(*a.CloneOf, disk)
	}
	return c.node.AttachDisk(disk)
}

// lastNumber is the LUN at the end of a location.
var lastNumber = regexp.MustCompile(`LUN \d+$`)

// freeLUN returns the wanted LUN, or the lowest that has no disk, also none that was detached.
func (c *changer) freeLUN(port uint8, wanted *uint8) (uint8, error) {
	node := c.node.Describe()
	at := func(d winsim.Disk, lun uint8) bool {
		return d.SCSI != nil && *d.SCSI == winsim.SCSI{Port: port, LUN: lun, BusNumber: d.SCSI.BusNumber}
	}
	if wanted != nil {
		for _, d := range attached(node) {
			if at(d, *wanted) {
				return 0, winerr.New(winerr.Exists, attachOp, "", "LUN %d of adapter %d is disk %d; choose another LUN or detach the disk", *wanted, port, d.Number)
			}
		}
		return *wanted, nil
	}
	for lun := range 256 {
		if !slices.ContainsFunc(node.Disks, func(d winsim.Disk) bool { return at(d, uint8(lun)) }) {
			return uint8(lun), nil
		}
	}
	return 0, winerr.New(winerr.NoSpace, attachOp, "", "adapter %d has no free LUN; detach a disk", port)
}

// attached are the attached disks, by number, including those that Windows does not see yet.
func attached(node winsim.Model) []winsim.Disk {
	all := slices.Clone(node.Disks)
	for _, t := range node.ISCSI.Targets {
		all = append(all, t.LUNs...)
	}
	all = slices.DeleteFunc(all, func(d winsim.Disk) bool {
		return d.Presence == winsim.DiskDetached || d.Presence == winsim.DiskAway
	})
	slices.SortFunc(all, func(a, b winsim.Disk) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// onData does something to a disk other than the system disk, without which there is no node.
func (c *changer) onData(op string, number uint32, do func(uint32) error) error {
	if disk, err := c.node.DiskInfo(number); err == nil && disk.System {
		return winerr.New(winerr.InUse, op, fmt.Sprint(number), "it is the system disk of the node; choose a data disk")
	}
	return do(number)
}

// change changes a server, unless change returns why not.
func (c *changer) change(name string, change func(*winsim.SMBServer) error) error {
	var refused error
	err := c.node.ChangeSMBServer(name, func(s *winsim.SMBServer) { refused = change(s) })
	return cmp.Or(err, refused)
}

func (c *changer) addShare(in Share) error {
	return c.change(in.Server, func(s *winsim.SMBServer) error {
		if slices.ContainsFunc(s.Shares, func(share winsim.SMBShare) bool { return winpath.Equal(share.Name, in.Name) }) {
			return winerr.New(winerr.Exists, "add share", `\\`+in.Server+`\`+in.Name, "the server has it; choose another name")
		}
		s.Shares = append(s.Shares, winsim.SMBShare{Name: in.Name})
		return nil
	})
}

func (c *changer) addAccount(in Account) error {
	const op = "add account"
	return c.change(in.Server, func(s *winsim.SMBServer) error {
		if in.User == "" || in.Password == "" {
			return winerr.New(winerr.Invalid, op, in.User, "an account has a user and a password")
		}
		if accountAt(s, in.User) >= 0 {
			return winerr.New(winerr.Exists, op, in.User, "server %s has it; to change its password, use smbPasswords", in.Server)
		}
		s.Accounts = append(s.Accounts, winsim.SMBAccount{User: in.User, Password: in.Password})
		return nil
	})
}

func (c *changer) setPassword(in Account) error {
	const op = "set password of"
	return c.change(in.Server, func(s *winsim.SMBServer) error {
		at := accountAt(s, in.User)
		switch {
		case at < 0:
			return winerr.New(winerr.NotFound, op, in.User, "server %s has no such user", in.Server)
		case in.Password == "":
			return winerr.New(winerr.Invalid, op, in.User, "the password is missing")
		}
		s.Accounts[at].Password = in.Password
		return nil
	})
}

func accountAt(s *winsim.SMBServer, user string) int {
	return slices.IndexFunc(s.Accounts, func(a winsim.SMBAccount) bool { return winpath.Equal(a.User, user) })
}

func (c *changer) makeDirectory(path string) error {
	path = strings.ReplaceAll(path, "/", `\`)
	if strings.HasPrefix(path, `\\?\`) || strings.HasPrefix(path, `\\.\`) {
		return winerr.New(winerr.Invalid, "create", path, `use a path such as C:\dir or \\server\share\dir`)
	}
	return c.node.Mkdir(path)
}
