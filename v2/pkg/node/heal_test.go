package node_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/sweep"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	liveVolume = `\\?\Volume{11fe0000-0000-0000-0000-000000000000}\`
	deadVolume = `\\?\Volume{dead0000-0000-0000-0000-000000000000}\`
	liveDisk   = 1
	deadDisk   = 2

	csi    = kubelet + `\plugins\kubernetes.io\csi\`
	portal = "10.0.0.10:3260"
)

// staging is where kubelet stages a volume.
func staging(driver string, volume int) string {
	return csi + driver + `\` + fmt.Sprintf("%064x", volume) + `\globalmount`
}

// The staging links of a restarted node.
var (
	ofLiveVolume = staging("disk.csi", 1)
	ofDeadVolume = staging("disk.csi", 2)
	ofDeadShare  = staging("smb.csi", 3)
	ofLiveShare  = staging("smb.csi", 4)
	ofOldKubelet = csi + `pv\data\globalmount`
)

func restartedModel() winsim.Model {
	model := winsim.Default()
	onDisk := func(id string) []winsim.Partition {
		return []winsim.Partition{{Type: "msr", Size: 16 * winsim.MiB}, {Volume: &winsim.Volume{ID: id, Files: []winsim.File{{Path: `\precious`, Content: "data"}}}}}
	}
	model.SMBAlwaysPersistent = true
	model.Disks = append(model.Disks[:1],
		winsim.Disk{Number: liveDisk, Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: onDisk(liveVolume)},
		winsim.Disk{Number: deadDisk, Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: onDisk(deadVolume)},
		winsim.Disk{Number: 3, Size: winsim.GiB, Offline: true}, // blank
		winsim.Disk{Number: 4, Size: winsim.GiB, NoMedium: true, Layout: winsim.LayoutSuperfloppy, Partitions: []winsim.Partition{{Volume: &winsim.Volume{}}}},
		winsim.Disk{Number: 5, Size: winsim.GiB, Offline: true, Layout: winsim.LayoutGPT, Partitions: onDisk(`\\?\Volume{0ff00000-0000-0000-0000-000000000000}\`)},
	)
	for _, server := range []string{"down", "gone"} {
		model.SMBServers = append(model.SMBServers, winsim.SMBServer{
			Name: server, Shares: []winsim.SMBShare{{Name: "data"}}, Accounts: []winsim.SMBAccount{{User: "csi", Password: "csi-Pa55"}},
		})
	}
	model.Volumes = []winsim.Volume{{ID: "00000000-0000-0000-0000-0000000000cd", Letter: "E", CDROM: true, State: winsim.NotReady}} // a drive without a disc
	return model
}

// mapShare stages a share as a driver does.
func mapShare(t *testing.T, node *winsim.Node, remote, local string) {
	t.Helper()
	if parent := local[:strings.LastIndexByte(local, '\\')]; node.Mkdir(parent) != nil {
		t.Fatalf("%s cannot be made", parent)
	}
	prepare(t, node.SMB().(smbapi.Extended).MapSMBShare(remote, local, "csi", "csi-Pa55"))
}

// restarted is a node some time after a restart: disk 2 is gone, and mappings lost their
// credentials, except those of one share, which a driver has staged since.
func restarted(t *testing.T, since time.Duration) *winsim.Node {
	t.Helper()
	return restartedOf(t, restartedModel(), since)
}

func restartedOf(t *testing.T, model winsim.Model, since time.Duration) *winsim.Node {
	t.Helper()
	node := newNode(t, model)
	for path, volume := range map[string]string{ofLiveVolume: liveVolume, ofDeadVolume: deadVolume, ofOldKubelet: deadVolume} {
		prepare(t, node.MountFolder(path, volume))
	}
	mapShare(t, node, `\\gone\data`, ofDeadShare)
	mapShare(t, node, `\\files\data`, ofLiveShare)
	sleep(t, node, time.Hour)
	prepare(t, node.DetachDisk(deadDisk))
	node.Reboot()
	mapShare(t, node, `\\files\data`, ofLiveShare)
	sleep(t, node, since)
	return node
}

func sleep(t *testing.T, node *winsim.Node, d time.Duration) {
	t.Helper()
	prepare(t, node.Sleep(t.Context(), d))
}

// healer shares its locks with the node's hosts.
func healer(t *testing.T, node *winsim.Node, options ...wholenode.Option) *wholenode.Node {
	t.Helper()
	return newOn(t, node, append(options, wholenode.BeganWithWindows, wholenode.WorkingDirs(kubelet), wholenode.VolumeHost(node.Volume()), wholenode.SMBHost(node.SMB()))...)
}

func heal(t *testing.T, n *wholenode.Node, remove bool) *wholenode.Healing {
	t.Helper()
	result, err := n.Heal(t.Context(), wholenode.HealOptions{Remove: remove})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// states is a healing in lines.
func states(h *wholenode.Healing) string {
	var b strings.Builder
	for _, s := range h.Stale {
		fmt.Fprintf(&b, "%s %s -> %s (%s): %s\n", s.State, strings.TrimPrefix(s.Path, csi), s.Target, s.Cause, s.Reason)
	}
	return b.String()
}

// wantState checks one find.
func wantState(t *testing.T, h *wholenode.Healing, path string, state wholenode.StaleState, reason string) {
	t.Helper()
	at := slices.IndexFunc(h.Stale, func(s wholenode.StaleMount) bool { return s.Path == path })
	if at < 0 || h.Stale[at].State != state || !strings.Contains(h.Stale[at].Reason, reason) {
		t.Errorf("%s should be %s with %q; found:\n%s", path, state, reason, states(h))
	}
}

func TestHeal(t *testing.T) {
	node := restarted(t, time.Hour)
	var removed []string
	n := healer(t, node, wholenode.OnRemove(func(_ context.Context, path string) { removed = append(removed, path) }))
	before := node.Tree(kubelet)

	report := heal(t, n, false)
	if report.Live != 2 || len(report.Stale) != 3 || len(report.Problems) != 0 || report.RetryAfter != 0 {
		t.Errorf("%+v", report)
	}
	for _, path := range []string{ofDeadVolume, ofDeadShare, ofOldKubelet} {
		wantState(t, report, path, wholenode.Removable, "")
	}
	if node.Tree(kubelet) != before {
		t.Error("a report changed the node")
	}

	done := heal(t, n, true)
	for _, s := range done.Stale {
		if s.State != wholenode.Removed || s.Changed.IsZero() || s.Cause == "" || node.Exists(s.Path) {
			t.Errorf("%+v", s)
		}
	}
	if want := []string{ofDeadVolume, ofOldKubelet, ofDeadShare}; !slices.Equal(removed, want) {
		t.Errorf("removed %q, want %q", removed, want)
	}
	for _, path := range []string{ofLiveVolume + `\precious`, ofLiveShare, csi + `pv\data`} {
		if !node.Exists(path) {
			t.Errorf("%s is gone", path)
		}
	}
	if again := heal(t, n, true); len(again.Stale) != 0 || again.Live != 2 {
		t.Errorf("%+v", again)
	}
}

// TestHeal_AfterRestart: what the start of Windows has lost of volumes goes; of shares, of what worked since, and of younger
// links it is only said.
func TestHeal_AfterRestart(t *testing.T) {
	node := restarted(t, time.Hour)
	n := healer(t, node)
	only := func() *wholenode.Healing {
		t.Helper()
		result, err := n.Heal(t.Context(), wholenode.HealOptions{Remove: true, AfterRestart: true})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	first := only()
	wantState(t, first, ofDeadVolume, wholenode.Removed, "")
	wantState(t, first, ofOldKubelet, wholenode.Removed, "")
	wantState(t, first, ofDeadShare, wholenode.Removable, "")
	young := staging("disk.csi", 9)
	prepare(t, node.MountFolder(young, liveVolume)) // ofLiveVolume is older, and has just been seen to work
	prepare(t, node.DetachDisk(liveDisk))
	wantState(t, only(), young, wholenode.Kept, "10m")
	sleep(t, node, 11*time.Minute)
	last := only()
	wantState(t, last, young, wholenode.Removable, "")
	wantState(t, last, ofLiveVolume, wholenode.Removable, "")
	wantState(t, heal(t, n, true), young, wholenode.Removed, "")
	// One that begins later has not seen that the volume has worked since.
	node = restarted(t, time.Hour)
	prepare(t, node.DetachDisk(liveDisk))
	n = newOn(t, node, wholenode.WorkingDirs(kubelet), wholenode.VolumeHost(node.Volume()), wholenode.SMBHost(node.SMB()))
	only()
	sleep(t, node, 11*time.Minute)
	wantState(t, only(), ofLiveVolume, wholenode.Removable, "")
}

// TestHeal_Denied: a share denies access after a restart. Its link goes if its mapping is still there, has
// lost its credentials, and both looks see the same.
func TestHeal_Denied(t *testing.T) {
	for name, c := range map[string]struct {
		mapped bool // Windows keeps mappings across a restart
		times  int
		code   winerr.Code
		want   wholenode.StaleState
		reason string
	}{
		"mapping without credentials": {true, 0, winerr.AccessDenied, wholenode.Removed, "denies access"},
		"server away":                 {true, 0, winerr.BadNetPath, wholenode.Kept, "slow to come back"},
		"no mapping":                  {false, 0, winerr.AccessDenied, wholenode.Kept, "may not look"},
		"server away, then denied":    {true, 1, winerr.BadNetPath, wholenode.Kept, "slow to come back"},
	} {
		t.Run(name, func(t *testing.T) {
			model := restartedModel()
			model.SMBAlwaysPersistent = c.mapped
			node := restartedOf(t, model, time.Hour)
			inject(t, node, winsim.Fault{Call: "FileInfo", Object: `\\gone\data*`, Error: uint32(c.code), Times: c.times})
			if c.times > 0 {
				inject(t, node, winsim.Fault{Call: "FileInfo", Object: `\\gone\data*`, Error: uint32(winerr.AccessDenied)})
			}
			wantState(t, heal(t, healer(t, node), true), ofDeadShare, c.want, c.reason)
		})
	}
}

// TestHeal_Find checks what is reported about a find.
func TestHeal_Find(t *testing.T) {
	node := restarted(t, time.Hour)
	got := heal(t, healer(t, node), false).Stale[0]
	want := wholenode.StaleMount{
		Path: ofDeadVolume, Driver: "disk.csi", Volume: fmt.Sprintf("%064x", 2), Target: deadVolume,
		Cause: winerr.FileNotFound.Error(), Changed: got.Changed, State: wholenode.Removable,
		Reason: "all disks and volumes answer, and its volume is not among them",
	}
	if got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// TestHeal_Kept has what keeps a link, for each reason.
func TestHeal_Kept(t *testing.T) {
	for name, c := range map[string]struct {
		since  time.Duration
		change func(t *testing.T, node *winsim.Node)
		path   string
		reason string
	}{
		"Windows has just started": {since: 9 * time.Minute, path: ofDeadVolume, reason: "gone for 9m of 10m"},
		"it has just been made": {path: staging("disk.csi", 9), reason: "gone for 0s of 10m", change: func(t *testing.T, node *winsim.Node) {
			t.Helper()
			prepare(t, node.MountFolder(staging("disk.csi", 9), deadVolume))
		}},
		"its disk is back, and offline": {path: ofDeadVolume, reason: "disk 2 is offline", change: func(t *testing.T, node *winsim.Node) {
			t.Helper()
			_, err := node.ReattachDisk(deadDisk)
			prepare(t, err)
			prepare(t, node.SetDiskAttributes(t.Context(), win.PhysicalDrive(deadDisk), win.DiskAttributes{Offline: true}, win.DiskAttributes{Offline: true}))
		}},
		"a disk is hidden": {path: ofDeadVolume, reason: "is hidden", change: func(t *testing.T, node *winsim.Node) {
			t.Helper()
			_, err := node.AttachDisk(winsim.Disk{Size: winsim.GiB, Hidden: true})
			prepare(t, err)
		}},
		"a volume is not ready": {path: ofDeadVolume, reason: "is not ready", change: func(t *testing.T, node *winsim.Node) {
			t.Helper()
			prepare(t, node.SetVolumeState(liveVolume, winsim.NotReady))
		}},
		"a partition has no volume": {path: ofDeadVolume, reason: "partition 2 of disk 1 has no volume yet", change: func(t *testing.T, node *winsim.Node) {
			t.Helper()
			prepare(t, node.SetVolumeState(liveVolume, winsim.Gone))
		}},
		"the iSCSI service starts": {path: ofDeadVolume, reason: "the iSCSI initiator does not answer", change: func(t *testing.T, node *winsim.Node) {
			t.Helper()
			prepare(t, node.SetServiceState("MSiSCSI", winsim.ServiceStopped))
		}},
		"its server is down": {path: ofDeadShare, reason: "slow to come back", change: func(t *testing.T, node *winsim.Node) {
			t.Helper()
			prepare(t, node.ChangeSMBServer("gone", func(s *winsim.SMBServer) { s.Down = true }))
		}},
		"its mapping works, its directory is gone": {path: staging("smb.csi", 9), reason: "it works again when", change: func(t *testing.T, node *winsim.Node) {
			t.Helper()
			prepare(t, node.Symlink(staging("smb.csi", 9), `\\files\data\none\`))
		}},
		"its driver made it since the start": {path: staging("smb.csi", 9), reason: "since Windows started", change: func(t *testing.T, node *winsim.Node) {
			t.Helper()
			prepare(t, node.Symlink(staging("smb.csi", 9), `\\down\data\`))
			sleep(t, node, time.Hour)
		}},
		"another process has it open": {path: ofDeadVolume, reason: "could not be removed", change: func(t *testing.T, node *winsim.Node) {
			t.Helper()
			if _, err := node.Hold(ofDeadVolume); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.since == 0 {
				c.since = time.Hour
			}
			node := restarted(t, c.since)
			if c.change != nil {
				c.change(t, node)
			}
			result := heal(t, healer(t, node), true)
			wantState(t, result, c.path, wholenode.Kept, c.reason)
			if !node.Exists(c.path) {
				t.Error("it was removed")
			}
			if young := strings.Contains(c.reason, "gone for"); young != (result.RetryAfter > 0) {
				t.Errorf("retry after %s", result.RetryAfter)
			}
		})
	}
}

// TestHeal_Drop: a disk that drops off the bus for two minutes keeps its link, however old that is.
func TestHeal_Drop(t *testing.T) {
	since := staging("disk.csi", 9) // made since Windows started
	for name, began := range map[string]func(*wholenode.Node) error{
		"began with Windows": wholenode.BeganWithWindows, "began late": func(*wholenode.Node) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			node := restarted(t, time.Hour)
			n := newOn(t, node, began, wholenode.WorkingDirs(kubelet), wholenode.VolumeHost(node.Volume()), wholenode.SMBHost(node.SMB()))
			prepare(t, node.MountFolder(since, liveVolume))
			heal(t, n, true)
			sleep(t, node, 24*time.Hour)

			// Two drops with days between them, and looks in both, are not an absence of days.
			for range 2 {
				prepare(t, node.DetachDisk(liveDisk))
				for _, gone := range []string{"gone for 0s of 10m", "gone for 1m", "gone for 2m"} {
					result := heal(t, n, true)
					for _, path := range []string{ofLiveVolume, since} {
						wantState(t, result, path, wholenode.Kept, gone)
					}
					sleep(t, node, time.Minute)
				}
				late := newOn(t, node, wholenode.WorkingDirs(kubelet), wholenode.VolumeHost(node.Volume())) // a daemon that restarts
				wantState(t, heal(t, late, true), ofLiveVolume, wholenode.Kept, "gone for 0s of 10m")
				if _, err := node.ReattachDisk(liveDisk); err != nil {
					t.Fatal(err)
				}
				sleep(t, node, 24*time.Hour)
				for _, path := range []string{ofLiveVolume, since} {
					if !node.Exists(path + `\precious`) {
						t.Errorf("%s is gone", path)
					}
				}
			}

			// Nor are two drops at the time of two looks, if it was seen in between.
			prepare(t, node.DetachDisk(liveDisk))
			heal(t, n, true)
			sleep(t, node, 2*time.Minute)
			_, err := node.ReattachDisk(liveDisk)
			prepare(t, err)
			sleep(t, node, time.Minute)
			prepare(t, n.Recheck(t.Context()))
			sleep(t, node, 5*time.Minute)
			prepare(t, node.DetachDisk(liveDisk))
			prepare(t, n.Recheck(t.Context()))
			sleep(t, node, 2*time.Minute)
			first := heal(t, n, true)
			for _, path := range []string{ofLiveVolume, since} {
				wantState(t, first, path, wholenode.Kept, "gone for 0s of 10m")
			}
			prepare(t, n.Recheck(t.Context()))
			sleep(t, node, first.RetryAfter)
			last := heal(t, n, true)
			for _, path := range []string{ofLiveVolume, since} {
				wantState(t, last, path, wholenode.Removed, "its volume is not among them")
			}
		})
	}
}

// TestHeal_ClockStep: a clock that is set by an hour, forward or back, neither shortens the time for which a target must
// be gone nor makes a link look as if it were from before the start of Windows.
func TestHeal_ClockStep(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, 14 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			since := staging("disk.csi", 9)
			node := restarted(t, 5*time.Minute)
			n := healer(t, node)
			prepare(t, node.RemoveAll(ofLiveVolume)) // no look has seen the volume
			heal(t, n, true)
			sleep(t, node, 5*time.Minute)
			prepare(t, node.MountFolder(since, liveVolume))
			node.StepClock(step)
			prepare(t, node.DetachDisk(liveDisk))
			for i, gone := range []string{"gone for 0s of 10m", "gone for 5m", "gone for 10m"} {
				result := heal(t, n, true)
				if i < 2 {
					wantState(t, result, since, wholenode.Kept, gone)
				} else {
					wantState(t, result, since, wholenode.Removed, "its volume is not among them")
				}
				node.StepClock(step)
				sleep(t, node, 5*time.Minute)
			}
		})
	}
	t.Run("before the looks", func(t *testing.T) { // a time service sets it, and the daemon starts again
		since := staging("disk.csi", 9)
		node := restarted(t, 5*time.Minute)
		prepare(t, node.MountFolder(since, liveVolume))
		sleep(t, node, 10*time.Minute)
		node.StepClock(time.Hour)
		n := healer(t, node)
		prepare(t, node.DetachDisk(liveDisk))
		wantState(t, heal(t, n, true), since, wholenode.Kept, "gone for 0s of 10m")
	})
}

// TestHeal_FirstLookIsLate: there was no look for two days, so what is gone now may have worked until a moment ago,
// also if it was gone at looks right after the start.
func TestHeal_FirstLookIsLate(t *testing.T) {
	for _, looks := range []int{0, 6} {
		node := restarted(t, time.Minute)
		n := newOn(t, node, wholenode.WorkingDirs(kubelet), wholenode.VolumeHost(node.Volume()))
		if looks > 0 {
			prepare(t, node.DetachDisk(liveDisk))
		}
		for range looks {
			heal(t, n, false)
			sleep(t, node, 10*time.Minute)
		}
		if looks > 0 {
			_, err := node.ReattachDisk(liveDisk)
			prepare(t, err)
		}
		sleep(t, node, 48*time.Hour)
		prepare(t, node.DetachDisk(liveDisk))
		sleep(t, node, 10*time.Second)
		wantState(t, heal(t, n, true), ofLiveVolume, wholenode.Kept, "gone for 0s of 10m")
	}
}

// TestHeal_NotOurs has links and folders that Heal must not touch.
func TestHeal_NotOurs(t *testing.T) {
	node := restarted(t, time.Hour)
	hash := fmt.Sprintf("%064x", 7)
	others := []string{
		csi + `disk.csi\` + hash + `\mount`,
		csi + `disk.csi\globalmount`,
		csi + `disk.csi\` + hash + `\deep\globalmount`,
		kubelet + `\pods\x\volumes\kubernetes.io~csi\x\mount`,
		kubelet + `\plugins\kubernetes.io\second\disk.csi\` + hash + `\globalmount`,
		`C:\second\plugins\kubernetes.io\csi\disk.csi\` + hash + `\globalmount`,
	}
	for _, path := range others {
		prepare(t, node.MountFolder(path, deadVolume))
	}
	for path, target := range map[string]string{
		staging("local", 1): `C:\nowhere`, staging("local", 2): `..\nowhere`, staging("local", 3): `\\?\Volume{dead0000-0000-0000-0000-000000000000}\dir`,
	} {
		prepare(t, node.Symlink(path, target))
		others = append(others, path)
	}
	for _, path := range []string{staging("dir", 1) + `\precious`, staging("dir", 2)} {
		prepare(t, node.WriteFile(path, "data"))
		others = append(others, path)
	}
	sleep(t, node, time.Hour)
	if done := heal(t, healer(t, node), true); len(done.Stale) != 3 {
		t.Errorf("found:\n%s", states(done))
	}
	for _, path := range others {
		if !node.Exists(path) {
			t.Errorf("%s was removed", path)
		}
	}
}

// TestHeal_Rotation: while the password of a share is changed under running pods, its mapping looks as
// lost as after a start. Its links stay, even those that are older than the start.
func TestHeal_Rotation(t *testing.T) {
	lose := func(t *testing.T, node *winsim.Node) {
		t.Helper()
		prepare(t, node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[0].Password = "new" }))
		node.EndSMBSessions()
	}
	for name, begin := range map[string]func(*testing.T, *winsim.Node) *wholenode.Node{
		"this process has mapped it": func(t *testing.T, node *winsim.Node) *wholenode.Node {
			t.Helper()
			return healer(t, node)
		},
		"this process has seen it work": func(t *testing.T, node *winsim.Node) *wholenode.Node {
			t.Helper()
			n := newOn(t, node, wholenode.BeganWithWindows, wholenode.WorkingDirs(kubelet))
			heal(t, n, false)
			return n
		},
		"this process began late": func(t *testing.T, node *winsim.Node) *wholenode.Node {
			t.Helper()
			return newOn(t, node, wholenode.WorkingDirs(kubelet))
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := restarted(t, 14*24*time.Hour)
			n := begin(t, node)
			lose(t, node)
			done := heal(t, n, true)
			if !node.Exists(ofLiveShare) || !strings.Contains(states(done), "kept "+strings.TrimPrefix(ofLiveShare, csi)) {
				t.Errorf("the link of a share in use is not kept:\n%s", states(done))
			}
		})
	}
}

// TestHeal_Directories: a kubelet directory that is a whole drive, or known by two names, is healed,
// and once.
func TestHeal_Directories(t *testing.T) {
	for name, dirs := range map[string][]string{
		"drive":         {`C:\`},
		"two spellings": {kubelet, strings.ToUpper(kubelet)},
		"link":          {`C:\linked`, kubelet},
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t, restartedModel())
			path := kubelet + `\plugins\kubernetes.io\csi\disk.csi\h\globalmount`
			if name == "drive" {
				path = `C:\plugins\kubernetes.io\csi\disk.csi\h\globalmount`
			}
			prepare(t, node.MountFolder(path, deadVolume))
			prepare(t, node.Symlink(`C:\linked`, kubelet))
			prepare(t, node.DetachDisk(deadDisk))
			sleep(t, node, time.Hour)
			n := newOn(t, node, wholenode.UnsafeWorkingDirs(dirs...), wholenode.VolumeHost(node.Volume()))
			sleep(t, node, heal(t, n, true).RetryAfter)
			done := heal(t, n, true)
			if len(done.Stale) != 1 || done.Stale[0].State != wholenode.Removed || node.Exists(path) {
				t.Errorf("found:\n%s", states(done))
			}
		})
	}
}

// TestHeal_Arrives brings a volume or share back before each call of Heal in turn. What lives when
// Heal ends must have its link, unless the link went before.
func TestHeal_Arrives(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		atOnce bool // it may come after the last look has begun
		arrive func(*winsim.Node)
	}{
		"a volume": {ofDeadVolume, true, func(n *winsim.Node) { _, _ = n.ReattachDisk(deadDisk) }},
		"a driver stages the volume again": {ofDeadVolume, false, func(n *winsim.Node) {
			_, _ = n.ReattachDisk(deadDisk)
			_ = n.RemoveAll(ofDeadVolume)
			_ = n.MountFolder(ofDeadVolume, deadVolume)
		}},
		"a driver replaces the link": {ofDeadShare, false, func(n *winsim.Node) {
			_ = n.RemoveAll(ofDeadShare)
			_ = n.Symlink(ofDeadShare, `\\gone\data\`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			listed := func(n *winsim.Node) int { return n.Calls()["DiskDevices"] + n.Calls()["VolumeIDs"] }
			looked := restarted(t, time.Hour)
			heal(t, healer(t, looked), false)
			try := sweep.OneIn(t, 4)
			for nth := 1; ; nth++ {
				if !try() {
					continue
				}
				node := restarted(t, time.Hour)
				existed, removing := false, false
				fault, err := node.Inject(winsim.Fault{Nth: nth, Times: 1, Do: func(n *winsim.Node) {
					existed, removing = n.Exists(c.path), listed(n) > listed(looked)
					c.arrive(n)
				}})
				if err != nil {
					t.Fatal(err)
				}
				result := heal(t, healer(t, node), true)
				if fault.Hits() == 0 {
					if nth == 1 {
						t.Error("no call was hit")
					}
					return
				}
				if existed && !node.Exists(c.path) && !(removing && c.atOnce) {
					t.Errorf("call %d: the link was removed after it came back:\n%s", nth, states(result))
				}
			}
		})
	}
}

// fingerprints are the files of the node without some paths, and the live disk.
func fingerprints(t *testing.T, node *winsim.Node, without ...string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(node.Tree(kubelet)) {
		if !slices.ContainsFunc(without, func(path string) bool { return strings.HasPrefix(line, path) }) {
			b.WriteString(line)
		}
	}
	disk, err := node.DiskFingerprint(liveDisk)
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + disk
}

// TestHeal_NotReady fails each kind of call for good, on nodes on which something is not ready. Then
// nothing at all may be removed.
func TestHeal_NotReady(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, node *winsim.Node){
		"the disk is back, but offline": func(t *testing.T, node *winsim.Node) {
			t.Helper()
			number, err := node.ReattachDisk(deadDisk)
			if err == nil {
				err = node.SetDiskAttributes(t.Context(), win.PhysicalDrive(number), win.DiskAttributes{Offline: true}, win.DiskAttributes{Offline: true})
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"Windows has not logged in yet": func(t *testing.T, node *winsim.Node) {
			t.Helper()
			prepare(t, node.SetISCSIPortalDown(portal, true))
			node.Reboot()
			mapShare(t, node, `\\files\data`, ofLiveShare)
			sleep(t, node, time.Hour)
		},
	} {
		for _, call := range []string{
			"DiskDevices", "DeviceNumber", "DeviceDescriptor", "DiskGeometry", "DiskAttributes", "DriveLayout", "VolumeIDs", "VolumeExtents", "FileSystem",
			"VolumeSpace", "VolumePaths", "SystemVolumes", "PersistentLogins", "Sessions", "DevicesForSession", "ServiceStatus", "ServiceConfig",
			"TargetInfo", "FileInfo", "SMBMappings", "Uptime", "ChangedAt", "ReparsePoint", "ListDirectory", "OpenDirectory", "RescanAdapter",
		} {
			for _, code := range []winerr.Code{winerr.FileNotFound, winerr.AccessDenied, winerr.NotReady, winerr.NotSupported, winerr.ServiceDoesNotExist} {
				t.Run(fmt.Sprintf("%s/%s fails with %d", name, call, code), func(t *testing.T) {
					model := restartedModel()
					model.ISCSI.Portals[0].Registered = true
					model.ISCSI.Logins = []winsim.ISCSILogin{{Target: model.ISCSI.Targets[0].IQN, Portal: portal}}
					node := restartedOf(t, model, time.Hour)
					prepare(t, node)
					before := fingerprints(t, node, ofDeadShare)
					inject(t, node, winsim.Fault{Call: call, Error: uint32(code)})
					_, _ = healer(t, node).Heal(t.Context(), wholenode.HealOptions{Remove: true})
					if after := fingerprints(t, node, ofDeadShare); after != before {
						t.Errorf("it changed the node from\n%s\nto\n%s", before, after)
					}
				})
			}
		}
	}
}

func TestHeal_WithoutWorkingDirs(t *testing.T) {
	_, err := newOn(t, newNode(t, winsim.Default())).Heal(t.Context(), wholenode.HealOptions{})
	if winerr.KindOf(err) != winerr.Invalid {
		t.Error(err)
	}
}

// TestHeal_Rescans: however often it is called, the adapters rescan once a minute.
func TestHeal_Rescans(t *testing.T) {
	node := restarted(t, time.Hour)
	n := healer(t, node)
	adapters, err := node.StorageAdapters(t.Context())
	prepare(t, err)
	node.ResetCalls()
	for i, want := range []int{1, 1, 1, 2} {
		heal(t, n, false)
		if got := node.Calls()["RescanAdapter"]; got != want*len(adapters) {
			t.Errorf("call %d: %d rescans of %d adapters", i, got, len(adapters))
		}
		if i == 2 {
			sleep(t, node, time.Minute)
		}
	}
}
