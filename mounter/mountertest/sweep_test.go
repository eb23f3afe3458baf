package mountertest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

var everyFault = flag.Bool("sweep", false, "try every fault at every call, which takes minutes")

// trouble is what befalls one call of Windows.
type trouble struct {
	name  string
	fault winsim.Fault
	// cancel ends the context of the verb.
	cancel bool
	// detach takes the disk away, see lose, until the verb has returned.
	detach bool
	// of are the calls that can have the trouble; nil means all.
	of []string
}

// troubles are what a driver can meet at any call. Disks are the calls that a disk answers.
var troubles = []trouble{
	{name: "ERROR_ACCESS_DENIED (5)", fault: winsim.Fault{Error: 5, Times: 1}},
	{name: "ERROR_NOT_READY (21)", fault: winsim.Fault{Error: 21, Times: 1}, of: disks},
	{name: "ERROR_SHARING_VIOLATION (32)", fault: winsim.Fault{Error: 32, Times: 1}},
	{name: "ERROR_DEVICE_NOT_CONNECTED (1167)", fault: winsim.Fault{Error: 1167, Times: 1}, of: disks},
	{name: "the disk is detached", detach: true},
	{name: "the caller leaves", cancel: true},
	{name: "ERROR_ACCESS_DENIED (5) from here on", fault: winsim.Fault{Error: 5}},
	{name: "ERROR_SHARING_VIOLATION (32) from here on", fault: winsim.Fault{Error: 32}},
}

var disks = []string{
	"CreateDisk", "DeviceDescriptor", "DeviceIdentifiers", "DeviceLocation", "DiskAttributes", "DiskGeometry", "DriveLayout", "ExtendVolume", "FileSystem",
	"FlushVolume", "Format", "GrowPartition", "NTFSVolumeData", "OnlineVolume", "ReadDevice", "RootEntries", "RootSecurity", "SCSIAddress",
	"SetDiskAttributes", "SetDriveLayout", "SetRootSecurity", "SetVolumeLabel", "UpdateDisk", "UpdateDriveSize", "VolumeExtents", "VolumeSpace",
}

// swept is a verb whose calls of Windows fail in turn.
type swept struct {
	// model is the node; nil means one with a volume that is mounted at the staging path.
	model   func() winsim.Model
	prepare func(k *kit) error
	// run calls the verb, and returns what it answers.
	run func(ctx context.Context, k *kit) (any, error)
	// undo are ways to call the verb that undoes it, with the source and with nothing but the path.
	undo []func(k *kit) error
	// back is what a driver does after its disk was away; nil if the verb is not about a disk.
	back func(k *kit) error
	// mappingMayStay means that the mapping of a share stays while it is unknown whether another link needs it.
	// A later removal takes it away.
	mappingMayStay bool
	// restart makes another Mounter for the retry, as a driver that was restarted has.
	restart bool
}

// sweptVolume is the volume of disk 1.
const sweptVolume = "5eed0000-0000-0000-0000-000000000001"

// blankNode has two blank disks and a share.
func blankNode() winsim.Model {
	model := winsim.Default()
	model.Disks = model.Disks[:3]
	model.ISCSI = winsim.ISCSI{}
	for _, path := range []string{staging, target} { // as the kubelet does
		model.Files = append(model.Files, winsim.File{Path: path[:strings.LastIndex(path, `\`)]})
	}
	return model
}

// offlineNode is blankNode after disks were attached to a machine that keeps them offline.
func offlineNode() winsim.Model {
	model := blankNode()
	model.Storage.SANPolicy = winsim.OfflineAll
	return model
}

// attachedNode has a volume with a file on disk 1.
func attachedNode() winsim.Model {
	model := blankNode()
	model.Disks[1].Layout = winsim.LayoutGPT
	model.Disks[1].Partitions = []winsim.Partition{{Type: "msr", Size: 16 * winsim.MiB}, {Volume: &winsim.Volume{ID: sweptVolume}}}
	return model
}

// stagedNode has the volume at the staging path.
func stagedNode() winsim.Model {
	model := attachedNode()
	model.Files = append(model.Files, winsim.File{Path: staging, Volume: sweptVolume}, winsim.File{Path: staging + `\precious`, Content: "data"})
	return model
}

// publishedNode has a pod that uses the volume.
func publishedNode() winsim.Model {
	model := stagedNode()
	model.Files = append(model.Files, winsim.File{Path: target, Symlink: staging})
	return model
}

func publishShare(k *kit) error {
	k.must(k.stageShare())
	k.must(k.node.WriteFile(staging+`\precious`, "data"))
	return k.Publish(k.ctx, staging, target)
}

func stageShare(k *kit) error { return k.stageShare() }

func restage(k *kit) error { return k.stage() }

func nothing(*kit) error { return nil }

func loseDisk(k *kit) error { return k.node.DetachDisk(1) }

// lose takes disk 1 away, or on targetNode all portals.
func lose(n *winsim.Node) error {
	if len(n.Describe().ISCSI.Targets) == 0 {
		return n.DetachDisk(1)
	}
	return errors.Join(n.SetISCSIPortalDown(portalA, true), n.SetISCSIPortalDown(portalB, true))
}

func (k *kit) regain() error {
	if len(k.node.Describe().ISCSI.Targets) == 0 {
		return second(k.node.ReattachDisk(1))
	}
	return errors.Join(k.node.SetISCSIPortalDown(portalA, false), k.node.SetISCSIPortalDown(portalB, false), k.node.Sleep(k.ctx, time.Second))
}

// growDisk grows the disk that is staged, if there is one.
func growDisk(k *kit) error {
	staged, err := k.StagedAt(k.ctx, staging)
	if err != nil {
		return nil //nolint:nilerr // it is a share
	}
	return k.node.GrowDisk(staged.DiskNumber, 20*winsim.GiB)
}

func stageReadOnly(k *kit) error {
	return k.stage(func(r *mounter.StageRequest) { r.ReadOnly = true })
}

func stageWith(change func(*mounter.StageRequest)) func(context.Context, *kit) (any, error) {
	return func(ctx context.Context, k *kit) (any, error) {
		request := mounter.StageRequest{Path: staging, Source: number(1)}
		if change != nil {
			change(&request)
		}
		staged, err := k.Stage(ctx, request)
		return staged.DiskNumber, err
	}
}

func stageShareWith(ctx context.Context, k *kit) (any, error) {
	_, err := k.Stage(ctx, mounter.StageRequest{Path: staging, Source: mounter.SMB{Remote: "//files/data/", Username: "csi", Password: "csi-Pa55"}})
	return nil, err
}

func unstageWith(request mounter.UnstageRequest) func(context.Context, *kit) (any, error) {
	request.Path = staging
	return func(ctx context.Context, k *kit) (any, error) { return nil, k.Unstage(ctx, request) }
}

func unstageShare(k *kit) error {
	return k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Source: mounter.SMB{Remote: `\\files\data`}})
}

func unstagePath(k *kit) error {
	return k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true})
}

// Ways to undo.
var (
	unstageAny      = []func(*kit) error{(*kit).unstage, unstagePath}
	unstageAnyShare = []func(*kit) error{unstageShare, unstagePath}
	unpublishIt     = []func(*kit) error{unpublish}
)

func publish(ctx context.Context, k *kit) (any, error) { return nil, k.Publish(ctx, staging, target) }

func unpublish(k *kit) error { return k.Unpublish(k.ctx, target) }

func stats(ctx context.Context, k *kit) (any, error) { return k.Stats(ctx, target) }

// list returns the mounts. What Windows does not report about one is left out, so only a wrong access is an error.
func list(ctx context.Context, k *kit) (any, error) {
	points, err := k.WithContext(ctx).List()
	var paths []string
	for _, p := range points {
		info, _ := k.node.DiskInfo(1)
		if p.Path == staging && info.ReadOnly && !slices.Contains(p.Opts, "ro") && len(p.Opts) > 0 {
			k.t.Errorf("a read-only mount has the options %q", p.Opts)
		}
		paths = append(paths, fmt.Sprintln(p.Device, p.Path))
	}
	return paths, err
}

func stageLUN(k *kit) error {
	_, err := k.stageLUN(staging, lun(3, portalA, portalB))
	return err
}

func publishLUN(k *kit) error { return errors.Join(stageLUN(k), k.Publish(k.ctx, staging, target)) }

func stageLUNWith(portals ...string) func(context.Context, *kit) (any, error) {
	return func(ctx context.Context, k *kit) (any, error) {
		staged, err := k.Stage(ctx, mounter.StageRequest{Path: staging, Source: lun(3, portals...)})
		return fmt.Sprintf("disk %d by %d paths", staged.DiskNumber, staged.Paths), err
	}
}

var unstageAnyLUN = []func(k *kit) error{
	func(k *kit) error {
		return k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Source: lun(3, portalA)})
	},
	func(k *kit) error { return k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}) },
}

var sweptVerbs = map[string]swept{
	"stage a blank disk by number": {model: blankNode, run: stageWith(nil), undo: unstageAny, back: nothing},
	"stage an offline disk by serial": {
		model: offlineNode, run: stageWith(func(r *mounter.StageRequest) { r.Source = mounter.Disk{Serial: "WINSIM0001"} }), undo: unstageAny, back: nothing,
	},
	"stage a disk with data by LUN": {
		model: attachedNode, run: stageWith(func(r *mounter.StageRequest) { r.Source = mounter.Disk{LUN: "0", Adapter: "1"} }), undo: unstageAny, back: nothing,
	},
	"stage again": {run: stageWith(nil), back: nothing},
	"stage read-only": {
		model: attachedNode, run: stageWith(func(r *mounter.StageRequest) { r.ReadOnly = true }), undo: unstageAny, back: nothing,
	},
	"stage writable again": {prepare: func(k *kit) error {
		k.must(stageReadOnly(k))
		return k.unstage()
	}, run: stageWith(nil), undo: unstageAny, back: nothing},
	"stage over the mount of a lost disk": {prepare: loseDisk, run: stageWith(func(r *mounter.StageRequest) { r.Source = number(2) })},
	"stage a share": {
		model: blankNode, prepare: func(k *kit) error { return k.node.Mkdir(staging) }, run: stageShareWith, undo: unstageAnyShare, mappingMayStay: true,
	},
	"stage a share after a restart": {model: blankNode, prepare: func(k *kit) error {
		defer k.node.Reboot()
		return k.stageShare()
	}, run: stageShareWith, undo: unstageAnyShare, mappingMayStay: true},

	"stage a LUN":                {model: targetNode, run: stageLUNWith(portalA), undo: unstageAnyLUN, back: nothing},
	"stage a LUN with two paths": {model: mpioNode, run: stageLUNWith(portalA, portalB), undo: unstageAnyLUN, back: nothing},
	"stage a LUN after a restart": {model: targetNode, prepare: func(k *kit) error {
		defer k.node.Reboot()
		return stageLUN(k)
	}, run: stageLUNWith(portalA), undo: unstageAnyLUN, back: nothing},
	"unstage a LUN":         {model: targetNode, prepare: stageLUN, run: unstageWith(mounter.UnstageRequest{Source: lun(3, portalA)}), back: nothing},
	"unstage what is a LUN": {model: mpioNode, prepare: stageLUN, run: unstageWith(mounter.UnstageRequest{}), back: nothing, restart: true},
	"unstage one of two LUNs": {model: targetNode, prepare: func(k *kit) error {
		_, err := k.stageLUN(staging2, lun(7, portalA))
		return errors.Join(err, stageLUN(k))
	}, run: unstageWith(mounter.UnstageRequest{Offline: true}), back: nothing, restart: true},

	"unstage":                          {run: unstageWith(mounter.UnstageRequest{Offline: true, Source: number(1)}), back: nothing},
	"unstage a path":                   {run: unstageWith(mounter.UnstageRequest{Offline: true}), back: restage, restart: true},
	"unstage, the disk stays":          {run: unstageWith(mounter.UnstageRequest{}), back: nothing},
	"unstage what is read-only":        {prepare: stageReadOnly, run: unstageWith(mounter.UnstageRequest{Source: number(1)}), back: nothing},
	"unstage a path that is read-only": {prepare: stageReadOnly, run: unstageWith(mounter.UnstageRequest{}), back: stageReadOnly, restart: true},
	"unstage, the disk is gone":        {prepare: loseDisk, run: unstageWith(mounter.UnstageRequest{Offline: true, Source: number(1)})},
	"unstage a path, the disk is gone": {prepare: loseDisk, run: unstageWith(mounter.UnstageRequest{Offline: true}), restart: true},
	"unstage a share":                  {model: blankNode, prepare: stageShare, run: unstageWith(mounter.UnstageRequest{Source: mounter.SMB{Remote: `\\files\data`}}), mappingMayStay: true},
	"unstage what is a share":          {model: blankNode, prepare: stageShare, run: unstageWith(mounter.UnstageRequest{}), mappingMayStay: true, restart: true},
	"unmount what is staged": {run: func(ctx context.Context, k *kit) (any, error) {
		return nil, k.WithContext(ctx).Unmount(staging)
	}, back: nothing, restart: true},
	"unmount a share": {model: blankNode, prepare: stageShare, run: func(ctx context.Context, k *kit) (any, error) {
		return nil, k.WithContext(ctx).Unmount(staging)
	}, mappingMayStay: true, restart: true},

	"publish":               {run: publish, undo: unpublishIt, back: restage},
	"publish over a folder": {prepare: func(k *kit) error { return k.node.Mkdir(target) }, run: publish, undo: unpublishIt, back: restage},
	"publish a share":       {model: blankNode, prepare: stageShare, run: publish, undo: unpublishIt},
	"publish a LUN":         {model: targetNode, prepare: stageLUN, run: publish, undo: unpublishIt, back: stageLUN},

	"list what is read-only": {prepare: stageReadOnly, run: list, back: stageReadOnly},
	"find disk": {model: blankNode, run: func(ctx context.Context, k *kit) (any, error) {
		return k.FindDisk(ctx, mounter.Disk{Serial: "WINSIM0001"})
	}, back: nothing},
}

// publishedVerbs are about a volume that a pod uses. They are swept with a volume of each source.
var publishedVerbs = map[string]func(ctx context.Context, k *kit) (any, error){
	"unpublish":        func(ctx context.Context, k *kit) (any, error) { return nil, k.Unpublish(ctx, target) },
	"unmount":          func(ctx context.Context, k *kit) (any, error) { return nil, k.WithContext(ctx).Unmount(target) },
	"expand":           func(ctx context.Context, k *kit) (any, error) { return k.Expand(ctx, target, int64(20*winsim.GiB)) },
	"needs resize":     func(ctx context.Context, k *kit) (any, error) { return k.NeedsResize(ctx, target) },
	"stats":            stats,
	"condition":        condition,
	"list":             list,
	"mount references": func(ctx context.Context, k *kit) (any, error) { return k.WithContext(ctx).GetMountRefs(target) },
	"staged at":        func(ctx context.Context, k *kit) (any, error) { return k.StagedAt(ctx, target) },
}

func init() {
	for source, v := range map[string]swept{
		"a disk":  {model: publishedNode, prepare: nothing, back: restage},
		"a share": {model: blankNode, prepare: publishShare},
		"a LUN":   {model: targetNode, prepare: publishLUN, back: stageLUN},
	} {
		for verb, run := range publishedVerbs {
			one := v
			if one.run = run; verb == "expand" || verb == "needs resize" {
				one.prepare = func(k *kit) error { return errors.Join(v.prepare(k), growDisk(k)) }
			}
			if verb != "staged at" || source != "a share" { // which has no disk
				sweptVerbs[verb+" "+source] = one
			}
		}
	}
}

// condition takes it for an error that the disk is gone or does not answer, or that not all is known.
func condition(ctx context.Context, k *kit) (any, error) {
	is, err := k.Condition(ctx, target)
	if err == nil && (is.Inaccessible || strings.Contains(is.Message, "not all is known")) {
		err = failure.Unavailable
	}
	return is, err
}

// prepared returns a node on which the verb can run.
func (v swept) prepared(t *testing.T, mode mounter.Mode) *kit {
	t.Helper()
	model := stagedNode
	if v.model != nil {
		model = v.model
	}
	node, err := winsim.New(model())
	must(t, err)
	option := mountertest.Library(node)
	if mode == mounter.Daemon {
		option = mountertest.NewDaemonWith(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"disk/v1", "volume/v1", "filesystem/v1", "smb/v1", "iscsi/v1alpha2", "system"}}}).Option()
	}
	k := &kit{t: t, ctx: t.Context(), node: node, option: option}
	k.restart()
	if v.prepare != nil {
		k.must(v.prepare(k))
	}
	return k
}

func (v swept) isLUN() bool { return v.model != nil && len(v.model().ISCSI.Targets) > 0 }

// restart makes another Mounter, as a driver does that was restarted.
func (k *kit) restart() {
	k.t.Helper()
	m, err := mounter.New(k.ctx, k.option)
	k.must(err)
	k.t.Cleanup(func() { _ = m.Close() })
	k.Mounter = m
}

// state is what Windows has, without the names that differ between nodes.
func (k *kit) state() string {
	var b strings.Builder
	b.WriteString(k.mounts())
	for _, d := range k.node.Describe().Disks {
		fmt.Fprintf(&b, "disk %d of %d: offline %t, read-only %t, %s\n", d.Number, d.Visible, d.Offline, d.ReadOnly, d.Layout)
		for _, p := range d.Partitions {
			fmt.Fprintf(&b, "  %s at %d of %d", p.Type, p.Offset, p.Size)
			if v := p.Volume; v != nil {
				fmt.Fprintf(&b, ", %s %q %d %s", v.FileSystem, v.Label, v.ClusterSize, v.RootAccess)
			}
			b.WriteString("\n")
		}
	}
	return guid.ReplaceAllString(b.String(), "GUID")
}

// mapped is how the state shows a mapping.
const mapped = "%s is mapped, disconnected %t\n"

// mounts is the part of the state that undo restores: a disk keeps its partition and file system.
func (k *kit) mounts() string {
	var b strings.Builder
	b.WriteString(k.node.Tree(`C:\var\lib\kubelet`))
	for _, s := range k.node.Describe().ISCSI.Sessions {
		fmt.Fprintf(&b, "session with %s through %s\n", s.Target, s.Portal)
	}
	for _, m := range k.node.Describe().SMBMappings {
		fmt.Fprintf(&b, mapped, m.Remote, m.Stale || m.Idle)
	}
	return guid.ReplaceAllString(b.String(), "GUID")
}

// diskState is whether the disk can be detached, and used by others.
func (k *kit) diskState() string {
	d, err := k.node.DiskInfo(1)
	return fmt.Sprintf("disk 1: offline %t, read-only %t, %v\n", d.Offline, d.ReadOnly, err)
}

// withoutMapping is a state as if the mapping of the share were gone.
func withoutMapping(state string) string {
	return strings.Replace(state, fmt.Sprintf(mapped, `\\files\data`, false), "", 1)
}

func answer(result any) string { return guid.ReplaceAllString(fmt.Sprint(result), "GUID") }

// callsOf runs a verb and returns the names of the calls that it makes, in order.
func (k *kit) callsOf(verb func() error) []string {
	k.t.Helper()
	var mu sync.Mutex // describing a node makes calls at once
	var names []string
	k.node.ResetCalls()
	before := map[string]int{}
	injection, err := k.node.Inject(winsim.Fault{Do: func(node *winsim.Node) {
		mu.Lock()
		defer mu.Unlock()
		for name, count := range node.Calls() {
			for range count - before[name] {
				names = append(names, name)
			}
			before[name] = count
		}
	}})
	k.must(err)
	k.must(verb())
	injection.Remove()
	return names
}

// TestSweep lets each call of Windows that a verb makes fail in turn. A verb that says that it is done
// must be done. Otherwise the error has a class, a retry completes the verb, and undoing it leaves
// nothing. No file on a volume is lost.
func TestSweep(t *testing.T) {
	for name, v := range sweptVerbs {
		for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				if mode == mounter.Daemon && runtime.GOOS == "windows" {
					t.Skip("pipes have the same names for all nodes, and a sweep has many")
				}
				t.Parallel()
				v.sweep(t, mode)
			})
		}
	}
}

func (v swept) sweep(t *testing.T, mode mounter.Mode) {
	t.Helper()
	k := v.prepared(t, mode)
	var want wanted
	calls := k.callsOf(func() error {
		result, err := v.run(k.ctx, k)
		want.answer = answer(result)
		return err
	})
	want.done = k.state()
	if len(v.undo) > 0 {
		k.must(v.undo[0](k))
		want.undone, want.released = k.mounts(), k.diskState()
	}
	// All verbs meet all kinds of trouble, but not each at every call. A server takes longer to start
	// than most verbs take.
	runs := map[mounter.Mode]int{mounter.Library: 30, mounter.Daemon: 6}[mode]
	if *everyFault {
		runs = len(calls) * len(troubles)
	}
	random := rand.New(rand.NewPCG(uint64(len(calls)), uint64(mode)))
	chosen := func() bool { return random.IntN(len(calls)*len(troubles)) < runs }
	seen := map[string]int{}
	for nth, call := range calls {
		seen[call]++
		for _, tr := range troubles {
			if !chosen() || tr.of != nil && !slices.Contains(tr.of, call) || tr.detach && v.back == nil {
				continue
			}
			if tr.fault.Nth = nth + 1; tr.fault.Times == 1 { // by name, because calls at once have no order
				tr.fault.Call, tr.fault.Nth = call, seen[call]
			}
			meet := v.meet
			if tr.detach && v.isLUN() { // where requests wait for the portals, in virtual time
				if mode == mounter.Daemon {
					continue
				}
				meet = func(t *testing.T, mode mounter.Mode, tr trouble, want wanted, undo func(*kit) error) {
					t.Helper()
					synctest.Test(t, func(t *testing.T) { v.meet(t, mode, tr, want, undo) })
				}
			}
			t.Run(fmt.Sprintf("call %d, %s: %s", nth+1, call, tr.name), func(t *testing.T) { meet(t, mode, tr, want, nil) })
			for i, undo := range v.undo {
				if *everyFault || random.IntN(1+len(v.undo)) == 0 {
					t.Run(fmt.Sprintf("call %d, %s: %s, undone %d", nth+1, call, tr.name, i), func(t *testing.T) {
						meet(t, mode, tr, want, undo)
					})
				}
			}
		}
	}
}

// unmapLater removes another volume of the share, after the time in which the links are not looked for again.
func (k *kit) unmapLater() {
	k.must(k.node.Sleep(k.ctx, time.Minute))
	k.must(unstageShare(k))
}

// wanted is what a verb does without trouble.
type wanted struct{ answer, done, undone, released string }

// meet runs the verb with trouble at one call, and then completes or undoes it.
func (v swept) meet(t *testing.T, mode mounter.Mode, tr trouble, want wanted, undo func(*kit) error) {
	t.Helper()
	k := v.prepared(t, mode)
	ctx, cancel := context.WithTimeout(k.ctx, 2*time.Minute) // the kubelet's
	defer cancel()
	fault := tr.fault
	var detached atomic.Bool
	switch {
	case tr.cancel:
		fault.Times, fault.Do = 1, func(*winsim.Node) { cancel() }
	case tr.detach:
		fault.Times, fault.Do = 1, func(n *winsim.Node) { detached.Store(lose(n) == nil) }
	}
	before := k.diskState()
	injection, err := k.node.Inject(fault)
	k.must(err)
	result, err := v.run(ctx, k)
	injection.Remove()
	class := failure.ClassOf(err)
	t.Logf("%v: %v", class, err)
	if detached.Load() { // a driver stages the disk again
		k.must(k.regain())
		k.must(v.back(k))
	} else if err == nil && (answer(result) != want.answer || k.state() != want.done) && !(v.mappingMayStay && withoutMapping(k.state()) == want.done) {
		t.Errorf("it says done, but answers %s, want %s, and the node has\n%swant\n%s", answer(result), want.answer, k.state(), want.done)
	}
	if class == failure.Internal {
		t.Errorf("%v has no class", err)
	}
	if undo != nil {
		undoErr := undo(k)
		if now := k.mounts(); v.mappingMayStay && now != want.undone && withoutMapping(now) == want.undone {
			k.unmapLater()
		}
		if undoErr != nil || k.mounts() != want.undone {
			t.Errorf("%v; undone, %v, the node has\n%swant\n%s", err, undoErr, k.mounts(), want.undone)
		}
		if now := k.diskState(); now != want.released && now != before { // which it has if the verb did not touch it
			t.Errorf("%v; undone, it is\n%swant\n%s", err, now, want.released)
		}
		return
	}
	if v.restart {
		k.restart()
	}
	result, again := v.run(k.ctx, k)
	if v.mappingMayStay && len(v.undo) == 0 {
		k.unmapLater()
	}
	if again != nil || answer(result) != want.answer || k.state() != want.done {
		t.Errorf("%v; the retry says %v, answers %s, want %s, and the node has\n%swant\n%s", err, again, answer(result), want.answer, k.state(), want.done)
	}
}
