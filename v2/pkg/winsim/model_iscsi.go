package winsim

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// ISCSI is the node's iSCSI initiator and the servers that it can reach.
type ISCSI struct {
	Initiator string        `yaml:"initiator"` // the node's name, and its default CHAP user; the default is iqn.1991-05.com.microsoft:winsim
	PnPDelay  time.Duration `yaml:"pnpDelay"`  // the time from a login until its disks appear. Until then their number is 0xffffffff.
	MPIO      bool          `yaml:"mpio"`      // it is installed and claims iSCSI disks. A second session with a target is a second way to its disks.
	// Portals are the addresses of the servers, Targets their targets.
	Portals []ISCSIPortal `yaml:"portals"`
	Targets []ISCSITarget `yaml:"targets"`
	Logins  []ISCSILogin  `yaml:"logins"` // the persistent logins, active from the start

	Secret   string       `yaml:"secret"`   // the initiator's secret for mutual CHAP; empty while it has none
	Sessions []ISCSILogin `yaml:"sessions"` // in a description, those that the node has, oldest first
}

// ISCSIPortal is a server address that offers targets.
type ISCSIPortal struct {
	Address string `yaml:"address"` // an IP address or a host name
	Port    uint16 `yaml:"port"`    // the default is 3260
	// Down makes the portal unreachable (ISDSC_CONNECTION_FAILED, 0xefff0003). Delay is the time it takes to answer.
	Down       bool          `yaml:"down"`
	Delay      time.Duration `yaml:"delay"`
	Registered bool          `yaml:"registered"` // makes the node know the portal and its targets from the start
}

// ISCSITarget is a target. Its disks appear after a login, with the lowest free numbers, and go with the last session, but
// keep their content.
type ISCSITarget struct {
	IQN         string   `yaml:"iqn"`         // unique, ignoring case
	Portals     []string `yaml:"portals"`     // the portals that offer it, such as 10.0.0.10 or [fd00::12]:3261; the default is all
	CHAP        *CHAP    `yaml:"chap"`        // the required credentials; without it everybody may log in
	LUNs        []Disk   `yaml:"luns"`        // the disks. Of SCSI only the LUN is allowed; by default they count from 0.
	BusyLogouts int      `yaml:"busyLogouts"` // how many logouts fail with ISDSC_DEVICE_BUSY_ON_SESSION (0xefff0040)
}

// CHAP are the credentials of a target.
type CHAP struct {
	// User and Secret are the initiator's; the default user is its name. Secrets have 12 to 16 bytes.
	User         string `yaml:"user"`
	Secret       string `yaml:"secret"`
	MutualSecret string `yaml:"mutualSecret"` // authenticates the target to the initiator; empty if it cannot
}

// ISCSILogin is a persistent login to a target through a portal, or a session.
type ISCSILogin struct {
	Target  string `yaml:"target"`
	Portal  string `yaml:"portal"`
	Secret  string `yaml:"secret"`  // that of CHAP; the default is what the target wants. Windows connects again with it.
	Dropped bool   `yaml:"dropped"` // a session has lost its connection
}

const (
	// defaultInitiator is the initiator name in the form that Windows uses.
	defaultInitiator = "iqn.1991-05.com.microsoft:winsim"
	// initiatorInstance is the software initiator's only adapter.
	initiatorInstance = `ROOT\ISCSIPRT\0000_0`
	// defaultPortalPort is the port of iSCSI.
	defaultPortalPort = 3260
	// iscsiAdapter is the number of that adapter in SCSI addresses, mpioAdapter that of MPIO.
	iscsiAdapter, mpioAdapter = 9, 10
)

// build returns the initiator that the model describes, or an error that names the wrong field.
func (m ISCSI) build(below objects) (*initiator, *ModelError) {
	in := &initiator{
		clock: below.clock, services: below.services, disks: below.disks, ISCSI: m,
	}
	in.Initiator = cmp.Or(m.Initiator, defaultInitiator)
	if err := win.CheckTargetName(in.Initiator); err != nil {
		return in, problem("initiator", "%v", err)
	}
	for i, portal := range m.Portals {
		p, err := portal.build()
		if err == nil && in.portal(p.address()) != nil {
			err = problem("address", "%s is used twice", p.address())
		}
		if err != nil {
			return in, err.at("portals", i)
		}
		in.portals = append(in.portals, p)
	}
	for i, model := range m.Targets {
		if err := in.addTarget(model); err != nil {
			return in, err.at("targets", i)
		}
	}
	for _, p := range in.portals {
		if p.Registered {
			p.known = in.offeredBy(p)
		}
	}
	for i, login := range m.Logins {
		if err := in.addLogin(login); err != nil {
			return in, err.at("logins", i)
		}
	}
	if len(m.Sessions) > 0 {
		return in, problem("sessions", "only a description has them; for sessions from the start use logins")
	}
	return in, nil
}

func (in *initiator) addTarget(m ISCSITarget) *ModelError {
	t, err := m.build(in)
	if err == nil && in.target(t.IQN) != nil {
		err = problem("iqn", "%q is used twice", t.IQN)
	}
	if err != nil {
		return err
	}
	in.targets = append(in.targets, t)
	return nil
}

func (m ISCSIPortal) build() (*iscsiPortal, *ModelError) {
	address, err := win.ParseAddress(m.Address)
	if err != nil {
		return nil, problem("address", "%v", err)
	}
	m.Address, m.Port = address, cmp.Or(m.Port, defaultPortalPort)
	return &iscsiPortal{ISCSIPortal: m}, nil
}

func (m ISCSITarget) build(in *initiator) (*iscsiTarget, *ModelError) {
	portals := in.portals
	if err := win.CheckTargetName(m.IQN); err != nil {
		return nil, problem("iqn", "%v", err)
	}
	t := &iscsiTarget{ISCSITarget: m, portals: portals}
	if len(m.Portals) > 0 {
		t.portals = nil
	}
	for i, text := range m.Portals {
		p := findPortal(portals, text)
		if p == nil {
			return nil, problem(fmt.Sprintf("portals[%d]", i), "%q is not a portal of the model", text)
		}
		t.portals = append(t.portals, p)
	}
	if len(t.portals) == 0 {
		return nil, problem("portals", "no portal offers the target")
	}
	if m.CHAP != nil {
		if err := m.CHAP.validate(); err != nil {
			return nil, err.in("chap")
		}
	}
	unit := -1
	for i, model := range m.LUNs {
		unit++
		if model.SCSI != nil {
			unit = int(model.SCSI.LUN)
		}
		d, err := model.buildLUN(in, unit)
		if err == nil && slices.ContainsFunc(t.luns, func(other *disk) bool { return other.unit == d.unit }) {
			err = problem("scsi", "LUN %d is used twice", unit)
		}
		if err != nil {
			return nil, err.at("luns", i)
		}
		t.luns = append(t.luns, d)
		in.units++
	}
	return t, nil
}

// validate refuses secrets that Windows would refuse.
func (m CHAP) validate() *ModelError {
	const least, most = 12, 16
	if len(m.Secret) < least || len(m.Secret) > most {
		return problem("secret", "must have %d to %d bytes", least, most)
	}
	if m.MutualSecret != "" && (len(m.MutualSecret) < least || len(m.MutualSecret) > most) {
		return problem("mutualSecret", "must have %d to %d bytes", least, most)
	}
	return nil
}

// buildLUN makes a disk of the next target. Until it appears its number is one that no disk has, so
// that what is derived from the number is its own.
func (m Disk) buildLUN(in *initiator, unit int) (*disk, *ModelError) {
	const maxLUN = 255
	target := len(in.targets)
	switch {
	case unit > maxLUN:
		return nil, problem("size", "a target has at most %d disks", maxLUN+1)
	case m.Presence != "":
		return nil, problem("presence", "only the description of a target's disk has it")
	case m.Number != 0:
		return nil, problem("number", "remove number; the disk gets one when it appears")
	case m.Bus != "" && m.Bus != BusISCSI:
		return nil, problem("bus", "must be iscsi")
	case m.SCSI != nil && *m.SCSI != SCSI{LUN: m.SCSI.LUN}:
		return nil, problem("scsi", "only the LUN is allowed; the initiator determines the rest")
	case m.System:
		return nil, problem("system", "an iSCSI disk cannot be the system disk")
	}
	m.Bus, m.SCSI = BusISCSI, &SCSI{Port: iscsiAdapter, Target: uint8(target), LUN: uint8(unit)}
	if in.MPIO { // which counts the disks of all targets
		m.SCSI = &SCSI{Port: mpioAdapter, LUN: uint8(in.units)}
	}
	const beyondDisks = 1 << 20
	d, err := m.build(uint32(beyondDisks + target<<8 + unit))
	if err == nil {
		d.lun, d.unit, d.mpio = true, uint8(unit), in.MPIO
		d.device = d.interfacePath()
	}
	return d, err
}

func (in *initiator) addLogin(m ISCSILogin) *ModelError {
	if m.Dropped {
		return problem("dropped", "only sessions have it")
	}
	t := in.target(m.Target)
	if t == nil {
		return problem("target", "%q is not a target of the model", m.Target)
	}
	p := findPortal(t.portals, m.Portal)
	if p == nil {
		return problem("portal", "%q does not offer the target", m.Portal)
	}
	in.logins = append(in.logins, persistentLogin{win.PersistentLogin{
		Target: t.IQN, InitiatorInstance: initiatorInstance, InitiatorPort: win.AnyInitiatorPort, Portal: p.address(),
	}, cmp.Or(m.Secret, t.secret())})
	return nil
}

// findPortal finds a portal by address, with or without the default port.
func findPortal(portals []*iscsiPortal, text string) *iscsiPortal {
	address, port := text, uint64(defaultPortalPort)
	if host, number, err := net.SplitHostPort(text); err == nil {
		address = host
		if port, err = strconv.ParseUint(number, 10, 16); err != nil {
			return nil
		}
	}
	return portalAt(portals, win.TargetPortal{Address: address, Port: uint16(port)})
}
