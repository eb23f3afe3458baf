package serve_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
	diskclient "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestFailure_SameFromLibraryAndDaemon fails one call with a Windows code of each class, and makes
// it through the library and through gRPC. A driver must not be able to tell which one it uses.
func TestFailure_SameFromLibraryAndDaemon(t *testing.T) {
	node := newNode(t)
	library, err := disk.New(diskapi.NewOn(node))
	must(t, err)
	dir := run(t, node, "disk/v1")
	daemon, err := diskclient.New(t.Context(), client.WithPipePath(endpointPath(dir, "disk", "v1")))
	must(t, err)
	t.Cleanup(func() { _ = daemon.Close() }) // fails only if already closed

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		class failure.Class
		code  winerr.Code // with which Windows fails, if it does
		disk  uint32
		ctx   context.Context //nolint:containedctx // that of the case
	}{
		{class: failure.Internal, code: winerr.IODevice},
		{class: failure.Internal, code: 8888}, // a code that we do not know
		{class: failure.Invalid, code: winerr.InvalidParameter},
		{class: failure.NotFound, code: winerr.FileNotFound},
		{class: failure.NotFound, disk: 99},
		{class: failure.Exists, code: winerr.AlreadyExists},
		{class: failure.Denied, code: winerr.AccessDenied},
		{class: failure.Busy, code: winerr.SharingViolation},
		{class: failure.InUse, code: winerr.FVELocked},
		{class: failure.Unsupported, code: winerr.NotSupported},
		{class: failure.Unavailable, code: winerr.NotReady},
		{class: failure.NoSpace, code: winerr.DiskFull},
		{class: failure.Deadline, code: winerr.Timeout},
		{class: failure.Cancelled, ctx: ended},
	}
	seen := map[failure.Class]bool{}
	for _, tt := range tests {
		t.Run(tt.class.String(), func(t *testing.T) {
			ctx := t.Context()
			if tt.ctx != nil {
				ctx = tt.ctx
			}
			if tt.code != 0 {
				fault, err := node.Inject(winsim.Fault{Error: uint32(tt.code)})
				must(t, err)
				defer fault.Remove()
			}
			_, fromLibrary := library.GetDiskStats(ctx, &disk.GetDiskStatsRequest{DiskNumber: tt.disk})
			_, fromDaemon := daemon.GetDiskStats(ctx, &diskv1.GetDiskStatsRequest{DiskNumber: tt.disk})
			for where, err := range map[string]error{"library": fromLibrary, "daemon": fromDaemon} {
				if got := failure.ClassOf(err); got != tt.class {
					t.Errorf("%s: class %v, want %v: %v", where, got, tt.class, err)
				}
				for _, class := range failure.Classes() {
					if got := errors.Is(err, class); got != (class == tt.class) {
						t.Errorf("%s: errors.Is(%v, %v) is %t", where, err, class, got)
					}
				}
				for _, standard := range []error{fs.ErrInvalid, fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, errors.ErrUnsupported, context.DeadlineExceeded, context.Canceled} {
					if got := errors.Is(err, standard); got != (failure.ClassOf(standard) == tt.class) {
						t.Errorf("%s: errors.Is(%v, %v) is %t", where, err, standard, got)
					}
				}
				if code, ok := failure.WindowsCode(err); tt.code != 0 && (!ok || code != uint32(tt.code)) {
					t.Errorf("%s: Windows code %d, %t, want %d: %v", where, code, ok, tt.code, err)
				}
			}
			if got, want := status.Code(fromDaemon), failure.Code(fromLibrary); got != want {
				t.Errorf("the daemon sends %v, the library's error has %v", got, want)
			}
			a, aOK := failure.WindowsCode(fromLibrary)
			b, bOK := failure.WindowsCode(fromDaemon)
			if a != b || aOK != bOK {
				t.Errorf("Windows code %d, %t from the library, %d, %t from the daemon", a, aOK, b, bOK)
			}
			if tt.ctx == nil && failure.Message(fromLibrary) != failure.Message(fromDaemon) {
				t.Errorf("texts differ:\n%s\n%s", failure.Message(fromLibrary), failure.Message(fromDaemon))
			}
		})
		seen[tt.class] = true
	}
	for _, class := range failure.Classes() {
		if !seen[class] {
			t.Errorf("class %v is not tested", class)
		}
	}
}
