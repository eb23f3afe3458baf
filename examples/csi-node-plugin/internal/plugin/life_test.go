package plugin_test

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// pod is a pod's volume, with what kubelet sends about it. Every call is made twice, as
// kubelet does when it has lost an answer.
type pod struct {
	*driver
	handle          string
	capability      *csi.VolumeCapability
	secrets         map[string]string
	staging, target string
}

// newDiskPod is a pod that wants the first data disk of the node.
func newDiskPod(d *driver, name string) *pod {
	d.t.Helper()
	p := &pod{driver: d, handle: "disk/WINSIM0001", capability: mounted("ntfs")}
	p.staging, p.target = paths(d.t, d.node, name)
	return p
}

func (p *pod) twice(what string, call func() error) {
	p.t.Helper()
	for range 2 {
		if err := call(); err != nil {
			p.t.Fatalf("%s: %v", what, err)
		}
	}
}

func (p *pod) stage() {
	p.t.Helper()
	p.twice("stage", p.stageOnce)
}

func (p *pod) stageOnce() error {
	_, err := p.NodeStageVolume(p.t.Context(), &csi.NodeStageVolumeRequest{
		VolumeId: p.handle, StagingTargetPath: p.staging, VolumeCapability: p.capability, Secrets: p.secrets,
	})
	return err
}

func (p *pod) publish() {
	p.t.Helper()
	p.twice("publish", p.publishOnce)
}

func (p *pod) publishOnce() error {
	_, err := p.NodePublishVolume(p.t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: p.handle, StagingTargetPath: p.staging, TargetPath: p.target, VolumeCapability: p.capability,
	})
	return err
}

func (p *pod) stats() (*csi.NodeGetVolumeStatsResponse, error) {
	return p.NodeGetVolumeStats(p.t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: p.handle, VolumePath: p.target})
}

func (p *pod) usage() *csi.VolumeUsage {
	p.t.Helper()
	response, err := p.stats()
	if err != nil {
		p.t.Fatalf("stats: %v", err)
	}
	if len(response.Usage) != 1 || response.Usage[0].Unit != csi.VolumeUsage_BYTES {
		p.t.Fatalf("stats are %v, want one usage in bytes", response.Usage)
	}
	return response.Usage[0]
}

func (p *pod) expand(required int64) (size int64) {
	p.t.Helper()
	p.twice("expand", func() (err error) {
		size, err = p.expandOnce(required)
		return err
	})
	return size
}

func (p *pod) expandOnce(required int64) (int64, error) {
	response, err := p.NodeExpandVolume(p.t.Context(), &csi.NodeExpandVolumeRequest{
		VolumeId: p.handle, VolumePath: p.target, CapacityRange: &csi.CapacityRange{RequiredBytes: required},
	})
	return response.GetCapacityBytes(), err
}

func (p *pod) unpublish() {
	p.t.Helper()
	p.twice("unpublish", p.unpublishOnce)
	if p.node.Exists(p.target) {
		p.t.Errorf("%s is still there after NodeUnpublishVolume", p.target)
	}
}

func (p *pod) unpublishOnce() error {
	_, err := p.NodeUnpublishVolume(p.t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: p.handle, TargetPath: p.target})
	return err
}

func (p *pod) unstage() {
	p.t.Helper()
	p.twice("unstage", p.unstageOnce)
}

func (p *pod) unstageOnce() error {
	_, err := p.NodeUnstageVolume(p.t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: p.handle, StagingTargetPath: p.staging})
	return err
}

// write and read are the pod's own doing, through its link.
func (p *pod) write(content string) {
	p.t.Helper()
	must(p.t, p.node.WriteFile(p.target+`\data.txt`, content))
}

func (p *pod) wantContent(want string) {
	p.t.Helper()
	if got, err := p.node.ReadFile(p.target + `\data.txt`); err != nil || got != want {
		p.t.Errorf("the pod reads %q, %v, want %q", got, err, want)
	}
}

// TestLife_Disk is the life of a pod's volume on a disk, and a second one with the same data.
func TestLife_Disk(t *testing.T) {
	inBothModes(t, func(d *driver) {
		t := d.t
		const number = 1
		p := newDiskPod(d, "web")

		p.stage()
		p.publish()
		p.write("precious")
		before := p.usage()
		if before.Total < 9<<30 || before.Total > 10<<30 || before.Total != before.Used+before.Available {
			t.Errorf("the usage of a disk of 10 GiB is %v", before)
		}

		must(t, d.node.GrowDisk(number, 15<<30))
		if size := p.expand(15 << 30); size != 15<<30 {
			t.Errorf("the disk has %d bytes after it has grown to 15 GiB", size)
		}
		if after := p.usage(); after.Total < before.Total+4<<30 {
			t.Errorf("the volume has %d bytes after its disk has grown by 5 GiB, %d before", after.Total, before.Total)
		}
		p.wantContent("precious")

		p.unpublish()
		p.unstage()
		if info, err := d.node.DiskInfo(number); err != nil || !info.Offline {
			t.Errorf("the disk can be detached safely only if it is offline: %+v, %v", info, err)
		}

		// The next pod gets the disk under another number, with the data of the first.
		must(t, d.node.DetachDisk(number))
		if _, err := d.node.AttachDisk(winsim.Disk{Size: 1 << 30}); err != nil { // takes the number
			t.Fatal(err)
		}
		if again, err := d.node.ReattachDisk(number); err != nil || again == number {
			t.Fatalf("the disk has number %d again: %v", again, err)
		}
		p.staging, p.target = paths(t, d.node, "web-2")
		p.stage()
		p.publish()
		p.wantContent("precious")
		p.unpublish()
		p.unstage()
	})
}

// TestLife_Share is the life of two pods' volumes on one share.
func TestLife_Share(t *testing.T) {
	inBothModes(t, func(d *driver) {
		t := d.t
		secrets := map[string]string{"username": "csi", "password": "csi-Pa55"}
		first := &pod{driver: d, handle: "smb/files/data", capability: mounted(""), secrets: secrets}
		first.staging, first.target = paths(t, d.node, "first")
		second := &pod{driver: d, handle: "smb/files/data/", capability: mounted(""), secrets: secrets}
		second.staging, second.target = paths(t, d.node, "second")

		first.stage()
		first.publish()
		first.write("shared")
		if usage := first.usage(); usage.Total == 0 || usage.Used+usage.Available != usage.Total {
			t.Errorf("the usage of the share is %v", usage)
		}
		if size := first.expand(1 << 40); size != 0 {
			t.Errorf("the plugin says that the share has %d bytes; only its server knows", size)
		}

		second.stage()
		second.publish()
		second.wantContent("shared")
		first.unpublish()
		first.unstage()
		second.wantContent("shared") // the share is still connected

		second.unpublish()
		second.unstage()
		mappings, err := d.node.SMBMappings(t.Context())
		if err != nil || len(mappings) != 0 {
			t.Errorf("no volume uses the share, but its mappings are %v, %v", mappings, err)
		}
	})
}

// TestCondition shows what kubelet hears of a volume that is not well.
func TestCondition(t *testing.T) {
	inBothModes(t, func(d *driver) {
		t := d.t
		p := newDiskPod(d, "web")
		p.stage()
		p.publish()
		info, err := d.node.DiskInfo(1)
		must(t, err)
		id := info.Partitions[len(info.Partitions)-1].Volume.ID
		want := func(abnormal, used bool, says string) {
			t.Helper()
			response, err := p.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: p.handle, VolumePath: p.target, StagingTargetPath: p.staging})
			must(t, err)
			is := response.GetVolumeCondition()
			if is.GetAbnormal() != abnormal || !strings.Contains(is.GetMessage(), says) || (len(response.GetUsage()) > 0) != used {
				t.Errorf("%v, want abnormal %v, %q, usage %v", response, abnormal, says, used)
			}
		}
		want(false, true, "well")
		for _, trouble := range []struct {
			says   string
			used   bool
			change func() error
		}{
			{"dirty", true, func() error { return d.node.DamageVolume(id, winsim.Damage{Dirty: true}) }},
			{"damage", true, func() error { return d.node.DamageVolume(id, winsim.Damage{Corruption: winsim.Noted}) }},
			{"fail", true, func() error { return d.node.SetDiskHealth(1, winsim.DiskPredicts) }},
			{"", false, func() error { return d.node.FailDisk(1) }},
		} {
			must(t, trouble.change())
			want(true, trouble.used, trouble.says)
			must(t, d.node.HealDisk(1))
			must(t, d.node.DamageVolume(id, winsim.Damage{}))
			must(t, d.node.SetDiskHealth(1, winsim.DiskWell))
		}
		must(t, d.node.DetachDisk(1))
		want(true, false, "gone")
	})
}
