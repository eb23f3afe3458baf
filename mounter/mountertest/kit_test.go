package mountertest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// stagedVolume is the volume of disk 1.
const stagedVolume = "5eed0000-0000-0000-0000-000000000001"

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

// offlineNode is blankNode after disks were attached to a machine that keeps them offline.
func offlineNode() winsim.Model {
	model := blankNode()
	model.Storage.SANPolicy = winsim.OfflineAll
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

func restage(k *kit) error { return k.stage() }

func stageLUN(k *kit) error {
	_, err := k.stageLUN(staging, lun(3, portalA, portalB))
	return err
}

func stageLUNWith(portals ...string) func(context.Context, *kit) (any, error) {
	return func(ctx context.Context, k *kit) (any, error) {
		staged, err := k.Stage(ctx, mounter.StageRequest{Path: staging, Source: lun(3, portals...)})
		return staged.DiskNumber, err
	}
}

func nothing(*kit) error { return nil }

func stageReadOnly(k *kit) error {
	return k.stage(func(r *mounter.StageRequest) { r.ReadOnly = true })
}

func stageShareWith(ctx context.Context, k *kit) error {
	return second(k.Stage(ctx, mounter.StageRequest{Path: staging, Source: mounter.SMB{Remote: "//files/data/", Username: "csi", Password: "csi-Pa55"}}))
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

func unstageWith(request mounter.UnstageRequest) func(context.Context, *kit) (any, error) {
	request.Path = staging
	return func(ctx context.Context, k *kit) (any, error) { return nil, k.Unstage(ctx, request) }
}

func unstagePath(k *kit) error {
	return k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true})
}

func unpublish(k *kit) error { return k.Unpublish(k.ctx, target) }

// preparedOn makes a Mounter on a node of its own.
func preparedOn(t *testing.T, mode mounter.Mode, model winsim.Model, prepare func(*kit) error) *kit {
	t.Helper()
	node, err := winsim.New(model)
	must(t, err)
	option := mountertest.Library(node)
	if mode == mounter.Daemon {
		option = mountertest.NewDaemonWith(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"disk/v1", "volume/v1", "filesystem/v1", "smb/v1", "iscsi/v1alpha2", "system"}}}).Option()
	}
	k := &kit{t: t, ctx: t.Context(), node: node, option: option}
	k.restart()
	t.Cleanup(node.Reboot) // it ends what a lost disk holds
	if prepare != nil {
		k.must(prepare(k))
	}
	return k
}

func (k *kit) restart() {
	k.t.Helper()
	m, err := mounter.New(k.ctx, k.option)
	k.must(err)
	k.t.Cleanup(func() { _ = m.Close() })
	k.Mounter = m
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
