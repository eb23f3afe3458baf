package api_test

import (
	"flag"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/calltable"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

var update = flag.Bool("update", false, "rewrite the table of calls in testdata")

// operations are what a driver does to a volume, in its order.
var operations = []struct {
	name string
	do   func(*winsim.Node, volumeapi.HostAPI) error
}{
	{"ListVolumesOnDisk", func(_ *winsim.Node, h volumeapi.HostAPI) error {
		_, err := h.ListVolumesOnDisk(firstDisk, 0)
		return err
	}},
	{"IsVolumeFormatted, empty", isFormatted},
	{"FormatVolume", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.FormatVolume(id) }},
	{"FormatVolume, again", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.FormatVolume(id) }},
	{"IsVolumeFormatted", isFormatted},
	{"MountVolume", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.MountVolume(id, mount) }},
	{"MountVolume, again", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.MountVolume(id, mount) }},
	{"GetVolumeIDFromTargetPath", func(_ *winsim.Node, h volumeapi.HostAPI) error {
		_, err := h.GetVolumeIDFromTargetPath(mount)
		return err
	}},
	{"GetVolumeIDFromTargetPath, by a link", func(n *winsim.Node, h volumeapi.HostAPI) error {
		if err := n.Symlink(target, mount); err != nil {
			return err
		}
		_, err := h.GetVolumeIDFromTargetPath(target)
		return err
	}},
	{"GetClosestVolumeIDFromTargetPath", func(_ *winsim.Node, h volumeapi.HostAPI) error {
		_, err := h.GetClosestVolumeIDFromTargetPath(target)
		return err
	}},
	{"GetDiskNumberFromVolumeID", func(_ *winsim.Node, h volumeapi.HostAPI) error {
		_, err := h.GetDiskNumberFromVolumeID(id)
		return err
	}},
	{"GetVolumeStats", func(_ *winsim.Node, h volumeapi.HostAPI) error {
		_, _, err := h.GetVolumeStats(id)
		return err
	}},
	{"Health", func(_ *winsim.Node, h volumeapi.HostAPI) error {
		_, err := health(h)
		return err
	}},
	{"WriteVolumeCache", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.WriteVolumeCache(id) }},
	{"ResizeVolume, nothing to do", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.ResizeVolume(id, 0) }},
	{"ResizeVolume", func(n *winsim.Node, h volumeapi.HostAPI) error {
		if err := n.GrowDisk(firstDisk, 2*winsim.GiB); err != nil {
			return err
		}
		return h.ResizeVolume(id, 0)
	}},
	{"UnmountVolume", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.UnmountVolume(id, mount) }},
	{"UnmountVolume, again", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.UnmountVolume(id, mount) }},
}

func isFormatted(_ *winsim.Node, h volumeapi.HostAPI) error {
	_, err := h.IsVolumeFormatted(id)
	return err
}

// TestCalls pins how many calls of Windows each operation takes, and which.
func TestCalls(t *testing.T) {
	node := nodeWith(t, unformatted())
	host := volumeapi.NewOn(node)
	var rows []calltable.Row
	for _, o := range operations {
		node.ResetCalls()
		if err := o.do(node, host); err != nil {
			t.Fatalf("%s: %v", o.name, err)
		}
		rows = append(rows, calltable.Row{Operation: o.name, Calls: node.Calls()})
	}
	calltable.Compare(t, rows, *update)
}
