package api_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

func keeper(node *winsim.Node) volumeapi.HealthKeeper { return keeperOf(volumeapi.NewOn(node)) }

func keeperOf(h volumeapi.HostAPI) volumeapi.HealthKeeper { return h.(volumeapi.HealthKeeper) }

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
		got, err := keeper(node).Health(id)
		if text := strings.Join(append(got.Problems(), got.Unknown...), "; "); err != nil || text != c.want || got.Well() != (c.want == "") {
			t.Errorf("%s: %q, well: %v, %v, want %q", name, text, got.Well(), err, c.want)
		}
	}
	_, err := keeper(nodeWith(t, formatted())).Health(volumeID(9))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a volume that is not there: %v", err)
	}
}

// TestHealth_NeverClaimed: whichever call fails, a volume that may be damaged is not called well.
func TestHealth_NeverClaimed(t *testing.T) {
	for _, damage := range []winsim.Damage{{}, {Dirty: true}, {Corruption: winsim.Noted}} {
		for _, code := range []winerr.Code{winerr.IODevice, winerr.AccessDenied, winerr.InvalidFunction, winerr.WMINotFound} {
			for nth := 1; ; nth++ {
				node := nodeWith(t, damaged(damage))
				fault := inject(t, node, winsim.Fault{Nth: nth, Times: 1, Error: uint32(code)})
				got, err := keeper(node).Health(id)
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
	if got, err := keeperOf(host).Health(id); err != nil || got.Well() {
		t.Errorf("no health of any disk: %+v, %v", got, err)
	}
}

// recorded is a host of a node, and a list of what MSFT_Volume.Repair is asked for.
func recorded(node *winsim.Node) (volumeapi.HostAPI, *[]string) {
	var mu sync.Mutex
	calls := new([]string)
	return volumeapi.NewOn(win.Intercept(node, func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		if c.Method == "RepairVolume" {
			mu.Lock()
			*calls = append(*calls, fmt.Sprint(c.Args()[1].Value))
			mu.Unlock()
		}
		return next(ctx)
	})), calls
}

func repair(h volumeapi.HostAPI, options volumeapi.RepairOptions) (volumeapi.Health, error) {
	return h.(volumeapi.HealthKeeper).Repair(id, options)
}

func TestRepair(t *testing.T) {
	offline := volumeapi.RepairOptions{Offline: true}
	for name, c := range map[string]struct {
		damage     winsim.Damage
		dirtyStays bool
		options    volumeapi.RepairOptions
		want       string // what MSFT_Volume.Repair is asked for
		fails      winerr.Kind
	}{
		"well":                {want: "scan"},
		"torn":                {damage: winsim.Damage{Dirty: true}, want: "scan, spot fix"},
		"torn and unnoticed":  {damage: winsim.Damage{Dirty: true, Corruption: winsim.Unnoticed}, want: "scan, spot fix"},
		"noted":               {damage: winsim.Damage{Corruption: winsim.Noted}, want: "spot fix"},
		"severe":              {damage: winsim.Damage{Corruption: winsim.Severe}, fails: winerr.InUse},
		"severe, offline":     {damage: winsim.Damage{Corruption: winsim.Severe}, options: offline, want: "offline repair"},
		"lost, offline":       {damage: winsim.Damage{Corruption: winsim.Lost}, options: offline, want: "offline repair", fails: winerr.Internal},
		"the dirty bit stays": {damage: winsim.Damage{Dirty: true}, dirtyStays: true, want: "scan, spot fix"},
	} {
		model := modelWith(gpt(winsim.GiB, damaged(c.damage)))
		model.Storage.DirtyStays = c.dirtyStays
		node := newNode(t, model)
		host, calls := recorded(node)
		got, err := repair(host, c.options)
		wantFailure := c.fails != 0 || strings.HasPrefix(name, "lost")
		if strings.Join(*calls, ", ") != c.want || (err != nil) != wantFailure || err != nil && winerr.KindOf(err) != c.fails {
			t.Errorf("%s: %q, %v, want %q and %v", name, *calls, err, c.want, c.fails)
		}
		if err == nil && (got.Damage != volumeapi.NoDamage || got.Dirty != c.dirtyStays || got.Well() == c.dirtyStays) {
			t.Errorf("%s: then %+v", name, got)
		}
		wantData(t, node, host)
	}
}

// volumeC is the volume of Windows on all nodes here.
func volumeC(t *testing.T) string {
	t.Helper()
	system, err := nodeWith(t, formatted()).SystemVolumes(t.Context())
	must(t, err)
	return string(system[0])
}

func TestRepair_Refuses(t *testing.T) {
	refs := damaged(winsim.Damage{})
	refs.FileSystem = winsim.ReFS
	noted := damaged(winsim.Damage{Corruption: winsim.Noted})
	for name, c := range map[string]struct {
		volume winsim.Volume
		do     func(*winsim.Node) error
		id     string
		want   winerr.Kind
		text   string
	}{
		"ReFS":      {volume: refs, want: winerr.Unsupported, text: "mends itself"},
		"no volume": {volume: noted, id: volumeID(9), want: winerr.NotFound, text: "gone"},
		"no id":     {volume: noted, id: "D:", want: winerr.Invalid, text: "not a volume id"},
		"system":    {volume: noted, id: volumeC(t), want: winerr.Denied, text: "holds the system"},
		"mounted": {
			volume: noted, do: func(n *winsim.Node) error { return n.MountFolder(mount, id) },
			want: winerr.InUse, text: "in use at " + mount,
		},
		"open": {
			volume: noted, do: func(n *winsim.Node) error { _, err := n.Hold(id + "precious"); return err },
			want: winerr.InUse, text: "another process has the volume open",
		},
		"read-only": {volume: noted, do: func(n *winsim.Node) error {
			return n.SetDiskAttributes(t.Context(), win.PhysicalDrive(firstDisk), win.DiskAttributes{ReadOnly: true}, win.DiskAttributes{ReadOnly: true})
		}, want: winerr.InUse, text: "SetDiskReadOnly"},
		"raw": {volume: unformatted(), want: winerr.InUse, text: "FormatVolume"},
	} {
		node := nodeWith(t, c.volume)
		if c.do != nil {
			must(t, c.do(node))
		}
		host, calls := recorded(node)
		_, err := host.(volumeapi.HealthKeeper).Repair(cmp.Or(c.id, id), volumeapi.RepairOptions{})
		if winerr.KindOf(err) != c.want || !strings.Contains(fmt.Sprint(err), c.text) || len(*calls) != 0 && name != "open" {
			t.Errorf("%s: %v after %q, want %v", name, err, *calls, c.want)
		}
		if name == "mounted" {
			if got, err := repair(host, volumeapi.RepairOptions{Dismount: true}); err != nil || !got.Well() {
				t.Errorf("asked to dismount: %+v, %v", got, err)
			}
		}
	}
}

// TestRepair_Joined: a scan goes on without its caller, does not hold up unmounting, and is not made twice. A spot fix
// takes the volume, and others wait for it.
func TestRepair_Joined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := modelWith(gpt(winsim.GiB, damaged(winsim.Damage{Dirty: true, Corruption: winsim.Unnoticed})))
		model.RealTime = true
		model.Storage = winsim.Storage{ScanTime: time.Hour, RepairTime: time.Minute}
		node := newNode(t, model)
		host, calls := recorded(node)
		mend := func(h volumeapi.HostAPI) error {
			_, err := repair(h, volumeapi.RepairOptions{})
			return err
		}
		leaves(t, host, mend)
		leaves(t, host, func(h volumeapi.HostAPI) error { _, err := h.(volumeapi.HealthKeeper).Scan(id); return err })
		if got, err := keeperOf(host).Health(id); err != nil || got.Running != "scan" || got.Since.IsZero() || got.Well() {
			t.Errorf("during the scan: %+v, %v", got, err)
		}
		must(t, host.MountVolume(id, mount))
		must(t, host.UnmountVolume(id, mount))
		time.Sleep(time.Hour)
		leaves(t, host, mend)
		if got, err := keeperOf(host).Health(id); err != nil || got.Running != "spot fix" || got.Well() {
			t.Errorf("during the spot fix: %+v, %v", got, err)
		}
		if formatted, err := host.IsVolumeFormatted(id); err != nil || !formatted { // or Stage would not come so far as to join
			t.Errorf("during the spot fix it is formatted: %v, %v", formatted, err)
		}
		leaves(t, host, func(h volumeapi.HostAPI) error { return h.MountVolume(id, mount) })
		must(t, mend(host))
		if got, err := keeperOf(host).Health(id); err != nil || !got.Well() || strings.Join(*calls, ", ") != "scan, spot fix" {
			t.Errorf("in the end: %+v, %v after %q", got, err, *calls)
		}
	})
}

// TestRepair_AfterCrash: the process that began a scan or repair was killed. Windows goes on with it: the next process
// waits for a scan, and says that something has locked the volume. It is not another repair, and not health.
func TestRepair_AfterCrash(t *testing.T) {
	for _, how := range []win.Repair{win.RepairScan, win.RepairSpotFix, win.RepairOffline} {
		model := modelWith(gpt(winsim.GiB, damaged(winsim.Damage{Dirty: true, Corruption: winsim.Noted})))
		model.Storage.ScanTime, model.Storage.RepairTime = time.Hour, time.Hour
		node := newNode(t, model)
		ctx, crash := context.WithCancel(t.Context())
		inject(t, node, winsim.Fault{Call: "RepairVolume", Times: 1, Do: func(*winsim.Node) { crash() }})
		_ = node.RepairVolume(ctx, win.VolumeID(id), how)
		host, calls := recorded(node)
		if how != win.RepairScan {
			const says = "another process has locked it, as a repair does"
			if got, err := keeperOf(host).Health(id); err != nil || got.Well() || got.Running == "" || !strings.Contains(fmt.Sprint(got.Unknown), says) {
				t.Errorf("during the %s: %+v, %v", how, got, err)
			}
			_, scanErr := keeperOf(host).Scan(id)
			_, repairErr := repair(host, volumeapi.RepairOptions{Offline: true, Dismount: true})
			for _, err := range []error{scanErr, repairErr} {
				if winerr.KindOf(err) != winerr.InUse || !strings.Contains(err.Error(), says) || len(*calls) > 0 {
					t.Errorf("during the %s: %v after %q", how, err, *calls)
				}
			}
			must(t, node.Sleep(t.Context(), time.Hour))
		}
		if got, err := repair(host, volumeapi.RepairOptions{}); err != nil || !got.Well() || how == win.RepairScan && len(*calls) < 2 {
			t.Errorf("after the %s: %+v, %v after %q", how, got, err, *calls)
		}
	}
}
