package plugin_test

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// wantOffline looks at the disk itself.
func (d *driver) wantOffline(number uint32, want bool) {
	d.t.Helper()
	if info, err := d.node.DiskInfo(number); err != nil || info.Offline != want {
		d.t.Errorf("disk %d is %+v, %v; offline should be %v", number, info, err, want)
	}
}

// TestUnstage_OtherPath shows that a volume can be unstaged where it is not, and that its pod
// notices nothing.
func TestUnstage_OtherPath(t *testing.T) {
	inBothModes(t, func(d *driver) {
		p := newDiskPod(d, "web")
		p.stage()
		p.publish()
		p.write("precious")

		stranger := newDiskPod(d, "stranger")
		stranger.unstage()
		p.wantContent("precious")
		d.wantOffline(1, false)

		p.unpublish()
		p.unstage()
		d.wantOffline(1, true)

		// The other path is free for the volume now.
		stranger.stage()
		stranger.publish()
		stranger.wantContent("precious")
		p.unstage()
		stranger.wantContent("precious")
		stranger.unpublish()
		stranger.unstage()
		d.wantOffline(1, true)
	})
}

// TestStage_TwoPaths shows that a disk stays online until it is unstaged at its last path.
func TestStage_TwoPaths(t *testing.T) {
	inBothModes(t, func(d *driver) {
		first, second := newDiskPod(d, "first"), newDiskPod(d, "second")
		for _, p := range []*pod{first, second} {
			p.stage()
			p.publish()
		}
		first.write("shared")
		first.unpublish()
		first.unstage()
		second.wantContent("shared")
		d.wantOffline(1, false)
		second.unpublish()
		second.unstage()
		d.wantOffline(1, true)
	})
}

// TestUnstage_Interrupted shows that a repeated call does what the first one did not come to.
func TestUnstage_Interrupted(t *testing.T) {
	inBothModes(t, func(d *driver) {
		t := d.t
		p := newDiskPod(d, "web")
		p.stage()
		fault, err := d.node.Inject(winsim.Fault{Call: "SetDiskAttributes", Error: 1117})
		must(t, err)
		_, err = d.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: p.handle, StagingTargetPath: p.staging})
		if status.Code(err) != codes.Internal || fault.Hits() == 0 {
			t.Errorf("unstage with a disk that cannot be taken offline: %v, want Internal", err)
		}
		fault.Remove()
		d.wantOffline(1, false)
		p.unstage()
		d.wantOffline(1, true)
	})
}

// TestUnstage_Twin shows that a copy of a disk that arrives later is not mistaken for it.
func TestUnstage_Twin(t *testing.T) {
	inBothModes(t, func(d *driver) {
		t := d.t
		p := newDiskPod(d, "web")
		p.stage()
		twin, err := d.node.AttachDisk(winsim.Disk{Size: 1 << 30, Serial: "WINSIM0001"})
		must(t, err)
		must(t, setOnline(t.Context(), d.node, twin, true))
		p.unstage()
		d.wantOffline(1, true)
		d.wantOffline(twin, false)
	})
}

// TestUnpublish_Unreadable shows that a pod gets rid of its link to a volume whose mount, or whose
// disk, is broken.
func TestUnpublish_Unreadable(t *testing.T) {
	const staging = kubelet + `\plugins\kubernetes.io\csi\csi-node-plugin.example.com\web\globalmount`
	for name, broken := range map[string]winsim.Fault{
		"mount": {Call: "ReparsePoint", Object: staging, Error: 1392},
		"disk":  {Call: "DeviceNumber", Error: 1117},
	} {
		t.Run(name, func(t *testing.T) {
			inBothModes(t, func(d *driver) {
				t := d.t
				p := newDiskPod(d, "web")
				p.stage()
				p.publish()
				fault, err := d.node.Inject(broken)
				must(t, err)
				_, err = d.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: p.handle, VolumePath: p.staging})
				if err == nil || fault.Hits() == 0 {
					t.Errorf("nothing is broken: %v", err)
				}
				p.unpublish()
				fault.Remove()
				p.unstage()
				d.wantOffline(1, true)
			})
		})
	}
}

// TestStage_AfterLoss shows that a disk that was torn out, and whose folder is gone, can be staged
// at another path when it is back.
func TestStage_AfterLoss(t *testing.T) {
	inBothModes(t, func(d *driver) {
		t := d.t
		p := newDiskPod(d, "web")
		p.stage()
		p.publish()
		p.write("precious")
		p.unpublish()
		must(t, d.node.DetachDisk(1))
		must(t, d.node.RemoveAll(p.staging))
		number, err := d.node.ReattachDisk(1)
		must(t, err)
		p.staging, p.target = paths(t, d.node, "web-2")
		p.stage()
		p.publish()
		p.wantContent("precious")
		p.unpublish()
		p.unstage()
		d.wantOffline(number, true)
	})
}

// TestStage_NoFolder shows that a folder that a share does not have is said when the volume is
// staged, and that nothing is left behind.
func TestStage_NoFolder(t *testing.T) {
	inBothModes(t, func(d *driver) {
		t := d.t
		staging, _ := paths(t, d.node, "web")
		for range 2 {
			_, err := d.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
				VolumeId: "smb/files/data/none", StagingTargetPath: staging, VolumeCapability: mounted(""),
				Secrets: map[string]string{"username": "csi", "password": "csi-Pa55"},
			})
			if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), `\\files\data\none`) {
				t.Errorf("stage: %v, want NotFound with the folder", err)
			}
			if d.node.Exists(staging) {
				t.Errorf("a link was left at %s", staging)
			}
		}
		if mappings, err := d.node.SMBMappings(t.Context()); err != nil || len(mappings) != 0 {
			t.Errorf("no volume uses the share, but its mappings are %v, %v", mappings, err)
		}
	})
}

// TestStage_FolderLost shows that the link to a folder stays if the folder is lost while pods
// have it: it works again when the folder is back.
func TestStage_FolderLost(t *testing.T) {
	inBothModes(t, func(d *driver) {
		t := d.t
		p := &pod{
			driver: d, handle: "smb/files/data/folder", capability: mounted(""),
			secrets: map[string]string{"username": "csi", "password": "csi-Pa55"},
		}
		root := &pod{driver: d, handle: "smb/files/data", capability: mounted(""), secrets: p.secrets}
		root.staging, root.target = paths(t, d.node, "root")
		p.staging, p.target = paths(t, d.node, "web")
		root.stage()
		root.publish()
		must(t, d.node.Mkdir(root.target+`\folder`))
		p.stage()
		p.publish()
		must(t, d.node.RemoveAll(root.target+`\folder`))
		_, err := d.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
			VolumeId: p.handle, StagingTargetPath: p.staging, VolumeCapability: p.capability, Secrets: p.secrets,
		})
		if status.Code(err) != codes.NotFound {
			t.Errorf("stage: %v, want NotFound", err)
		}
		must(t, d.node.Mkdir(root.target+`\folder`))
		p.write("back")
		p.wantContent("back")
	})
}
