// Package life takes a volume through its life on the node service of a driver that uses the mounter
// kit, on an emulated node. It becomes a part of the driver's module, so that both have one version
// of CSI's Go code.
package life

import (
	"context"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Driver is a driver, and the node that it finds.
type Driver struct {
	// Serve returns the driver's services on a mounter, and on the node that it works on.
	Serve func(*winsim.Node, *kit.Mounter) (csi.IdentityServer, csi.NodeServer)
	Model winsim.Model
	// Volume is what the controller says about the volume to use, and Missing about one that is not on
	// the node.
	Volume, Missing Volume
	// Disk is the number of the volume's disk. It is 0 for a driver of shares.
	Disk uint32
	// Offline says that the disk is offline after it was unstaged.
	Offline bool
}

// Volume is what a driver's controller says about a volume.
type Volume struct {
	ID                                     string
	PublishContext, VolumeContext, Secrets map[string]string
}

// The paths, as the kubelet spells them.
const (
	kubelet    = `C:\var\lib\kubelet`
	stageAbove = `\var\lib\kubelet\plugins\kubernetes.io\csi\driver\volume`
	stagePath  = stageAbove + `\globalmount`
	podAbove   = `c:\var\lib\kubelet\pods\pod\volumes\kubernetes.io~csi\pvc`
	podPath    = podAbove + `\mount`
)

// reserved is what tables and reserved partitions may take of a disk.
const reserved = 64 << 20

// Test takes the volume through its life in both modes, each change twice, since the kubelet repeats
// calls.
func Test(t *testing.T, d Driver) {
	for _, mode := range []kit.Mode{kit.Library, kit.Daemon} {
		t.Run(mode.String(), func(t *testing.T) {
			node, err := winsim.New(d.Model)
			if err != nil {
				t.Fatal(err)
			}
			option := mountertest.Library(node)
			if mode == kit.Daemon {
				option = mountertest.NewDaemon(t, node).Option()
			}
			m, err := kit.New(t.Context(), option)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Close() })
			l := &life{T: t, Driver: d, node: node}
			l.identity, l.server = d.Serve(node, m)
			l.run()
			t.Logf("mode %s: %d calls", mode, l.calls)
		})
	}
}

type life struct {
	*testing.T
	Driver
	node     *winsim.Node
	identity csi.IdentityServer
	server   csi.NodeServer
	calls    int
}

func (l *life) run() {
	records := kubelet + `\plugins\csi-proxy-mounter` // the mounter keeps this folder
	for _, path := range []string{"C:" + stageAbove, podAbove, records} {
		if err := l.node.Mkdir(path); err != nil {
			l.Fatal(err)
		}
	}
	before := l.node.Tree(kubelet)
	l.register()

	l.calls++
	if err := l.stage(l.Context(), l.Missing); err == nil {
		l.Error("a volume that is not on the node was staged")
	}
	l.twice("unstage of a volume that was not staged", func(ctx context.Context) error { return l.unstage(ctx, l.Missing) })

	l.use("first.txt")
	if after := l.node.Tree(kubelet); after != before {
		l.Errorf("the tree is another afterwards:\n%s\nit was:\n%s", after, before)
	}
	l.use("second.txt") // a volume with data
	if after := l.node.Tree(kubelet); after != before {
		l.Errorf("the tree is another after the second time:\n%s\nit was:\n%s", after, before)
	}
}

// register calls what the kubelet calls when a driver starts.
func (l *life) register() {
	l.calls += 2
	if ready, err := l.identity.Probe(l.Context(), &csi.ProbeRequest{}); err != nil || ready.Ready != nil && !ready.Ready.Value {
		l.Errorf("probe: %v, %v", ready, err)
	}
	if info, err := l.server.NodeGetInfo(l.Context(), &csi.NodeGetInfoRequest{}); err != nil || info.GetNodeId() == "" {
		l.Errorf("info: %v, %v", info, err)
	}
}

// use stages and publishes the volume, has a pod write a file, and undoes it all.
func (l *life) use(file string) {
	l.twice("stage", func(ctx context.Context) error { return l.stage(ctx, l.Volume) })
	l.twice("publish", l.publish)
	if err := l.node.WriteFile(podPath+`\`+file, file); err != nil {
		l.Errorf("the pod cannot write: %v", err)
	}
	// The first file is there the second time, too.
	if content, err := l.node.ReadFile("C:" + stagePath + `\first.txt`); err != nil || content != "first.txt" {
		l.Errorf("the pod's file is %q, %v", content, err)
	}
	l.size()
	if l.Disk != 0 {
		l.expand()
	}
	l.twice("unpublish", l.unpublish)
	l.twice("unstage", func(ctx context.Context) error { return l.unstage(ctx, l.Volume) })
	if l.Disk == 0 {
		if mappings := l.node.Describe().SMBMappings; len(mappings) > 0 {
			l.Errorf("shares are still mapped: %+v", mappings)
		}
	} else if disk := l.disk(); disk.Offline != l.Offline {
		l.Errorf("the disk is %+v", disk)
	}
}

func (l *life) expand() {
	grown := l.disk().Size + 4*winsim.GiB
	if err := l.node.GrowDisk(l.Disk, grown); err != nil {
		l.Fatal(err)
	}
	l.twice("expand", func(ctx context.Context) error {
		_, err := l.server.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
			VolumeId: l.Volume.ID, VolumePath: podPath, StagingTargetPath: stagePath, VolumeCapability: capability,
			CapacityRange: &csi.CapacityRange{RequiredBytes: int64(grown)},
		})
		return err
	})
	if size := l.size(); size < int64(grown)-reserved {
		l.Errorf("the grown volume has %d bytes, the disk %d", size, grown)
	}
}

func (l *life) disk() winsim.Disk {
	disk, err := l.node.DiskInfo(l.Disk)
	if err != nil {
		l.Fatal(err)
	}
	return disk
}

// twice makes a call whose context has ended, which fails, and then two.
func (l *life) twice(name string, call func(context.Context) error) {
	l.Helper()
	ended, cancel := context.WithCancel(l.Context())
	if cancel(); call(ended) == nil {
		l.Errorf("%s does not end with its context", name)
	}
	for _, time := range []string{"first", "second"} {
		l.calls++
		if err := call(l.Context()); err != nil {
			l.Errorf("%s, %s time: %v", name, time, err)
		}
	}
}

var capability = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ntfs"}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

func (l *life) stage(ctx context.Context, v Volume) error {
	_, err := l.server.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: v.ID, StagingTargetPath: stagePath, VolumeCapability: capability,
		PublishContext: v.PublishContext, VolumeContext: v.VolumeContext, Secrets: v.Secrets,
	})
	return err
}

func (l *life) publish(ctx context.Context) error {
	v := l.Volume
	_, err := l.server.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: v.ID, StagingTargetPath: stagePath, TargetPath: podPath, VolumeCapability: capability,
		PublishContext: v.PublishContext, VolumeContext: v.VolumeContext, Secrets: v.Secrets,
	})
	return err
}

func (l *life) unpublish(ctx context.Context) error {
	_, err := l.server.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: l.Volume.ID, TargetPath: podPath})
	return err
}

func (l *life) unstage(ctx context.Context, v Volume) error {
	_, err := l.server.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.ID, StagingTargetPath: stagePath})
	return err
}

func (l *life) size() int64 {
	l.Helper()
	l.calls++
	answer, err := l.server.NodeGetVolumeStats(l.Context(), &csi.NodeGetVolumeStatsRequest{
		VolumeId: l.Volume.ID, VolumePath: podPath, StagingTargetPath: stagePath,
	})
	if err != nil {
		l.Errorf("stats: %v", err)
	}
	for _, usage := range answer.GetUsage() {
		if usage.GetUnit() == csi.VolumeUsage_BYTES && usage.GetTotal() > 0 {
			return usage.GetTotal()
		}
	}
	l.Errorf("stats without a size: %v", answer)
	return 0
}
