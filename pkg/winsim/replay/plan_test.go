package replay

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
)

// TestPlan_Linear: in a recording whose lists and sizes of disks always change, the work grows with the number of
// calls, not with its square. Every look at a call decodes it, so that allocations count the looks.
func TestPlan_Linear(t *testing.T) {
	const stays, flips win.Device = `\\?\stays`, `\\?\flips`
	d := record.Disk{Device: stays}
	recording := &record.Recording{Description: &record.Description{Disks: []record.Disk{d}}}
	allocations := func(rounds int) float64 {
		var calls []record.Call
		call := func(method string, device win.Device, out any) {
			c := record.Call{Seq: uint64(len(calls) + 1), Method: method}
			c.Out, _ = json.Marshal(out)
			if device != "" {
				c.In, _ = json.Marshal(map[string]any{"d": device})
			}
			calls = append(calls, c)
		}
		for i := range rounds {
			call("DiskDevices", "", []win.Device{stays, flips}[:1+i%2])
			call("DiskGeometry", stays, win.DiskGeometry{Size: int64(i)})
			call("DiskGeometry", win.PhysicalDrive(0), win.DiskGeometry{Size: int64(i)})
			call("FlushVolume", "", nil)
		}
		// Only the last calls tell what the disk is that comes and goes, and what is on it.
		call("DiskDevices", "", []win.Device{stays, flips})
		call("DeviceNumber", flips, win.DeviceNumber{Number: 1})
		call("DiskGeometry", flips, win.DiskGeometry{Size: 1 << 30})
		call("DeviceDescriptor", flips, win.DeviceDescriptor{})
		call("DeviceNumber", `\\?\Volume{00000000-0000-0000-0000-000000000001}`, win.DeviceNumber{Number: 1, Partition: 1})
		events, unknown, _ := plan(t.Context(), recording, nil, calls)
		if len(events) < rounds || len(unknown) > 0 {
			t.Fatalf("%d rounds: %d events, unknown disks %v", rounds, len(events), unknown)
		}
		return testing.AllocsPerRun(1, func() { _, _, _ = plan(t.Context(), recording, nil, calls) })
	}
	const rounds = 250
	if once, fourTimes := allocations(rounds), allocations(4*rounds); fourTimes > 5*once {
		t.Errorf("%.0f allocations for %d rounds, %.0f for four times as many", once, rounds, fourTimes)
	}
}

// TestPlan_Interrupted: reading calls before the first is made ends with the context.
func TestPlan_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := []record.Call{{Seq: 1, Method: "DiskDevices"}}
	if _, err := newHistory(ctx, &record.Description{}, calls); !errors.Is(err, context.Canceled) {
		t.Errorf("history: %v", err)
	}
	if _, _, err := plan(ctx, &record.Recording{Description: &record.Description{}}, nil, calls); !errors.Is(err, context.Canceled) {
		t.Errorf("plan: %v", err)
	}
}
