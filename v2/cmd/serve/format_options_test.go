package serve_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestFormatOptions: the daemon's flags reach the volumes of drivers that were compiled years ago,
// and a pod that runs as ContainerUser can write to the root (csi-proxy#382). A call that fails
// after the format does not leave a volume without them.
func TestFormatOptions(t *testing.T) {
	options := volumeapi.FormatOptions{AllocationUnitSize: 64 << 10, Label: "pods", RootAccess: volumeapi.UsersModify}
	for name, c := range map[string]struct {
		format volumeapi.FormatOptions
		fault  string // call that fails once
	}{
		"as Windows does":               {},
		"chosen":                        {format: options},
		"the access is set at the next": {format: options, fault: "SetRootSecurity"},
		"the label is set at the next":  {format: options, fault: "SetVolumeLabel"},
	} {
		for driver, stage := range stages {
			t.Run(name+"/"+driver, func(t *testing.T) {
				node := newNode(t)
				number, err := node.AttachDisk(winsim.Disk{Size: winsim.GiB})
				must(t, err)
				if c.fault != "" {
					if _, err := node.Inject(winsim.Fault{Call: c.fault, Times: 1, Error: uint32(winerr.IODevice)}); err != nil {
						t.Fatal(err)
					}
				}
				d := newDriverWith(t, node, number, serve.Config{Config: daemon.Config{Format: c.format}})
				stage(d)
				if (d.err != nil) != (c.fault != "") {
					t.Fatalf("the first attempt: %v", d.err)
				}
				if d.err != nil {
					d.err = nil
					if stage(d); d.err != nil { // as the kubelet has it retried
						t.Fatalf("the retry: %v", d.err)
					}
				}
				err = node.WriteFileAsUser(d.path+`\file`, "text")
				if (err == nil) != (c.format.RootAccess != "") {
					t.Errorf("the pod writes: %v", err)
				}
				info, err := node.DiskInfo(number)
				must(t, err)
				p := info.Partitions[len(info.Partitions)-1].Volume
				if want := max(winsim.Size(c.format.AllocationUnitSize), 4*winsim.KiB); p.Label != c.format.Label || p.ClusterSize != want {
					t.Errorf("the volume has label %q and clusters of %v", p.Label, p.ClusterSize)
				}
			})
		}
	}
}
