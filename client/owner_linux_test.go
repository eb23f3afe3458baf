package client_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kubernetes-csi/csi-proxy/client"
)

// A user of no account, so that no test depends on the machine.
const stranger = 54321

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
}

// wantUntrusted fails unless the client refuses the endpoint without a byte, and accepts it with
// the option.
func wantUntrusted(t *testing.T, path, object string) {
	t.Helper()
	conn, err := connect(t.Context(), path, client.WithWait())
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, client.ErrUntrustedOwner) || !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("got %v, want ErrUntrustedOwner", err)
	}
	wantContains(t, err, path, object+" belongs to 54321", "root or this user", "WithTrustedOwners")
	conn, err = connect(t.Context(), path, client.WithTrustedOwners("1", "54321"))
	if err != nil {
		t.Fatalf("with a trusted owner: %v", err)
	}
	conn.Close()
}

func TestConnect_ForeignSocket(t *testing.T) {
	needRoot(t)
	path := newPath(t)
	defer listen(t, path).Close()
	must(t, os.Chown(path, stranger, -1))
	wantUntrusted(t, path, "the socket")
}

func TestConnect_ForeignDirectory(t *testing.T) {
	needRoot(t)
	path := newPath(t)
	defer listen(t, path).Close()
	must(t, os.Chown(filepath.Dir(path), stranger, -1))
	wantUntrusted(t, path, "the directory of the socket")
}

// A server that another user started stays foreign if its socket is given to us.
func TestConnect_ForeignServer(t *testing.T) {
	needRoot(t)
	path := newPath(t)
	listener := make(chan net.Listener, 1)
	go func() {
		// Linux keeps credentials per thread. Without an unlock the thread ends with the goroutine.
		runtime.LockOSThread()
		defer close(listener)
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			t.Error(err)
			return
		}
		const unchanged = ^uintptr(0)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, unchanged, stranger, unchanged); errno != 0 {
			t.Error(errno)
			return
		}
		if err := unix.Listen(fd, 8); err != nil {
			t.Error(err)
			return
		}
		file := os.NewFile(uintptr(fd), path)
		defer file.Close()
		l, err := net.FileListener(file)
		if err != nil {
			t.Error(err)
			return
		}
		listener <- l
	}()
	l, ok := <-listener
	if !ok {
		return
	}
	defer l.Close()
	wantUntrusted(t, path, "the server")
}
