package pipetest

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/Microsoft/go-winio"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"
)

var pipes atomic.Int32

// NewPath returns the name of a pipe that does not exist yet.
func NewPath() string {
	return fmt.Sprintf(`\\.\pipe\csi-proxy-test-%d-%d`, os.Getpid(), pipes.Add(1))
}

// dialTimeout is the time for an instance of a pipe to become free. On a busy machine go-winio's two seconds
// are not enough.
const dialTimeout = 10 * time.Second

// Dial connects to a pipe.
func Dial(path string) (net.Conn, error) {
	timeout := dialTimeout
	return winio.DialPipe(path, &timeout)
}

// NamedPipes are the named pipes of Windows.
func NamedPipes() Kind {
	return Kind{
		NewPath: func(trial.T) string { return NewPath() },
		Dial:    Dial,
		// It takes up the instance of the pipe that go-winio makes to hold the name. On Windows no
		// client can connect to it, and this is an ordinary client. Under Wine the first client
		// connects to it, and is never served.
		WarmUp: func(path string) {
			if conn, err := Dial(path); err == nil {
				conn.Close()
			}
		},
		LeaveStale: func(trial.T, string) {}, // a pipe is gone with its last handle
		PID:        fmt.Sprintf("(pid %d)", os.Getpid()),
	}
}
