package serve_test

import (
	"context"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve/control"
)

// FuzzControl makes any change. It ends with a definite answer that does not blame the server, and the system disk
// stays what it was, but for its size.
func FuzzControl(f *testing.F) {
	for _, seed := range []string{
		`attach: [{size: 1GiB, layout: gpt, partitions: [{volume: {files: [{path: '\dir\file', content: x}]}}]}]`,
		`{detach: [1], reattach: [1], attach: [{size: 1GiB, like: 2, lun: 7}, {cloneOf: 2}], grow: [{disk: 2, size: 2GiB}]}`,
		`{fail: [1], hang: [2], heal: [1, 2], reboot: true}`,
		`{smbServers: [{name: a, shares: [{name: b}]}], smbShares: [{server: a, name: c}], stopSMBServers: [a], restartDaemon: true}`,
		`{smbAccounts: [{server: files, user: u, password: p}], directories: ['C:\x'], faults: [{call: FileInfo, error: 5}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, change string) {
		ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), klog.Logger{}), time.Minute) // no logs
		defer cancel()
		node := newNode(t)
		before, err := node.DiskInfo(0)
		must(t, err)
		dir, stop := runUntil(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"system"}}, Control: serve.DefaultControl})
		conn, err := client.Connect(ctx, "sim", apiversion.NewVersionOrPanic("v1"), client.WithPipePath(endpointPath(dir, "sim", "v1")))
		must(t, err)
		err = conn.Invoke(ctx, control.Apply, wrapperspb.String(change), &wrapperspb.StringValue{})
		switch status.Code(err) {
		case codes.Unknown, codes.Internal, codes.DeadlineExceeded, codes.Unimplemented:
			if utf8.ValidString(change) { // a client cannot send another
				t.Errorf("%q: %v", change, err)
			}
		default:
		}
		_ = conn.Close()
		stop()
		after, err := node.DiskInfo(0)
		before.Size, before.Visible = after.Size, after.Visible
		if err != nil || !cmp.Equal(before, after) {
			t.Errorf("%q changed the system disk: %+v, %v", change, after, err)
		}
	})
}
