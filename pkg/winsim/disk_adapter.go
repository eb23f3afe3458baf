package winsim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// adapterID is the device instance ID of a disk's adapter.
func adapterID(bus Bus, scsi *SCSI) string {
	port := uint8(0)
	if scsi != nil {
		port = scsi.Port
	}
	return fmt.Sprintf(`PCI\VEN_WINSIM&DEV_%s\%d`, strings.ToUpper(string(cmp.Or(bus, BusSCSI))), port)
}

// StorageAdapters lists the adapters with disks, visible or not.
func (n storage) StorageAdapters(_ context.Context) ([]string, error) {
	n.lock()
	defer n.mu.Unlock()
	return n.adapters(), nil
}

func (n *Node) adapters() []string {
	ids := map[string]bool{}
	for _, d := range n.disks {
		ids[d.adapter] = true
	}
	for _, d := range n.unseen {
		ids[d.adapter] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

// RescanAdapter finds attached disks and new sizes.
func (n storage) RescanAdapter(_ context.Context, adapter string) error {
	n.lock()
	defer n.mu.Unlock()
	if adapter != "" && !slices.Contains(n.adapters(), adapter) {
		return winerr.NoSuchDevice
	}
	found := func(d *disk) bool { return adapter == "" || d.adapter == adapter }
	for _, d := range n.unseen {
		if found(d) {
			n.changed()
			n.enumerate(d)
		}
	}
	n.unseen = slices.DeleteFunc(n.unseen, found)
	for _, d := range n.disks {
		if found(d) {
			n.noticeSize(d)
		}
	}
	return nil
}

// enumerate makes Windows see an attached disk. If another volume already has the GUID or
// letter of one of its volumes, as on a copied disk, the mount manager chooses another. n.mu is
// held.
func (n *Node) enumerate(d *disk) {
	n.register(d)
	n.noticeSize(d)
	for _, v := range n.volumesOn(d) {
		if other := n.volumes[v.guid]; other != nil && other != v && (other.present || other.expected) {
			v.guid = n.newGUID().String()
		}
		n.volumes[v.guid] = v
		if other := n.letters[v.letter]; other != nil && other != v && other.present {
			v.letter = ""
		}
		if v.letter != "" {
			n.letters[v.letter] = v
		}
	}
	n.bringUpVolumes(d, n.storage.VolumeArrival)
}
