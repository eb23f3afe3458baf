package pipe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"time"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	// bufferSize holds a whole gRPC frame. Without a buffer each write waits for
	// the reader. It is not larger because each instance takes it from the
	// non-paged pool.
	bufferSize = 64 << 10

	// ownerTimeout limits the connection to a pipe that already exists, whose
	// owner may not accept connections.
	ownerTimeout = time.Second
)

func listen(ctx context.Context, path string, cfg Config) (net.Listener, error) {
	descriptor := cfg.SecurityDescriptor
	own := descriptor != "" && descriptor != DefaultSecurityDescriptor
	if !own {
		account, err := windows.GetCurrentProcessToken().GetTokenUser()
		if err != nil {
			return nil, winerr.Wrap("read account of", "this process", err)
		}
		descriptor = defaultFor(account.User.Sid.String())
	}
	if err := validateSecurityDescriptor(descriptor); err != nil {
		return nil, err
	}
	// go-winio creates the first instance with FILE_CREATE, so it fails if the
	// name exists, and rejects remote clients.
	listener, err := winio.ListenPipe(path, &winio.PipeConfig{
		SecurityDescriptor: descriptor,
		MessageMode:        false, // gRPC is a stream of bytes
		InputBufferSize:    bufferSize,
		OutputBufferSize:   bufferSize,
	})
	if err != nil {
		return nil, listenError(ctx, path, err)
	}
	if own {
		if err := tryInstance(path); err != nil {
			listener.Close()
			return nil, winerr.As(winerr.Invalid, "try security descriptor", descriptor, err,
				"this process must be allowed to serve its own pipes: grant GA to its account, as the default does")
		}
	}
	return listener, nil
}

// tryInstance makes one more instance of a pipe, as each client needs one. Windows checks the
// descriptor from the second instance on, so otherwise the first client would find the error. A client that connects
// in this moment loses its connection and connects again: an instance takes a client before ConnectNamedPipe (Wine's
// test_multiple_instances, dlls/kernel32/tests/pipe.c).
func tryInstance(path string) error {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	instance, err := windows.CreateNamedPipe(name, windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED,
		windows.PIPE_TYPE_BYTE|windows.PIPE_REJECT_REMOTE_CLIENTS, windows.PIPE_UNLIMITED_INSTANCES, bufferSize, bufferSize, 0, nil)
	if err != nil {
		return err
	}
	return windows.CloseHandle(instance)
}

// listenError finds out whether path has an owner. Depending on the owner's security
// descriptor and its limit of instances, Windows returns ERROR_ACCESS_DENIED (5),
// ERROR_ALREADY_EXISTS (183) or ERROR_PIPE_BUSY (231) for a taken name; Wine's dlls/ntdll/tests/pipe.c and
// dlls/kernel32/tests/pipe.c have 5 and 231 on Windows. See
// https://learn.microsoft.com/windows/win32/api/namedpipeapi/nf-namedpipeapi-createnamedpipew
func listenError(ctx context.Context, path string, err error) error {
	errno := windows.Errno(0)
	if !errors.As(err, &errno) {
		return winerr.Wrap(listenOp, path, err)
	}
	code := winerr.Code(errno)
	switch errno {
	case windows.ERROR_ACCESS_DENIED, windows.ERROR_ALREADY_EXISTS, windows.ERROR_PIPE_BUSY:
	default:
		return winerr.Wrap(listenOp, path, code)
	}
	pid, err := owner(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return winerr.As(winerr.Denied, listenOp, path, code, "run as LocalSystem or as an administrator")
	}
	who := "another process"
	if err == nil {
		who = fmt.Sprintf("another process (pid %d)", pid)
	}
	return winerr.As(winerr.Exists, listenOp, path, fmt.Errorf("%s owns this pipe: %w", who, code),
		"only one csi-proxy can run on a node: stop the other first")
}

// owner asks the pipe for the process that serves it. It connects at SECURITY_ANONYMOUS,
// go-winio's default, so that a malicious owner cannot impersonate us. The error is
// fs.ErrNotExist if there is no such pipe.
//
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-getnamedpipeserverprocessid
func owner(ctx context.Context, path string) (pid uint32, err error) {
	ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	conn, err := winio.DialPipeContext(ctx, path)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	handle, ok := handleOf(conn)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	err = windows.GetNamedPipeServerProcessId(handle, &pid)
	return pid, err
}

// peerPID works for clients at any impersonation level, also after they have closed (Wine's
// test_namedpipe_process_id, dlls/kernel32/tests/pipe.c). See
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-getnamedpipeclientprocessid
func peerPID(conn net.Conn) (pid int, ok bool) {
	handle, ok := handleOf(conn)
	if !ok {
		return 0, false
	}
	var id uint32
	if err := windows.GetNamedPipeClientProcessId(handle, &id); err != nil {
		return 0, false
	}
	return int(id), true
}

// describe needs PROCESS_QUERY_LIMITED_INFORMATION, which LocalSystem has on every process but those of
// the kernel, also on those of containers. See
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-queryfullprocessimagenamew
func describe(pid int) (name, user string) {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return "", ""
	}
	defer windows.CloseHandle(process)
	path := make([]uint16, windows.MAX_LONG_PATH)
	size := uint32(len(path))
	if err := windows.QueryFullProcessImageName(process, 0, &path[0], &size); err == nil {
		name = filepath.Base(windows.UTF16ToString(path[:size]))
	}
	var token windows.Token
	if err := windows.OpenProcessToken(process, windows.TOKEN_QUERY, &token); err != nil {
		return name, ""
	}
	defer token.Close()
	if account, err := token.GetTokenUser(); err == nil {
		user = account.User.Sid.String()
	}
	return name, user
}

// handleOf returns the handle behind a connection of go-winio, whose types are
// private but have this method.
func handleOf(conn net.Conn) (windows.Handle, bool) {
	file, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	return windows.Handle(file.Fd()), true
}

func validateSecurityDescriptor(text string) error {
	const op = "parse security descriptor"
	descriptor, err := windows.SecurityDescriptorFromString(text)
	if err != nil {
		if errno := windows.Errno(0); errors.As(err, &errno) {
			err = winerr.Code(errno)
		}
		return winerr.As(winerr.Invalid, op, text, err, "see the format at "+
			"https://learn.microsoft.com/windows/win32/secauthz/security-descriptor-string-format")
	}
	// Wine's test_ConvertStringSecurityDescriptor on Windows (dlls/advapi32/tests/security.c) has how texts are read.
	// An object without an access list is open to everyone, and so is one with
	// the null list that D:NO_ACCESS_CONTROL makes. See
	// https://learn.microsoft.com/windows/win32/secauthz/null-dacls-and-empty-dacls
	dacl, _, err := descriptor.DACL()
	if err != nil || dacl == nil {
		return winerr.New(winerr.Invalid, op, text, "it has no access list (D:), which would admit everyone")
	}
	admitted, err := winapi.Allowed(dacl)
	if err != nil {
		return winerr.As(winerr.Invalid, op, text, err, "its access list cannot be read")
	}
	// A daemon without clients is a mistake.
	if len(admitted) == 0 {
		return winerr.New(winerr.Invalid, op, text, "its access list admits no account; add one, as the default does")
	}
	for _, entry := range admitted {
		if entry.SID == sddl.Everyone || entry.SID == sddl.Anonymous {
			return winerr.New(winerr.Invalid, op, text, "it admits everyone (%s), and clients can format disks; name the accounts of the drivers instead", entry.SID)
		}
	}
	return nil
}
