package winsim

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// loader converts a state into the parts of a node. It checks only what would cause a panic
// later; other invalid states load as invalid nodes.
type loader struct {
	node    *Node
	disks   []*disk
	volumes []*volume
	folders []loadedFolder
}

// pick returns an item by index.
func pick[T any](list []T, at int) (T, error) {
	if at < 0 || at >= len(list) {
		var none T
		return none, fmt.Errorf("index %d is out of range; the list has %d items", at, len(list))
	}
	return list[at], nil
}

func pickAll[T any](list []T, at []int) ([]T, error) {
	var picked []T
	for _, i := range at {
		thing, err := pick(list, i)
		if err != nil {
			return nil, err
		}
		picked = append(picked, thing)
	}
	return picked, nil
}

func pickMap[K comparable, T any](list []T, at map[K]int) (map[K]T, error) {
	picked := map[K]T{}
	for key, i := range at {
		thing, err := pick(list, i)
		if err != nil {
			return nil, err
		}
		picked[key] = thing
	}
	return picked, nil
}

// restore applies the saved state to a new node.
func (n *Node) restore(saved state) error {
	l := &loader{node: n}
	if err := l.storage(saved); err != nil {
		return err
	}
	if err := n.services.load(saved.Services); err != nil {
		return err
	}
	if err := l.network(saved); err != nil {
		return err
	}
	if err := l.initiator(saved.ISCSI); err != nil {
		return err
	}
	n.disks.departures, n.disks.guids, n.volumes.outOfDate = saved.Departures, saved.GUIDs, saved.OutOfDate
	n.disks.persisted = map[SCSI]win.DiskAttributes{}
	for _, p := range saved.Persisted {
		n.disks.persisted[p.Address] = p.Attributes
	}
	n.virtual, n.events = max(saved.Time, 0), nil
	if !saved.Booted.IsZero() {
		n.services.booted = saved.Booted
	}
	return l.events(saved.Events)
}

// storage restores disks, volumes and the mount manager.
func (l *loader) storage(saved state) (err error) {
	n := l.node
	for _, s := range saved.Disks {
		d, err := l.disk(s)
		if err != nil {
			return err
		}
		l.disks = append(l.disks, d)
	}
	for _, s := range saved.Volumes {
		v, err := l.volume(s)
		if err != nil {
			return err
		}
		l.volumes = append(l.volumes, v)
	}
	for i, s := range saved.Disks {
		if err := l.partitions(l.disks[i], s); err != nil {
			return err
		}
	}
	attached, err := pickAll(l.disks, saved.Attached)
	if err != nil {
		return err
	}
	n.disks.byNumber, n.disks.devices = map[uint32]*disk{}, map[string]*disk{}
	if n.disks.system, err = pickAll(l.disks, saved.SystemDisks); err != nil {
		return err
	}
	for _, d := range attached {
		n.disks.register(d)
	}
	if n.disks.unseen, err = pickAll(l.disks, saved.Unseen); err != nil {
		return err
	}
	if n.disks.detached, err = pickMap(l.disks, saved.Detached); err != nil {
		return err
	}
	if n.volumes.byGUID, err = pickMap(l.volumes, saved.VolumesByID); err != nil {
		return err
	}
	if n.volumes.letters, err = pickMap(l.volumes, saved.Letters); err != nil {
		return err
	}
	if n.volumes.spanning, err = pickAll(l.volumes, saved.Spanning); err != nil {
		return err
	}
	n.volumes.mountedFolders, err = l.mountedFolders()
	return err
}
