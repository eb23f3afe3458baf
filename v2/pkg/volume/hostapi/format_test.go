package api_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// bind is what package volume does with the context of a request.
func bind(ctx context.Context, host volumeapi.HostAPI) volumeapi.HostAPI {
	return host.(volumeapi.Extended).WithContext(ctx)
}

// TestFormatVolume_NeverDestroys is the promise of the whole group: what is or may be data
// stays.
func TestFormatVolume_NeverDestroys(t *testing.T) {
	type refused struct {
		model winsim.Model
		id    string
		fault winsim.Fault
		kind  winerr.Kind
	}
	on := func(v winsim.Volume) winsim.Model { return modelWith(gpt(winsim.GiB, v)) }
	nearSystem := modelWith()
	nearSystem.Disks[0].Partitions[2].Size = 40 * winsim.GiB
	nearSystem.Disks[0].Partitions = append(nearSystem.Disks[0].Partitions, winsim.Partition{Volume: pointer(unformatted())})
	cases := map[string]refused{
		"locked by BitLocker": {model: on(winsim.Volume{ID: id, State: winsim.Locked}), kind: winerr.InUse},
		"damaged NTFS":        {model: on(winsim.Volume{ID: id, State: winsim.Raw}), kind: winerr.InUse},
		"offline":             {model: on(winsim.Volume{ID: id, State: winsim.NotReady}), kind: winerr.Unavailable},
		"gone":                {model: on(winsim.Volume{ID: id, State: winsim.Gone}), kind: winerr.NotFound},
		"unreadable": {
			model: on(formatted()), kind: winerr.Internal,
			fault: winsim.Fault{Call: "FileSystem", Error: uint32(winerr.IODevice)},
		},
		"unreadable in the middle of looking": {
			model: on(unformatted()), kind: winerr.Internal,
			fault: winsim.Fault{Call: "FileSystem", Nth: 2, Error: uint32(winerr.CRC)},
		},
		"empty, but its first sectors cannot be read": {
			model: on(unformatted()), kind: winerr.Internal,
			fault: winsim.Fault{Call: "ReadDevice", Error: uint32(winerr.CRC)},
		},
		"unknown whether it is the system's": {
			model: on(unformatted()), kind: winerr.Internal,
			fault: winsim.Fault{Call: "SystemVolumes", Error: uint32(winerr.IODevice)},
		},
		"unknown where the system is": {
			model: on(unformatted()), kind: winerr.Internal,
			fault: winsim.Fault{Call: "DeviceNumber", Object: winsim.SystemVolume, Error: uint32(winerr.IODevice)},
		},
		"the system":       {model: modelWith(), id: winsim.SystemVolume, kind: winerr.Denied},
		"on the same disk": {model: nearSystem, kind: winerr.Denied},
		"no such volume":   {model: modelWith(), kind: winerr.NotFound},
		"CD-ROM": {model: func() winsim.Model {
			m := modelWith()
			m.Volumes = []winsim.Volume{{ID: id, CDROM: true, FileSystem: winsim.FileSystemNone}}
			return m
		}(), kind: winerr.InUse},
	}
	for name, traces := range foreign {
		cases["foreign: "+name] = refused{model: modelWith(foreignDisk(traces)), kind: winerr.InUse}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			node := newNode(t, c.model)
			if c.fault.Call != "" {
				inject(t, node, c.fault)
			}
			volume := c.id
			if volume == "" {
				volume = id
			}
			before := fingerprint(t, node)
			for range 2 {
				wantKind(t, "FormatVolume", volumeapi.NewOn(node).FormatVolume(volume), c.kind, "")
			}
			wantCalls(t, node, "Format", 0)
			wantCalls(t, node, "FormatLegacy", 0)
			if after := fingerprint(t, node); after != before {
				t.Error("the content of a disk changed")
			}
		})
	}
}

func TestFormatVolume_KeepsAFileSystem(t *testing.T) {
	for _, v := range []winsim.Volume{formatted(), {ID: id, FileSystem: winsim.ReFS}, {ID: id, FileSystem: winsim.FAT32}} {
		t.Run(string(v.FileSystem), func(t *testing.T) {
			node := nodeWith(t, v)
			before := fingerprint(t, node)
			must(t, volumeapi.NewOn(node).FormatVolume(id))
			wantCalls(t, node, "Format", 0)
			if after := fingerprint(t, node); after != before {
				t.Error("the content of a disk changed")
			}
		})
	}
}

func TestFormatVolume_OverExisting(t *testing.T) {
	for name, disk := range map[string]winsim.Disk{
		"NTFS with files": gpt(winsim.GiB, formatted()),
		"locked":          gpt(winsim.GiB, winsim.Volume{ID: id, State: winsim.Locked}),
		"ext4":            foreignDisk(foreign["ext4"]),
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t, modelWith(disk))
			host := volumeapi.NewOn(node, volumeapi.FormatOverExisting())
			must(t, host.FormatVolume(id))
			wantCalls(t, node, "Format", 1)
			must(t, host.MountVolume(id, pods+`\x`))
			if node.Exists(pods + `\x\precious`) {
				t.Error("the old content is still there")
			}
			wantKind(t, "the system's", host.FormatVolume(winsim.SystemVolume), winerr.Denied, winsim.SystemVolume)
		})
	}
}

func TestFormatVolume_StorageService(t *testing.T) {
	const invalidClass = 0x80041010
	for name, c := range map[string]struct {
		delay     time.Duration
		outOfDate int
		fault     winsim.Fault
		legacy    int // calls
		fails     bool
		kind      winerr.Kind // if it fails
	}{
		"knows the volume late":         {delay: time.Hour},
		"has an old cache":              {outOfDate: 3},
		"cannot be refreshed, but sees": {delay: 3 * time.Second, fault: winsim.Fault{Call: "RefreshStorageCache", Error: uint32(winerr.IODevice)}},
		"hangs when it is refreshed":    {delay: time.Hour, fault: winsim.Fault{Call: "RefreshStorageCache", Delay: 1000 * time.Hour}, legacy: 1},
		"never knows the volume":        {fault: winsim.Fault{Call: "Format", Error: uint32(winerr.WMINotFound)}, legacy: 1},
		"is missing":                    {fault: winsim.Fault{Call: "Format", Error: invalidClass}, legacy: 1},
		"does not support it":           {fault: winsim.Fault{Call: "Format", Error: uint32(winerr.StorageNotSupported)}, legacy: 1},
		"fails":                         {fault: winsim.Fault{Call: "Format", Error: uint32(winerr.StorageIOError)}, fails: true, kind: winerr.Internal},
		"is denied":                     {fault: winsim.Fault{Call: "Format", Error: uint32(winerr.StorageAccessDenied)}, fails: true, kind: winerr.Denied},
		"says it is read-only":          {fault: winsim.Fault{Call: "Format", Error: uint32(winerr.StorageReadOnly)}, fails: true, kind: winerr.InUse},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := modelWith()
				model.Storage.ServiceDelay, model.Storage.ServiceOutOfDate = c.delay, c.outOfDate
				model.Storage.VolumeArrival = 0
				node := newNode(t, model)
				_, err := node.AttachDisk(gpt(winsim.GiB, unformatted()))
				must(t, err)
				if c.fault.Call != "" {
					inject(t, node, c.fault)
				}
				begin := time.Now()
				err = volumeapi.NewOn(node).FormatVolume(id)
				if took := time.Since(begin); took > time.Minute {
					t.Errorf("it took %v", took)
				}
				wantCalls(t, node, "FormatLegacy", c.legacy)
				if c.fails {
					wantKind(t, "FormatVolume", err, c.kind, id)
					return
				}
				must(t, err)
				wantFormatted(t, volumeapi.NewOn(node), id, true)
			})
		})
	}
}

func TestFormatVolume_Busy(t *testing.T) {
	for _, c := range []struct {
		call string
		code uint32
	}{
		{"Format", uint32(winerr.StorageInUse)},
		{"Format", uint32(winerr.SharingViolation)},
		{"FormatLegacy", uint32(winerr.LegacyFormatLockFailed)},
	} {
		t.Run(fmt.Sprintf("%s %d", c.call, c.code), func(t *testing.T) {
			for _, times := range []int{2, 3} {
				node := nodeWith(t, unformatted())
				if c.call == "FormatLegacy" {
					inject(t, node, winsim.Fault{Call: "Format", Error: uint32(winerr.StorageNotSupported)})
				}
				inject(t, node, winsim.Fault{Call: c.call, Times: times, Error: c.code})
				begin := node.Now()
				err := volumeapi.NewOn(node).FormatVolume(id)
				if waited := node.Now().Sub(begin); waited < 2*time.Second {
					t.Errorf("busy %d times: waited only %v", times, waited)
				}
				wantCalls(t, node, c.call, 3)
				if times < 3 {
					must(t, err)
				} else {
					wantKind(t, "always busy", err, winerr.Busy, id)
				}
			}
		})
	}
}

// TestFormatVolume_FormattedConcurrently: another process has the volume open because it
// formats it.
func TestFormatVolume_FormattedConcurrently(t *testing.T) {
	node := nodeWith(t, unformatted())
	inject(t, node, winsim.Fault{Call: "Format", Times: 1, Error: uint32(winerr.StorageInUse), Do: func(n *winsim.Node) {
		if err := n.FormatLegacy(t.Context(), win.VolumeID(id), win.FormatOptions{}); err != nil {
			t.Error(err)
		}
	}})
	must(t, volumeapi.NewOn(node).FormatVolume(id))
	wantCalls(t, node, "Format", 1)
}

// TestFormatVolume_LooksBeforeEachAttempt lets another process format and use the volume
// between two attempts.
func TestFormatVolume_LooksBeforeEachAttempt(t *testing.T) {
	const other = pods + `\second`
	unknown := winsim.Fault{Call: "Format", Error: uint32(winerr.WMINotFound)}
	for name, c := range map[string]struct {
		faults []winsim.Fault // the last one lets the other in
		look   uint32         // error of the first look after that
		state  winsim.VolumeState
		fails  bool
		kind   winerr.Kind // if it fails
	}{
		"before the service is asked again": {
			faults: []winsim.Fault{unknown, {Call: "RefreshStorageCache"}},
		},
		"before the older way": {
			faults: []winsim.Fault{{Call: "Format", Error: uint32(winerr.StorageNotSupported)}},
		},
		"before the older way is tried again": {
			faults: []winsim.Fault{unknown, {Call: "FormatLegacy", Error: uint32(winerr.LegacyFormatLockFailed)}},
		},
		"busy, then unreadable": {
			faults: []winsim.Fault{{Call: "Format", Error: uint32(winerr.StorageInUse)}},
			look:   uint32(winerr.IODevice), fails: true, kind: winerr.Internal,
		},
		"busy, then not recognised at first": {
			faults: []winsim.Fault{{Call: "Format", Error: uint32(winerr.StorageInUse)}},
			look:   uint32(winerr.UnrecognizedVolume),
		},
		"busy, then gone": { // which the storage service may say, too, but then it is not final
			faults: []winsim.Fault{{Call: "Format", Error: uint32(winerr.StorageInUse)}},
			look:   uint32(winerr.FileNotFound), fails: true, kind: winerr.NotFound,
		},
		"busy, then in use": {
			faults: []winsim.Fault{{Call: "Format", Error: uint32(winerr.StorageInUse)}},
			look:   uint32(winerr.SharingViolation), fails: true, kind: winerr.Busy,
		},
		"busy, then encrypted": {
			faults: []winsim.Fault{{Call: "Format", Error: uint32(winerr.StorageInUse)}},
			state:  winsim.Locked, fails: true, kind: winerr.InUse,
		},
		"busy, then damaged": {
			faults: []winsim.Fault{{Call: "Format", Error: uint32(winerr.StorageInUse)}},
			state:  winsim.Raw, fails: true, kind: winerr.InUse,
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := nodeWith(t, unformatted())
			let := c.faults[len(c.faults)-1]
			for _, fault := range c.faults[:len(c.faults)-1] {
				inject(t, node, fault)
			}
			var before string
			var once sync.Once
			let.Times = 1
			let.Do = func(n *winsim.Node) {
				once.Do(func() {
					must(t, n.FormatLegacy(t.Context(), win.VolumeID(id), win.FormatOptions{}))
					must(t, n.MountFolder(other, id))
					must(t, n.WriteFile(other+`\precious`, "data"))
					if c.state != "" {
						must(t, n.SetVolumeState(id, c.state))
					}
					if c.look != 0 {
						inject(t, n, winsim.Fault{Call: "FileSystem", Times: 1, Error: c.look})
					}
					before = fingerprint(t, n)
				})
			}
			inject(t, node, let)
			err := volumeapi.NewOn(node).FormatVolume(id)
			if c.fails {
				wantKind(t, "FormatVolume", err, c.kind, id)
			} else {
				must(t, err)
			}
			if before == "" || fingerprint(t, node) != before {
				t.Error("the file system of another process is lost")
			}
		})
	}
}

func TestFormatVolume_NotSeenAfterwards(t *testing.T) {
	node := nodeWith(t, unformatted())
	inject(t, node, winsim.Fault{Call: "FileSystem", Nth: 3, Times: 5, Error: uint32(winerr.UnrecognizedVolume)})
	must(t, volumeapi.NewOn(node).FormatVolume(id))

	node = nodeWith(t, unformatted())
	inject(t, node, winsim.Fault{Call: "FileSystem", Nth: 3, Error: uint32(winerr.NotReady)})
	wantKind(t, "never seen", volumeapi.NewOn(node).FormatVolume(id), winerr.Unavailable, id)

	machine := namesRaw{nodeWith(t, unformatted()), "RAW"}
	wantKind(t, "still raw", volumeapi.NewOn(machine).FormatVolume(id), winerr.Unavailable, "RAW")
}

// TestFormatVolume_Hangs lets Windows hang for longer than a caller waits. In the bubble
// the time of faults is as virtual as that of the node.
func TestFormatVolume_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, modelWith(gpt(winsim.GiB, unformatted()), gpt(winsim.GiB, winsim.Volume{ID: volumeID(2), FileSystem: winsim.FileSystemNone})))
		host := volumeapi.NewOn(node)
		inject(t, node, winsim.Fault{Call: "Format", Object: id, Delay: time.Minute})
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := bind(ctx, host).FormatVolume(id); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		if waited := time.Since(begin); waited != time.Second {
			t.Errorf("the caller waited %v, want 1s", waited)
		}

		// Other volumes are not held up.
		must(t, host.FormatVolume(volumeID(2)))
		if waited := time.Since(begin); waited != time.Second {
			t.Errorf("another volume waited for the first one until %v", waited)
		}

		// What else is wanted of the volume waits, and gives up when its caller does.
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := bind(ctx, host).ResizeVolume(id, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("resize: got %v, want the deadline", err)
		}

		// A retry joins the format.
		must(t, host.FormatVolume(id))
		if waited := time.Since(begin); waited < time.Minute {
			t.Errorf("the retry returned after %v, before the format had ended", waited)
		}
		if got := node.Calls()["Format"]; got != 2 {
			t.Errorf("%d formats were started, want one for each volume", got)
		}
		synctest.Wait()
	})
}

func pointer[T any](value T) *T { return &value }
