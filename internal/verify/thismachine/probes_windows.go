package thismachine

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe/pipetest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// probes answer the questions about this process.
var probes = map[string]func(*verify.Ask){
	"Q-pipe-ssh":    askSession,
	"Q-pipe-remote": askRemote,
	"Q-hostprocess": askContainer,
	"Q-go-files":    askGoFiles,
}

// askSession connects to a pipe of its own, from the session that the program runs in.
func askSession(a *verify.Ask) {
	listener, path := listen(a)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	conn, err := pipetest.Dial(path)
	if err == nil {
		conn.Close()
	}
	a.Fact("an administrator connects", winapi.Error(err))
	network, err := windows.CreateWellKnownSid(windows.WinNetworkSid)
	a.Must(err)
	var token windows.Token // of this process, which is no client of another
	is, err := token.IsMember(network)
	a.Must(err)
	a.Measured("the session is a network logon (S-1-5-2)", is)
}

func listen(a *verify.Ask) (listener net.Listener, path string) {
	a.Helper()
	path = pipetest.NewPath()
	listener, err := pipe.Listen(a.Context(), path, pipe.Config{})
	a.Must(err)
	a.Cleanup(func() { listener.Close() })
	return listener, path
}

// askRemote opens a pipe of its own by the name of this machine in the network.
func askRemote(a *verify.Ask) {
	_, path := listen(a)
	name, err := os.Hostname()
	a.Must(err)
	for _, host := range []struct{ how, name string }{{"by its name", name}, {"as localhost", "localhost"}, {"as 127.0.0.1", "127.0.0.1"}} {
		file, err := os.OpenFile(strings.Replace(path, `\\.\`, `\\`+host.name+`\`, 1), os.O_RDWR, 0)
		if err == nil {
			file.Close()
		}
		a.Fact("open it in the network "+host.how, winapi.Error(err))
	}
}

func askContainer(a *verify.Ask) {
	_, container := os.LookupEnv("CONTAINER_SANDBOX_MOUNT_POINT")
	a.Measured("in a HostProcess container", container)
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	a.Must(err)
	a.Measured("as the system", user.User.Sid.IsWellKnown(windows.WinLocalSystemSid))
}

func askGoFiles(a *verify.Ask) {
	dir := a.TempDir()
	open := filepath.Join(dir, "open")
	for _, path := range []string{open, filepath.Join(dir, "new"), filepath.Join(dir, "tree", "locked")} {
		a.Must(writeFile(path, "data"))
	}
	file, err := os.Open(open)
	a.Must(err)
	a.Fact("os.Rename over a file that is open", winapi.Error(os.Rename(filepath.Join(dir, "new"), open)))
	file.Close()
	release, err := hold(filepath.Join(dir, "tree", "locked"))
	a.Must(err)
	a.Fact("os.RemoveAll of a directory with a locked file", winapi.Error(os.RemoveAll(filepath.Join(dir, "tree"))))
	release()
}

// bytePointer is for memory of Wine, which never moves.
func bytePointer(address uintptr) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(nil), address)) }
