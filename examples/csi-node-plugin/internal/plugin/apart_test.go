package plugin_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
)

// TestLife_Apart shows that volumes on different disks do not wait for each other: in virtual time, the lives of
// 100 take hardly longer than that of one, and share the questions to all disks.
//
// Sockets know no virtual time, so it uses the plugin's mounter in the library's mode.
func TestLife_Apart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 100
		alone, callsAlone := liveApart(t, many, 1)
		together, callsTogether := liveApart(t, many, many)
		// A search for a disk may wait for the one before, which takes about 100 ms. The storage service looks at all disks
		// for each volume that grows, for 16 of them at a time.
		const looks = (many + 15) / 16 * 100 * time.Millisecond
		if together > alone+300*time.Millisecond+looks {
			t.Errorf("%d volumes take %s, one takes %s", many, together, alone)
		}
		if callsTogether > many*callsAlone/2 {
			t.Errorf("%d volumes take %d calls, one takes %d", many, callsTogether, callsAlone)
		}
	})
}

// liveApart takes the volumes of some disks through their lives at the same time, and returns how long that took
// and how many calls to Windows.
func liveApart(t *testing.T, disks, volumes int) (took time.Duration, calls int) {
	t.Helper()
	m := newMachine(t, disks)
	mounts, err := mounter.New(t.Context(), mountertest.Library(m.Node), mounter.WithWorkingDirs(kubelet))
	must(t, err)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range volumes {
		disk := mounter.Disk{Serial: serial(i)}
		staging, target := paths(t, m.Node, serial(i))
		wg.Go(func() {
			ctx := t.Context()
			for _, step := range []func() error{
				func() error {
					_, err := mounts.Stage(ctx, mounter.StageRequest{Path: staging, Source: disk})
					return err
				},
				func() error { return mounts.Publish(ctx, staging, target) },
				func() error { _, err := mounts.Stats(ctx, target); return err },
				func() error { return m.GrowDisk(uint32(i+1), grown) },
				func() error { _, err := mounts.Expand(ctx, target, int64(grown)); return err },
				func() error { return mounts.Unpublish(ctx, target) },
				func() error {
					return mounts.Unstage(ctx, mounter.UnstageRequest{Path: staging, Source: disk, Offline: true})
				},
			} {
				if err := step(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	took = time.Since(begin)
	for _, n := range m.Calls() {
		calls += n
	}
	return took, calls
}
