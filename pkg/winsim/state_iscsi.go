package winsim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// initiatorState is the initiator and its servers, without secrets.
type initiatorState struct {
	// SecretOf is the target whose mutual secret the initiator has. SecretSet is true if it has
	// any secret.
	SecretOf  string                `json:",omitzero"`
	SecretSet bool                  `json:",omitzero"`
	Portals   []portalState         `json:",omitzero"` // as many as the model has
	Targets   []targetState         `json:",omitzero"`
	Logins    []win.PersistentLogin `json:",omitzero"`
	Sessions  []sessionState        `json:",omitzero"`
	Begun     uint64                `json:",omitzero"`
}

// portalState is a portal. Known are indexes in initiatorState.Targets.
type portalState struct {
	Down       bool          `json:",omitzero"`
	Delay      time.Duration `json:",omitzero"`
	Registered bool          `json:",omitzero"`
	Known      []int         `json:",omitzero"`
}

// targetState is a target without its secrets.
type targetState struct {
	IQN     string
	CHAP    bool  `json:",omitzero"`
	Portals []int `json:",omitzero"`
	LUNs    []int `json:",omitzero"` // indexes of disks
	Met     bool  `json:",omitzero"`
	Busy    int   `json:",omitzero"`
}

// sessionState is a session. Target and Portal are indexes.
type sessionState struct {
	ID             win.SessionID
	Target, Portal int
}

// chap returns the credentials of a target of the model, or nil.
func (m Model) chap(iqn string) *CHAP {
	for _, t := range m.ISCSI.Targets {
		if win.SameTarget(t.IQN, iqn) {
			return t.CHAP
		}
	}
	return nil
}

func (s *saver) initiator() (initiatorState, error) {
	in := s.node.initiator
	saved := initiatorState{Logins: in.logins, Begun: in.sessionCount, SecretSet: in.secret != ""}
	targets, portals := indexList[*iscsiTarget]{at: map[*iscsiTarget]int{}}, indexList[*iscsiPortal]{at: map[*iscsiPortal]int{}}
	targets.indexes(in.targets)
	portals.indexes(in.portals)
	for _, p := range in.portals {
		saved.Portals = append(saved.Portals, portalState{Down: p.down, Delay: p.delay, Registered: p.registered, Known: targets.indexes(p.known)})
	}
	for _, t := range in.targets {
		if t.chap != nil {
			if known := s.node.model.chap(t.iqn); known == nil || *known != *t.chap {
				return saved, fmt.Errorf("the secrets of %s differ from the model; changed secrets cannot be saved", t.iqn)
			}
			if in.secret != "" && t.chap.MutualSecret == in.secret {
				saved.SecretOf = t.iqn
			}
		}
		saved.Targets = append(saved.Targets, targetState{
			IQN: t.iqn, CHAP: t.chap != nil, Portals: portals.indexes(t.portals), LUNs: s.disks.indexes(t.luns), Met: t.attachedBefore, Busy: t.busy,
		})
	}
	for _, session := range in.sessions {
		saved.Sessions = append(saved.Sessions, sessionState{session.id, targets.index(session.target), portals.index(session.portal)})
	}
	return saved, nil
}

// initiator restores the saved state into the initiator of the model.
func (l *loader) initiator(saved initiatorState) error {
	in := l.node.initiator
	if len(saved.Portals) != len(in.portals) {
		return errors.New("the portals differ from the model")
	}
	in.logins, in.sessionCount, in.targets, in.sessions = saved.Logins, saved.Begun, nil, nil
	if saved.SecretSet {
		in.secret = unsavedSecret
		if known := l.node.model.chap(saved.SecretOf); known != nil && known.MutualSecret != "" {
			in.secret = known.MutualSecret
		}
	}
	for _, t := range saved.Targets {
		made := &iscsiTarget{iqn: t.IQN, attachedBefore: t.Met, busy: t.Busy}
		if t.CHAP {
			made.chap = l.node.model.chap(t.IQN)
		}
		var err error
		if made.portals, err = pickAll(in.portals, t.Portals); err != nil {
			return err
		}
		if made.luns, err = pickAll(l.disks, t.LUNs); err != nil {
			return err
		}
		in.targets = append(in.targets, made)
	}
	for i, p := range saved.Portals {
		known, err := pickAll(in.targets, p.Known)
		if err != nil {
			return err
		}
		in.portals[i].down, in.portals[i].delay, in.portals[i].registered, in.portals[i].known = p.Down, p.Delay, p.Registered, known
	}
	for _, s := range saved.Sessions {
		t, err := pick(in.targets, s.Target)
		if err != nil {
			return err
		}
		p, err := pick(in.portals, s.Portal)
		if err != nil {
			return err
		}
		in.sessions = append(in.sessions, &iscsiSession{id: s.ID, target: t, portal: p})
	}
	// The next start of the machine looks these up.
	if slices.ContainsFunc(in.logins, func(login win.PersistentLogin) bool {
		return in.target(login.Target) == nil || in.portal(login.Portal) == nil
	}) {
		return errors.New("a persistent login names an unknown target or portal")
	}
	return nil
}
