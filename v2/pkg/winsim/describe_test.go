package winsim_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/strictyaml"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// FuzzModel: no model brings the program down, nor does a node that came of it.
func FuzzModel(f *testing.F) {
	text, err := strictyaml.Encode(winsim.Busy())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`disks: [{size: 1MiB, presence: detached}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		model, err := winsim.LoadModel(bytes.NewReader(data), "model.yaml")
		if err != nil || model.RealTime {
			return
		}
		node, err := winsim.New(model)
		if err != nil {
			return
		}
		ctx := t.Context()
		_ = node.Sleep(ctx, time.Hour)
		node.Tree(`C:\`)
		node.Reboot()
		for _, d := range []uint32{0, 1, 2, 3} {
			_, _ = node.DiskInfo(d)
			_ = node.HealDisk(d) // a hanging one would wait for it
			_ = node.CreateDisk(ctx, win.PhysicalDrive(d), win.GUID{})
		}
		_ = node.Mkdir(`C:\x`)
		node.Describe()
	})
}
