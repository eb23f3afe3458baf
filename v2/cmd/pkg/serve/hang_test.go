package serve_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestHang_Connection: a driver that asks a volume on a disk that hangs a thousand times at once, without a deadline,
// gets answers from healthy volumes, on the same connection and on another one. The disk holds 16 of its requests until it heals.
func TestHang_Connection(t *testing.T) {
	const (
		hung, healthy = `\\?\Volume{11111111-0000-0000-0000-000000000007}\`, `\\?\Volume{11111111-0000-0000-0000-000000000008}\`
		calls, held   = 1000, 16
	)
	model := winsim.Default()
	for i, id := range []string{hung, healthy} {
		model.Disks = append(model.Disks, winsim.Disk{Number: uint32(7 + i), Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Volume: &winsim.Volume{ID: id}}}})
	}
	node, err := winsim.New(model)
	must(t, err)
	dir := run(t, node, "volume/v1")
	t.Cleanup(node.Reboot) // it ends what the disk holds, if the test fails
	connect := func() volumev1.VolumeClient {
		return volumev1.NewVolumeClient(dial(t, dir, grpcapi.Endpoint{Group: "volume", Version: "v1"}))
	}
	same, other := connect(), connect()
	ask := func(ctx context.Context, on volumev1.VolumeClient, id string) error {
		_, err := on.GetVolumeStats(ctx, &volumev1.GetVolumeStatsRequest{VolumeId: id})
		return err
	}
	answered := 0
	askHealthy := func(when string) {
		t.Helper()
		for name, on := range map[string]volumev1.VolumeClient{"the same connection": same, "another connection": other} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := ask(ctx, on, healthy); err != nil {
				t.Errorf("%s, on %s: %v", when, name, err)
			}
			answered++
		}
	}
	askHealthy("before")
	must(t, node.HangDisk(7))
	node.ResetCalls()
	answered = 0
	answers := make(chan error, calls)
	var asked sync.WaitGroup
	for range calls {
		asked.Add(1)
		go func() {
			asked.Done()
			answers <- ask(t.Context(), same, hung)
		}()
	}
	asked.Wait()
	askHealthy("while all ask")
	for range calls - held {
		if err := <-answers; status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
	}
	askHealthy("while the disk holds requests")
	if n := node.Calls()["VolumeSpace"] - answered; n != held {
		t.Errorf("the disk holds %d requests, want %d", n, held)
	}
	must(t, node.HealDisk(7))
	for range held {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	must(t, ask(t.Context(), same, hung))
}
