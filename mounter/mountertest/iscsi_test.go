package mountertest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	iqn      = "iqn.2025-01.com.example:storage"
	portalA  = "10.0.0.10"
	portalB  = "10.0.0.11:3260"
	staging2 = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\test\2\globalmount`
)

// targetNode has a target at two portals, which Windows does not know. Its disks are LUN 3 and 7.
func targetNode() winsim.Model {
	model := blankNode()
	model.ISCSI = winsim.ISCSI{
		PnPDelay: 200 * time.Millisecond,
		Portals:  []winsim.ISCSIPortal{{Address: "10.0.0.10"}, {Address: "10.0.0.11"}},
		Targets: []winsim.ISCSITarget{{IQN: iqn, LUNs: []winsim.Disk{
			{Size: 5 * winsim.GiB, SCSI: &winsim.SCSI{LUN: 3}, Serial: "LUN-3"}, {Size: 6 * winsim.GiB, SCSI: &winsim.SCSI{LUN: 7}, Serial: "LUN-7"},
		}}},
	}
	return model
}

func mpioNode() winsim.Model {
	model := targetNode()
	model.ISCSI.MPIO = true
	return model
}

func lun(n uint16, portals ...string) mounter.ISCSI {
	return mounter.ISCSI{Portals: portals, Target: iqn, LUN: n}
}

func (k *kit) stageLUN(path string, source mounter.ISCSI) (mounter.Staged, error) {
	return k.Stage(k.ctx, mounter.StageRequest{Path: path, Source: source})
}

// sessions are the sessions of a node, with their portals.
func (k *kit) sessions() string {
	var text []string
	for _, s := range k.node.Describe().ISCSI.Sessions {
		state := ""
		if s.Dropped {
			state = " without a connection"
		}
		text = append(text, s.Portal+state)
	}
	slices.Sort(text)
	return strings.Join(text, ", ")
}

func (k *kit) wantSessions(what, want string) {
	k.t.Helper()
	if got := k.sessions(); got != want {
		k.t.Errorf("%s: the sessions are %q, want %q", what, got, want)
	}
}

func (k *kit) wantClass(what string, err error, want failure.Class, words ...string) {
	k.t.Helper()
	for _, word := range append(words, "") {
		if failure.ClassOf(err) != want || !strings.Contains(fmt.Sprint(err), word) {
			k.t.Errorf("%s: %v, want class %v and %q", what, err, want, word)
		}
	}
}

// eachMode runs a test in both modes.
func eachMode(t *testing.T, model func() winsim.Model, test func(k *kit)) {
	t.Helper()
	for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
		t.Run(mode.String(), func(t *testing.T) { test(newKit(t, mode, model())) })
	}
}

// TestISCSI: disks are found by their LUN, and the session ends with the last of them.
func TestISCSI(t *testing.T) {
	eachMode(t, targetNode, func(k *kit) {
		for path, source := range map[string]mounter.ISCSI{staging: lun(3, portalA), staging2: lun(7, portalB)} {
			staged, err := k.stageLUN(path, source)
			k.must(err)
			info, err := k.node.DiskInfo(staged.DiskNumber)
			if want := fmt.Sprint("LUN-", source.LUN); err != nil || info.Serial != want || staged.Paths != 1 {
				t.Errorf("%+v has serial number %q, %v, want %q", staged, info.Serial, err, want)
			}
			k.must(k.node.WriteFile(path+`\precious`, info.Serial))
		}
		k.must(k.Publish(k.ctx, staging, target))
		k.wantClass("unstage before unpublish", k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}), failure.InUse, "published")
		k.must(k.Unpublish(k.ctx, target))
		for range 2 {
			k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
			if got, err := k.node.ReadFile(staging2 + `\precious`); got != "LUN-7" || err != nil || strings.Contains(k.sessions(), ",") || k.sessions() == "" {
				t.Errorf("the other volume has %q, %v, and the sessions are %q", got, err, k.sessions())
			}
		}
		for range 2 {
			k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging2}))
			k.wantSessions("after the last volume", "")
		}
		_, err := k.stageLUN(staging, lun(3, portalA))
		k.must(err)
		if got, err := k.node.ReadFile(staging + `\precious`); got != "LUN-3" || err != nil {
			t.Errorf("staged again, it has %q, %v", got, err)
		}
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Source: lun(3, portalA)}))
		k.wantSessions("with the source", "")
	})
}

// TestISCSI_Refuses: requests that are wrong, and targets that are not there.
func TestISCSI_Refuses(t *testing.T) {
	eachMode(t, targetNode, func(k *kit) {
		for name, c := range map[string]struct {
			source mounter.ISCSI
			class  failure.Class
			word   string
		}{
			"no target":                {mounter.ISCSI{Portals: []string{portalA}}, failure.Invalid, "Target"},
			"no portal":                {mounter.ISCSI{Target: iqn}, failure.Invalid, "Portals"},
			"a wrong portal":           {lun(3, "10.0.0.10:x"), failure.Invalid, "10.0.0.10:x"},
			"a wrong address":          {lun(3, "10.0.0.256"), failure.Invalid, "10.0.0.256"},
			"a wrong name":             {mounter.ISCSI{Portals: []string{portalA}, Target: "storage"}, failure.Invalid, "storage"},
			"a LUN that is too big":    {lun(256, portalA), failure.Invalid, "256"},
			"CHAP without a secret":    {mounter.ISCSI{Portals: []string{portalA}, Target: iqn, CHAP: mounter.CHAP{Username: "me"}}, failure.Invalid, "Secret"},
			"a short secret":           {mounter.ISCSI{Portals: []string{portalA}, Target: iqn, CHAP: mounter.CHAP{Secret: "short"}}, failure.Invalid, "5 bytes"},
			"an unknown target":        {mounter.ISCSI{Portals: []string{portalA}, Target: iqn + "x"}, failure.NotFound, "which initiators it admits"},
			"no such portal":           {lun(3, "10.0.0.99"), failure.Unavailable, "10.0.0.99"},
			"no such portals":          {lun(3, "10.0.0.98", "10.0.0.99"), failure.Unavailable, "no portal leads to it"},
			"LUN 0, the index of 3":    {lun(0, portalA), failure.NotFound, `LUN "0"`},
			"MPIO where there is none": {mounter.ISCSI{Portals: []string{portalA}, Target: iqn, LUN: 3, RequireMPIO: true}, failure.InUse, "MPIO"},
		} {
			_, err := k.stageLUN(staging, c.source)
			k.wantClass(name, err, c.class, c.word)
			if c.class == failure.Unavailable { // the kubelet asks again, or unstages
				k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
			}
			k.wantSessions(name, "")
			if text := k.node.Tree(records); strings.Contains(text, ".json") {
				k.t.Errorf("%s: a record stays: %s", name, text)
			}
		}
		k.must(k.node.Mkdir(staging), k.node.WriteFile(staging+`\mine`, "data"))
		_, err := k.stageLUN(staging, lun(3, portalA))
		k.wantClass("a folder with content", err, failure.InUse, "not empty")
		k.wantSessions("a folder with content", "")
		_, err = k.Stage(k.ctx, mounter.StageRequest{Path: staging2, Source: lun(3, portalA), FSType: "ufs"})
		k.wantClass("another file system", err, failure.Invalid, "ufs")
		k.must(k.node.SetServiceState("MSiSCSI", winsim.ServiceStopped))
		_, err = k.stageLUN(staging2, lun(3, portalA))
		k.wantClass("without the service", err, failure.InUse, "MSiSCSI")
	})
}

// TestISCSI_Foreign: a disk that is not ours keeps its data, and the session does not stay.
func TestISCSI_Foreign(t *testing.T) {
	eachMode(t, func() winsim.Model {
		model := targetNode()
		model.ISCSI.Targets[0].LUNs[0].Bytes = []winsim.Bytes{{Offset: 4096, Text: "foreign"}}
		return model
	}, func(k *kit) {
		_, err := k.stageLUN(staging, lun(3, portalA))
		k.wantClass("foreign data", err, failure.InUse)
		k.wantSessions("foreign data", "")
	})
}

// secretNode is targetNode whose target wants mutual CHAP.
func secretNode() winsim.Model {
	model := targetNode()
	model.ISCSI.Targets[0].CHAP = &winsim.CHAP{User: "me", Secret: "secret-of-me-12", MutualSecret: "secret-of-it-12"}
	return model
}

// TestISCSI_Secrets: credentials count at a login. A session that lost its connection, and whose target has another
// secret now, is renewed unless a disk of the target is mounted.
func TestISCSI_Secrets(t *testing.T) {
	inBubbles(t, secretNode, func(k *kit) {
		var logged strings.Builder
		var mu sync.Mutex
		k.ctx = klog.NewContext(k.ctx, funcr.New(func(prefix, args string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(&logged, prefix, args)
		}, funcr.Options{Verbosity: 10}))
		stage := func(path string, n uint16, secret, mutual string) error {
			source := lun(n, portalA)
			source.CHAP = mounter.CHAP{Username: "me", Secret: secret, MutualSecret: mutual}
			_, err := k.stageLUN(path, source)
			if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), mutual)) {
				k.t.Errorf("the error has a secret: %v", err)
			}
			return err
		}
		const mine, its, other = "secret-of-me-12", "secret-of-it-12", "another-secret1"
		k.wantClass("a wrong secret", stage(staging, 3, other, its), failure.Denied)
		k.wantClass("a wrong mutual secret", stage(staging, 3, mine, other), failure.Denied)
		k.must(stage(staging, 3, mine, its))
		k.must(k.unstage())
		_, err := k.stageLUN(staging, lun(3, portalA))
		k.wantClass("no secret", err, failure.Denied)

		k.must(stage(staging, 3, mine, its), k.node.SetISCSICHAP(iqn, &winsim.CHAP{User: "me", Secret: other, MutualSecret: its}))
		k.must(stage(staging2, 7, mine, its)) // the session has a connection
		k.must(k.node.SetISCSIPortalDown(portalA, true), k.node.SetISCSIPortalDown(portalA, false))
		k.wantSessions("with the old secret", "10.0.0.10:3260 without a connection")
		k.wantClass("while disks are mounted", stage(staging2, 7, other, its), failure.Unavailable, "lost its connection", "is mounted at")
		k.must(k.node.Sleep(k.ctx, 2*time.Minute)) // Windows removes the disks
		k.must(stage(staging2, 7, other, its))
		k.wantSessions("renewed", "10.0.0.10:3260")
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}), k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging2}))
		k.wantSessions("unstaged", "")
		k.wantClass("the old secret", stage(staging, 3, mine, its), failure.Denied)
		for _, secret := range []string{mine, its, other} {
			if strings.Contains(logged.String(), secret) {
				t.Errorf("the log has a secret:\n%s", logged.String())
			}
		}
		if logged.Len() == 0 {
			t.Error("nothing was logged")
		}
	})
}

// TestISCSI_Restart: after a restart of Windows, volumes are staged again with what they have. A session that Windows makes
// by itself is used, and stays.
func TestISCSI_Restart(t *testing.T) {
	for _, persistent := range []bool{false, true} {
		model := func() winsim.Model {
			m := targetNode()
			if persistent {
				m.ISCSI.Logins = []winsim.ISCSILogin{{Target: iqn, Portal: portalA}}
			}
			return m
		}
		eachMode(t, model, func(k *kit) {
			_, err := k.stageLUN(staging, lun(3, portalA))
			k.must(err)
			k.must(k.node.WriteFile(staging+`\precious`, "data"))
			k.node.Reboot()
			k = k.again() // the driver restarts, too
			_, err = k.stageLUN(staging, lun(3, portalA))
			k.must(err)
			if got, err := k.node.ReadFile(staging + `\precious`); got != "data" || err != nil {
				t.Errorf("it has %q, %v", got, err)
			}
			k.node.Reboot()
			k = k.again()
			k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
			want := ""
			if persistent {
				want = "10.0.0.10:3260"
			}
			k.wantSessions("unstaged", want)
			if got := len(k.node.Describe().ISCSI.Logins); got == 0 == persistent {
				t.Errorf("there are %d persistent logins", got)
			}
		})
	}
}

// TestISCSI_Paths: with MPIO each portal is a path. Without it there is one, through the first portal that answers.
func TestISCSI_Paths(t *testing.T) {
	const both = "10.0.0.10:3260, 10.0.0.11:3260"
	inBubbles(t, mpioNode, func(k *kit) {
		source := lun(3, portalA, portalB)
		source.RequireMPIO = true
		stage := func(what string, paths int, sessions string) {
			k.t.Helper()
			staged, err := k.stageLUN(staging, source)
			if err != nil || staged.Paths != paths {
				k.t.Errorf("%s: %d paths, %v, want %d", what, staged.Paths, err, paths)
			}
			k.wantSessions(what, sessions)
		}
		k.must(k.node.SetISCSIPortalDown(portalA, true))
		stage("one portal is down", 1, "10.0.0.11:3260")
		k.must(k.node.SetISCSIPortalDown(portalA, false))
		stage("it is back", 2, both)
		stage("again", 2, both)
		k.must(k.node.SetISCSIPortalDown(portalB, true), k.node.WriteFile(staging+`\file`, "data"))
		stage("the other one is down", 1, "10.0.0.10:3260, 10.0.0.11:3260 without a connection")
		k.must(k.node.SetISCSIPortalDown(portalA, true))
		_, err := k.stageLUN(staging, source)
		k.wantClass("both are down", err, failure.Unavailable, "lost its connection")
		k.must(k.node.SetISCSIPortalDown(portalA, false), k.node.SetISCSIPortalDown(portalB, false), k.node.Sleep(k.ctx, time.Second))
		stage("both are back", 2, both)
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
		k.wantSessions("unstaged", "")
	})
	inBubbles(t, targetNode, func(k *kit) {
		k.must(k.node.SetISCSIPortalDown(portalA, true))
		staged, err := k.stageLUN(staging, lun(3, portalA, portalB))
		if err != nil || staged.Paths != 1 {
			t.Errorf("%d paths, %v", staged.Paths, err)
		}
		k.must(k.node.SetISCSIPortalDown(portalA, false))
		_, err = k.stageLUN(staging2, lun(7, portalA, portalB))
		k.must(err)
		k.wantSessions("without MPIO", "10.0.0.11:3260")
	})
}

// TestISCSI_PathHangs: the login through a portal that hangs keeps no disk that has a path.
func TestISCSI_PathHangs(t *testing.T) {
	inBubbles(t, mpioNode, func(k *kit) {
		fault, err := k.node.Inject(winsim.Fault{Call: "Login", Delay: time.Hour, Nth: 3})
		k.must(err)
		defer fault.Remove()
		ctx, cancel := context.WithTimeout(k.ctx, time.Minute)
		defer cancel()
		staged, err := k.Stage(ctx, mounter.StageRequest{Path: staging, Source: lun(3, portalA, portalB)})
		if err != nil || staged.Paths != 1 {
			k.t.Errorf("%d paths, %v", staged.Paths, err)
		}
	})
}

// TestISCSI_RenewedAtOnce: of two volumes whose target has lost its connection, one renews the session for both.
func TestISCSI_RenewedAtOnce(t *testing.T) {
	eachMode(t, targetNode, func(k *kit) {
		stage := func(path string, n uint16) error {
			source := lun(n, portalA)
			source.CHAP = mounter.CHAP{Username: "me", Secret: "another-secret1"}
			return second(k.stageLUN(path, source))
		}
		k.must(second(k.stageLUN(staging, lun(3, portalA))), k.node.SetISCSICHAP(iqn, &winsim.CHAP{User: "me", Secret: "another-secret1"}), k.node.RemoveAll(staging),
			k.node.SetISCSIPortalDown(portalA, true), k.node.Sleep(k.ctx, 2*time.Minute), k.node.SetISCSIPortalDown(portalA, false))
		_, err := k.node.Inject(winsim.Fault{Call: "Sessions", Delay: 20 * time.Millisecond}) // so that both see the old one
		k.must(err)
		before := k.node.Calls()["Logout"]
		var errs [2]error
		var all sync.WaitGroup
		all.Go(func() { errs[0] = stage(staging, 3) })
		all.Go(func() { errs[1] = stage(staging2, 7) })
		all.Wait()
		k.must(errs[:]...)
		if n := k.node.Calls()["Logout"] - before; n != 1 {
			k.t.Errorf("%d logouts", n)
		}
	})
}

// TestISCSI_Lost: a volume whose target is away can be unstaged, and its session goes.
func TestISCSI_Lost(t *testing.T) {
	eachMode(t, targetNode, func(k *kit) {
		_, err := k.stageLUN(staging, lun(3, portalA))
		k.must(err, k.node.SetISCSIPortalDown(portalA, true), k.node.Sleep(k.ctx, 2*time.Minute)) // Windows removes the disks
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
		k.wantSessions("unstaged", "")
		if exists, err := k.Exists(k.ctx, staging); exists || err != nil {
			t.Errorf("the path exists: %t, %v", exists, err)
		}
	})
}

// TestISCSI_LateLogin: a login that Stage has left brings no session after Unstage has said OK.
func TestISCSI_LateLogin(t *testing.T) {
	eachMode(t, targetNode, func(k *kit) {
		ctx, leave := context.WithCancel(k.ctx)
		slow, err := k.node.Inject(winsim.Fault{Call: "Login", Delay: time.Hour, Times: 1, Do: func(*winsim.Node) { leave() }})
		k.must(err)
		if _, err := k.Stage(ctx, mounter.StageRequest{Path: staging, Source: lun(3, portalA)}); ctx.Err() == nil || err == nil {
			k.t.Fatalf("the login does not hang: %v", err)
		}
		ctx, leave = context.WithTimeout(k.ctx, 100*time.Millisecond)
		defer leave()
		if k.Unstage(ctx, mounter.UnstageRequest{Path: staging}) == nil {
			k.t.Error("the volume is unstaged while the login may come")
		}
		slow.Remove()
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
		k.wantSessions("unstaged", "")
	})
}

// TestISCSI_BadNeighbour: a disk of the same target that fails or hangs does not hinder another, and keeps the session.
func TestISCSI_BadNeighbour(t *testing.T) {
	for name, break1 := range map[string]func(*winsim.Node, uint32) error{"fails": (*winsim.Node).FailDisk, "hangs": (*winsim.Node).HangDisk} {
		t.Run(name, func(t *testing.T) {
			inBubbles(t, targetNode, func(k *kit) {
				bad, err := k.stageLUN(staging2, lun(7, portalA))
				k.must(err, break1(k.node, bad.DiskNumber))
				begin := time.Now()
				_, err = k.stageLUN(staging, lun(3, portalA))
				k.must(err, k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
				if took := time.Since(begin); took > 4*time.Second {
					k.t.Errorf("it took %v", took)
				}
				k.wantSessions(name, "10.0.0.10:3260")
			})
		})
	}
}

// unstageBesideSilent unstages a volume while a disk of its target does not say whether it is mounted. The session stays.
func (k *kit) unstageBesideSilent() {
	k.t.Helper()
	silent, err := k.stageLUN(staging2, lun(7, portalA))
	k.must(err, second(k.stageLUN(staging, lun(3, portalA))), k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging2}))
	fault, err := k.node.Inject(winsim.Fault{Call: "DeviceNumber", Object: strings.TrimSuffix(silent.VolumeID, `\`), Delay: time.Hour})
	k.must(err, k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
	k.wantSessions("while a disk is silent", "10.0.0.10:3260")
	fault.Remove()
}

// TestISCSI_SilentNeighbour: a session that stays because a disk is silent, though no volume is left, ends when the disk answers. One
// whose disk is used stays.
func TestISCSI_SilentNeighbour(t *testing.T) {
	for _, used := range []bool{false, true} {
		inBubbles(t, targetNode, func(k *kit) {
			k.unstageBesideSilent()
			if used {
				k.must(second(k.stageLUN(staging, lun(3, portalA))))
			}
			time.Sleep(3 * time.Minute) // of the clock of synctest
			k.wantSessions("later", map[bool]string{true: "10.0.0.10:3260"}[used])
		})
	}
}

// TestISCSI_SlowNeighbour: the attempt to log out later does not take a disk away that is being staged as a Disk.
func TestISCSI_SlowNeighbour(t *testing.T) {
	inBubbles(t, targetNode, func(k *kit) {
		k.unstageBesideSilent()
		slow, err := k.node.Inject(winsim.Fault{Call: "SetMountPoint", Delay: 90 * time.Second})
		k.must(err)
		k.must(second(k.Stage(k.ctx, mounter.StageRequest{Path: staging, Source: mounter.Disk{Adapter: iqn, LUN: "3"}})))
		slow.Remove()
		k.wantSessions("staged", "10.0.0.10:3260")
		k.must(k.node.WriteFile(staging+`\file`, "text"))
	})
}

// TestISCSI_StageAgain: a pod keeps its volume while Stage fails for it.
func TestISCSI_StageAgain(t *testing.T) {
	eachMode(t, targetNode, func(k *kit) {
		request := mounter.StageRequest{Path: staging, Source: lun(3, portalA)}
		k.must(second(k.Stage(k.ctx, request)), k.Publish(k.ctx, staging, target), k.node.WriteFile(target+`\file`, "text"))
		readOnly := request
		readOnly.ReadOnly = true
		k.wantClass("read-only under a pod", second(k.Stage(k.ctx, readOnly)), failure.InUse, "published")
		locked, err := k.node.Inject(winsim.Fault{Call: "FileSystem", Error: 0x80310000}) // FVE_E_LOCKED_VOLUME
		k.must(err)
		k.wantClass("a locked volume", second(k.Stage(k.ctx, request)), failure.InUse)
		locked.Remove()
		k.wantSessions("after both", "10.0.0.10:3260")
		if got, err := k.node.ReadFile(target + `\file`); got != "text" || err != nil {
			k.t.Errorf("the pod reads %q, %v", got, err)
		}
		k.must(second(k.Stage(k.ctx, request)))
	})
}

// TestISCSI_Open: while a program has a file open, Unstage fails and changes nothing that a repetition needs.
func TestISCSI_Open(t *testing.T) {
	eachMode(t, targetNode, func(k *kit) {
		_, err := k.stageLUN(staging, lun(3, portalA))
		k.must(err)
		release, err := k.node.Hold(iqn)
		k.must(err)
		k.wantClass("while a disk is open", k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}), failure.Busy)
		k.wantSessions("while a disk is open", "10.0.0.10:3260")
		release()
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
		k.wantSessions("unstaged", "")
		if exists, err := k.Exists(k.ctx, staging); exists || err != nil {
			t.Errorf("the path exists: %t, %v", exists, err)
		}
	})
}

// TestISCSI_AtOnce: a volume that is unstaged does not take the session of one that is staged at the same time.
func TestISCSI_AtOnce(t *testing.T) {
	eachMode(t, targetNode, func(k *kit) {
		_, err := k.stageLUN(staging, lun(3, portalA))
		k.must(err)
		for range 10 {
			var wg sync.WaitGroup
			var stageErr, unstageErr error
			wg.Go(func() { _, stageErr = k.stageLUN(staging2, lun(7, portalA)) })
			wg.Go(func() { unstageErr = k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}) })
			wg.Wait()
			k.must(stageErr, unstageErr, k.node.WriteFile(staging2+`\file`, "data"))
			wg.Go(func() { _, stageErr = k.stageLUN(staging, lun(3, portalA)) })
			wg.Go(func() { unstageErr = k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging2}) })
			wg.Wait()
			k.must(stageErr, unstageErr, k.node.WriteFile(staging+`\file`, "data"))
		}
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
		k.wantSessions("at the end", "")
	})
}

// TestISCSI_OthersStay: a volume that is staged and unstaged beside others of its target leaves them as they are, whether mounted,
// online or offline, and its own disk is taken offline only if the caller asks for that.
func TestISCSI_OthersStay(t *testing.T) {
	for _, offline := range []bool{false, true} {
		eachMode(t, func() winsim.Model {
			model := targetNode()
			for n := range uint8(3) {
				model.ISCSI.Targets[0].LUNs = append(model.ISCSI.Targets[0].LUNs, winsim.Disk{Size: winsim.GiB, SCSI: &winsim.SCSI{LUN: n}, Offline: n > 0, ReadOnly: n == 2})
			}
			return model
		}, func(k *kit) {
			k.must(second(k.stageLUN(staging2, lun(7, portalA))))
			disks := func() (own winsim.Disk, others string) {
				for number := range uint32(8) {
					if info, err := k.node.DiskInfo(number); err == nil && info.SCSI != nil && info.SCSI.LUN == 3 {
						own = info
					} else if err == nil {
						others += fmt.Sprintf("%d: %+v, offline %t, read-only %t, %s\n", number, info.SCSI, info.Offline, info.ReadOnly, info.Layout)
					}
				}
				return own, others
			}
			_, before := disks()
			for range 2 {
				k.must(second(k.stageLUN(staging, lun(3, portalA))))
				if own, others := disks(); own.Offline || others != before {
					k.t.Errorf("staged, its disk is offline %t, and the others were\n%s\nand are\n%s", own.Offline, before, others)
				}
				k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: offline}), k.node.WriteFile(staging2+`\file`, "text"))
				if own, others := disks(); own.Offline != offline || others != before {
					k.t.Errorf("unstaged, its disk is offline %t, and the others were\n%s\nand are\n%s", own.Offline, before, others)
				}
			}
		})
	}
}

// TestISCSI_Drain: the volumes of a target that are unstaged at the same time end its session, whichever is the last.
func TestISCSI_Drain(t *testing.T) {
	for _, offline := range []bool{false, true} {
		eachMode(t, func() winsim.Model {
			model := targetNode()
			model.ISCSI.Targets[0].LUNs = slices.Repeat([]winsim.Disk{{Size: winsim.GiB}}, 8)
			return model
		}, func(k *kit) {
			each := func(n int, do func(path string, n uint16) error) {
				var wg sync.WaitGroup
				errs := make([]error, n)
				for i := range errs {
					wg.Go(func() { errs[i] = do(fmt.Sprint(staging2, i), uint16(i)) })
				}
				wg.Wait()
				k.must(errs...)
			}
			for _, n := range []int{2, 8, 3, 8} {
				each(n, func(path string, n uint16) error { return second(k.stageLUN(path, lun(n, portalA))) })
				each(n, func(path string, _ uint16) error {
					return k.Unstage(k.ctx, mounter.UnstageRequest{Path: path, Offline: offline})
				})
				k.wantSessions(fmt.Sprintf("after %d volumes, offline %t", n, offline), "")
			}
		})
	}
}

// TestISCSI_MutualSecrets: targets with different secrets can be staged at the same time.
func TestISCSI_MutualSecrets(t *testing.T) {
	eachMode(t, func() winsim.Model {
		model := targetNode()
		model.ISCSI.Targets = nil
		for i := range 6 {
			model.ISCSI.Targets = append(model.ISCSI.Targets, winsim.ISCSITarget{
				IQN:  fmt.Sprint(iqn, i),
				CHAP: &winsim.CHAP{User: "me", Secret: "secret-of-me-12", MutualSecret: fmt.Sprint("secret-of-it-1", i%3)},
				LUNs: []winsim.Disk{{Size: winsim.GiB}},
			})
		}
		return model
	}, func(k *kit) {
		var wg sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = k.stageLUN(fmt.Sprint(staging2, i), mounter.ISCSI{
					Portals: []string{portalA}, Target: fmt.Sprint(iqn, i), CHAP: mounter.CHAP{Username: "me", Secret: "secret-of-me-12", MutualSecret: fmt.Sprint("secret-of-it-1", i%3)},
				})
			})
		}
		wg.Wait()
		k.must(errs...)
	})
}

// The kubelet repeats an Unstage that has ended, while another volume of the target logs in.
func TestISCSI_RepeatedUnstage(t *testing.T) {
	inBubbles(t, targetNode, func(k *kit) {
		_, err := k.stageLUN(staging, lun(3, portalA))
		k.must(err)
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Source: lun(3, portalA)}))
		begun, done := make(chan struct{}), make(chan error)
		_, err = k.node.Inject(winsim.Fault{Call: "Login", Delay: time.Second, Times: 1, Do: func(*winsim.Node) { close(begun) }})
		k.must(err)
		go func() { _, err := k.stageLUN(staging2, lun(7, portalA)); done <- err }()
		<-begun
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Source: lun(3, portalA)}))
		k.must(<-done)
		if k.sessions() == "" {
			k.t.Error("the repetition has logged out of the target of another volume")
		}
	})
}
