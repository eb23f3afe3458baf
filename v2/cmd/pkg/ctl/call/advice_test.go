package call

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestWithCommands(t *testing.T) {
	for message, want := range map[string]string{
		`list volumes of disk 99: not found; ListDiskIDs lists the disks`:      `list volumes of disk 99: not found; 'csi-proxyctl disk ids' lists the disks`,
		`remove C:\x: not empty; set force to remove it`:                       `remove C:\x: not empty; use --force to remove it`,
		`link C:\x: exists; remove it with Rmdir first`:                        `link C:\x: exists; remove it with 'csi-proxyctl fs rmdir' first`,
		`connect: off; start the service MSiSCSI with StartService`:            `connect: off; start the service MSiSCSI with 'csi-proxyctl system service start'`,
		`stop x: in use; stop them first, or set force`:                        `stop x: in use; stop them first, or use --force`,
		`mount: the path is a link that cannot be read (remove it with Rmdir)`: `mount: the path is a link that cannot be read (remove it with 'csi-proxyctl fs rmdir')`,
		`look up Rmdir: not found`:                                             `look up Rmdir: not found`,
		`link C:\x: exists; it leads to C:\Rmdir`:                              `link C:\x: exists; it leads to C:\Rmdir`,
	} {
		if got := status.Convert(withCommands(status.Error(codes.NotFound, message))); got.Message() != want || got.Code() != codes.NotFound {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	if unknown := status.Error(codes.Unimplemented, "unknown; method Rescan"); !errors.Is(withCommands(unknown), unknown) {
		t.Errorf("got %v", withCommands(unknown))
	}
}
