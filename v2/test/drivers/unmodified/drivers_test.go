//go:build linux && wine

package unmodified

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

func TestMain(m *testing.M) {
	prefix.CloseOnSignal()
	m.Run()
}

// notRun is what comes of a case that -run leaves out.
const notRun = "not run"

// TestDrivers runs one driver after the other, and logs what came of it.
func TestDrivers(t *testing.T) {
	prefix.Need(t)
	for _, d := range drivers() {
		t.Run(d.name, func(t *testing.T) {
			exe := program(t, &d)
			for i, versions := range d.apis {
				row := []string{d.name + " " + d.program.Version, versions.String()}
				for _, test := range []func(*testing.T, *driver, string, api) []string{life, foreign, arrival, writable} {
					row = append(row, test(t, &d, exe, versions)...)
					if i > 0 || d.disk == nil {
						break // the others do not depend on the version, and are about disks
					}
				}
				t.Log(strings.Join(row, " | "))
			}
		})
	}
}

// paths are those that the kubelet chooses for a volume.
type paths struct{ stage, target string }

// prepare makes the directories that the kubelet makes before it stages and publishes a volume. The tree
// that it returns has the parents of both paths only.
func (n *node) prepare(t *testing.T, d *driver, unit int) (paths, []string) {
	t.Helper()
	const separator = `\`
	stageParent := strings.Join([]string{kubelet, "plugins", "kubernetes.io", "csi", d.name, fmt.Sprintf("volume-%d", unit)}, separator)
	targetParent := strings.Join([]string{kubelet, "pods", fmt.Sprintf("pod-%d", unit), "volumes", "kubernetes.io~csi", "pvc"}, separator)
	n.mkdir(t, stageParent)
	n.mkdir(t, targetParent)
	tree := n.tree(t)
	p := paths{stage: stageParent + `\globalmount`, target: targetParent + `\mount`}
	n.mkdir(t, p.stage)
	return p, tree
}

var capability = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ntfs"}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

func (n *node) stage(ctx context.Context, v volume, p paths) error {
	_, err := n.csi.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: v.id, StagingTargetPath: p.stage, VolumeCapability: capability,
		PublishContext: v.publishContext, VolumeContext: v.volumeContext, Secrets: v.secrets,
	})
	return err
}

func (n *node) unstage(ctx context.Context, v volume, p paths) error {
	_, err := n.csi.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: p.stage})
	return err
}

func (n *node) publish(ctx context.Context, v volume, p paths) error {
	_, err := n.csi.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: v.id, StagingTargetPath: p.stage, TargetPath: p.target, VolumeCapability: capability,
		PublishContext: v.publishContext, VolumeContext: v.volumeContext, Secrets: v.secrets,
	})
	return err
}

func (n *node) unpublish(ctx context.Context, v volume, p paths) error {
	_, err := n.csi.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: p.target})
	return err
}

// life takes a volume through its life, each change twice, since the kubelet repeats calls.
func life(t *testing.T, d *driver, exe string, versions api) []string {
	t.Helper()
	result := []string{notRun, notRun}
	t.Run("life "+versions.String(), func(t *testing.T) {
		var contents []content
		if d.disk != nil {
			contents = append(contents, blank)
		}
		n := start(t, d, exe, d.model(idle, contents...), versions)
		before := n.state(t)
		p, tree := n.prepare(t, d, 0)
		v := d.volume(0)

		var sizes []int64
		stats := func(ctx context.Context) error {
			answer, err := n.csi.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: v.id, VolumePath: p.target, StagingTargetPath: p.stage})
			for _, usage := range answer.GetUsage() {
				if usage.GetUnit() == csi.VolumeUsage_BYTES {
					sizes = append(sizes, usage.GetTotal())
				}
			}
			return err
		}
		expand := func(ctx context.Context) error {
			_, err := n.csi.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
				VolumeId: v.id, VolumePath: p.target, StagingTargetPath: p.stage, VolumeCapability: capability,
				CapacityRange: &csi.CapacityRange{RequiredBytes: grownSize},
			})
			return err
		}
		c := calls{}
		c.make(t, "Probe", codes.OK, func(ctx context.Context) error {
			_, err := n.identity.Probe(ctx, &csi.ProbeRequest{})
			return err
		})
		c.make(t, "GetPluginInfo", codes.OK, func(ctx context.Context) error {
			_, err := n.identity.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
			return err
		})
		c.make(t, "NodeGetCapabilities", codes.OK, func(ctx context.Context) error {
			_, err := n.csi.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
			return err
		})
		c.make(t, "NodeGetInfo", codes.OK, func(ctx context.Context) error {
			_, err := n.csi.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
			return err
		})
		for range 2 {
			c.make(t, "NodeStageVolume", codes.OK, func(ctx context.Context) error { return n.stage(ctx, v, p) })
		}
		for range 2 {
			c.make(t, "NodePublishVolume", codes.OK, func(ctx context.Context) error { return n.publish(ctx, v, p) })
		}
		c.make(t, "NodeGetVolumeStats", codes.OK, stats)
		if d.disk != nil {
			n.ctl(t, "sim", "grow", "1", fmt.Sprint(grownSize))
		}
		for range 2 {
			c.make(t, "NodeExpandVolume", d.expand, expand)
		}
		c.make(t, "NodeGetVolumeStats", codes.OK, stats)
		during, linked := n.state(t), n.linked(p.stage)
		for range 2 {
			c.make(t, "NodeUnpublishVolume", codes.OK, func(ctx context.Context) error { return n.unpublish(ctx, v, p) })
		}
		for range 2 {
			c.make(t, "NodeUnstageVolume", codes.OK, func(ctx context.Context) error { return n.unstage(ctx, v, p) })
		}

		if len(sizes) != 2 || slices.Min(sizes) <= 0 {
			t.Errorf("the sizes of the volume are %v", sizes)
		} else if !d.ownStats && (sizes[0] >= grownSize-reserved || sizes[1] < grownSize-reserved) {
			t.Errorf("the volume has %d bytes, and when its disk has grown %d", sizes[0], sizes[1])
		}
		if diff := cmp.Diff(tree, n.tree(t)); diff != "" {
			t.Errorf("the tree is another afterwards (-before +after):\n%s", diff)
		}
		after := n.state(t)
		if unmaps := slices.Contains(versions, d.unmaps); d.disk == nil && len(after.Shares) == 1 && !(unmaps && linked) {
			t.Logf("the share is still mapped; the driver unmaps it with this API: %v; it can read the link to it: %v", unmaps, linked)
			after.Shares = before.Shares
		}
		result = []string{c.String(), afterwards(t, d, p, before, during, after)}
	})
	return result
}

// The size of the disk after it has grown, and what tables and reserved partitions may take of it.
const (
	grownSize = 40 << 30
	reserved  = 64 << 20
)

// calls counts the calls of a life.
type calls struct {
	ok, all int
	others  []string
}

// make makes a call, which is to end with a code.
func (c *calls) make(t *testing.T, name string, want codes.Code, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	err := call(ctx)
	c.all++
	got := status.Code(err)
	if got == codes.OK {
		c.ok++
	} else if other := name + ": " + got.String(); !slices.Contains(c.others, other) {
		c.others = append(c.others, other)
	}
	if got != want {
		t.Errorf("%s: %v, want %s", name, err, want)
	}
}

func (c *calls) String() string {
	return strings.Join(append([]string{fmt.Sprintf("%d of %d", c.ok, c.all)}, c.others...), "; ")
}

// afterwards compares the node before, during and after the life of a volume, and says how it is left.
func afterwards(t *testing.T, d *driver, p paths, before, during, after state) string {
	t.Helper()
	if len(after.StaleMounts) > 0 {
		t.Errorf("stale mounts: %v", after.StaleMounts)
	}
	if d.disk == nil {
		if len(during.Shares) != 1 {
			t.Errorf("the shares of the published volume are %v", during.Shares)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the node is another afterwards (-before +after):\n%s", diff)
		}
		return "same tree"
	}
	if diff := cmp.Diff(before.Disks[0], after.Disks[0]); diff != "" {
		t.Errorf("the disk of Windows is another afterwards (-before +after):\n%s", diff)
	}
	mounted := during.Disks[1].Partitions
	last := len(mounted) - 1
	if last < 0 || mounted[last].Volume == nil {
		t.Fatalf("the published volume is not there: %+v", during.Disks[1])
	}
	v := mounted[last].Volume
	if v.FileSystem != "NTFS" || v.TotalBytes < grownSize-reserved || !slices.Equal(v.MountPaths, []string{p.stage}) || !slices.Equal(v.Links, []string{p.target}) {
		t.Errorf("the published volume is %+v", v)
	}
	disk := after.Disks[1]
	for _, partition := range disk.Partitions {
		if v := partition.Volume; v != nil && len(v.MountPaths)+len(v.Links) > 0 {
			t.Errorf("the volume is still at %v and %v", v.MountPaths, v.Links)
		}
	}
	if disk.Online == d.offline {
		t.Errorf("online is %v", disk.Online)
	}
	if d.offline {
		return "same tree; disk offline"
	}
	return "same tree; disk online"
}

// foreign stages disks that have data of another system.
func foreign(t *testing.T, d *driver, exe string, versions api) []string {
	t.Helper()
	result := notRun
	t.Run("foreign data", func(t *testing.T) {
		n := start(t, d, exe, d.model(idle, linuxPartition, linuxDisk), versions)
		before := n.state(t)
		for unit := range 2 {
			fingerprint := n.fingerprint(t, unit+1)
			p, _ := n.prepare(t, d, unit)
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), callLimit)
				err := n.stage(ctx, d.volume(unit), p)
				cancel()
				if err == nil {
					t.Errorf("disk %d was staged", unit+1)
				} else {
					t.Logf("disk %d: %v", unit+1, err)
				}
			}
			c := calls{}
			c.make(t, "NodeUnstageVolume", d.unstage, func(ctx context.Context) error { return n.unstage(ctx, d.volume(unit), p) })
			if n.fingerprint(t, unit+1) != fingerprint {
				t.Errorf("the content of disk %d has changed", unit+1)
			}
		}
		c := calls{}
		c.make(t, "Probe", codes.OK, func(ctx context.Context) error {
			_, err := n.identity.Probe(ctx, &csi.ProbeRequest{})
			return err
		})
		after := n.state(t)
		for i := range after.Disks {
			after.Disks[i].Online = before.Disks[i].Online // which is not a change of its data
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the node is another afterwards (-before +after):\n%s", diff)
		}
		result = "refused, unchanged"
	})
	return []string{result}
}

// arrival stages a volume with data that Windows shows only some time after its disk is online.
func arrival(t *testing.T, d *driver, exe string, versions api) []string {
	t.Helper()
	result := notRun
	t.Run("late volume", func(t *testing.T) {
		stageMoved(t, d, start(t, d, exe, d.model(late, moved), versions))
		result = "staged, data kept"
	})
	return []string{result}
}

// writable stages a volume with data that comes from another node, and is read-only at first.
func writable(t *testing.T, d *driver, exe string, versions api) []string {
	t.Helper()
	result := notRun
	t.Run("volume that was read-only", func(t *testing.T) {
		stageMoved(t, d, start(t, d, exe, d.model(idle, moved), versions))
		result = "writable, data kept"
	})
	return []string{result}
}

// stageMoved stages a volume with data, looks at it, and unstages it.
func stageMoved(t *testing.T, d *driver, n *node) {
	t.Helper()
	p, tree := n.prepare(t, d, 0)
	v := d.volume(0)
	c := calls{}
	c.make(t, "NodeStageVolume", codes.OK, func(ctx context.Context) error { return n.stage(ctx, v, p) })
	during := n.state(t)
	disk := during.Disks[1]
	last := len(disk.Partitions) - 1
	if last < 0 {
		t.Fatalf("the staged disk has no partitions: %+v", disk)
	}
	if found := disk.Partitions[last].Volume; disk.ReadOnly || !disk.Online || found == nil || found.ReadOnly ||
		!strings.Contains(found.ID, movedVolume) || !slices.Equal(found.MountPaths, []string{p.stage}) {
		t.Errorf("the staged disk is %+v with the volume %+v", disk, found)
	}
	if text, err := n.file("precious.txt"); err != nil || text != "precious" {
		t.Errorf("the file on the volume: %q, %v", text, err)
	}
	c.make(t, "NodeUnstageVolume", codes.OK, func(ctx context.Context) error { return n.unstage(ctx, v, p) })
	if diff := cmp.Diff(tree, n.tree(t)); diff != "" {
		t.Errorf("the tree is another afterwards (-before +after):\n%s", diff)
	}
}
