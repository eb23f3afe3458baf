//go:build !windows

package windows_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe/pipetest"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
)

// newPipe returns the name of a socket that does not exist yet.
func newPipe(t *testing.T) string {
	t.Helper()
	return filepath.Join(serve.SocketDir(t), "test.sock")
}

func dialPipe(path string) (net.Conn, error) { return net.Dial("unix", path) }

func warmUpPipe(string) {}

// leaveStale leaves a socket as a server does that was killed.
var leaveStale = pipetest.LeaveStale

// thisPID is how errors name this process, where they can.
var thisPID = map[bool]string{true: fmt.Sprintf("(pid %d)", os.Getpid())}[runtime.GOOS == "linux"]
