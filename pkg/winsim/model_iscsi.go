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

// ISCSI is the node's iSCSI initiator and the servers that it can reach. While the service MSiSCSI is stopped, every call
// fails with ISDSC_SERVICE_NOT_RUNNING (0xefff003e).
type ISCSI struct {
	// Initiator is the node's name, and its default CHAP user; the default is iqn.1991-05.com.microsoft:winsim.
	Initiator string `yaml:"initiator" json:"initiator,omitzero"`
	// PnPDelay is the time from a login until its disks appear. Until then their number is 0xffffffff.
	PnPDelay time.Duration `yaml:"pnpDelay" json:"pnpDelay,omitzero"`
	// MPIO means that it is installed and claims iSCSI disks: the paths of their devices begin with \\?\mpio#, their
	// SCSI addresses are MPIO's, and a second session with a target is a second way to the same disks.
	MPIO bool `yaml:"mpio" json:"mpio,omitzero"`
	// Portals are the addresses of the servers, Targets their targets.
	Portals []ISCSIPortal `yaml:"portals" json:"portals,omitzero"`
	Targets []ISCSITarget `yaml:"targets" json:"targets,omitzero"`
	// Logins are the persistent logins, active from the start.
	Logins []ISCSILogin `yaml:"logins" json:"logins,omitzero"`

	// Secret is the initiator's secret for mutual CHAP; empty while it has none.
	Secret string `yaml:"secret" json:"secret,omitzero"`
	// Sessions are those of a running node, oldest first, and SessionCount how many it has begun.
	Sessions     []ISCSILogin `yaml:"sessions" json:"sessions,omitzero"`
	SessionCount uint64       `yaml:"sessionCount" json:"sessionCount,omitzero"`
}

// ISCSIPortal is a server address that offers targets.
type ISCSIPortal struct {
	Address string `yaml:"address" json:"address,omitzero"` // an IP address or a host name
	Port    uint16 `yaml:"port" json:"port,omitzero"`       // the default is 3260
	// Down makes the portal unreachable (ISDSC_CONNECTION_FAILED, 0xefff0003), and its sessions lose their connection.
	// Delay is the time it takes to answer.
	Down  bool          `yaml:"down" json:"down,omitzero"`
	Delay time.Duration `yaml:"delay" json:"delay,omitzero"`
	// Registered makes the node know the portal and its targets from the start.
	Registered bool `yaml:"registered" json:"registered,omitzero"`
	// Known are the targets that a portal of a running node has offered.
	Known []string `yaml:"known" json:"known,omitzero"`
}

// ISCSITarget is a target. Its disks appear after a login, with the lowest free numbers, and go with the last session,
// but keep their content. It has one session, unless Logins make more.
type ISCSITarget struct {
	IQN string `yaml:"iqn" json:"iqn,omitzero"` // unique, ignoring case
	// Portals are the portals that offer it, such as 10.0.0.10 or [fd00::12]:3261; the default is all.
	Portals []string `yaml:"portals" json:"portals,omitzero"`
	// CHAP are the required credentials; without it everybody may log in.
	CHAP *CHAP `yaml:"chap" json:"chap,omitzero"`
	// LUNs are the disks. Of SCSI only the LUN is allowed; without it a disk has the LUN after that of the disk before.
	// Their bus is iSCSI; they get a number when they appear.
	LUNs []Disk `yaml:"luns" json:"luns,omitzero"`
	// BusyLogouts is how many logouts fail with ISDSC_DEVICE_BUSY_ON_SESSION (0xefff0040).
	BusyLogouts int `yaml:"busyLogouts" json:"busyLogouts,omitzero"`
	// Met means that a running node has had its disks before.
	Met bool `yaml:"met" json:"met,omitzero"`
}

// CHAP are the credentials of a target.
type CHAP struct {
	// User and Secret are the initiator's credentials. The default user is the initiator's
	// name. Secrets have 12 to 16 bytes.
	User   string `yaml:"user" json:"user,omitzero"`
	Secret string `yaml:"secret" json:"secret,omitzero"`
	// MutualSecret authenticates the target to the initiator; empty if it cannot.
	MutualSecret string `yaml:"mutualSecret" json:"mutualSecret,omitzero"`
}

// ISCSILogin is a persistent login to a target through a portal, or a session of a running node.
type ISCSILogin struct {
	Target string `yaml:"target" json:"target,omitzero"`
	Portal string `yaml:"portal" json:"portal,omitzero"`
	// Secret is that of CHAP; the default is what the target wants. Windows connects again with it.
	Secret string `yaml:"secret" json:"secret,omitzero"`

	// Number is that of a session, from 1, of all that the node has begun.
	Number uint64 `yaml:"number" json:"number,omitzero"`
	// Dropped means that a session has lost its connection.
	Dropped bool    `yaml:"dropped" json:"dropped,omitzero"`
	Pending []Event `yaml:"pending" json:"pending,omitzero"`
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
func (m ISCSI) build(below objects, now *resumption) (*initiator, *ModelError) {
	in := &initiator{
		clock: below.clock, services: below.services, disks: below.disks, ISCSI: m,
	}
	in.Initiator = cmp.Or(m.Initiator, defaultInitiator)
	if err := win.CheckTargetName(in.Initiator); err != nil {
		return in, problem("initiator", "%v", err)
	}
	if err := notNegative("pnpDelay", m.PnPDelay); err != nil {
		return in, err
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
		if err := in.addTarget(model, now); err != nil {
			return in, err.at("targets", i)
		}
	}
	for _, p := range in.portals {
		if p.Registered && now == nil {
			p.Known = in.offeredBy(p)
		}
	}
	for i, login := range m.Logins {
		if err := in.addLogin(login); err != nil {
			return in, err.at("logins", i)
		}
	}
	if now != nil {
		return in, now.initiator(in, m)
	}
	for i, portal := range m.Portals {
		if len(portal.Known) > 0 {
			return in, problem("known", "needs a model with running; registered makes a new node know the targets").at("portals", i)
		}
	}
	if len(m.Sessions) > 0 {
		return in, problem("sessions", "need a model with running; for sessions of a new node use logins")
	}
	return in, nil
}

func (in *initiator) addTarget(m ISCSITarget, now *resumption) *ModelError {
	t, err := m.build(in, now)
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
	return &iscsiPortal{m}, notNegative("delay", m.Delay)
}

func (m ISCSITarget) build(in *initiator, now *resumption) (*iscsiTarget, *ModelError) {
	portals := in.portals
	if err := win.CheckTargetName(m.IQN); err != nil {
		return nil, problem("iqn", "%v", err)
	}
	if err := notNegative("busyLogouts", m.BusyLogouts); err != nil {
		return nil, err
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
		d, err := model.buildLUN(in, unit, now)
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
func (m Disk) buildLUN(in *initiator, unit int, now *resumption) (*disk, *ModelError) {
	const maxLUN = 255
	target := len(in.targets)
	switch {
	case unit > maxLUN:
		return nil, problem("size", "a target has at most %d disks", maxLUN+1)
	case m.Number != 0 && now == nil:
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
	if now != nil {
		m.Presence = cmp.Or(m.Presence, DiskAway)
	} else {
		m.Number = uint32(beyondDisks + target<<8 + unit)
	}
	d, err := m.build(m.Number, now)
	if err == nil {
		d.lun, d.unit, d.mpio = true, uint8(unit), in.MPIO
		d.device = d.interfacePath()
	}
	return d, err
}

func (in *initiator) addLogin(m ISCSILogin) *ModelError {
	if m.Number != 0 || m.Dropped || len(m.Pending) > 0 {
		return problem("number", "only sessions have number, dropped and pending")
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
