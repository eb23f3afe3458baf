package mountertest_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	others   = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\test\2\globalmount`
	foreign  = `5eed0000-0000-0000-0000-0000000000ff`
	ownKey   = "WINSIM0001"
	otherKey = "OTHER"
)

// otherDisk is the disk that gets the number of the one that has left: blank, or mounted at another pod's path.
func otherDisk(blank bool) winsim.Disk {
	d := winsim.Disk{Size: 10 * winsim.GiB, Serial: otherKey}
	if !blank {
		d.Layout = winsim.LayoutGPT
		d.Partitions = []winsim.Partition{{Type: "msr", Size: 16 * winsim.MiB}, {Volume: &winsim.Volume{ID: foreign, Files: []winsim.File{{Path: `\precious`, Content: "secret"}}}}}
	}
	return d
}

// exchange lets a disk leave, and another one get its number.
func (k *kit) exchange(number uint32, other winsim.Disk) (unchanged func(when string)) {
	k.t.Helper()
	_ = k.node.DetachDisk(number) // a LUN comes with a login
	got, err := k.node.AttachDisk(other)
	k.must(err)
	if got != number {
		k.t.Fatalf("the other disk is %d", got)
	}
	if len(other.Partitions) > 0 {
		k.must(k.node.MountFolder(others, foreign))
	}
	state := func() string {
		for _, d := range k.node.Describe().Disks {
			if d.Serial == otherKey {
				content, err := k.node.DiskFingerprint(d.Number)
				return fmt.Sprintf("offline %t, read-only %t, %s %v", d.Offline, d.ReadOnly, content, err)
			}
		}
		return "gone"
	}
	before := state()
	return func(when string) {
		k.t.Helper()
		if now := state(); now != before {
			k.t.Errorf("%s: the other disk was %s, and is %s", when, before, now)
		}
		if text, err := k.node.ReadFile(staging + `\precious`); err == nil && text != "data" {
			k.t.Errorf("%s: the pod reads %q", when, text)
		}
	}
}

// TestExchange lets another disk get the number before each call of Windows that Stage and Unstage make. Nothing of the
// other disk changes, and no pod sees it. Afterwards Unstage ends.
func TestExchange(t *testing.T) {
	own := mounter.Disk{Serial: ownKey}
	for name, c := range map[string]struct {
		model   func() winsim.Model
		prepare func(*kit) error
		run     func(context.Context, *kit) (any, error)
		number  uint32
	}{
		"stage a blank disk":        {model: blankNode, run: stageWith(func(r *mounter.StageRequest) { r.Source = own })},
		"stage a disk with data":    {model: dataNode, run: stageWith(func(r *mounter.StageRequest) { r.Source = own })},
		"stage an offline disk":     {model: offlineNode, run: stageWith(func(r *mounter.StageRequest) { r.Source = own })},
		"stage read-only":           {model: dataNode, run: stageWith(func(r *mounter.StageRequest) { r.Source, r.ReadOnly = own, true })},
		"stage by LUN":              {model: dataNode, run: stageWith(func(r *mounter.StageRequest) { r.Source = mounter.Disk{LUN: "0", Adapter: "1"} })},
		"unstage":                   {model: dataNode, prepare: restage, run: unstageWith(mounter.UnstageRequest{Offline: true})},
		"unstage with a source":     {model: dataNode, prepare: restage, run: unstageWith(mounter.UnstageRequest{Offline: true, Source: own})},
		"unstage what is read-only": {model: dataNode, prepare: stageReadOnly, run: unstageWith(mounter.UnstageRequest{})},
		"stage a LUN":               {model: mpioNode, run: stageLUNWith(portalA, portalB), number: 3},
		"unstage a LUN":             {model: mpioNode, prepare: stageLUN, run: unstageWith(mounter.UnstageRequest{}), number: 3},
		"unstage an interrupted stage": {model: dataNode, prepare: func(k *kit) error {
			k.must(restage(k))
			return k.node.RemoveAll(staging)
		}, run: unstageWith(mounter.UnstageRequest{Offline: true, Source: own})},
	} {
		for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				if mode == mounter.Daemon && runtime.GOOS == "windows" {
					t.Skip("pipes have the same names for all nodes, and a sweep has many")
				}
				t.Parallel()
				k := preparedOn(t, mode, c.model(), c.prepare)
				k.node.ResetCalls()
				k.must(second(c.run(k.ctx, k)))
				calls := 0
				for _, count := range k.node.Calls() {
					calls += count
				}
				ended := 0
				seed, _ := strconv.ParseUint(os.Getenv("CSI_PROXY_SEED"), 10, 64) // not set, it is 0
				random, sample := rand.New(rand.NewPCG(seed, uint64(calls))), map[mounter.Mode]int{mounter.Library: 4, mounter.Daemon: 16}[mode]
				for nth := 1; nth <= calls; nth++ {
					if testing.Short() && random.IntN(sample) > 0 {
						continue
					}
					for _, blank := range []bool{true, false} {
						k := preparedOn(t, mode, c.model(), c.prepare)
						unchanged, when := func(string) {}, "nothing"
						var calls atomic.Int32
						_, err := k.node.Inject(winsim.Fault{Do: func(*winsim.Node) {
							if int(calls.Add(1)) == nth {
								unchanged = k.exchange(max(1, c.number), otherDisk(blank))
								when = fmt.Sprintf("exchanged before call %d, blank %t", nth, blank)
							}
						}})
						k.must(err)
						_, err = c.run(k.ctx, k)
						if err == nil {
							ended++
						}
						if class := failure.ClassOf(err); class == failure.Internal {
							t.Errorf("%s: %v has no class", when, err)
						}
						when = fmt.Sprintf("%s: %v", when, err)
						unchanged(when)
						if c.number != 0 { // with a session, the LUN is still expected
							continue
						}
						if err := k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true, Source: own}); err != nil {
							t.Errorf("%s: then unstaged: %v", when, err)
						}
						unchanged(when + ", unstaged")
						if strings.Contains(k.node.Tree(`C:\var\lib\kubelet`), `\1\globalmount`) {
							t.Errorf("%s: the path is there", when)
						}
					}
				}
				t.Logf("%d calls, %d runs have ended well", calls, ended)
			})
		}
	}
}

// dataNode has a volume with a file on disk 1.
func dataNode() winsim.Model {
	model := attachedNode()
	model.Disks[1].Partitions[1].Volume.Files = []winsim.File{{Path: `\precious`, Content: "data"}}
	return model
}

// TestExchange_WaitingForTheLock: a second Stage has found the disk and waits, while a first formats it. Then the disk is
// exchanged. The second does not go on with the number.
func TestExchange_WaitingForTheLock(t *testing.T) {
	eachMode(t, blankNode, func(k *kit) {
		request := mounter.StageRequest{Path: staging2, Source: mounter.Disk{Serial: ownKey}}
		unchanged, waiting := func(string) {}, make(chan error, 1)
		_, err := k.node.Inject(winsim.Fault{Call: "Format", Times: 1, Do: func(node *winsim.Node) {
			found := node.Calls()["SANPolicy"] + node.Calls()["SystemVolumes"]
			go func() { waiting <- second(k.Stage(k.ctx, request)) }()
			for node.Calls()["SANPolicy"]+node.Calls()["SystemVolumes"] == found { // with which a search ends
				runtime.Gosched()
			}
			unchanged = k.exchange(1, otherDisk(true))
		}})
		k.must(err)
		first := second(k.Stage(k.ctx, mounter.StageRequest{Path: staging, Source: request.Source}))
		if waited := <-waiting; first == nil || waited == nil {
			t.Errorf("both of a disk that is gone: %v, %v", first, waited)
		}
		unchanged("both have ended")
	})
}

// TestUnstage_MountedElsewhere: without the inspector the mounter does not know it, and the daemon keeps the disk online.
// Unstage succeeds.
func TestUnstage_MountedElsewhere(t *testing.T) {
	node, err := winsim.New(dataNode())
	must(t, err)
	option := mountertest.NewDaemonWith(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"disk", "volume", "filesystem"}}}).Option()
	m, err := mounter.New(t.Context(), option)
	must(t, err)
	defer m.Close()
	staged, err := m.Stage(t.Context(), mounter.StageRequest{Path: staging, Source: mounter.Disk{Serial: ownKey}})
	must(t, err)
	must(t, node.MountFolder(others, staged.VolumeID))
	for range 2 {
		must(t, m.Unstage(t.Context(), mounter.UnstageRequest{Path: staging, Offline: true}))
		if info, err := node.DiskInfo(1); err != nil || info.Offline || node.Exists(staging) {
			t.Errorf("the disk is %+v, %v, the path is there: %t", info, err, node.Exists(staging))
		}
	}
}

// raw passes messages on as they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (raw) Name() string                       { return "raw" }

// originalDaemon is a daemon without extensions. Before is called before each call of the published API.
func originalDaemon(t *testing.T, node *winsim.Node, before func(method string)) mounter.Option {
	t.Helper()
	d := mountertest.NewDaemonWith(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"disk/v1", "volume/v1", "filesystem/v1"}}})
	dir, err := os.MkdirTemp("", "original") // short, because names of sockets must be
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := func(group, version string) string { return "csi-proxy-" + group + "-" + version + ".sock" }
	for _, group := range []string{"disk", "volume", "filesystem"} {
		to, err := grpc.NewClient("unix:"+filepath.Join(d.Dir(), socket(group, "v1")), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
		must(t, err)
		server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			var in, out []byte
			if err := stream.RecvMsg(&in); err != nil || strings.Contains(method, "extension") {
				return cmp.Or(err, status.Error(codes.Unimplemented, "no such service"))
			}
			before(method)
			if err := to.Invoke(stream.Context(), method, &in, &out); err != nil {
				return err
			}
			return stream.SendMsg(&out)
		}))
		var listen net.ListenConfig
		listener, err := listen.Listen(t.Context(), "unix", filepath.Join(dir, socket(group, "v1")))
		must(t, err)
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { server.Stop(); _ = to.Close() })
	}
	return mounter.WithPipePaths(func(group, version string) string { return filepath.Join(dir, socket(group, version)) })
}

// TestExchange_OriginalDaemon: the mounter looks right before each change. What happens between its look and the change
// that the daemon makes is not seen, as docs/mounter.md says.
func TestExchange_OriginalDaemon(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it uses sockets, not pipes")
	}
	for name, source := range map[string]mounter.Disk{"serial": {Serial: ownKey}, "LUN": {LUN: "0", Adapter: "1"}} {
		for nth := 1; ; nth++ {
			node, err := winsim.New(dataNode())
			must(t, err)
			k := &kit{t: t, ctx: t.Context(), node: node}
			calls, unchanged, when := 0, func(string) {}, ""
			k.option = originalDaemon(t, node, func(method string) {
				if calls++; calls == nth && !strings.HasSuffix(method, "/PartitionDisk") && !strings.HasSuffix(method, "/SetDiskState") {
					unchanged = k.exchange(1, otherDisk(nth%2 == 0))
					when = fmt.Sprintf("%s: exchanged before %d, %s", name, nth, method)
				}
			})
			k.restart()
			stageErr := second(k.Stage(k.ctx, mounter.StageRequest{Path: staging, Source: source}))
			unchanged(fmt.Sprint(when, ": ", stageErr))
			unstageErr := k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true})
			unchanged(fmt.Sprint(when, ", unstaged: ", unstageErr))
			if calls < nth {
				must(t, stageErr)
				must(t, unstageErr)
				break
			}
		}
	}
}
