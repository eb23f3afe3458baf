package serve_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// looks receives what each look has found.
type looks chan []wholenode.StaleMount

// StaleMounts implements daemon.StaleObserver.
func (l looks) StaleMounts(found []wholenode.StaleMount) { l <- found }

// TestHeal_Modes: off refuses requests, after-restart and remove heal at start, report removes nothing. A disk has left before the start.
func TestHeal_Modes(t *testing.T) {
	staged := kubelet + `\plugins\kubernetes.io\csi\disk.csi\` + strings.Repeat("0", 63) + `1\globalmount`
	for _, mode := range []daemon.HealMode{daemon.HealOff, daemon.HealReport, daemon.HealAfterRestart, daemon.HealRemove} {
		t.Run(string(mode), func(t *testing.T) {
			node := newNode(t)
			number, err := node.AttachDisk(winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Volume: &winsim.Volume{ID: "5eed0000-0000-0000-0000-00000000000a"}}}})
			must(t, err)
			must(t, node.MountFolder(staged, "5eed0000-0000-0000-0000-00000000000a"))
			must(t, node.Sleep(t.Context(), 2*time.Hour)) // a volume of less than an hour before may be one after it, if the clock was set
			must(t, node.DetachDisk(number))
			node.Reboot()
			must(t, node.Sleep(t.Context(), 20*time.Minute))
			seen := make(looks, 10)
			dir, _ := runUntil(t, node, serve.Config{Config: daemon.Config{Heal: mode, StaleMounts: seen}})
			if mode == daemon.HealOff {
				healer := extensionv1.NewHealerClient(dial(t, dir, grpcapi.Endpoint{Group: "filesystem", Version: "v1"}))
				_, err := healer.Heal(t.Context(), &extensionv1.HealRequest{DryRun: true})
				if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "-heal-stale-mounts=off") {
					t.Error(err)
				}
				return
			}
			if found := <-seen; len(found) != 1 {
				t.Errorf("%+v", found)
			}
			if removed := !node.Exists(staged); removed != (mode != daemon.HealReport) {
				t.Errorf("removed: %v", removed)
			}
		})
	}
}
