package winsim

import "fmt"

// serviceState is a service and its state.
type serviceState struct {
	Service

	Now            ServiceState
	Launched       bool   `json:",omitzero"`
	Exit, Specific uint32 `json:",omitzero"`
	Changes        int    `json:",omitzero"`
}

func saveServices(all []*service) []serviceState {
	var saved []serviceState
	for _, s := range all {
		saved = append(saved, serviceState{s.Service, s.state, s.launched, s.exit, s.specific, s.changes})
	}
	return saved
}

func (m *services) load(saved []serviceState) error {
	m.all, m.byName = nil, map[string]*service{}
	for _, s := range saved {
		made, problem := s.build()
		if problem == nil {
			problem = s.Now.check("state")
		}
		if problem == nil {
			problem = m.register(made)
		}
		if problem != nil {
			return fmt.Errorf("service %q: %w", s.Name, problem)
		}
		made.state, made.launched, made.exit, made.specific, made.changes = s.Now, s.Launched, s.Exit, s.Specific, s.Changes
	}
	for _, s := range m.all {
		if problem := m.resolve(s); problem != nil {
			return fmt.Errorf("service %q: %w", s.Name, problem)
		}
	}
	for _, s := range m.all {
		if s.needsItself(map[*service]bool{}, s) {
			return fmt.Errorf("service %q depends on itself", s.Name)
		}
	}
	return nil
}
