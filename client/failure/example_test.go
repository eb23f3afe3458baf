package failure_test

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// A driver answers the kubelet's NodeUnstageVolume. The error may be of the daemon or of the library.
func Example() {
	answer := func(err error) error {
		if err == nil || failure.ClassOf(err) == failure.NotFound {
			return nil
		}
		return status.Error(failure.Code(err), failure.Message(err))
	}
	fmt.Println(answer(status.Error(codes.NotFound, "there is no such volume")))
	fmt.Println(answer(status.Error(codes.Aborted, "another process has it open (Windows error 32)")))
	// Output:
	// <nil>
	// rpc error: code = Aborted desc = another process has it open (Windows error 32)
}
