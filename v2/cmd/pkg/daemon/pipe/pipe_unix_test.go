//go:build !windows

package pipe_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe/pipetest"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// newPath returns the name of a socket that does not exist yet.
func newPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(serve.SocketDir(t), "test.sock")
}

func dial(path string) (net.Conn, error) { return net.Dial("unix", path) }

// wantServed checks that a client reaches the listener.
func wantServed(t *testing.T, listener net.Listener) {
	t.Helper()
	client, err := dial(listener.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	server, err := listener.Accept()
	require.NoError(t, err)
	server.Close()
}

func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode()
}

func TestListen_Modes(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	top := serve.SocketDir(t)
	path := filepath.Join(top, "a", "b", "test.sock")
	pipetest.Listen(t, path)
	for name, want := range map[string]fs.FileMode{
		filepath.Join(top, "a"):      fs.ModeDir | 0o700,
		filepath.Join(top, "a", "b"): fs.ModeDir | 0o700,
		path:                         fs.ModeSocket | 0o600,
	} {
		if got := modeOf(t, name); got != want {
			t.Errorf("%s has mode %s, want %s", name, got, want)
		}
	}
}

func TestListen_ExistingDirectory(t *testing.T) {
	for _, test := range []struct {
		mode fs.FileMode
		ok   bool
	}{
		{0o700, true},
		{0o755, true},
		{0o775, true},
		{0o777 | fs.ModeSticky, true},
		{0o777, false},
		{0o702, false},
	} {
		t.Run(test.mode.String(), func(t *testing.T) {
			path := newPath(t)
			dir := filepath.Dir(path)
			require.NoError(t, os.Chmod(dir, test.mode))
			listener, err := pipe.Listen(t.Context(), path, pipe.Config{})
			if err == nil {
				listener.Close()
			}
			if test.ok {
				require.NoError(t, err)
			} else {
				mode := (test.mode | fs.ModeDir).String()
				pipetest.WantError(t, err, winerr.Denied, path, dir+" ", mode, fmt.Sprintf("uid %d", os.Geteuid()), "chmod 700")
			}
			if got := modeOf(t, dir); got != test.mode|fs.ModeDir {
				t.Errorf("the directory's mode was changed to %s", got)
			}
		})
	}
}

func TestCheckDir_Owner(t *testing.T) {
	const mine, theirs = 1000, 1001
	for _, test := range []struct {
		owner, uid int
		ok         bool
	}{
		{mine, mine, true},
		{0, mine, true},
		{0, 0, true},
		{theirs, mine, false},
		{mine, 0, false}, // root must not walk into a trap either
	} {
		err := pipe.CheckDir("/d", fs.ModeDir|0o700, test.owner, test.uid)
		if (err == nil) != test.ok {
			t.Errorf("owner %d, user %d: error %v, want success to be %t", test.owner, test.uid, err, test.ok)
		}
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("/d (mode drwx------, owner uid %d)", test.owner)) {
			t.Errorf("%q does not name path, mode and owner", err)
		}
	}
}

func TestListen_DirectoryOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away; TestCheckDir_Owner tests the rule")
	}
	path := newPath(t)
	require.NoError(t, os.Chown(filepath.Dir(path), 12345, -1))
	_, err := pipe.Listen(t.Context(), path, pipe.Config{})
	pipetest.WantError(t, err, winerr.Denied, path, "owner uid 12345", "chown")
}

func TestListen_DirectoryIsLink(t *testing.T) {
	real, top := serve.SocketDir(t), serve.SocketDir(t)
	for name, target := range map[string]string{"link": real, "dangling": filepath.Join(top, "none")} {
		path := filepath.Join(top, name, "test.sock")
		require.NoError(t, os.Symlink(target, filepath.Join(top, name)))
		_, err := pipe.Listen(t.Context(), path, pipe.Config{})
		pipetest.WantError(t, err, winerr.Invalid, path, "link")
	}
	if entries, err := os.ReadDir(real); err != nil || len(entries) != 0 {
		t.Errorf("behind the link: %v, error %v; want it empty", entries, err)
	}
}

func TestListen_DirectoryIsFile(t *testing.T) {
	file := filepath.Join(serve.SocketDir(t), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	for _, path := range []string{filepath.Join(file, "test.sock"), filepath.Join(file, "below", "test.sock")} {
		_, err := pipe.Listen(t.Context(), path, pipe.Config{})
		pipetest.WantError(t, err, winerr.Invalid, path, file)
	}
}

func TestListen_DirectoryNotWritable(t *testing.T) {
	t.Run("by mode", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("permission bits do not bind root; the next case does")
		}
		top := serve.SocketDir(t)
		require.NoError(t, os.Chmod(top, 0o500))
		for _, path := range []string{filepath.Join(top, "test.sock"), filepath.Join(top, "below", "test.sock")} {
			_, err := pipe.Listen(t.Context(), path, pipe.Config{})
			pipetest.WantError(t, err, winerr.Denied, path, "this user may write to")
		}
	})
	t.Run("by nature", func(t *testing.T) {
		const path = "/sys/csi-proxy-test.sock" // not even root can create files there
		if _, err := os.Stat("/sys/kernel"); err != nil {
			t.Skipf("needs Linux' sysfs: %v", err)
		}
		_, err := pipe.Listen(t.Context(), path, pipe.Config{})
		pipetest.WantError(t, err, winerr.Denied, path, "this user may write to")
	})
}

func TestListen_Path(t *testing.T) {
	dir := serve.SocketDir(t)
	longest := filepath.Join(dir, strings.Repeat("x", pipe.MaxPath-len(dir)-1))
	pipetest.Listen(t, longest)
	_, err := pipe.Listen(t.Context(), longest+"x", pipe.Config{})
	pipetest.WantError(t, err, winerr.Invalid, longest+"x", fmt.Sprint(pipe.MaxPath), "shorter directory")
	if runtime.GOOS == "linux" && pipe.MaxPath != 107 {
		t.Errorf("the limit is %d, want 107", pipe.MaxPath)
	}

	for _, path := range []string{"", "@abstract", dir + "/nul\x00byte"} {
		if listener, err := pipe.Listen(t.Context(), path, pipe.Config{}); !errors.Is(err, winerr.Invalid) {
			t.Errorf("%q: got %v, %v, want an error of kind %q", path, listener, err, winerr.Invalid)
		}
	}
}

func TestListen_RelativePath(t *testing.T) {
	t.Chdir(serve.SocketDir(t))
	wantServed(t, pipetest.Listen(t, "test.sock"))
}

func TestListen_ReplacesStaleSocket(t *testing.T) {
	path := newPath(t)
	for range 3 {
		pipetest.LeaveStale(t, path)
		listener := pipetest.Listen(t, path)
		wantServed(t, listener)
		listener.Close()
	}
}

func TestListen_RefusesWhatIsNoSocket(t *testing.T) {
	dir := serve.SocketDir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	pipetest.LeaveStale(t, at("stale.sock"))
	for name, create := range map[string]func(path string) error{
		"file":           func(path string) error { return os.WriteFile(path, []byte("content"), 0o644) },
		"directory":      func(path string) error { return os.Mkdir(path, 0o755) },
		"fifo":           func(path string) error { return unix.Mkfifo(path, 0o644) },
		"dangling link":  func(path string) error { return os.Symlink("nowhere", path) },
		"link to socket": func(path string) error { return os.Symlink("stale.sock", path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := at(name)
			require.NoError(t, create(path))
			before, err := os.Lstat(path)
			require.NoError(t, err)
			_, err = pipe.Listen(t.Context(), path, pipe.Config{})
			pipetest.WantError(t, err, winerr.Exists, path, "not a socket", before.Mode().String())
			after, err := os.Lstat(path)
			if err != nil || !os.SameFile(before, after) || before.Mode() != after.Mode() ||
				before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
				t.Errorf("it was touched: %v, now %v, error %v", before, after, err)
			}
		})
	}
}

func TestListen_RefusesSocketOfAnotherType(t *testing.T) {
	path := newPath(t)
	other, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer other.Close()
	_, err = pipe.Listen(t.Context(), path, pipe.Config{})
	pipetest.WantError(t, err, winerr.Exists, path, "stop it first")
	if modeOf(t, path).Type() != fs.ModeSocket {
		t.Error("the socket was replaced")
	}
}

func TestListener_Close_RemovesSocket(t *testing.T) {
	path := newPath(t)
	listener := pipetest.Listen(t, path)
	require.NoError(t, listener.Close())
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after close: %v, want fs.ErrNotExist", err)
	}
	if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second close: %v, want net.ErrClosed", err)
	}
}

func TestListener_Close_LeavesSocketOfAnother(t *testing.T) {
	path := newPath(t)
	first := pipetest.Listen(t, path)
	if err := os.Remove(path); err != nil { // as a cleanup job would
		t.Fatal(err)
	}
	second := pipetest.Listen(t, path)
	first.Close()
	wantServed(t, second)
}

// TestListen_DirectoryLockedByOthers: a server that cannot lock its directory says so.
func TestListen_DirectoryLockedByOthers(t *testing.T) {
	dir := serve.SocketDir(t)
	lock, err := os.Open(dir)
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = pipe.Listen(ctx, filepath.Join(dir, "s"), pipe.Config{})
	if !errors.Is(err, winerr.Busy) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want it busy and the directory named", err)
	}
}
