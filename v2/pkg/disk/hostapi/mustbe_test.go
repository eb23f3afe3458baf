package api_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	ownVolume = `\\?\Volume{5eed0000-0000-0000-0000-000000000007}\`
	ownPath   = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\disk\own\globalmount`
	elsewhere = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\disk\another\globalmount`
)

// ownDisk is a disk with a volume that is known.
func ownDisk() winsim.Disk {
	v := ntfs()
	v.ID = ownVolume
	d := gpt(winsim.Partition{Type: "msr"}, winsim.Partition{Volume: v})
	d.Serial, d.Size = "OWN", winsim.GiB
	return d
}

// TestMustBe_Exchanged: before each call of a change another disk gets the number. It does not change.
func TestMustBe_Exchanged(t *testing.T) {
	raw := winsim.Disk{Serial: "OWN", Size: winsim.GiB}
	policy := ownDisk()
	policy.Offline, policy.ReadOnly = true, true
	offline := policy
	offline.ReadOnly = false
	for name, c := range map[string]struct {
		disk winsim.Disk
		do   func(diskapi.DiskAPI) error
	}{
		"partition":                    {raw, func(h diskapi.DiskAPI) error { return h.PartitionDisk(added) }},
		"partition what is there":      {policy, func(h diskapi.DiskAPI) error { return h.PartitionDisk(added) }},
		"online":                       {offline, func(h diskapi.DiskAPI) error { return h.SetDiskState(added, true) }},
		"online by policy":             {policy, func(h diskapi.DiskAPI) error { return h.SetDiskState(added, true) }},
		"offline":                      {ownDisk(), func(h diskapi.DiskAPI) error { return h.SetDiskState(added, false) }},
		"read-only":                    {ownDisk(), func(h diskapi.DiskAPI) error { return h.SetDiskReadOnly(added, true) }},
		"writable":                     {policy, func(h diskapi.DiskAPI) error { return h.SetDiskReadOnly(added, false) }},
		"online read-only":             {offline, func(h diskapi.DiskAPI) error { return h.OnlineDiskReadOnly(added) }},
		"online read-only from online": {ownDisk(), func(h diskapi.DiskAPI) error { return h.OnlineDiskReadOnly(added) }},
	} {
		for by, mustBe := range map[string]diskapi.MustBe{"serial": {Serial: "OWN"}, "volume": {VolumeID: ownVolume, Path: ownPath}} {
			if by == "volume" && c.disk.Layout == "" {
				continue
			}
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				for _, other := range []winsim.Disk{{Size: winsim.GiB}, used["NTFS"], {Size: winsim.GiB, Offline: true, ReadOnly: true}} {
					other.Number, other.Size, other.Serial = added, winsim.GiB, "OTHER"
					for nth, ended := int32(1), false; !ended; nth++ {
						node := newNode(t, withDisk(c.disk))
						var calls atomic.Int32
						var was win.DiskAttributes
						before := ""
						err := c.do(diskapi.NewOn(win.Intercept(node, func(ctx context.Context, call *win.Call, next func(context.Context) error) error {
							if calls.Add(1) == nth { // not below the bounds, where the host may go on meanwhile
								require.NoError(t, node.DetachDisk(added))
								attach(t, node, other)
								was, before = attributes(t, node, added), fingerprint(t, node, added) //nolint:contextcheck // it has one of its own
							}
							return next(ctx)
						})).MustBe(mustBe).(diskapi.DiskAPI))
						if ended = calls.Load() < nth; ended {
							require.NoError(t, err)
							break
						}
						if now := attributes(t, node, added); now != was || fingerprint(t, node, added) != before {
							t.Errorf("exchanged before call %d: the other disk was %+v, and is %+v (%v)", nth, was, now, err)
						}
					}
				}
			})
		}
	}
}

// TestMustBe_Another: a disk that is another one from the beginning is refused, and so is what is no volume.
func TestMustBe_Another(t *testing.T) {
	node := newNode(t, withDisk(ownDisk()))
	devices, err := node.DiskDevices(t.Context())
	require.NoError(t, err)
	for name, c := range map[string]struct {
		mustBe diskapi.MustBe
		kind   winerr.Kind
	}{
		"long serial":   {diskapi.MustBe{Serial: "1\n" + strings.Repeat("x", 1000)}, winerr.Busy},
		"long page 83":  {diskapi.MustBe{Page83: "1\n" + strings.Repeat("x", 1000)}, winerr.Busy},
		"long device":   {diskapi.MustBe{Device: `\\?\#` + "\n" + strings.Repeat("x", 1000)}, winerr.Busy},
		"serial":        {diskapi.MustBe{Serial: "ANOTHER"}, winerr.Busy},
		"page 83":       {diskapi.MustBe{Page83: "another"}, winerr.Busy},
		"both":          {diskapi.MustBe{Serial: "OWN", Page83: "another"}, winerr.Busy},
		"device":        {diskapi.MustBe{Device: string(devices[0])}, winerr.Busy},
		"no device":     {diskapi.MustBe{Device: `\\?\scsi#disk#gone`}, winerr.Busy},
		"a server":      {diskapi.MustBe{Device: `\\server\share\#`}, winerr.Invalid},
		"a server, raw": {diskapi.MustBe{Device: `\\?\UNC\server\#`}, winerr.Invalid},
		"a volume":      {diskapi.MustBe{Device: ownVolume[:len(ownVolume)-1]}, winerr.Invalid},
		"volume":        {diskapi.MustBe{VolumeID: `\\?\Volume{5eed0000-0000-0000-0000-000000000008}\`}, winerr.Busy},
		"not a volume":  {diskapi.MustBe{VolumeID: `C:\`}, winerr.Invalid},
	} {
		h := diskapi.NewOn(node).MustBe(c.mustBe).(diskapi.DiskAPI)
		_, readErr := h.GetDiskReadOnly(added)
		for what, err := range map[string]error{
			"read": readErr, "partition": h.PartitionDisk(added), "offline": h.SetDiskState(added, false), "online": h.SetDiskState(added, true),
			"read-only": h.SetDiskReadOnly(added, true), "online read-only": h.OnlineDiskReadOnly(added),
		} {
			if wantKind(t, name+", "+what, err, c.kind); err != nil && (len(err.Error()) > 400 || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
	if changes(node) != 0 {
		t.Errorf("calls were made: %v", node.Calls())
	}
}

// TestOffline_Mounted: a disk that is mounted stays online: at another path than the one that the caller unmounts, or, of a
// caller who names none, if a pod's link leads there. It can become writable at any time.
func TestOffline_Mounted(t *testing.T) {
	const link = `C:\var\lib\kubelet\pods\uid\volumes\kubernetes.io~csi\pv\mount`
	named := diskapi.MustBe{VolumeID: ownVolume, Path: ownPath}
	mount := func(path string) func(*winsim.Node) error {
		return func(n *winsim.Node) error { return n.MountFolder(path, ownVolume) }
	}
	linked := func(n *winsim.Node) error {
		require.NoError(t, n.MountFolder(elsewhere, ownVolume))
		return n.Symlink(link, elsewhere)
	}
	nothing := func(*winsim.Node) error { return nil }
	for name, c := range map[string]struct {
		mustBe  diskapi.MustBe
		prepare func(*winsim.Node) error
		letter  string
		refused string
	}{
		"not mounted":                          {prepare: nothing},
		"at the path":                          {mustBe: named, prepare: mount(ownPath)},
		"at another path":                      {mustBe: named, prepare: mount(elsewhere), refused: elsewhere},
		"at a letter":                          {mustBe: named, prepare: nothing, letter: "X", refused: "X:"},
		"at a letter, of an unmodified driver": {prepare: nothing, letter: "X"},
		"at a path, of an unmodified driver":   {prepare: mount(elsewhere)},
		"a pod uses it":                        {prepare: linked, refused: link},
		"a pod has it":                         {prepare: mount(link), refused: link},
		"a pod uses another": {prepare: func(n *winsim.Node) error {
			require.NoError(t, n.MountFolder(elsewhere, ownVolume))
			return n.Symlink(link, elsewhere+"2")
		}},
		"what the mount manager says is not known": {prepare: func(n *winsim.Node) error {
			_, err := n.Inject(winsim.Fault{Call: "VolumePaths", Error: 5})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			disk := ownDisk()
			disk.Partitions[1].Volume.Letter = c.letter
			node := newNode(t, withDisk(disk))
			require.NoError(t, c.prepare(node))
			h := diskapi.NewOn(node).MustBe(c.mustBe).(diskapi.DiskAPI)
			for range 2 {
				if err := h.SetDiskState(added, false); c.refused == "" {
					require.NoError(t, err)
				} else if wantKind(t, "offline", err, winerr.InUse); err != nil && !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%v does not name %s", err, c.refused)
				}
			}
			if got := attributes(t, node, added); got.Offline != (c.refused == "") {
				t.Errorf("the disk is %+v", got)
			}
		})
	}
}

// TestSetDiskReadOnly_Mounted: a mounted disk does not become read-only, and always becomes writable.
func TestSetDiskReadOnly_Mounted(t *testing.T) {
	node := newNode(t, withDisk(ownDisk()))
	require.NoError(t, node.MountFolder(elsewhere, ownVolume))
	h := diskapi.NewOn(node)
	wantKind(t, "read-only", h.SetDiskReadOnly(added, true), winerr.InUse)
	require.NoError(t, h.MustBe(diskapi.MustBe{VolumeID: ownVolume, Path: elsewhere}).(diskapi.DiskAPI).SetDiskReadOnly(added, true))
	require.NoError(t, h.SetDiskReadOnly(added, false))
}

// TestOnlineDiskReadOnly_OpenFile: a volume with an open file keeps its disk online, also if the mount manager knows no path.
func TestOnlineDiskReadOnly_OpenFile(t *testing.T) {
	node := newNode(t, withDisk(ownDisk()))
	release, err := node.Hold(ownVolume + "precious")
	require.NoError(t, err)
	start := node.Elapsed()
	err = bound(t.Context(), node).OnlineDiskReadOnly(added)
	if wantKind(t, "a file is open", err, winerr.Busy); winerr.CodeOf(err) != winerr.AccessDenied || node.Elapsed()-start > 6*time.Second {
		t.Errorf("%v after %s", err, node.Elapsed()-start)
	}
	if got := attributes(t, node, added); got != (win.DiskAttributes{}) {
		t.Errorf("the disk is %+v", got)
	}
	inject(t, node, winsim.Fault{Call: "TakeUnusedOffline", Nth: 2, Times: 1, Do: func(*winsim.Node) { release() }}) // it closes it in time
	for range 2 {
		require.NoError(t, bound(t.Context(), node).OnlineDiskReadOnly(added))
	}
	if got := attributes(t, node, added); got != (win.DiskAttributes{ReadOnly: true}) {
		t.Errorf("the disk is %+v", got)
	}
}
