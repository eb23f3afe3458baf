//go:build unix

package command_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
)

// arguments are valid ones for every command that makes calls.
var arguments = map[string]string{
	"disk list": "", "disk ids": "", "disk locations": "", "disk rescan": "",
	"disk stats": "1", "disk state": "1", "disk online": "1", "disk offline": "1", "disk partition": "1",
	"volume list": "", "volume stats": "v", "volume formatted": "v", "volume format": "v", "volume mount": `v C:\x`, "volume unmount": `v C:\x`,
	"volume resize": "v 1Gi", "volume flush": "v", "volume of-path": `C:\x`, "volume closest": `C:\x`, "volume disk": "v", "volume life": "--disk 1 --yes",
	"fs exists": `C:\x`, "fs mkdir": `C:\x`, "fs rmdir": `C:\x`, "fs rm-contents": `C:\x`, "fs link": `C:\x C:\y`, "fs is-link": `C:\x`,
	"smb map": `\\s\d --user u --password-stdin`, "smb unmap": `\\s\d`,
	"iscsi portal add": "p", "iscsi portal list": "", "iscsi portal remove": "p", "iscsi portal discover": "p",
	"iscsi connect": "p iqn", "iscsi disconnect": "p iqn", "iscsi disks": "p iqn", "iscsi mutual-chap": "--secret-stdin",
	"system bios": "", "system service get": "s", "system service start": "s", "system service stop": "s",
	"node": "",
}

// eachCommand calls a function for every command that makes calls.
func eachCommand(t *testing.T, check func(t *testing.T, args []string)) {
	t.Helper()
	for _, c := range leaves(command.Root()) {
		path := strings.TrimPrefix(c.CommandPath(), "csi-proxyctl ")
		switch path {
		case "watch", "versions", "doctor": // they show what does not answer
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
	})
	for command, code := range map[string]int{"versions": 3, "doctor": 4} {
		if r := run(t.Context(), "/none", "", command); r.code != code || !strings.Contains(r.out, "/none") && command == "doctor" {
			t.Errorf("%s: got %+v, want exit code %d", command, r, code)
		}
	}
}

// silent is a server that takes calls at all endpoints and never answers.
type silent struct {
	dir    string
	server *grpc.Server
	called chan struct{} // has a value after the first call
}

func startSilent(t *testing.T) silent {
	t.Helper()
	s := silent{dir: socketDir(t), called: make(chan struct{}, 1)}
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
	for _, name := range endpoint.All() {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", node.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _ = s.server.Serve(listener) })
	}
	t.Cleanup(func() {
		s.server.Stop()
		wg.Wait()
	})
	return s
}

func TestRun_ServerDiesDuringTheCall(t *testing.T) {
	eachCommand(t, func(t *testing.T, args []string) {
		t.Helper()
		s := startSilent(t)
		go func() {
			<-s.called
			s.server.Stop()
		}()
		r := run(t.Context(), s.dir, "secret\n", args...)
		if r.code != command.ExitUnreachable || strings.Count(r.err, "\n") != 1 {
			t.Errorf("got %+v, want exit code 3 and one sentence", r)
		}
		if !strings.Contains(r.err, "ended during the call") {
			t.Errorf("%q does not say what has happened", r.err)
		}
	})
}

func TestRun_Interrupted(t *testing.T) {
	eachCommand(t, func(t *testing.T, args []string) {
		t.Helper()
		s := startSilent(t)
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		go func() {
			<-s.called
			interrupt()
		}()
		r := run(ctx, s.dir, "secret\n", args...)
		if r.code != command.ExitInterrupted || !strings.Contains(r.err, "interrupted") || strings.Count(r.err, "\n") != 1 {
			t.Errorf("got %+v, want exit code 130 and one sentence", r)
		}
	})
	t.Run("watch", func(t *testing.T) {
		s := startSilent(t)
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		go func() {
			<-s.called
			interrupt()
		}()
		if r := run(ctx, s.dir, "", "watch"); r.code != command.ExitInterrupted {
			t.Errorf("got %+v, want exit code 130", r)
		}
	})
}

func TestRun_Timeout(t *testing.T) {
	s := startSilent(t)
	r := run(t.Context(), s.dir, "", "disk", "rescan", "--timeout", "200ms")
	if r.code != command.ExitFailure || !strings.Contains(r.err, "(DeadlineExceeded)") || !strings.Contains(r.err, "--timeout") {
		t.Errorf("got %+v, want exit code 1 and DeadlineExceeded", r)
	}
}
