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

func (m *disks) StorageAdapters(_ context.Context) ([]string, error) {
	defer m.lock()()
	return m.adapters(), nil
}

func (m *disks) adapters() []string {
	ids := map[string]bool{}
	for _, d := range m.here() {
		ids[d.adapter] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

func (m *disks) RescanAdapter(_ context.Context, adapter string) error {
	defer m.lock()()
	if adapter != "" && !slices.Contains(m.adapters(), adapter) {
		return winerr.NoSuchDevice
	}
	found := func(d *disk) bool { return adapter == "" || d.adapter == adapter }
	slices.SortFunc(m.unseen, byNumber)
	for _, d := range m.unseen {
		if found(d) {
			m.enumerate(d)
		}
	}
	m.unseen = slices.DeleteFunc(m.unseen, found)
	for _, d := range m.byNumber {
		if found(d) {
			m.noticeSize(d)
		}
	}
	return nil
}

// enumerate makes Windows see an attached disk. mu is held.
func (m *disks) enumerate(d *disk) {
	m.register(d)
	m.noticeSize(d)
	m.volumes.claimNames(d)
	m.volumes.bringUp(d)
}
