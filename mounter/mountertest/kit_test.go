package mountertest_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/test/bufconn"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// stagedVolume is the volume of disk 1.
const stagedVolume = "5eed0000-0000-0000-0000-000000000001"

var csiShare = mounter.SMB{Remote: `\\files\data`, Username: "csi", Password: "csi-Pa55"}

// mapped is how the state shows a mapping.
const mapped = "%s is mapped, disconnected %t\n"

func blankNode() winsim.Model {
	model := winsim.Default()
	model.Disks = model.Disks[:3]
	model.ISCSI = winsim.ISCSI{}
	for _, path := range []string{staging, target} { // as the kubelet does
		model.Files = append(model.Files, winsim.File{Path: path[:strings.LastIndex(path, `\`)]})
	}
	return model
}

func attachedNode() winsim.Model {
	model := blankNode()
	model.Disks[1].Layout = winsim.LayoutGPT
	model.Disks[1].Partitions = []winsim.Partition{{Type: "msr", Size: 16 * winsim.MiB}, {Volume: &winsim.Volume{ID: stagedVolume}}}
	return model
}

func publishShare(k *kit) error {
	k.must(k.stageShare())
	k.must(k.node.WriteFile(staging+`\precious`, "data"))
	return k.Publish(k.ctx, staging, target)
}

func nothing(*kit) error { return nil }

func stageReadOnly(k *kit) error {
	return k.stage(func(r *mounter.StageRequest) { r.ReadOnly = true })
}

func stageShareWith(ctx context.Context, k *kit) error {
	return second(k.Stage(ctx, mounter.StageRequest{Path: staging, Source: mounter.SMB{Remote: "//files/data/", Username: "csi", Password: "csi-Pa55"}}))
}

func unstagePath(k *kit) error {
	return k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true})
}

func unpublish(k *kit) error { return k.Unpublish(k.ctx, target) }

func (k *kit) restart() {
	k.t.Helper()
	option := k.option
	if k.Mode() == mounter.Library {
		option = k.driver.Restart()
	}
	m, err := mounter.New(k.ctx, option)
	k.must(err)
	k.t.Cleanup(func() { _ = m.Close() })
	k.Mounter = m
}

// inBubbles runs a test in both modes, with the time of synctest. The daemon's connections are in memory.
func inBubbles(t *testing.T, model func() winsim.Model, test func(k *kit)) {
	t.Helper()
	t.Run(mounter.Library.String(), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(newKit(t, mounter.Library, model())) })
	})
	t.Run(mounter.Daemon.String(), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := newKit(t, mounter.Library, model())
			var listeners sync.Map
			mountertest.NewDaemonWith(t, k.node, serve.Config{Config: daemon.Config{Listen: func(group, version string) (net.Listener, error) {
				l := bufconn.Listen(64 << 10)
				listeners.Store(group+version, l)
				return l, nil
			}}})
			m, err := mounter.New(k.ctx, mounter.WithDialer(func(ctx context.Context, group, version string) (net.Conn, error) {
				l, _ := listeners.Load(group + version)
				return l.(*bufconn.Listener).DialContext(ctx)
			}))
			k.must(err)
			k.Mounter = m
			t.Cleanup(func() { _ = m.Close() })
			t.Cleanup(k.node.Reboot) // as newKitOn
			test(k)
		})
	})
}

// sample is with which of its cases a sweep begins, and how far to the next, so that it tries one in n. The seed
// decides, as in v2/internal/testing/sweep, which this module cannot import.
func sample(n int) (first, step int) {
	seed, _ := strconv.Atoi(os.Getenv("CSI_PROXY_SEED"))
	return 1 + seed%n, n
}

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

func answer(result any) string { return guid.ReplaceAllString(fmt.Sprint(result), "GUID") }
