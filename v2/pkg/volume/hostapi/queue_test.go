package api_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// leaves calls with a deadline that passes.
func leaves(t *testing.T, host volumeapi.HostAPI, call func(volumeapi.HostAPI) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := call(bind(ctx, host)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
}

// TestChange_Abandoned lets a change hang, and the callers of others that wait for it leave.
func TestChange_Abandoned(t *testing.T) {
	for name, c := range map[string]struct {
		call string // that must not be made
		do   func(volumeapi.HostAPI) error
	}{
		"mount":   {"SetMountPoint", func(h volumeapi.HostAPI) error { return h.MountVolume(id, pods+`\second`) }},
		"unmount": {"DeleteMountPoint", func(h volumeapi.HostAPI) error { return h.UnmountVolume(id, mount) }},
		"resize":  {"GrowPartition", func(h volumeapi.HostAPI) error { return h.ResizeVolume(id, 0) }},
		"format":  {"Format", func(h volumeapi.HostAPI) error { return h.FormatVolume(id) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node, _ := grown(t, nil)
				host := volumeapi.NewOn(node, volumeapi.FormatOverExisting())
				must(t, host.MountVolume(id, mount))
				node.ResetCalls()
				inject(t, node, winsim.Fault{Call: "FlushVolume", Times: 1, Delay: time.Minute})
				leaves(t, host, func(h volumeapi.HostAPI) error { return h.WriteVolumeCache(id) })
				leaves(t, host, c.do)
				leaves(t, host, c.do)
				time.Sleep(time.Hour)
				wantCalls(t, node, c.call, 0)

				// It can be asked for again.
				must(t, c.do(host))
				wantCalls(t, node, c.call, 1)
			})
		})
	}

	t.Run("flush", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			node := nodeWith(t, formatted())
			host := volumeapi.NewOn(node)
			flush := func(h volumeapi.HostAPI) error { return h.WriteVolumeCache(id) }
			inject(t, node, winsim.Fault{Call: "FlushVolume", Times: 1, Delay: time.Minute})
			for range 3 {
				leaves(t, host, flush)
			}
			time.Sleep(time.Hour)
			wantCalls(t, node, "FlushVolume", 1)
		})
	})
}

// TestMountVolume_Abandoned: a volume that may have been unstaged since is not mounted.
func TestMountVolume_Abandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := nodeWith(t, formatted())
		host := volumeapi.NewOn(node)
		inject(t, node, winsim.Fault{Call: "FileSystem", Times: 1, Delay: 5 * time.Minute})
		leaves(t, host, func(h volumeapi.HostAPI) error { return h.MountVolume(id, mount) })
		time.Sleep(time.Hour)
		if node.Exists(mount) {
			t.Errorf("there is %s", node.Tree(mount))
		}
		must(t, host.MountVolume(id, mount))
		wantMounted(t, host, mount, id)
	})
}

// TestMountVolume_SeenBehindLink: a mount that Windows has not answered does not count yet, also if a link is on the way.
func TestMountVolume_SeenBehindLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := nodeWith(t, formatted())
		must(t, errors.Join(node.Mkdir(pods+`\real`), node.Symlink(pods+`\link`, pods+`\real`)))
		limits, err := policy.NewUnsafe([]string{pods})
		must(t, err)
		host := volumeapi.NewOn(node).(volumeapi.Extended).Within(limits)
		fault := inject(t, node, winsim.Fault{Call: "SetMountPoint", Times: 1, Late: time.Hour})
		leaves(t, host, func(h volumeapi.HostAPI) error { return h.MountVolume(id, pods+`\link\x`) })
		for range 12 { // while the change waits for Windows, and after that
			_, err = host.GetVolumeIDFromTargetPath(pods + `\link\x`)
			wantKind(t, "during the mount", err, winerr.Unavailable, pods)
			time.Sleep(time.Minute)
		}
		fault.Remove()
		synctest.Wait()
		wantMounted(t, host, pods+`\link\x`, "")
	})
}

// TestUnmountVolume_Abandoned: a volume that is said to be mounted stays so. Its next pod would write to the folder.
func TestUnmountVolume_Abandoned(t *testing.T) {
	for call, staysMounted := range map[string]bool{"FlushVolume": true, "DeleteMountPoint": false} {
		for who, asks := range map[string]func(context.Context, *winsim.Node, volumeapi.HostAPI) (bool, error){
			"lookup": func(ctx context.Context, _ *winsim.Node, h volumeapi.HostAPI) (bool, error) {
				shown, err := bind(ctx, h).GetVolumeIDFromTargetPath(mount)
				if errors.Is(err, winerr.NotFound) {
					err = nil
				}
				return shown == id, err
			},
			"IsSymlink": func(ctx context.Context, node *winsim.Node, _ volumeapi.HostAPI) (bool, error) {
				return fsapi.NewOn(node).(fsapi.Extended).WithContext(ctx).IsSymlink(mount)
			},
		} {
			t.Run(call+" "+who, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					node := nodeWith(t, formatted())
					host := volumeapi.NewOn(node)
					must(t, host.MountVolume(id, mount))
					inject(t, node, winsim.Fault{Call: call, Times: 1, Delay: 20 * time.Second})
					leaves(t, host, func(h volumeapi.HostAPI) error { return h.UnmountVolume(id, mount) })
					said, err := asks(t.Context(), node, host)
					if !staysMounted { // it is not kept waiting for ever
						wantKind(t, "during the unmount", err, winerr.Unavailable, mount)
						time.Sleep(5 * time.Second)
						said, err = asks(t.Context(), node, host)
					}
					must(t, err)
					if said != staysMounted {
						t.Errorf("said to be mounted: %v, want %v", said, staysMounted)
					}
					time.Sleep(time.Hour)
					if shown, _ := host.GetVolumeIDFromTargetPath(mount); (shown == id) != said {
						t.Errorf("said to be mounted: %v, and then it shows %q", said, shown)
					}
					must(t, host.UnmountVolume(id, mount))
					must(t, host.MountVolume(id, mount))
					wantMounted(t, host, mount, id)
				})
			})
		}
	}
}

// TestChange_OtherVolumeAtTheFolder shows that the order holds for folders, too.
func TestChange_OtherVolumeAtTheFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, twoVolumes())
		host := volumeapi.NewOn(node)
		must(t, host.MountVolume(id, mount))
		inject(t, node, winsim.Fault{Call: "DeleteMountPoint", Times: 1, Delay: time.Minute})
		leaves(t, host, func(h volumeapi.HostAPI) error { return h.UnmountVolume(id, mount) })
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := host.MountVolume(volumeID(2), mount); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		// Another spelling is the same folder. By its turn it shows the other volume.
		if err := host.UnmountVolume(id, `c:`+mount[2:]); err == nil {
			t.Error("the first volume was unmounted from a folder that shows the second")
		}
		wg.Wait()
		wantMounted(t, host, mount, volumeID(2))
	})
}
