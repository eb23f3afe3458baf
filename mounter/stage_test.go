package mounter_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	staging = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\test\1\globalmount`
	target  = `C:\var\lib\kubelet\pods\1\volumes\kubernetes.io~csi\pv\mount`
)

func TestLife(t *testing.T) {
	for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
		t.Run(mode.String(), func(t *testing.T) {
			node, err := winsim.New(winsim.Default())
			if err != nil {
				t.Fatal(err)
			}
			option := mountertest.Library(node)
			if mode == mounter.Daemon {
				option = mountertest.Daemon(t, node)
			}
			m, err := mounter.New(t.Context(), option)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			number := uint32(1)
			ctx := t.Context()
			do := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				_, err := m.Stage(ctx, mounter.StageRequest{Path: staging, Disk: nodeapi.Query{Number: &number}})
				do(err)
				do(m.Publish(ctx, staging, target))
			}
			do(node.WriteFile(target+`\x`, "1"))
			for range 2 {
				do(m.Unpublish(ctx, target))
				do(m.Unstage(ctx, mounter.UnstageRequest{Path: staging, Offline: true}))
			}
			_, err = m.Stage(ctx, mounter.StageRequest{Path: staging, Share: mounter.Share{Remote: "//files/data", Username: "csi", Password: "csi-Pa55"}})
			do(err)
			do(m.Publish(ctx, staging, target))
			do(m.Unpublish(ctx, target))
			do(m.Unstage(ctx, mounter.UnstageRequest{Path: staging}))
		})
	}
}
