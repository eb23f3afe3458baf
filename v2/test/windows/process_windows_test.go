package windows_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe/pipetest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// TestProcess asks about this process and its session.
func TestProcess(t *testing.T) {
	skipOnEmulator(t)
	g := newGroup(t)
	// An administrator connects over SSH with a key, over SSH with a password, and in a WinRM session. The tokens of
	// these sessions can have S-1-5-2. Run this program in each of them.
	g.ask("Q-pipe-ssh", askSession)
	// A remote client (\\node\pipe\csi-proxy-disk-v1) is refused.
	g.ask("Q-pipe-remote", askRemote)
	// An account that the default descriptor lets connect does so with GENERIC_READ and GENERIC_WRITE, as every client
	// does, although GENERIC_WRITE includes FILE_CREATE_PIPE_INSTANCE; it can neither make an instance of the pipe, nor,
	// as a member of the group that owns it, change the access list. Expected: 0, 5, 5. If not: drivers cannot connect,
	// or another administrator can serve the pipe.
	g.ask("Q-pipe-instances", askInstances)
	// This program inside a HostProcess container: with containerd 1.6 and 1.7 or later, with and without volumeMounts.
	// Control codes, \\.\MountPointManager, SetupDi and CM_Reenumerate_DevNode come from inside a silo, and relative
	// opens cross bind mounts.
	g.ask("Q-hostprocess", askContainer)
	// Go's own calls that we use: os.Rename over a file that another process has open, and os.RemoveAll of a directory
	// with a locked file. Expected: both fail with 5 or 32. The log file depends on them.
	g.ask("Q-go-files", askGoFiles)
}

// askSession connects to a pipe of its own, from the session that the program runs in.
func askSession(a *answer) {
	path := newPipe(a.T)
	listener := pipetest.Listen(a.T, path)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	conn, err := dialPipe(path)
	if err == nil {
		conn.Close()
	}
	a.fact("an administrator connects", winapi.Error(err))
	network, err := windows.CreateWellKnownSid(windows.WinNetworkSid)
	a.must(err)
	var token windows.Token // of this process, which is not a client of another
	isMember, err := token.IsMember(network)
	a.must(err)
	a.measured("the session is a network logon (S-1-5-2)", isMember)
}

// askRemote opens a pipe of its own by the name of this machine in the network.
func askRemote(a *answer) {
	path := newPipe(a.T)
	pipetest.Listen(a.T, path)
	name, err := os.Hostname()
	a.must(err)
	for _, host := range []struct{ how, name string }{{"by its name", name}, {"as localhost", "localhost"}, {"as 127.0.0.1", "127.0.0.1"}} {
		file, err := os.OpenFile(strings.Replace(path, `\\.\`, `\\`+host.name+`\`, 1), os.O_RDWR, 0)
		if err == nil {
			file.Close()
		}
		a.fact("open it in the network "+host.how, winapi.Error(err))
	}
}

// askInstances makes the first instance of a pipe, which Windows does not check, with a descriptor that lets this
// account only connect.
func askInstances(a *answer) {
	account, err := windows.GetCurrentProcessToken().GetTokenUser()
	a.must(err)
	const rights = "0x12019b"
	descriptor, err := windows.SecurityDescriptorFromString("D:P(A;;" + rights + ";;;SY)(A;;" + rights + ";;;BA)(A;;" + rights + ";;;" + account.User.Sid.String() + ")(A;;RC;;;S-1-3-4)")
	a.must(err)
	name, err := windows.UTF16PtrFromString(newPipe(a.T))
	a.must(err)
	instance := func(attributes *windows.SecurityAttributes) (windows.Handle, error) {
		return windows.CreateNamedPipe(name, windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED,
			windows.PIPE_TYPE_BYTE|windows.PIPE_REJECT_REMOTE_CLIENTS, windows.PIPE_UNLIMITED_INSTANCES, 4096, 4096, 0, attributes)
	}
	first, err := instance(&windows.SecurityAttributes{Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: descriptor})
	a.must(err)
	defer windows.CloseHandle(first)
	for _, open := range []struct {
		what   string
		access uint32
	}{{"connect", windows.GENERIC_READ | windows.GENERIC_WRITE}, {"open it to change its access list", windows.WRITE_DAC}} {
		client, err := windows.CreateFile(name, open.access, 0, nil, windows.OPEN_EXISTING, 0, 0)
		if err == nil {
			windows.CloseHandle(client)
		}
		a.fact(open.what, winapi.Error(err))
	}
	second, err := instance(nil)
	if err == nil {
		windows.CloseHandle(second)
	}
	a.fact("make a second instance", winapi.Error(err))
}

func askContainer(a *answer) {
	_, container := os.LookupEnv("CONTAINER_SANDBOX_MOUNT_POINT")
	a.measured("in a HostProcess container", container)
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	a.must(err)
	a.measured("as the system", user.User.Sid.IsWellKnown(windows.WinLocalSystemSid))
	// The client module accepts pipes of Administrators and the system only.
	descriptor, err := windows.GetSecurityInfo(windows.CurrentProcess(), windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	a.must(err)
	owner, _, err := descriptor.Owner()
	a.must(err)
	a.measured("what it makes belongs to Administrators", owner.IsWellKnown(windows.WinBuiltinAdministratorsSid))
}

func askGoFiles(a *answer) {
	dir := a.TempDir()
	open := filepath.Join(dir, "open")
	for _, path := range []string{open, filepath.Join(dir, "new"), filepath.Join(dir, "tree", "locked")} {
		a.must(writeFile(path, "data"))
	}
	file, err := os.Open(open)
	a.must(err)
	a.fact("os.Rename over a file that is open", winapi.Error(os.Rename(filepath.Join(dir, "new"), open)))
	file.Close()
	release, err := hold(filepath.Join(dir, "tree", "locked"))
	a.must(err)
	a.fact("os.RemoveAll of a directory with a locked file", winapi.Error(os.RemoveAll(filepath.Join(dir, "tree"))))
	release()
}
