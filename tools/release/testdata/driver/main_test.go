package main

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestPublish(t *testing.T) {
	const staging, target = `C:\var\lib\kubelet\plugins\csi.example.com\globalmount`, `C:\var\lib\kubelet\pods\1\mount`
	for mode, option := range map[mounter.Mode]func(*winsim.Node) mounter.Option{
		mounter.Library: mountertest.Library,
		mounter.Daemon:  func(node *winsim.Node) mounter.Option { return mountertest.NewDaemon(t, node).Option() },
	} {
		node, err := winsim.New(winsim.Azure())
		if err != nil {
			t.Fatal(err)
		}
		m, err := mounter.New(t.Context(), option(node))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if err := publish(t.Context(), m, "0", staging, target); err != nil {
			t.Errorf("mode %v: %v", mode, err)
		}
		if usage, err := m.Stats(t.Context(), target); err != nil || usage.UsedBytes == 0 || m.Mode() != mode {
			t.Errorf("mode %v, want %v: %+v, %v", m.Mode(), mode, usage, err)
		}
	}
}
