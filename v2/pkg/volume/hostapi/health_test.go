package api_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func damaged(d winsim.Damage) winsim.Volume {
	v := formatted()
	v.Damage = d
	return v
}

func health(h volumeapi.HostAPI) (volumeapi.Health, error) {
	return h.(volumeapi.Extended).Health(id)
}

func TestHealth(t *testing.T) {
	for name, c := range map[string]struct {
		damage winsim.Damage
		do     func(*winsim.Node) error
		want   string // problems and what is unknown
	}{
		"well":            {},
		"torn":            {damage: winsim.Damage{Dirty: true}, want: "the volume is dirty: it was not unmounted properly, or NTFS has met damage"},
		"suspected":       {damage: winsim.Damage{Corruption: winsim.Suspected}, want: "NTFS is damaged: scan needed"},
		"noted":           {damage: winsim.Damage{Dirty: true, Corruption: winsim.Noted}, want: "NTFS is damaged: spot fix needed"},
		"severe":          {damage: winsim.Damage{Corruption: winsim.Severe}, want: "NTFS is damaged: offline repair needed"},
		"disk will fail":  {do: func(n *winsim.Node) error { return n.SetDiskHealth(firstDisk, winsim.DiskPredicts) }, want: "disk 1 reports trouble: expects to fail"},
		"disk is no good": {do: func(n *winsim.Node) error { return n.SetDiskHealth(firstDisk, winsim.DiskUnhealthy) }, want: "disk 1 does not work: lost communication"},
		"no dirty bit": {do: func(n *winsim.Node) error {
			_, err := n.Inject(winsim.Fault{Call: "VolumeDirty", Error: uint32(winerr.FileCorrupt)})
			return err
		}, want: "NTFS is damaged: offline repair needed"},
		"no service": {do: func(n *winsim.Node) error {
			_, err := n.Inject(winsim.Fault{Call: "VolumeHealth", Error: 0x8004100E})
			return err
		}, want: "damage: Windows error 0x8004100e"},
	} {
		node := nodeWith(t, damaged(c.damage))
		if c.do != nil {
			must(t, c.do(node))
		}
		got, err := health(volumeapi.NewOn(node))
		if text := strings.Join(append(got.Problems(), got.Unknown...), "; "); err != nil || text != c.want || got.Well() != (c.want == "") {
			t.Errorf("%s: %q, well: %v, %v, want %q", name, text, got.Well(), err, c.want)
		}
	}
	_, err := volumeapi.NewOn(nodeWith(t, formatted())).(volumeapi.Extended).Health(volumeID(9))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a volume that is not there: %v", err)
	}
	node := nodeWith(t, formatted())
	inject(t, node, winsim.Fault{Call: "FileSystem", Error: uint32(winerr.AccessDenied)})
	if _, err = health(volumeapi.NewOn(node)); winerr.KindOf(err) != winerr.Denied || !strings.Contains(err.Error(), "another process may have locked it") {
		t.Errorf("during a repair by another process: %v", err)
	}
}

// TestDamageOf: Server 2012 says in HealthStatus what later ones say in OperationalStatus.
func TestDamageOf(t *testing.T) {
	for want, all := range map[volumeapi.Damage][]win.VolumeHealth{
		volumeapi.NoDamage:      {{}, {Operational: []uint16{2}}, {Operational: []uint16{0}}},
		volumeapi.SuspectDamage: {{Status: 1}, {Status: 2, Operational: []uint16{6}}, {Status: 9}, {Status: 1, Operational: []uint16{2, 0xD00D}}},
		volumeapi.SpotDamage:    {{Status: 2}, {Status: 1, Operational: []uint16{0xD00D, 0xD00E}}},
		volumeapi.FullDamage:    {{Status: 3}, {Status: 1, Operational: []uint16{0xD00F}}, {Operational: []uint16{2, 0xD00F}}},
		volumeapi.UnknownDamage: {{Status: 5}, {Status: 5, Operational: []uint16{0}}},
	} {
		for _, of := range all {
			if got := volumeapi.DamageOf(of); got != want {
				t.Errorf("%+v: %q, want %q", of, got, want)
			}
		}
	}
	if got, want := (win.DiskHealth{Operational: []uint16{2, 0xD00A}}).Reason(), "hardware error"; got != want {
		t.Errorf("a reason: %q, want %q", got, want)
	}
}

// TestHealth_NeverClaimed: whichever call fails, a volume that may be damaged is not called well.
func TestHealth_NeverClaimed(t *testing.T) {
	for _, damage := range []winsim.Damage{{}, {Dirty: true}, {Corruption: winsim.Noted}} {
		for _, code := range []winerr.Code{winerr.IODevice, winerr.AccessDenied, winerr.InvalidFunction, winerr.WMINotFound} {
			for nth := 1; ; nth++ {
				node := nodeWith(t, damaged(damage))
				fault := inject(t, node, winsim.Fault{Nth: nth, Times: 1, Error: uint32(code)})
				got, err := health(volumeapi.NewOn(node))
				if fault.Hits() == 0 {
					break
				}
				if err == nil && got.Well() && !strings.Contains(fmt.Sprint(node.Calls()), "VolumeExtents") { // which answers instead
					t.Errorf("%+v, call %d failed with %v: %+v", damage, nth, code, got)
				}
			}
		}
	}
	host := volumeapi.NewOn(win.Intercept(nodeWith(t, formatted()), func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		if c.Method == "DiskHealth" { // the list is empty
			return nil
		}
		return next(ctx)
	}))
	if got, err := health(host); err != nil || got.Well() {
		t.Errorf("no health of any disk: %+v, %v", got, err)
	}
}
