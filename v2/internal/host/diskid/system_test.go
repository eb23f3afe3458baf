package diskid_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskid"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// machine has volumes with the disks of their extents. The device number of each is 7.
type machine struct {
	volumes []win.VolumeID
	disks   map[win.VolumeID][]uint32
	fails   string
}

var errFailed = errors.New("failed")

func (m machine) fail(call string) error {
	if m.fails == call {
		return errFailed
	}
	return nil
}

func (m machine) SystemVolumes(context.Context) ([]win.VolumeID, error) {
	return m.volumes, m.fail("SystemVolumes")
}

func (m machine) VolumeExtents(_ context.Context, volume win.VolumeID) (extents []win.Extent, err error) {
	for _, disk := range m.disks[volume] {
		extents = append(extents, win.Extent{Disk: disk})
	}
	return extents, m.fail("VolumeExtents")
}

func (m machine) DeviceNumber(context.Context, win.Device) (win.DeviceNumber, error) {
	return win.DeviceNumber{Type: win.DeviceTypeDisk, Number: 7}, m.fail("DeviceNumber")
}

func TestSystem(t *testing.T) {
	volumes := []win.VolumeID{"a", "b"}
	for _, c := range []struct {
		name string
		m    machine
		want []uint32 // nil: it fails
	}{
		{"extents", machine{volumes, map[win.VolumeID][]uint32{"a": {0}, "b": {1, 2}}, ""}, []uint32{0, 1, 2}},
		{"a volume without extents", machine{volumes, map[win.VolumeID][]uint32{"a": {0}}, ""}, []uint32{0, 7}},
		{"no volume", machine{}, nil},
		{"no list", machine{volumes, nil, "SystemVolumes"}, nil},
		{"no extents", machine{volumes, nil, "VolumeExtents"}, nil},
		{"no extents and no number", machine{volumes, nil, "DeviceNumber"}, nil},
	} {
		got, err := diskid.System(t.Context(), c.m)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}
