//go:build !windows

package pipe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// maxPath is the longest name of a Unix socket, 107 bytes on Linux: the field sun_path
// without its terminating zero. See unix(7).
const maxPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// ownerTimeout limits the connection to an existing socket.
const ownerTimeout = time.Second

func listen(ctx context.Context, path string, _ Config) (net.Listener, error) {
	switch {
	case path == "":
		return nil, winerr.New(winerr.Invalid, listenOp, path, "the path is empty")
	case strings.HasPrefix(path, "@"):
		// On Linux, Go makes this a socket outside the file system, which every user
		// can connect to.
		return nil, winerr.New(winerr.Invalid, listenOp, path, "the path begins with @; put ./ in front of it")
	case len(path) > maxPath:
		return nil, winerr.As(winerr.Invalid, listenOp, path,
			fmt.Errorf("the path has %d bytes; the name of a Unix socket has at most %d", len(path), maxPath),
			"choose a shorter directory")
	}
	dir, err := openDir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()

	// Finding a dead socket, removing it and binding a new one are three steps, and a
	// socket looks dead until the fourth, listening. Without a lock, two processes that
	// start together could remove each other's socket. Closing the directory releases
	// the lock.
	if err := flock(ctx, dir); err != nil {
		return nil, winerr.As(winerr.Busy, listenOp, path, fmt.Errorf("another process has locked its directory %s: %w", dir.Name(), err),
			"choose your own directory")
	}
	if err := makeRoom(path); err != nil {
		return nil, err
	}
	return bind(ctx, path)
}

// openDir opens the directory of the socket at path and creates it if needed. It fails
// unless the directory is safe from other users, who could otherwise replace our socket
// with theirs and receive our clients' secrets.
func openDir(path string) (*os.File, error) {
	name := filepath.Dir(path)
	if err := os.MkdirAll(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fail(path, err)
	}
	// Check and lock what is open, not a path that can change in between, and
	// follow no symbolic link.
	dir, err := os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil, winerr.As(winerr.Invalid, listenOp, path, fmt.Errorf("%s is not a directory, or is a link to one", name),
			"name the directory itself, or choose another")
	} else if err != nil {
		return nil, fail(path, err)
	}
	info, err := dir.Stat()
	if err == nil {
		err = checkDir(name, info.Mode(), int(info.Sys().(*syscall.Stat_t).Uid), os.Geteuid())
	}
	if err != nil {
		dir.Close()
		return nil, winerr.As(winerr.Denied, listenOp, path, err,
			"choose your own directory, or repair this one with chown and chmod 700")
	}
	return dir, nil
}

// checkDir reports whether a directory is safe for a socket of user uid. It ignores the
// group's right to write: where each user has a private group and umask 002, all
// directories have it.
func checkDir(name string, mode fs.FileMode, owner, uid int) error {
	switch {
	case owner != uid && owner != 0:
		return fmt.Errorf("directory %s (mode %s, owner uid %d) belongs neither to uid %d nor to root", name, mode, owner, uid)
	case mode.Perm()&0o002 != 0 && mode&fs.ModeSticky == 0:
		return fmt.Errorf("directory %s (mode %s, owner uid %d) lets everyone replace the files in it", name, mode, owner)
	}
	return nil
}

// lockTimeout limits the wait for the lock. Servers hold it only while they make a socket, but
// every user who can read the directory can hold it longer.
const lockTimeout = 2 * time.Second

// flock waits for the exclusive lock of a file.
func flock(ctx context.Context, file *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// makeRoom makes sure that nothing is at path. It removes only a socket without a
// listener.
func makeRoom(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fail(path, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return winerr.As(winerr.Exists, listenOp, path, fmt.Errorf("a file that is not a socket is there (mode %s)", info.Mode()),
			"remove it or choose another directory")
	}

	conn, err := net.DialTimeout("unix", path, ownerTimeout)
	if err == nil {
		defer conn.Close()
		who := "another server"
		// The peer of a client is the process that called listen.
		if pid, ok := peerPID(conn); ok {
			who = fmt.Sprintf("another server (pid %d)", pid)
		}
		return winerr.As(winerr.Exists, listenOp, path, fmt.Errorf("%s listens on it", who),
			"stop it first, or choose another directory")
	}
	switch {
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, fs.ErrPermission):
		return fail(path, err)
	default:
		// A full queue or a socket of another type has an owner.
		return winerr.As(winerr.Exists, listenOp, path, fmt.Errorf("another server seems to listen on it: %w", err),
			"stop it first, or choose another directory")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(path, fmt.Errorf("cannot remove the socket of a dead server: %w", err))
	}
	return nil
}

func bind(ctx context.Context, path string) (net.Listener, error) {
	netListener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fail(path, err)
	}
	// From here on closing the listener removes the file.
	unixListener := netListener.(*net.UnixListener)
	if err := os.Chmod(path, 0o600); err != nil {
		unixListener.Close()
		return nil, fail(path, err)
	}
	file, err := os.Lstat(path)
	if err != nil {
		unixListener.Close()
		return nil, fail(path, err)
	}
	unixListener.SetUnlinkOnClose(false) // listener.Close checks the file first
	return &listener{UnixListener: unixListener, path: path, file: file}, nil
}

// listener removes its socket when closed, unless another server has replaced it.
type listener struct {
	*net.UnixListener
	path   string
	file   fs.FileInfo
	remove sync.Once
}

// Close removes the file before it stops listening: until then no other file can get the
// same inode and be mistaken for ours.
func (l *listener) Close() error {
	l.remove.Do(func() {
		if file, err := os.Lstat(l.path); err == nil && os.SameFile(file, l.file) {
			_ = os.Remove(l.path) // the next server removes it otherwise
		}
	})
	return l.UnixListener.Close()
}

func fail(path string, err error) error {
	kind, advice := winerr.Internal, ""
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		kind, advice = winerr.Denied, "choose a directory that this user may write to"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.EINVAL):
		kind, advice = winerr.Invalid, "choose another directory"
	case errors.Is(err, unix.EADDRINUSE):
		kind, advice = winerr.Exists, "stop the other server first"
	case errors.Is(err, unix.ENOSPC):
		kind = winerr.NoSpace
	}
	return winerr.As(kind, listenOp, path, err, advice)
}

// validateSecurityDescriptor accepts everything: the file mode decides who may connect.
func validateSecurityDescriptor(string) error { return nil }

// owner asks the socket for the process that listens on it.
func owner(ctx context.Context, path string) (pid uint32, err error) {
	dialer := net.Dialer{Timeout: ownerTimeout}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	id, ok := peerPID(conn)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	return uint32(id), nil
}
