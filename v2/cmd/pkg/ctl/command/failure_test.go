//go:build unix

package command_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm/scmtest"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// arguments are valid arguments for every command that makes calls.
var arguments = map[string]string{
	"disk list": "", "disk ids": "", "disk locations": "", "disk rescan": "",
	"disk stats": "1", "disk state": "1", "disk online": "1", "disk offline": "1 --yes", "disk partition": "1", "disk writable": "1", "disk read-only": "1 --yes",
	"volume list": "", "volume stats": "v", "volume formatted": "v", "volume check": "v", "volume format": "v --yes", "volume mount": `v C:\x`, "volume unmount": `v C:\x`,
	"volume resize": "v 1Gi", "volume flush": "v", "volume of-path": `C:\x`, "volume closest": `C:\x`, "volume disk": "v",
	"fs exists": `C:\x`, "fs ls": `C:\x`, "fs mkdir": `C:\x`, "fs rmdir": `C:\x`, "fs rm-contents": `C:\x --yes`, "fs link": `C:\x C:\y`, "fs is-link": `C:\x`,
	"smb list": "", "smb map": `\\s\d --user u --password-stdin`, "smb unmap": `\\s\d`,
	"iscsi portal add": "p", "iscsi portal list": "", "iscsi portal remove": "p", "iscsi portal discover": "p", "iscsi sessions": "",
	"iscsi connect": "p iqn", "iscsi disconnect": "p iqn", "iscsi disks": "p iqn", "iscsi mutual-chap": "--secret-stdin",
	"system bios": "", "system service get": "s", "system service start": "s", "system service stop": "s",
	"node": "", "node heal": "--yes", "web": "",
	"sim show": "", "sim attach": "1Gi", "sim clone": "1", "sim detach": "1", "sim reattach": "1", "sim grow": "1 2Gi", "sim fail": "1", "sim hang": "1", "sim heal": "1",
	"sim server add": "s", "sim server stop": "s", "sim server start": "s", "sim share add": `\\s\d`,
	"sim account add": "s u --password-stdin", "sim account password": "s u --password-stdin", "sim end-sessions": "", "sim mkdir": `C:\x`, "sim reboot": "", "sim restart-daemon": "",
}

// eachCommand calls a function for every command that makes calls.
func eachCommand(t *testing.T, check func(t *testing.T, args []string)) {
	t.Helper()
	for _, c := range leaves(command.Root()) {
		path := strings.TrimPrefix(c.CommandPath(), "csi-proxyctl ")
		switch path {
		case "watch", "versions", "doctor", "support-bundle": // they report errors as results
			continue
		}
		if strings.HasPrefix(path, "service ") {
			continue
		}
		args, ok := arguments[path]
		if !ok {
			t.Errorf("no arguments for %q", path)
		}
		t.Run(path, func(t *testing.T) { check(t, strings.Fields(path+" "+args)) })
	}
}

func TestRun_EndpointMissing(t *testing.T) {
	eachCommand(t, func(t *testing.T, args []string) {
		t.Helper()
		r := run(t.Context(), "/none", "secret\n", args...)
		if r.code != command.ExitUnreachable || !strings.Contains(r.err, "no such socket") || strings.Count(r.err, "\n") != 1 || r.out != "" {
			t.Errorf("got %+v, want exit code 3 and one sentence", r)
		}
		if args[0] != "sim" && !strings.Contains(r.err, "start csi-proxy ('csi-proxyctl service start'), or run 'csi-proxyctl doctor'") {
			t.Errorf("%q does not say what to do", r.err)
		}
		if !strings.HasSuffix(r.err, " (Unavailable)\n") || strings.Contains(r.err, "CSI_PROXY_SOCKET_DIR") {
			t.Errorf("%q lacks the gRPC code, or suggests the variable that --endpoint-dir overrides", r.err)
		}
	})
	for command, code := range map[string]int{"versions": 3, "doctor": 4} {
		if r := run(t.Context(), "/none", "", command); r.code != code || !strings.Contains(r.out, "/none") && command == "doctor" {
			t.Errorf("%s: got %+v, want exit code %d", command, r, code)
		}
	}
	t.Run("without --endpoint-dir", func(t *testing.T) {
		t.Setenv("CSI_PROXY_SOCKET_DIR", "/none")
		if r := run(t.Context(), "", "", "disk", "ids"); !strings.Contains(r.err, "CSI_PROXY_SOCKET_DIR") || !strings.Contains(r.err, "'csi-proxyctl doctor'") || !strings.HasSuffix(r.err, " (Unavailable)\n") {
			t.Errorf("got %+v", r)
		}
	})
}

// TestRun_QueueIsFull: the owner of the endpoint does not accept connections.
func TestRun_QueueIsFull(t *testing.T) {
	dir := serve.SocketDir(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	path := endpoint.Node{Dir: dir}.Path(endpoint.Name{Group: "disk", Version: "v1"})
	require.NoError(t, errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0)))
	r := run(t.Context(), dir, "", "disk", "rescan", "--timeout", "5s") // its first connection fills the queue
	if strings.Contains(r.err, "ended during the call") || !strings.Contains(r.err, "does not accept connections") || r.code != command.ExitUnreachable {
		t.Errorf("got %+v", r)
	}
}

// silent is a server at all endpoints that never answers.
type silent struct {
	dir    string
	server *grpc.Server
	called chan struct{} // receives a value at the first call

	listeners []net.Listener
}

func startSilent(t *testing.T) silent {
	t.Helper()
	s := silent{dir: serve.SocketDir(t), called: make(chan struct{}, 1)}
	s.server = grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		select {
		case s.called <- struct{}{}:
		default:
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}))
	node := endpoint.Node{Dir: s.dir}
	var wg sync.WaitGroup
	for _, name := range append(endpoint.All(), endpoint.Control) {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", node.Path(name))
		require.NoError(t, err)
		s.listeners = append(s.listeners, listener)
		wg.Go(func() { _ = s.server.Serve(listener) })
	}
	t.Cleanup(func() {
		s.server.Stop()
		wg.Wait()
	})
	return s
}

// die ends the server with the first call, also where it has not begun to serve.
func (s silent) die() {
	<-s.called
	for _, listener := range s.listeners {
		_ = listener.Close()
	}
	s.server.Stop()
}

// interrupt returns a context that ends with the first call.
func (s silent) interrupt(t *testing.T) context.Context {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	t.Cleanup(interrupt)
	go func() {
		<-s.called
		interrupt()
	}()
	return ctx
}

func TestRun_ServerDiesDuringTheCall(t *testing.T) {
	eachCommand(t, func(t *testing.T, args []string) {
		t.Helper()
		s := startSilent(t)
		go s.die()
		r := run(t.Context(), s.dir, "secret\n", args...)
		if r.code != command.ExitUnreachable || strings.Count(r.err, "\n") != 1 {
			t.Errorf("got %+v, want exit code 3 and one sentence", r)
		}
		if !strings.Contains(r.err, "ended during the call") {
			t.Errorf("%q does not say that the server ended", r.err)
		}
	})
	for args, code := range map[string]int{"versions": command.ExitUnreachable, "doctor": command.ExitProblems, "watch --count 1": command.ExitOK} {
		t.Run(args, func(t *testing.T) {
			s := startSilent(t)
			go s.die()
			if r := run(t.Context(), s.dir, "", strings.Fields(args)...); r.code != code || r.out+r.err == "" {
				t.Errorf("got %+v, want exit code %d", r, code)
			}
		})
	}
}

// readers are the commands whose first call changes nothing.
var readers = []string{
	"node", "web", "sim show", "disk list", "disk ids", "disk locations", "disk stats", "disk state",
	"volume list", "volume stats", "volume formatted", "volume check", "volume of-path", "volume closest", "volume disk",
	"fs exists", "fs ls", "fs is-link", "iscsi portal list", "iscsi portal discover", "iscsi disks", "system bios", "system service get",
	"smb list", "smb map", "iscsi sessions",
}

// TestRun_Interrupted: only a command that changes something says that the change may still
// happen.
func TestRun_Interrupted(t *testing.T) {
	eachCommand(t, func(t *testing.T, args []string) {
		t.Helper()
		s := startSilent(t)
		ctx := s.interrupt(t)
		r := run(ctx, s.dir, "secret\n", args...)
		if r.code != command.ExitInterrupted || !strings.Contains(r.err, "interrupted") || strings.Count(r.err, "\n") != 1 {
			t.Errorf("got %+v, want exit code 130 and one sentence", r)
		}
		reads := slices.ContainsFunc(readers, func(path string) bool { return slices.Equal(args, strings.Fields(path+" "+arguments[path])) })
		if strings.Contains(r.err, "may still complete the change") == reads {
			t.Errorf("reads only: %v, got %q", reads, r.err)
		}
	})
	for _, args := range []string{"watch", "versions", "doctor", "service status"} {
		t.Run(args, func(t *testing.T) {
			s := startSilent(t)
			ctx := s.interrupt(t)
			services := scmtest.New()
			_, _ = services.Create("csi-proxy", scm.Config{Command: "csi-proxy.exe"})
			if r := runWith(ctx, services, s.dir, "", strings.Fields(args)...); r.code != command.ExitInterrupted || r.err != "csi-proxyctl: interrupted\n" {
				t.Errorf("got %+v, want exit code 130", r)
			}
		})
	}
	// What only looks changes nothing, even if the command can.
	for _, args := range []string{"node heal --dry-run", "disk offline 1 --dry-run", "volume format v --dry-run", `fs rmdir C:\x --force --dry-run`} {
		t.Run(args, func(t *testing.T) {
			s := startSilent(t)
			if r := run(s.interrupt(t), s.dir, "", strings.Fields(args)...); r.code != command.ExitInterrupted || strings.Contains(r.err, "change") {
				t.Errorf("got %+v, want exit code 130 and no word about a change", r)
			}
		})
	}
}

func TestRun_Timeout(t *testing.T) {
	s := startSilent(t)
	r := run(t.Context(), s.dir, "", "disk", "rescan", "--timeout", "200ms")
	if r.code != command.ExitFailure || !strings.Contains(r.err, "(DeadlineExceeded)") || !strings.Contains(r.err, "--timeout") {
		t.Errorf("got %+v, want exit code 1 and DeadlineExceeded", r)
	}
}

// TestRun_OlderServer: commands use an older version that has the same messages, and say which one they need.
func TestRun_OlderServer(t *testing.T) {
	n := startNode(t, winsim.Default(), "disk/v1beta3", "volume/v1", "filesystem/v1beta2", "smb/v1beta2")
	n.expect(t, "online", "disk", "state", "1")
	n.expect(t, "false", "fs", "is-link", `C:\var\lib\kubelet`)
	for _, c := range []struct{ args, want string }{{`volume closest C:\var`, "volume-v2alpha1"}, {`fs rm-contents C:\var --yes`, "filesystem-v2alpha1"}, {"system bios", "system-v1alpha1"}} {
		if r := run(t.Context(), n.dir, "", strings.Fields(c.args)...); r.code != command.ExitUnreachable || !strings.Contains(r.err, c.want) {
			t.Errorf("%s: got %+v", c.args, r)
		}
	}
}

// TestSMB_NoInspector: without one, the commands say what is not known.
func TestSMB_NoInspector(t *testing.T) {
	n := startNode(t, winsim.Default(), "smb/v1")
	for args, want := range map[string]string{
		`smb map \\files\data --user csi --password-stdin`:         "mapped; if it was mapped before, which the server does not say, the password was not checked",
		`smb map \\files\data --user csi --password-stdin -o json`: `"wasMapped": null`,
		`smb unmap \\files\none`:                                   "unmapped, unless a link uses it, which the server does not say",
		`smb unmap \\files\none -o json`:                           `"done": "unknown"`,
	} {
		if r := run(t.Context(), n.dir, "csi-Pa55\n", strings.Fields(args)...); r.code != command.ExitOK || !strings.Contains(r.out, want) {
			t.Errorf("%s: got %+v, want %q", args, r, want)
		}
	}
}
