package winsim

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// HiddenSecret is every password and CHAP secret in a snapshot. It is as long as a CHAP secret must be.
const HiddenSecret = "************"

// snapshot is the whole of a node: its model in YAML, its time, and what Save writes.
type snapshot struct {
	Model string
	Time  time.Time
	State json.RawMessage
}

// Snapshot returns the node's model and state in JSON, for recordings of its calls. Every password and
// CHAP secret in it is HiddenSecret. It fails where Save does.
func (n *Node) Snapshot() (json.RawMessage, error) {
	n.lock()
	state, err := n.encode()
	now := n.clock.now()
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	model, err := yaml.Marshal(n.model.withoutSecrets())
	if err != nil {
		return nil, fmt.Errorf("take a snapshot of the node: %w", err)
	}
	return json.Marshal(snapshot{string(model), now, state})
}

// FromSnapshot returns the node of a snapshot at the time of the snapshot. Its time is virtual.
func FromSnapshot(text json.RawMessage) (*Node, error) {
	var (
		saved snapshot
		model Model
	)
	if err := json.Unmarshal(text, &saved); err != nil {
		return nil, fmt.Errorf("not a snapshot of a node: %w", err)
	}
	if err := yaml.Unmarshal([]byte(saved.Model), &model); err != nil {
		return nil, fmt.Errorf("not a snapshot of a node: %w", err)
	}
	model.RealTime = false
	n, err := New(model)
	if err != nil {
		return nil, err
	}
	var state state
	if err := json.Unmarshal(saved.State, &state); err != nil {
		return nil, fmt.Errorf("not a snapshot of a node: %w", err)
	}
	if state.Version != stateVersion {
		return nil, fmt.Errorf("format version %d of the node's state is not supported; this program reads version %d", state.Version, stateVersion)
	}
	if err := n.restore(state); err != nil {
		return nil, fmt.Errorf("the snapshot is damaged: %w", err)
	}
	n.clock.virtual = max(saved.Time.Sub(epoch), 0)
	return n, nil
}

// withoutSecrets returns the model with HiddenSecret for all secrets.
func (m Model) withoutSecrets() Model {
	hide := func(secret *string) {
		if *secret != "" {
			*secret = HiddenSecret
		}
	}
	m.SMBServers = slices.Clone(m.SMBServers)
	for i, server := range m.SMBServers {
		m.SMBServers[i].Accounts = slices.Clone(server.Accounts)
		for j := range m.SMBServers[i].Accounts {
			hide(&m.SMBServers[i].Accounts[j].Password)
		}
	}
	m.ISCSI.Targets = slices.Clone(m.ISCSI.Targets)
	for i, target := range m.ISCSI.Targets {
		if target.CHAP == nil {
			continue
		}
		chap := *target.CHAP
		hide(&chap.Secret)
		hide(&chap.MutualSecret)
		m.ISCSI.Targets[i].CHAP = &chap
	}
	return m
}
