package mountertest_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// frame is a message as it is on the wire.
type frame struct{ data []byte }

// frames is the codec of a server that only passes messages on.
type frames struct{}

func (frames) Name() string                       { return "frames" }
func (frames) Marshal(v any) ([]byte, error)      { return v.(*frame).data, nil }
func (frames) Unmarshal(data []byte, v any) error { v.(*frame).data = data; return nil }

// publishedOnly serves a node with the published API alone, as the original daemon does. Its
// Unimplemented has no words in common with that of gRPC.
func publishedOnly(t *testing.T, node *winsim.Node) mounter.Option {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the proxy uses sockets, not pipes")
	}
	dir, err := os.MkdirTemp("", "published") // short, because names of sockets must be
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	behind := mountertest.NewDaemon(t, node).Dir()
	for _, name := range []string{"disk-v1", "volume-v1", "filesystem-v1", "smb-v1", "system-v1alpha1"} {
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
			if err := conn.Invoke(stream.Context(), method, &in, &out, grpc.ForceCodec(frames{})); err != nil {
				return err
			}
			return stream.SendMsg(&out)
		}))
		go func() { _ = server.Serve(listener) }() // until Stop
		t.Cleanup(func() { server.Stop(); _ = conn.Close() })
	}
	return mounter.WithPipePaths(func(group, version string) string { return filepath.Join(dir, "csi-proxy-"+group+"-"+version+".sock") })
}

// TestDaemon_PublishedAPI: with the original daemon everything works that needs no extension. What
// needs one is an error that says what to do, and changes nothing.
func TestDaemon_PublishedAPI(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	must(t, err)
	m, err := mounter.New(t.Context(), publishedOnly(t, node))
	must(t, err)
	defer m.Close()
	share := mounter.SMB{Remote: `\\files\data`, Username: "csi", Password: "csi-Pa55"}
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
