package mountertest_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// frame is a message as it is on the wire.
type frame struct{ data []byte }

// frames is the codec of a server that only passes messages on.
type frames struct{}

func (frames) Name() string                       { return "frames" }
func (frames) Marshal(v any) ([]byte, error)      { return v.(*frame).data, nil }
func (frames) Unmarshal(data []byte, v any) error { v.(*frame).data = data; return nil }

// publishedOnly serves a node with the published API alone, as the original daemon does, and returns its sockets. Its
// Unimplemented has no words in common with that of gRPC. Before is called before each call.
func publishedOnly(t *testing.T, node *winsim.Node, before func(method string)) func(group, version string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the proxy uses sockets, not pipes")
	}
	dir, err := os.MkdirTemp("", "published") // short, because names of sockets must be
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	behind := mountertest.NewDaemon(t, node).Dir()
	for _, name := range []string{"disk-v1", "volume-v1", "filesystem-v1", "smb-v1", "system-v1alpha1", "iscsi-v1alpha2"} {
		socket := "csi-proxy-" + name + ".sock"
		conn, err := grpc.NewClient("unix:"+filepath.Join(behind, socket), grpc.WithTransportCredentials(insecure.NewCredentials()))
		must(t, err)
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, socket))
		must(t, err)
		server := grpc.NewServer(grpc.ForceServerCodec(frames{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			if strings.HasPrefix(method, "/csiproxy.") {
				return status.Error(codes.Unimplemented, "nicht vorhanden")
			}
			var in, out frame
			if err := stream.RecvMsg(&in); err != nil {
				return err
			}
			before(method)
			if err := conn.Invoke(stream.Context(), method, &in, &out, grpc.ForceCodec(frames{})); err != nil {
				return err
			}
			return stream.SendMsg(&out)
		}))
		go func() { _ = server.Serve(listener) }() // until Stop
		t.Cleanup(func() { server.Stop(); _ = conn.Close() })
	}
	return func(group, version string) string { return filepath.Join(dir, "csi-proxy-"+group+"-"+version+".sock") }
}

// TestDaemon_PublishedAPI: with the original daemon everything works that needs no extension. What
// needs one is an error that says what to do, and changes nothing.
func TestDaemon_PublishedAPI(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	must(t, err)
	m, err := mounter.New(t.Context(), mounter.WithPipePaths(publishedOnly(t, node, func(string) {})))
	must(t, err)
	defer m.Close()
	share := csiShare
	stageDisk := func(change func(*mounter.StageRequest)) error {
		request := mounter.StageRequest{Path: staging, Source: number(1)}
		change(&request)
		_, err := m.Stage(t.Context(), request)
		return err
	}
	stageShare := func(change func(*mounter.SMB)) error {
		with := share
		change(&with)
		_, err := m.Stage(t.Context(), mounter.StageRequest{Path: staging + "2", Source: with})
		return err
	}
	for option, err := range map[string]error{
		"the format options": stageDisk(func(r *mounter.StageRequest) { r.Format.Label = "pods" }),
		"Privacy":            stageShare(func(s *mounter.SMB) { s.Privacy = mounter.PrivacyRequired }),
		"RefuseOtherUser":    stageShare(func(s *mounter.SMB) { s.RefuseOtherUser = true }),
	} {
		wantLacking(t, err, option, "omit the option")
	}
	if mappings, err := node.SMBMappings(t.Context()); err != nil || len(mappings) > 0 || node.Exists(staging) || node.Exists(staging+"2") {
		t.Errorf("a refused option left %v, %v", mappings, err)
	}
	before, err := node.DiskFingerprint(1)
	must(t, err)
	must(t, node.WriteFile(staging+`\precious`, "data"))
	full := stageDisk(func(*mounter.StageRequest) {})
	if after, err := node.DiskFingerprint(1); failure.ClassOf(full) != failure.InUse || err != nil || after != before {
		t.Errorf("a folder with content: %v; the disk has changed: %t, %v", full, after != before, err)
	}
	must(t, node.RemoveAll(staging+`\precious`))
	must(t, stageDisk(func(r *mounter.StageRequest) { r.FSType = "ntfs" }))
	must(t, node.WriteFile(staging+`\file`, "text"))
	must(t, m.Publish(t.Context(), staging, target))
	if err := m.Unstage(t.Context(), mounter.UnstageRequest{Path: staging}); failure.ClassOf(err) != failure.InUse {
		t.Errorf("unstage what is published: %v", err)
	}
	must(t, m.Unpublish(t.Context(), target))
	usage, err := m.Stats(t.Context(), staging)
	if err != nil || usage.TotalBytes == 0 {
		t.Errorf("stats of a volume: %+v, %v", usage, err)
	}
	wantLacking(t, stageDisk(func(r *mounter.StageRequest) { r.ReadOnly = true }), "ReadOnly", "omit the option")
	must(t, stageShare(func(*mounter.SMB) {}))
	wantLacking(t, second(m.Stats(t.Context(), staging+"2")), "measure share", "upgrade")
	wantLacking(t, second(m.List()), "inspector", "CSI Proxy v2")
	for _, request := range []mounter.UnstageRequest{{Path: staging, Offline: true}, {Path: staging + "2", Source: mounter.SMB{Remote: share.Remote}}} {
		must(t, m.Unstage(t.Context(), request))
	}
}

func wantLacking(t *testing.T, err error, parts ...string) {
	t.Helper()
	if failure.ClassOf(err) != failure.Unsupported || status.Code(err) != codes.Unimplemented {
		t.Errorf("%v, want Unimplemented", err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "nicht") {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}

// TestDaemon_PublishedAPI_Shares: the original daemon disconnects a share also if others use it, so only a driver that names
// the share asks for that.
func TestDaemon_PublishedAPI_Shares(t *testing.T) {
	node, err := winsim.New(blankNode())
	must(t, err)
	removals := 0
	m, err := mounter.New(t.Context(), mounter.WithPipePaths(publishedOnly(t, node, func(method string) {
		if strings.HasSuffix(method, "/RemoveSmbGlobalMapping") {
			removals++
		}
	})))
	must(t, err)
	defer m.Close()
	for _, source := range []mounter.Source{nil, csiShare} {
		must(t, second(m.Stage(t.Context(), mounter.StageRequest{Path: staging, Source: csiShare})))
		must(t, m.Unstage(t.Context(), mounter.UnstageRequest{Path: staging, Source: source}))
		must(t, m.Unstage(t.Context(), mounter.UnstageRequest{Path: staging, Source: source})) // nothing is there
		if removals > 0 != (source != nil) {
			t.Errorf("with the source %v the share is disconnected %d times", source, removals)
		}
	}
}

// TestDaemon_UnsupportedObject: an extension that refuses an object is not a missing one.
func TestDaemon_UnsupportedObject(t *testing.T) {
	var texts [2]string
	for i, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
		k := newKit(t, mode, winsim.Default())
		const notSupported = 50 // ERROR_NOT_SUPPORTED
		if _, err := k.node.Inject(winsim.Fault{Call: "PathSpace", Error: notSupported}); err != nil {
			t.Fatal(err)
		}
		k.must(k.stageShare())
		_, err := k.Stats(k.ctx, staging)
		if failure.ClassOf(err) != failure.Unsupported || strings.Contains(err.Error(), "upgrade") {
			t.Errorf("%s: %v", mode, err)
		}
		texts[i] = err.Error()
	}
	if texts[0] != texts[1] {
		t.Errorf("the modes differ:\n%s\n%s", texts[0], texts[1])
	}
}

// otherDisk is the disk that gets the number of the one that has left: blank, or with another pod's data.
func otherDisk(blank bool) winsim.Disk {
	d := winsim.Disk{Size: 10 * winsim.GiB, Serial: "OTHER"}
	if !blank {
		d.Layout = winsim.LayoutGPT
		d.Partitions = []winsim.Partition{{Type: "msr", Size: 16 * winsim.MiB}, {Volume: &winsim.Volume{Files: []winsim.File{{Path: `\precious`, Content: "secret"}}}}}
	}
	return d
}

// TestDaemon_PublishedAPI_Exchange: the mounter looks right before each change whether another disk has got the number. What
// happens between its look and the change that the daemon makes is not seen, as docs/mounter.md says.
func TestDaemon_PublishedAPI_Exchange(t *testing.T) {
	for name, source := range map[string]mounter.Disk{"serial": {Serial: "WINSIM0001"}, "LUN": {LUN: "0", Adapter: "1"}} {
		for nth := 1; ; nth++ {
			node, err := winsim.New(attachedNode())
			must(t, err)
			state := func() string {
				content, err := node.DiskFingerprint(1)
				info, infoErr := node.DiskInfo(1)
				return fmt.Sprintf("%s, offline %t, read-only %t, %s %v %v", info.Serial, info.Offline, info.ReadOnly, content, err, infoErr)
			}
			calls, before := 0, ""
			m, err := mounter.New(t.Context(), mounter.WithPipePaths(publishedOnly(t, node, func(method string) {
				if calls++; calls == nth && !strings.HasSuffix(method, "/PartitionDisk") && !strings.HasSuffix(method, "/SetDiskState") {
					_ = node.DetachDisk(1)
					_, err := node.AttachDisk(otherDisk(nth%2 == 0))
					must(t, err)
					before = state()
				}
			})))
			must(t, err)
			stageErr := second(m.Stage(t.Context(), mounter.StageRequest{Path: staging, Source: source}))
			_, readErr := node.ReadFile(staging + `\precious`)
			unstageErr := m.Unstage(t.Context(), mounter.UnstageRequest{Path: staging, Offline: true})
			if after := state(); before != "" && after != before || readErr == nil {
				t.Errorf("%s, exchanged before call %d: the other disk was %s, and is %s; the pod reads it: %t; %v, %v", name, nth, before, after, readErr == nil, stageErr, unstageErr)
			}
			_ = m.Close()
			if calls < nth {
				must(t, stageErr)
				must(t, unstageErr)
				break
			}
		}
	}
}

// TestUnstage_MountedElsewhere: without the inspector the mounter does not know it, and the daemon keeps the disk online.
// Unstage succeeds.
func TestUnstage_MountedElsewhere(t *testing.T) {
	const others = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\test\2\globalmount`
	node, err := winsim.New(attachedNode())
	must(t, err)
	option := mountertest.NewDaemonWith(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"disk", "volume", "filesystem"}}}).Option()
	m, err := mounter.New(t.Context(), option)
	must(t, err)
	defer m.Close()
	staged, err := m.Stage(t.Context(), mounter.StageRequest{Path: staging, Source: mounter.Disk{Serial: "WINSIM0001"}})
	must(t, err)
	must(t, node.MountFolder(others, staged.VolumeID))
	for range 2 {
		must(t, m.Unstage(t.Context(), mounter.UnstageRequest{Path: staging, Offline: true}))
		if info, err := node.DiskInfo(1); err != nil || info.Offline || node.Exists(staging) {
			t.Errorf("the disk is %+v, %v, the path is there: %t", info, err, node.Exists(staging))
		}
	}
}

// TestPublish_Stuck: a mapping that hangs, or all that leads to the share, holds Publish no longer than its own limits.
func TestPublish_Stuck(t *testing.T) {
	for name, stuck := range map[string]winsim.Fault{"mapping": {Call: "RemoveSMBMapping"}, "share": {Object: `\\files\*`}, "path": {Object: staging}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, mounter.Library, blankNode())
				k.must(downServer(k))
				stuck.Delay = time.Hour
				fault, err := k.node.Inject(stuck)
				k.must(err, k.node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Down, s.Accounts[0].Password = false, "new" }))
				share := csiShare
				share.Password = "new"
				for range 2 {
					k.wantClass("publish", k.Publish(k.ctx, staging, target, share), failure.Unavailable)
				}
				if fault.Hits() == 0 {
					t.Error("nothing was stuck")
				}
				fault.Remove()
				synctest.Wait()
				k.must(k.Publish(k.ctx, staging, target, share), k.node.WriteFile(target+`\file`, "text"))
			})
		})
	}
	eachMode(t, blankNode, func(k *kit) {
		k.must(k.stageShare(), k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
		k.wantClass("publish what is not staged", k.Publish(k.ctx, staging, target, csiShare), failure.InUse, "stage the volume first")
	})
}

// TestPublish_Taken: a Publish that fails leaves the volume protected to which the pod's link leads.
func TestPublish_Taken(t *testing.T) {
	eachMode(t, attachedNode, func(k *kit) {
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging2})) // the one search for links is over
		k.must(k.stage(), second(k.Stage(k.ctx, mounter.StageRequest{Path: staging2, Source: csiShare})), k.Publish(k.ctx, staging, target))
		k.wantClass("publish another volume", k.Publish(k.ctx, staging2, target), failure.Exists)
		k.wantClass("unstage", k.unstage(), failure.InUse, "published")
	})
}

// TestPublish_RefusedLogin: Publish is repeated for each pod, also while it has an old password, and servers lock accounts.
func TestPublish_RefusedLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, mounter.Library, blankNode())
		defer k.Close()
		k.must(publishShare(k), k.node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[0].Password = "new" }))
		k.node.Reboot()
		k.restart()
		logins := func(share mounter.SMB, want failure.Class) int {
			k.node.ResetCalls()
			k.wantClass("publish", k.Publish(k.ctx, staging, target, share), want)
			return k.node.Calls()["CreateSMBMapping"]
		}
		other := csiShare // of another volume
		other.Password = "older"
		for again, want := range []int{1, 0} {
			for _, share := range []mounter.SMB{csiShare, other} {
				if n := logins(share, failure.Denied); n != want {
					t.Errorf("%d logins, want %d, attempt %d", n, want, again)
				}
			}
		}
		time.Sleep(10 * time.Minute) // of the clock of synctest
		if later := logins(csiShare, failure.Denied); later != 1 {
			t.Errorf("%d logins later", later)
		}
		share := csiShare
		share.Password = "new"
		logins(share, failure.None)
	})
}
