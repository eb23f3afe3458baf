package mountertest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Paths as the kubelet makes them.
const (
	staging = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\test\1\globalmount`
	target  = `C:\var\lib\kubelet\pods\1\volumes\kubernetes.io~csi\pv\mount`
)

// kit is a Mounter on an emulated node.
type kit struct {
	*mounter.Mounter
	t    *testing.T
	ctx  context.Context //nolint:containedctx // that of the case
	node *winsim.Node
	// option opened the Mounter of the driver, stop ends its daemon.
	option mounter.Option
	driver *mountertest.Driver
	stop   func()
}

func newKit(t *testing.T, mode mounter.Mode, model winsim.Model) *kit {
	t.Helper()
	node, err := winsim.New(model)
	must(t, err)
	return newKitOn(t, mode, node)
}

func newKitOn(t *testing.T, mode mounter.Mode, node *winsim.Node) *kit {
	t.Helper()
	driver := mountertest.NewDriver(node)
	option, stop := driver.Restart(), func() {}
	if mode == mounter.Daemon {
		d := mountertest.NewDaemon(t, node)
		option, stop = d.Option(), d.Stop
	}
	m, err := mounter.New(t.Context(), option)
	must(t, err)
	if m.Mode() != mode {
		t.Fatalf("mode %s, want %s", m.Mode(), mode)
	}
	t.Cleanup(func() { _ = m.Close() })
	t.Cleanup(node.Reboot) // it ends what a bad disk holds
	return &kit{Mounter: m, t: t, ctx: t.Context(), node: node, option: option, driver: driver, stop: stop}
}

// again ends the driver and the daemon, and starts new ones.
func (k *kit) again() *kit {
	k.t.Helper()
	_ = k.Close()
	k.stop()
	return newKitOn(k.t, k.Mode(), k.node)
}

// number is the disk with a number.
func number(n uint32) mounter.Disk { return mounter.DiskNumber(n) }

// stage stages a disk.
func (k *kit) stage(change ...func(*mounter.StageRequest)) error {
	request := mounter.StageRequest{Path: staging, Source: number(1)}
	for _, f := range change {
		f(&request)
	}
	_, err := k.Stage(k.ctx, request)
	return err
}

// tear takes a volume with a file away from its path, and damages it.
func (k *kit) tear(d winsim.Damage) {
	k.t.Helper()
	k.must(k.stage())
	k.must(k.node.WriteFile(staging+`\file`, "text"))
	id := k.volume()
	k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
	k.must(k.node.DamageVolume(id, d))
}

// volume is the id of the volume that is staged.
func (k *kit) volume() string {
	k.t.Helper()
	staged, err := k.StagedAt(k.ctx, staging)
	k.must(err)
	return staged.VolumeID
}

// wantCondition checks the staged volume, where it is staged and where it is published, if it is.
func (k *kit) wantCondition(abnormal bool, says string) {
	k.t.Helper()
	for _, path := range []string{staging, target} {
		if path == target && !k.node.Exists(target) {
			continue
		}
		if condition, err := k.Condition(k.ctx, path); err != nil || condition.Abnormal != abnormal || !strings.Contains(condition.Message, says) {
			k.t.Errorf("%s: %+v, %v, want %v with %q", path, condition, err, abnormal, says)
		}
	}
}

func (k *kit) stageShare(change ...func(*mounter.SMB)) error {
	share := mounter.SMB{Remote: "//files/data/", Username: "csi", Password: "csi-Pa55"}
	for _, f := range change {
		f(&share)
	}
	_, err := k.Stage(k.ctx, mounter.StageRequest{Path: staging, Source: share})
	return err
}

func (k *kit) unstage() error {
	return k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true, Source: number(1)})
}

// must ends the test if the preparation of a case fails.
func (k *kit) must(errs ...error) {
	k.t.Helper()
	must(k.t, errors.Join(errs...))
}

// want is the outcome of a case: a class, and a part of the sentence.
type want struct {
	class failure.Class
	says  string
}

// cases run in both modes, which must agree on every result and every sentence.
var cases = map[string]struct {
	model func() winsim.Model // nil means winsim.Default
	// run returns what the case is about; it can check more of the node itself.
	run func(k *kit) (result any, err error)
	// answers is the result, and empty if there is none.
	answers string
	want    want
}{
	"stage a blank disk": {answers: "text", run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.stage())
		k.must(k.node.WriteFile(staging+`\file`, "text"))
		k.must(k.stage()) // it keeps the data
		content, err := k.node.ReadFile(staging + `\file`)
		return content, err
	}},
	"a pointer to a source": {answers: "false", run: func(k *kit) (any, error) {
		disk, share := number(1), csiShare
		k.must(k.stage(func(r *mounter.StageRequest) { r.Source = &disk }))
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Source: &disk}))
		k.must(k.stage(func(r *mounter.StageRequest) { r.Source = &share }))
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Source: &share}))
		return k.node.Exists(staging), nil
	}},
	"torn, reported": {answers: "text", run: func(k *kit) (any, error) {
		k.tear(winsim.Damage{Dirty: true})
		var warned atomic.Bool
		k.ctx = klog.NewContext(k.ctx, funcr.New(func(_, args string) {
			if strings.Contains(args, "not well, and is mounted") && strings.Contains(args, "the volume is dirty") {
				warned.Store(true)
			}
		}, funcr.Options{}))
		k.must(k.stage())
		if !warned.Load() {
			k.t.Error("the log does not say that the volume is dirty")
		}
		k.wantCondition(true, "dirty")
		return k.node.ReadFile(staging + `\file`)
	}},
	"damaged, reported": {answers: "text", run: func(k *kit) (any, error) {
		k.tear(winsim.Damage{Corruption: winsim.Severe})
		k.must(k.stage(func(r *mounter.StageRequest) { r.ReadOnly = true }))
		k.wantCondition(true, "offline repair needed")
		return k.node.ReadFile(staging + `\file`)
	}},
	"a report that fails": {run: func(k *kit) (any, error) {
		k.tear(winsim.Damage{Dirty: true})
		k.must(second(k.node.Inject(winsim.Fault{Call: "VolumeDirty", Error: 1117})))
		return nil, k.stage()
	}},
	"conditions of a disk": {answers: "{false false  }", run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.Publish(k.ctx, staging, target))
		k.wantCondition(false, "well")
		k.must(k.node.SetDiskHealth(1, winsim.DiskPredicts))
		k.wantCondition(true, "disk 1 reports trouble: expects to fail")
		k.must(k.node.SetDiskHealth(1, winsim.DiskWell))
		k.must(k.node.DamageVolume(k.volume(), winsim.Damage{Corruption: winsim.Noted}))
		k.wantCondition(true, "spot fix needed")
		k.must(k.node.DamageVolume(k.volume(), winsim.Damage{}))
		disks, err := disk.New(k.node.Disk())
		k.must(err)
		for _, readOnly := range []bool{true, false} {
			k.must(second(disks.SetDiskReadOnly(k.ctx, &disk.SetDiskReadOnlyRequest{DiskNumber: 1, IsReadOnly: readOnly, MustBe: disk.MustBe{VolumeID: k.volume(), Path: staging}})))
			for range 2 {
				k.wantCondition(readOnly, map[bool]string{true: "has become read-only", false: "well"}[readOnly])
				k.restart()
			}
		}
		k.must(second(k.node.Inject(winsim.Fault{Call: "VolumeSpace", Times: 2, Error: 1117})))
		k.wantCondition(true, "I/O error")
		k.must(k.node.FailDisk(1))
		k.wantCondition(true, "I/O error")
		k.must(k.node.HealDisk(1))
		k.must(second(disks.SetDiskState(k.ctx, &disk.SetDiskStateRequest{DiskNumber: 1, MustBe: disk.MustBe{VolumeID: k.volume(), Path: staging}})))
		k.wantCondition(true, "its disk is offline")
		k.must(k.node.DetachDisk(1))
		k.wantCondition(true, "no volume is there any more")
		return k.Condition(k.ctx, "relative")
	}, want: want{failure.NotFound, "relative"}},
	"a condition whose calls fail in turn": {run: func(k *kit) (any, error) {
		k.must(k.stage())
		for _, call := range []string{"ReparsePoint", "FileSystem", "VolumeDirty", "VolumeHealth", "DeviceNumber", "DiskHealth", "VolumeSpace"} {
			fault, err := k.node.Inject(winsim.Fault{Call: call, Error: 1117})
			k.must(err)
			condition, err := k.Condition(k.ctx, staging)
			if fault.Remove(); fault.Hits() == 0 || err == nil && strings.Contains(condition.Message, "well") {
				k.t.Errorf("%s failed: %+v", call, condition)
			}
		}
		k.wantCondition(false, "well")
		return nil, nil
	}},
	"conditions of a share": {run: func(k *kit) (any, error) {
		k.must(k.stageShare())
		k.must(k.Publish(k.ctx, staging, target))
		k.wantCondition(false, "well")
		k.must(k.node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Down = true }))
		k.wantCondition(true, "the share does not answer")
		return nil, nil
	}},
	"ReFS": {run: func(k *kit) (any, error) {
		k.must(k.stage(func(r *mounter.StageRequest) { r.FSType = "ReFS" }))
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
		k.must(k.stage(func(r *mounter.StageRequest) { r.FSType = "ntfs" })) // it keeps what is there
		info, err := k.node.DiskInfo(1)
		if fs := info.Partitions[len(info.Partitions)-1].Volume.FileSystem; fs != winsim.ReFS {
			k.t.Errorf("the file system is %s", fs)
		}
		return nil, err
	}},
	"no ReFS": {model: func() winsim.Model {
		model := winsim.Default()
		model.Storage.NoReFS = true
		return model
	}, run: func(k *kit) (any, error) {
		return nil, k.stage(func(r *mounter.StageRequest) { r.FSType = "refs" })
	}, want: want{failure.Unsupported, "this edition of Windows"}},
	"stage by LUN": {answers: "2", model: winsim.Azure, run: func(k *kit) (any, error) {
		staged, err := k.Stage(k.ctx, mounter.StageRequest{Path: staging, Source: mounter.Disk{LUN: "1", Adapter: "1"}})
		return staged.DiskNumber, err
	}},
	"find by every key, Compute Engine": {model: winsim.GCENVMe, run: (*kit).findByKeys, answers: "[disk 1 by EUI-64 disk 1 by page 83 disk 1 by serial disk 2 by EUI-64 disk 2 by page 83 disk 2 by serial]"},
	"find by every key, Azure":          {model: winsim.AzureNVMe, run: (*kit).findByKeys, answers: "[disk 1 by NGUID disk 1 by namespace disk 1 by page 83 disk 1 by serial disk 2 by NGUID disk 2 by namespace disk 2 by page 83 disk 2 by serial disk 3 by NGUID disk 3 by serial]"},
	"stage by page 83, offline and read-only": {answers: "1", model: winsim.VSphere, run: func(k *kit) (any, error) {
		staged, err := k.Stage(k.ctx, mounter.StageRequest{Path: staging, Source: mounter.Disk{Page83: k.disks()[1].Page83}})
		k.must(err)
		return staged.DiskNumber, k.node.WriteFile(staging+`\file`, "text")
	}},
	"stage by the namespace of NVMe": {answers: "1", model: winsim.AzureNVMe, run: func(k *kit) (any, error) {
		staged, err := k.Stage(k.ctx, mounter.StageRequest{Path: staging, Source: mounter.Disk{NamespaceID: 2}})
		return staged.DiskNumber, err
	}},
	"a disk that is not there": {run: func(k *kit) (any, error) {
		return nil, k.stage(func(r *mounter.StageRequest) { r.Source = mounter.Disk{Serial: "none"} })
	}, want: want{failure.NotFound, "there is no such disk"}},
	"several disks match": {run: func(k *kit) (any, error) {
		return nil, k.stage(func(r *mounter.StageRequest) { r.Source = mounter.Disk{Bus: k.disks()[1].Bus} })
	}, want: want{failure.InUse, "several disks match"}},
	"the disk of Windows": {run: func(k *kit) (any, error) {
		return nil, k.stage(func(r *mounter.StageRequest) { r.Source = number(0) })
	}, want: want{failure.NotFound, "only the disk that Windows runs from"}},
	"a disk of Linux": {answers: "true", run: func(k *kit) (any, error) {
		_, err := k.node.AttachDisk(winsim.Disk{
			Number: 7, Size: winsim.GiB, Bus: winsim.BusSAS, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Type: "linux"}},
		})
		k.must(err)
		return k.untouched(7, func() error { return k.stage(func(r *mounter.StageRequest) { r.Source = number(7) }) })
	}, want: want{failure.InUse, "Linux"}},
	"another file system": {run: func(k *kit) (any, error) {
		return nil, k.stage(func(r *mounter.StageRequest) { r.FSType = "ext4 " })
	}, want: want{failure.Invalid, `file system "ext4 " is not supported`}},
	"ro among other options": {run: func(k *kit) (any, error) {
		return nil, k.stage(func(r *mounter.StageRequest) { r.MountFlags = []string{"noatime,ro"} })
	}, want: want{failure.InUse, "cannot get one read-only"}},
	"ro of a share": {run: func(k *kit) (any, error) {
		return nil, k.stage(func(r *mounter.StageRequest) {
			r.Source, r.MountFlags = mounter.SMB{Remote: "//files/data"}, []string{"ro"}
		})
	}, want: want{failure.Invalid, "cannot be staged read-only"}},
	"a disk without keys": {run: func(k *kit) (any, error) {
		return nil, k.stage(func(r *mounter.StageRequest) { r.Source = mounter.Disk{} })
	}, want: want{failure.Invalid, "has no keys"}},
	"outside the working directories": {answers: "true", run: func(k *kit) (any, error) {
		return k.untouched(1, func() error { return k.stage(func(r *mounter.StageRequest) { r.Path = `C:\Windows\x` }) })
	}, want: want{failure.Denied, `C:\Windows`}},
	"format options": {answers: "data64KiB", run: func(k *kit) (any, error) {
		k.must(k.stage(func(r *mounter.StageRequest) {
			r.Format = mounter.FormatOptions{AllocationUnitSize: 64 << 10, Label: "data", RootAccess: "users-modify"}
		}))
		info, err := k.node.DiskInfo(1)
		k.must(err)
		volume := info.Partitions[len(info.Partitions)-1].Volume
		return fmt.Sprint(volume.Label, volume.ClusterSize), k.node.WriteFileAsUser(staging+`\file`, "text")
	}},
	"a wrong format option": {run: func(k *kit) (any, error) {
		return nil, k.stage(func(r *mounter.StageRequest) { r.Format = mounter.FormatOptions{AllocationUnitSize: 3} })
	}, want: want{failure.Invalid, "3"}},
	"read-only, then writable": {answers: "true", run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.unstage())
		for range 2 {
			k.must(k.stage(func(r *mounter.StageRequest) { r.ReadOnly = true }))
		}
		readOnly := k.node.WriteFile(staging+`\file`, "text")
		k.must(k.unstage())
		k.must(k.stage())
		return readOnly != nil, k.node.WriteFile(staging+`\file`, "text")
	}},
	"read-only, but blank": {answers: "true", run: func(k *kit) (any, error) {
		return k.untouched(1, func() error { return stageReadOnly(k) })
	}, want: want{failure.InUse, "no file system"}},
	"another volume at the staging path": {answers: "true", run: func(k *kit) (any, error) {
		k.must(k.stage())
		return k.untouched(2, func() error { return k.stage(func(r *mounter.StageRequest) { r.Source = number(2) }) })
	}, want: want{failure.Exists, staging}},
	"a share at the staging path": {answers: "true", run: func(k *kit) (any, error) {
		k.must(k.stageShare())
		return k.untouched(1, func() error { return k.stage() })
	}, want: want{failure.Exists, staging}},
	"a folder with content at the staging path": {answers: "true", run: func(k *kit) (any, error) {
		k.must(k.node.WriteFile(staging+`\precious`, "data"))
		return k.untouched(1, func() error { return k.stage() })
	}, want: want{failure.InUse, "move them away"}},
	"a file at the staging path": {answers: "true", run: func(k *kit) (any, error) {
		k.must(k.node.WriteFile(staging, "data"))
		return k.untouched(1, func() error { return k.stage() })
	}, want: want{failure.InUse, "move them away"}},
	"a folder with content where a share is staged": {answers: "[]", run: func(k *kit) (any, error) {
		k.must(k.node.WriteFile(staging+`\precious`, "data"))
		err := k.stageShare()
		return k.node.Describe().SMBMappings, err
	}, want: want{failure.InUse, "move them away"}},
	"read-only where a pod writes": {run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.Publish(k.ctx, staging, target))
		err := stageReadOnly(k)
		k.must(k.node.WriteFile(target+`\file`, "text"))
		return nil, err
	}, want: want{failure.InUse, "unpublish it first"}},
	"read-only where it was writable": {answers: "true", run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(stageReadOnly(k))
		return k.node.WriteFile(staging+`\file`, "text") != nil, nil
	}},
	"unstage what is published": {answers: "true", run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.Publish(k.ctx, staging, target))
		err := k.unstage()
		k.must(k.node.WriteFile(target+`\file`, "text"))
		k.must(k.Unpublish(k.ctx, target))
		k.must(k.unstage())
		info, infoErr := k.node.DiskInfo(1)
		k.must(infoErr)
		return info.Offline, err
	}, want: want{failure.InUse, "unpublish it first"}},
	"unstage what was published before a restart of the driver": {answers: "false", run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.Publish(k.ctx, staging, target))
		k.restart()
		err := k.unstage()
		k.must(k.node.WriteFile(target+`\file`, "text"))
		k.must(k.node.RemoveAll(target)) // not by this driver
		k.must(k.unstage())
		return k.node.Exists(staging), err
	}, want: want{failure.InUse, "unpublish it first"}},
	"unstage a share that is published": {run: func(k *kit) (any, error) {
		k.must(k.stageShare())
		k.must(k.Publish(k.ctx, staging, target))
		err := k.unstage()
		k.must(k.node.WriteFile(target+`\file`, "text"))
		return nil, err
	}, want: want{failure.InUse, "unpublish it first"}},
	"unmount what is published": {run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.Publish(k.ctx, staging, target))
		err := k.Unmount(staging)
		k.must(k.node.WriteFile(target+`\file`, "text"))
		k.must(k.Unmount(target))
		k.must(k.Unmount(staging))
		return nil, err
	}, want: want{failure.InUse, "unpublish it first"}},
	"unstage one of two paths, the other is published": {run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.stage(func(r *mounter.StageRequest) { r.Path = staging + "2" }))
		k.must(k.Publish(k.ctx, staging+"2", target))
		k.must(k.unstage())
		return nil, k.node.WriteFile(target+`\file`, "text")
	}},
	"an unstage that was interrupted, without keys": {answers: "true false", run: func(k *kit) (any, error) {
		k.must(k.stage())
		_, err := k.node.Inject(winsim.Fault{Call: "SetDiskAttributes", Error: 5, Times: 1})
		k.must(err)
		first := unstagePath(k)
		k.restart()
		k.must(unstagePath(k))
		info, err := k.node.DiskInfo(1)
		k.must(err)
		return fmt.Sprint(info.Offline, k.node.Exists(staging)), first
	}, want: want{failure.Denied, "disk 1"}},
	"the disk is gone at unstage": {answers: "false", run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.node.DetachDisk(1))
		k.must(k.unstage())
		k.must(k.unstage())
		return k.node.Exists(staging), nil
	}},
	"a mount of a lost disk at the staging path": {run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.node.DetachDisk(1))
		k.must(k.stage(func(r *mounter.StageRequest) { r.Source = number(2) }))
		return nil, k.node.WriteFile(staging+`\file`, "text")
	}},
	"the disk takes nothing at unstage": {answers: "true false", run: func(k *kit) (any, error) {
		k.must(k.stage())
		_, err := k.node.Inject(winsim.Fault{Call: "FlushVolume", Error: 1117})
		k.must(err)
		first := k.unstage()
		stays := k.node.Exists(staging)
		k.must(k.unstage())
		return fmt.Sprint(stays, k.node.Exists(staging)), first
	}, want: want{failure.Internal, "stays mounted"}},
	"the disk takes nothing at unstage, nor goes offline": {answers: "online, gone", run: func(k *kit) (any, error) {
		k.must(k.stage())
		for _, call := range []string{"FlushVolume", "SetDiskAttributes"} {
			_, err := k.node.Inject(winsim.Fault{Call: call, Error: 1117})
			k.must(err)
		}
		first := unstagePath(k)
		k.must(unstagePath(k))
		info, err := k.node.DiskInfo(1)
		k.must(err)
		state := map[bool]string{true: "offline", false: "online"}[info.Offline]
		return state + ", " + map[bool]string{true: "mounted", false: "gone"}[k.node.Exists(staging)], first
	}, want: want{failure.Internal, "stays mounted"}},
	"unstage takes the disk offline": {answers: "true false", run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.unstage())
		info, err := k.node.DiskInfo(1)
		return fmt.Sprint(info.Offline, k.node.Exists(staging)), err
	}},
	"unstage keeps a disk online that is mounted at another path": {answers: "false", run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.stage(func(r *mounter.StageRequest) { r.Path = staging + "2" }))
		k.must(k.unstage())
		k.must(k.unstage()) // where it is not
		info, err := k.node.DiskInfo(1)
		return info.Offline, err
	}},
	"unstage a folder with content": {answers: "data", run: func(k *kit) (any, error) {
		k.must(k.node.WriteFile(staging+`\precious`, "data"))
		err := k.unstage()
		content, readErr := k.node.ReadFile(staging + `\precious`)
		k.must(readErr)
		return content, err
	}, want: want{failure.InUse, staging}},
	"unstage a pod's path": {answers: "data", run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.Publish(k.ctx, staging, target))
		k.must(k.node.WriteFile(staging+`\file`, "data"))
		err := k.Unstage(k.ctx, mounter.UnstageRequest{Path: target, Offline: true})
		content, readErr := k.node.ReadFile(target + `\file`)
		k.must(readErr)
		return content, err
	}, want: want{failure.InUse, target}},
	"publish": {answers: "[" + staging + "]", run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.Publish(k.ctx, staging, target))
		k.must(k.Publish(k.ctx, staging, target))
		k.must(k.node.WriteFile(target+`\file`, "text"))
		refs, err := k.GetMountRefs(target)
		k.must(err)
		k.must(k.Unpublish(k.ctx, target))
		k.must(k.Unpublish(k.ctx, target))
		return refs, nil
	}},
	"publish what is not staged": {run: func(k *kit) (any, error) {
		return nil, k.Publish(k.ctx, staging, target)
	}, want: want{failure.InUse, "stage the volume first"}},
	"publish over a stale link": {run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.node.Mkdir(target))
		k.must(k.node.RemoveAll(target))
		k.must(k.node.Symlink(target, `C:\var\lib\kubelet\gone`))
		return nil, k.Publish(k.ctx, staging, target)
	}},
	"publish over an empty folder": {run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.node.Mkdir(target))
		return nil, k.Publish(k.ctx, staging, target)
	}},
	"publish over a folder with content": {run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.node.WriteFile(target+`\precious`, "data"))
		return nil, k.Publish(k.ctx, staging, target)
	}, want: want{failure.InUse, target}},
	"publish over a link to another volume": {run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.stage(func(r *mounter.StageRequest) { r.Path, r.Source = staging+"2", number(2) }))
		k.must(k.Publish(k.ctx, staging+"2", target))
		return nil, k.Publish(k.ctx, staging, target)
	}, want: want{failure.Exists, target}},
	"publish a share that a restart of Windows has disconnected": {answers: "text", run: func(k *kit) (any, error) {
		k.must(publishShare(k))
		k.node.Reboot()
		k.restart()
		dead := k.Publish(k.ctx, staging, target)
		k.must(k.Publish(k.ctx, staging, target, &csiShare), k.Publish(k.ctx, staging, target+"2", csiShare))
		k.must(k.node.WriteFile(target+`2\file`, "text"))
		content, err := k.node.ReadFile(target + `\file`)
		k.must(err)
		return content, dead
	}, want: want{failure.Denied, "password is wrong"}},
	"publish a share that Windows does not map": {answers: "data", run: func(k *kit) (any, error) {
		k.must(publishShare(k))
		k.node.Reboot()
		k.restart()
		remembered, err := k.node.Inject(winsim.Fault{Call: "CreateSMBMapping", Error: 1202}) // ERROR_DEVICE_ALREADY_REMEMBERED
		k.must(err)
		refused := k.Publish(k.ctx, staging, target, csiShare)
		remembered.Remove()
		k.must(k.Publish(k.ctx, staging, target, csiShare))
		content, err := k.node.ReadFile(target + `\precious`)
		k.must(err)
		return content, refused
	}, want: want{failure.Exists, `\\files\data`}},
	"publish another share than is staged": {answers: "data", run: func(k *kit) (any, error) {
		k.must(publishShare(k))
		k.node.Reboot()
		k.restart()
		other := k.Publish(k.ctx, staging, target+"2", mounter.SMB{Remote: `\\files\more`, Username: "csi", Password: "csi-Pa55"})
		k.must(k.Publish(k.ctx, staging, target, csiShare))
		content, err := k.node.ReadFile(target + `\precious`)
		k.must(err)
		return content, other
	}, want: want{failure.Exists, `\\files\data is staged there, not \\files\more`}},
	"publish a share whose password was changed": {answers: "not allowed", run: func(k *kit) (any, error) {
		k.must(publishShare(k))
		k.must(k.node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[0].Password = "new" }))
		wrong := failure.ClassOf(k.Publish(k.ctx, staging, target, csiShare))
		share := csiShare
		share.Password = "new"
		k.must(k.Publish(k.ctx, staging, target, share))
		return wrong, k.node.WriteFile(target+`\file`, "text")
	}},
	"publish a share whose server is down": {answers: "data", run: func(k *kit) (any, error) {
		k.must(downServer(k))
		down := k.Publish(k.ctx, staging, target, csiShare)
		k.must(k.node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Down = false }))
		k.must(k.Publish(k.ctx, staging, target, csiShare))
		content, err := k.node.ReadFile(target + `\precious`)
		k.must(err)
		return content, down
	}, want: want{failure.Unavailable, `\\files\data`}},
	"publish with sources that cannot be": {answers: "invalid argument", run: func(k *kit) (any, error) {
		k.must(k.stage(), k.Publish(k.ctx, staging, target, number(1)), k.Publish(k.ctx, staging, target, nil))
		return failure.ClassOf(k.Publish(k.ctx, staging, target, csiShare, csiShare)), k.Publish(k.ctx, staging, target, mounter.SMB{})
	}, want: want{failure.Invalid, "the share has no name"}},
	"an inline share after a restart of Windows that left its mapping": {answers: "text", model: mappedBefore, run: func(k *kit) (any, error) {
		k.node.Reboot()
		k.restart()
		k.must(k.inline(target, csiShare), k.node.WriteFile(target+`\file`, "text"))
		k.node.Reboot()
		k.restart()
		k.must(k.inline(target, csiShare)) // the pod starts again, where its link is still
		content, err := k.node.ReadFile(target + `\file`)
		k.must(err, k.endInline(target))
		return content, k.bare()
	}},
	"two pods with inline shares and two accounts": {answers: "in use in use", model: twoAccounts, run: func(k *kit) (any, error) {
		other, second := mounter.SMB{Remote: `\\files\data`, Username: "jane", Password: "jane-Pa55", RefuseOtherUser: true}, target+"2"
		k.must(k.inline(target, csiShare))
		same := failure.ClassOf(k.inline(second, other))
		other.Remote = `\\files\more`
		conflict := k.inline(second, other)
		k.must(k.node.WriteFile(target+`\file`, "text"), k.endInline(target), k.inline(second, other), k.node.WriteFile(second+`\file`, "text"))
		k.must(k.endInline(second))
		k.must(k.bare())
		return fmt.Sprint(same, " ", failure.ClassOf(conflict)), conflict
	}, want: want{failure.InUse, "1219"}},
	"a pod with an inline share ends while its server is down": {run: func(k *kit) (any, error) {
		k.must(k.inline(target, csiShare), k.node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Down = true }))
		k.restart()
		k.must(k.endInline(target))
		k.must(k.endInline(target))
		return nil, k.bare()
	}},
	"expand": {answers: "[false true false]", run: func(k *kit) (any, error) {
		k.must(k.stage())
		before, err := k.NeedsResize(k.ctx, staging)
		k.must(err)
		k.must(k.node.GrowDisk(1, 20*winsim.GiB))
		grown, err := k.NeedsResize(k.ctx, staging)
		k.must(err)
		for range 2 {
			_, err = k.Expand(k.ctx, staging, int64(20*winsim.GiB))
			k.must(err)
		}
		after, err := k.NeedsResize(k.ctx, staging)
		return []bool{before, grown, after}, err
	}},
	"expand beyond the disk": {answers: "{10737418240 0}", run: func(k *kit) (any, error) {
		k.must(k.stage())
		return k.Expand(k.ctx, staging, int64(20*winsim.GiB))
	}, want: want{failure.Unavailable, "grow the disk first"}},
	"stats of a volume": {answers: "{10719588352 16777216 10702811136}", run: func(k *kit) (any, error) {
		k.must(k.stage())
		k.must(k.Publish(k.ctx, staging, target))
		return k.Stats(k.ctx, "c:/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pv/mount/")
	}},
	"stats of nothing": {answers: "{0 0 0}", run: func(k *kit) (any, error) {
		return k.Stats(k.ctx, target)
	}, want: want{failure.NotFound, target}},
	"a share": {answers: `{10737414144 16781312 10720632832} [{\\?\Volume{GUID}\ C: NTFS [rw] 0 0} {\\files\data ` + staging + ` cifs [rw] 0 0} {\\files\data ` + target + ` cifs [rw] 0 0}] []`, run: func(k *kit) (any, error) {
		k.must(k.node.Mkdir(staging)) // as the kubelet does
		k.must(k.stageShare())
		k.must(k.stageShare())
		k.must(k.Publish(k.ctx, staging, target))
		k.must(k.node.WriteFile(target+`\file`, "text"))
		usage, err := k.Stats(k.ctx, target)
		k.must(err)
		list, err := k.List()
		k.must(err)
		k.must(k.Unpublish(k.ctx, target))
		k.must(k.unstage())
		k.must(k.unstage())
		mappings, err := k.node.SMBMappings(k.ctx)
		return fmt.Sprint(usage, list, mappings), err
	}},
	"a share with a wrong password": {run: func(k *kit) (any, error) {
		return nil, k.stageShare(func(s *mounter.SMB) { s.Password = "wrong" })
	}, want: want{failure.Denied, "files"}},
	"a directory that the share does not have": {answers: "false", run: func(k *kit) (any, error) {
		err := k.stageShare(func(s *mounter.SMB) { s.Remote += "missing" })
		return k.node.Exists(staging), err
	}, want: want{failure.NotFound, "missing"}},
	"a share whose password was changed": {run: func(k *kit) (any, error) {
		k.must(k.stageShare())
		k.must(k.node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[0].Password = "new" }))
		k.must(k.stageShare(func(s *mounter.SMB) { s.Password = "new" }))
		return nil, k.node.WriteFile(staging+`\file`, "text")
	}},
	"a share for another user, refused": {run: func(k *kit) (any, error) {
		k.must(k.stageShare())
		_, err := k.Stage(k.ctx, mounter.StageRequest{Path: staging + "2", Source: mounter.SMB{
			Remote: `\\files\data`, Username: "other", Password: "x", RefuseOtherUser: true,
		}})
		return nil, err
	}, want: want{failure.InUse, "other"}},
	"a share without encryption": {answers: "true", model: plainServer, run: func(k *kit) (any, error) {
		refused := k.stageShare()
		return refused != nil, k.stageShare(func(s *mounter.SMB) { s.Privacy = mounter.PrivacyNotRequired })
	}},
	"a read-only share": {run: func(k *kit) (any, error) {
		_, err := k.Stage(k.ctx, mounter.StageRequest{Path: staging, Source: mounter.SMB{Remote: `\\files\data`}, ReadOnly: true})
		return nil, err
	}, want: want{failure.Invalid, "read-only"}},
	"mount.Interface": {answers: "true not found []", run: func(k *kit) (any, error) {
		k.must(k.Mount("1", staging, "", nil))
		k.must(k.Mount(staging, target, "", []string{"bind"}))
		isMount, err := k.IsMountPoint(target)
		k.must(err)
		k.must(k.Unmount(target))
		_, err = k.IsLikelyNotMountPoint(target)
		missing := failure.ClassOf(err)
		k.must(k.Unmount(staging))
		k.must(k.Unmount(staging))
		k.must(k.MountSensitive("//files/data", staging, "cifs", nil, []string{"csi", "csi-Pa55"}))
		k.must(k.Unmount(staging))
		mappings, err := k.node.SMBMappings(k.ctx)
		return fmt.Sprint(isMount, missing, mappings), err
	}},
	"cancelled, then repeated": {answers: "cancelled", run: func(k *kit) (any, error) {
		ctx, cancel := context.WithCancel(k.ctx)
		fault, err := k.node.Inject(winsim.Fault{Call: "Format", Do: func(*winsim.Node) { cancel() }})
		k.must(err)
		_, cancelled := k.Stage(ctx, mounter.StageRequest{Path: staging, Source: number(1)})
		fault.Remove()
		k.must(k.stage())
		return failure.ClassOf(cancelled), k.node.WriteFile(staging+`\file`, "text")
	}},
}

// inline and endInline are what a driver does in NodePublishVolume and NodeUnpublishVolume of an inline volume.
func (k *kit) inline(pod string, share mounter.SMB) error {
	return second(k.Stage(k.ctx, mounter.StageRequest{Path: pod, Source: share}))
}

func (k *kit) endInline(pod string) error {
	return k.Unstage(k.ctx, mounter.UnstageRequest{Path: pod})
}

// bare fails if a mapping or a pod's link is left.
func (k *kit) bare() error {
	if left := k.mounts(); strings.Contains(left, "mapped") || strings.Contains(left, "mount ->") {
		return errors.New(left)
	}
	return nil
}

func mappedBefore() winsim.Model {
	model := twoAccounts()
	model.SMBServers[0].Shares[1].MappedFor = "jane"
	return model
}

func twoAccounts() winsim.Model {
	model := winsim.Default()
	model.SMBServers[0].Accounts = append(model.SMBServers[0].Accounts, winsim.SMBAccount{User: "jane", Password: "jane-Pa55"})
	model.SMBServers[0].Shares = append(model.SMBServers[0].Shares, winsim.SMBShare{Name: "more"})
	return model
}

func plainServer() winsim.Model {
	model := winsim.Default()
	model.SMBServers[0].NoEncryption = true
	return model
}

// untouched returns whether a call has left a disk as it was.
func (k *kit) untouched(disk uint32, call func() error) (bool, error) {
	before, err := k.node.DiskFingerprint(disk)
	k.must(err)
	callErr := call()
	after, err := k.node.DiskFingerprint(disk)
	k.must(err)
	if before != after {
		k.t.Errorf("disk %d has changed", disk)
	}
	return before == after, callErr
}

// findByKeys stages the data disks by each key that they have, and returns which.
func (k *kit) findByKeys() (any, error) {
	var found []string
	for _, d := range k.disks() {
		if d.System {
			continue
		}
		for key, query := range map[string]mounter.Disk{
			"serial": {Serial: d.Serial}, "page 83": {Page83: d.Page83}, "EUI-64": {EUI64: d.EUI64}, "NGUID": {NGUID: d.NGUID}, "namespace": {NamespaceID: d.NamespaceID},
		} {
			if query == (mounter.Disk{}) {
				continue
			}
			staged, err := k.Stage(k.ctx, mounter.StageRequest{Path: staging, Source: query})
			if failure.ClassOf(err) == failure.InUse { // other disks have the key, too
				found = append(found, fmt.Sprintf("disk %d by %s: %v", *d.Number, key, err))
				continue
			}
			k.must(err)
			if staged.DiskNumber != *d.Number {
				k.t.Errorf("%s of disk %d finds disk %d", key, *d.Number, staged.DiskNumber)
			}
			k.must(k.unstage())
			found = append(found, fmt.Sprintf("disk %d by %s", *d.Number, key))
		}
	}
	slices.Sort(found)
	if text := fmt.Sprint(found); !strings.Contains(text, "by serial") || !strings.Contains(text, "by EUI-64") && !strings.Contains(text, "by NGUID") {
		k.t.Errorf("only %v", found)
	}
	return found, nil
}

// disks describes the disks of the node.
func (k *kit) disks() []nodeapi.Disk {
	k.t.Helper()
	machine, err := nodeapi.NewOn(k.node)
	k.must(err)
	found, err := machine.Describe(k.ctx)
	k.must(err)
	return found.Disks
}

// guid differs between two nodes.
var guid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func TestModes_Agree(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			outcomes := map[mounter.Mode]string{}
			for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
				t.Run(mode.String(), func(t *testing.T) {
					model := winsim.Default
					if c.model != nil {
						model = c.model
					}
					k := newKit(t, mode, model())
					result, err := c.run(k)
					if got := answer(result); got != c.answers && (result != nil || c.answers != "") {
						t.Errorf("the result is %s, want %s", got, c.answers)
					}
					class := failure.ClassOf(err)
					if class != c.want.class || !strings.Contains(fmt.Sprint(err), c.want.says) {
						t.Errorf("%v (%s), want %s with %q", err, class, c.want.class, c.want.says)
					}
					if s, _ := status.FromError(err); s.Code() != class.Code() {
						t.Errorf("the code is %s, want %s", s.Code(), class.Code())
					}
					code, _ := failure.WindowsCode(err)
					var ambiguous *nodeapi.AmbiguousError
					var disks []uint32
					if errors.As(err, &ambiguous) {
						disks = ambiguous.Numbers(100)
					}
					answer := status.Convert(err)
					if sent, _ := failure.WindowsCode(answer.Err()); sent != code {
						t.Errorf("the status has the code %d of Windows, and the error %d", sent, code)
					}
					var matches []string
					for _, target := range []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, errors.ErrUnsupported, context.DeadlineExceeded, context.Canceled} {
						if errors.Is(err, target) {
							matches = append(matches, target.Error())
						}
					}
					outcomes[mode] = guid.ReplaceAllString(
						fmt.Sprintf("%v; %v; %s; %d; ambiguous %t %v; %v; %v", result, err, class, code, ambiguous != nil, disks, matches, answer.Proto()), "GUID")
					if c.want.class == failure.InUse && strings.Contains(c.want.says, "several disks") != (ambiguous != nil) {
						t.Errorf("%v is ambiguous: %t", err, ambiguous != nil)
					}
				})
			}
			if outcomes[mounter.Library] != outcomes[mounter.Daemon] {
				t.Errorf("the modes differ:\n%s\n%s", outcomes[mounter.Library], outcomes[mounter.Daemon])
			}
		})
	}
}

// must ends the test if err is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
