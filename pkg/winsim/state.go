package winsim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// The state of a node is a JSON file. It lists disks and volumes once and refers to them by
// index, so that volumes on several disks and disks that Windows does not see are restored.
//
// The file contains no secrets. Passwords of accounts and secrets of targets come from the
// model, which Load needs too. For a secret that the node received, the file says only whether
// it is one of those.

// stateFormat identifies the file; stateVersion is the version of its format.
const (
	stateFormat  = "csi-proxy-sim node state"
	stateVersion = 1
)

// state is everything that can change in a node.
type state struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Model   string `json:"model"` // the digest of the node's model

	Time   time.Duration `json:"time,omitzero"` // since the start, if it is virtual
	Events []eventState  `json:"events,omitzero"`
	Booted time.Time     `json:"booted,omitzero"`

	Disks    []diskState    `json:"disks"`
	Volumes  []volumeState  `json:"volumes"`
	Services []serviceState `json:"services,omitzero"`

	Attached    []int            `json:"attached"`          // this and the next are indexes in Disks
	Unseen      []int            `json:"unseen,omitzero"`   // attached, but not found yet
	Detached    map[uint32]int   `json:"detached,omitzero"` // by the number they had
	SystemDisks []int            `json:"systemDisks,omitzero"`
	VolumesByID map[string]int   `json:"volumesByID"` // this and the next are indexes in Volumes
	Letters     map[string]int   `json:"letters,omitzero"`
	Spanning    []int            `json:"spanning,omitzero"`
	Departures  uint32           `json:"departures,omitzero"`
	Persisted   []attributeState `json:"persisted,omitzero"`
	GUIDs       uint32           `json:"guids,omitzero"`
	OutOfDate   int              `json:"outOfDate,omitzero"`
	Servers     []serverState    `json:"servers,omitzero"`
	Mappings    []mappingState   `json:"mappings,omitzero"`
	ISCSI       initiatorState   `json:"iscsi"`
}

// attributeState is the attributes of the disk at an address.
type attributeState struct {
	Address    SCSI
	Attributes win.DiskAttributes
}

// Save writes the node's state for Load, including file contents. It does not write secrets,
// faults, call counts, logon attempts, and open handles, which end with their program.
//
// It fails for a mirrored node, because other processes can change its files at any time, and
// if passwords of SMB accounts or secrets of targets differ from the model.
func (n *Node) Save(w io.Writer) error {
	n.lock()
	data, err := n.encode()
	n.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// Load returns a node in the saved state, as after a restart of its process: pending events,
// such as the end of a format, continue. To restart the machine as well, call Reboot.
//
// The model must be the model of the saved node, but may have another Storage, Seed and
// RealTime, and other secrets.
func Load(model Model, r io.Reader) (*Node, error) {
	node, err := New(model)
	if err != nil {
		return nil, err
	}
	var saved state
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&saved)
	if err == nil && decoder.More() {
		err = errors.New("unexpected data after the end")
	}
	if err != nil {
		return nil, fmt.Errorf("not the state of a node, or damaged: %w", err)
	}
	switch {
	case saved.Format != stateFormat:
		return nil, errors.New("not the state of a node")
	case saved.Version != stateVersion:
		return nil, fmt.Errorf("format version %d is not supported; this program reads version %d", saved.Version, stateVersion)
	case saved.Model != node.digest():
		return nil, errors.New("the state belongs to a node of another model")
	}
	if err := node.restore(saved); err != nil {
		return nil, fmt.Errorf("the state is damaged: %w", err)
	}
	return node, nil
}

// digest identifies the nodes that a model describes. It ignores behaviour and secrets.
func (m Model) digest() string {
	m.Seed, m.RealTime, m.Storage = 0, false, Storage{}
	m.SMBServers = slices.Clone(m.SMBServers)
	for i := range m.SMBServers {
		m.SMBServers[i] = m.SMBServers[i].withoutPasswords()
	}
	m.ISCSI.Targets = slices.Clone(m.ISCSI.Targets)
	for i, t := range m.ISCSI.Targets {
		if t.CHAP != nil {
			m.ISCSI.Targets[i].CHAP = &CHAP{User: t.CHAP.User}
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings and numbers cannot fail
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// encode returns the content of the state file. n.mu is held.
func (n *Node) encode() ([]byte, error) {
	if n.mirror != nil {
		return nil, errors.New("save the node: a mirrored node cannot be saved")
	}
	s := saver{node: n, disks: indexList[*disk]{at: map[*disk]int{}}, volumes: indexList[*volume]{at: map[*volume]int{}}}
	saved, err := s.save()
	if err != nil {
		return nil, fmt.Errorf("save the node: %w", err)
	}
	return json.Marshal(saved)
}

// indexList lists items once, in the order of their first use.
type indexList[T comparable] struct {
	list []T
	at   map[T]int
}

func (p *indexList[T]) index(thing T) int {
	at, ok := p.at[thing]
	if !ok {
		at = len(p.list)
		p.at[thing] = at
		p.list = append(p.list, thing)
	}
	return at
}

func (p *indexList[T]) indexes(things []T) []int {
	var found []int
	for _, thing := range things {
		found = append(found, p.index(thing))
	}
	return found
}

// indexMap is indexes for the values of a map, in the order of its keys.
func indexMap[K string | uint32, T comparable](p *indexList[T], things map[K]T) map[K]int {
	found := map[K]int{}
	for _, key := range slices.Sorted(maps.Keys(things)) {
		found[key] = p.index(things[key])
	}
	return found
}

// saver converts a node into its state.
type saver struct {
	node    *Node
	disks   indexList[*disk]
	volumes indexList[*volume]
	folders map[*entry]folderState
}

func (s *saver) save() (state, error) {
	n := s.node
	s.folders = s.mountedFolders()
	saved := state{
		Format: stateFormat, Version: stateVersion, Model: n.digest(),
		Time:        n.virtual,
		Booted:      n.services.booted,
		Attached:    s.disks.indexes(n.disks.sorted()),
		Unseen:      s.disks.indexes(n.disks.unseen),
		Detached:    indexMap(&s.disks, n.disks.detached),
		SystemDisks: s.disks.indexes(n.disks.system),
		VolumesByID: indexMap(&s.volumes, n.volumes.byGUID),
		Letters:     indexMap(&s.volumes, n.volumes.letters),
		Spanning:    s.volumes.indexes(n.volumes.spanning),
		Departures:  n.disks.departures, GUIDs: n.disks.guids, OutOfDate: n.volumes.outOfDate,
		Services: saveServices(n.services.all),
	}
	for address, attributes := range n.disks.persisted {
		saved.Persisted = append(saved.Persisted, attributeState{address, attributes})
	}
	slices.SortFunc(saved.Persisted, func(a, b attributeState) int { return compareAddresses(a.Address, b.Address) })
	var err error
	if saved.Servers, saved.Mappings, err = s.network(); err != nil {
		return state{}, err
	}
	if saved.ISCSI, err = s.initiator(); err != nil {
		return state{}, err
	}
	saved.Events = s.events()
	// Disks refer to volumes and volumes to disks, so both lists can grow here.
	for len(saved.Disks) < len(s.disks.list) || len(saved.Volumes) < len(s.volumes.list) {
		for _, d := range s.disks.list[len(saved.Disks):] {
			saved.Disks = append(saved.Disks, s.disk(d))
		}
		for _, v := range s.volumes.list[len(saved.Volumes):] {
			saved.Volumes = append(saved.Volumes, s.volume(v))
		}
	}
	return saved, nil
}
