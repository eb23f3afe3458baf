//go:build unix

package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/doctor"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// service is an installed service with fixed answers.
type service struct {
	scm.Service
	config   scm.Config
	recovery scm.Recovery
	status   scm.Status
	err      error // of Config
	// errors of the others
	statusErr, recoveryErr error
}

func (s service) Config() (scm.Config, error)     { return s.config, s.err }
func (s service) Recovery() (scm.Recovery, error) { return s.recovery, s.recoveryErr }
func (s service) Status() (scm.Status, error)     { return s.status, s.statusErr }
func (service) Close()                            {}

type manager struct {
	scm.Manager
	service scm.Service
}

func (m manager) Open(name string) (scm.Service, error) {
	if m.service == nil {
		return nil, fmt.Errorf("service %s: %w", name, scm.ErrNotInstalled)
	}
	return m.service, nil
}

func (manager) Close() {}

var good = service{
	config:   scm.Config{Command: "csi-proxy.exe -v=2", Start: scm.Delayed},
	recovery: scm.Recovery{Restart: time.Second, OnErrors: true},
	status:   scm.Status{State: scm.Running, PID: uint32(os.Getpid())},
}

// at returns a doctor of a healthy Windows machine.
func at(t *testing.T, dir string) doctor.Doctor {
	t.Helper()
	log := filepath.Join(t.TempDir(), "csi-proxy.log")
	require.NoError(t, os.WriteFile(log, []byte("log"), 0o600))
	node := endpoint.Node{Dir: dir}
	client := call.New(node, time.Now)
	t.Cleanup(client.Close)
	return doctor.Doctor{
		Node: node, Client: client, KubeletPath: `C:\var\lib\kubelet`, LogFile: log, ServiceName: "csi-proxy", Version: "devel", Now: time.Now,
		Services:  func() (scm.Manager, error) { return manager{service: good}, nil },
		SANPolicy: func() (win.SANPolicy, error) { return win.SANOnlineAll, nil },
		LongPaths: func() (bool, error) { return true, nil },
		Access:    func(string) (installation.Access, error) { return installation.Access{Owner: sddl.Administrators}, nil },
		BuildInfo: func(string) (*debug.BuildInfo, error) { return &debug.BuildInfo{}, nil },
	}
}

// writable makes users the owners of one path.
func writable(path string) func(*doctor.Doctor) {
	return func(d *doctor.Doctor) {
		d.LogFile = ""
		d.Services = func() (scm.Manager, error) {
			s := good
			s.config.Command = `"C:\p\csi-proxy.exe" -v=2 -log_file=D:\log\csi-proxy.log`
			return manager{service: s}, nil
		}
		d.Access = func(asked string) (installation.Access, error) {
			if asked == path {
				return installation.Access{Owner: sddl.Users}, nil
			}
			return installation.Access{Owner: sddl.LocalSystem}, nil
		}
	}
}

func serveNode(t *testing.T, groups ...string) string {
	t.Helper()
	return serveModel(t, winsim.Default(), groups...)
}

// serveModel serves a model with the given API groups, or all.
func serveModel(t *testing.T, model winsim.Model, groups ...string) string {
	t.Helper()
	emulated, err := winsim.New(model)
	require.NoError(t, err)
	dir := serve.SocketDir(t)
	serve.StartWith(t, emulated, serve.Config{Config: daemon.Config{SocketDir: dir, APIGroups: groups}})
	return dir
}

// results returns all results but OK.
func results(t *testing.T, d doctor.Doctor) (text string, bad bool) {
	t.Helper()
	var b strings.Builder
	for _, f := range d.Examine(t.Context()) {
		bad = bad || f.IsProblem()
		if f.IsProblem() && f.Remedy == "" {
			t.Errorf("no remedy for %+v", f)
		}
		if strings.Contains(f.Text, "\n") || strings.Contains(f.Remedy, "elevated") && !strings.Contains(f.Text, "denied") {
			t.Errorf("more than one line, or an unrelated remedy: %+v", f)
		}
		if f.Level != doctor.OK {
			fmt.Fprintf(&b, "%s %s: %s\n", f.Level, f.Check, f.Text)
		}
	}
	return b.String(), bad
}

func TestExamine_AllIsWell(t *testing.T) {
	if got, bad := results(t, at(t, serveNode(t))); got != "" || bad {
		t.Errorf("got %s", got)
	}
}

// TestExamine_Machine: one problem at a time.
// TestExamine_SANPolicy: a policy that brings every LUN online is a warning while there are sessions.
func TestExamine_SANPolicy(t *testing.T) {
	model := winsim.Default()
	const iqn = "iqn.2025-01.com.example:storage"
	model.ISCSI = winsim.ISCSI{
		Portals: []winsim.ISCSIPortal{{Address: "10.0.0.10"}},
		Targets: []winsim.ISCSITarget{{IQN: iqn, LUNs: []winsim.Disk{{Size: winsim.GiB}}}},
		Logins:  []winsim.ISCSILogin{{Target: iqn, Portal: "10.0.0.10"}},
	}
	d := at(t, serveModel(t, model))
	const warning = "warning iSCSI disks: the SAN policy brings all disks of iSCSI targets online"
	if got, _ := results(t, d); !strings.Contains(got, warning) {
		t.Errorf("got %s", got)
	}
	d.SANPolicy = func() (win.SANPolicy, error) { return win.SANOfflineShared, nil }
	if got, _ := results(t, d); strings.Contains(got, warning) {
		t.Errorf("got %s", got)
	}
}

func TestExamine_Machine(t *testing.T) {
	dir := serveNode(t)
	with := func(change func(*service)) func(*doctor.Doctor) {
		return func(d *doctor.Doctor) {
			s := good
			change(&s)
			d.Services = func() (scm.Manager, error) { return manager{service: s}, nil }
		}
	}
	big := filepath.Join(t.TempDir(), "big.log")
	for i, name := range []string{big, big + ".1", big + ".2"} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		if err := os.Truncate(name, int64(i)<<30); err != nil { // sparse
			t.Fatal(err)
		}
	}
	crashed := filepath.Join(t.TempDir(), "crashed.log")
	for name, content := range map[string]string{crashed: "log", crashed + ".crash": "", crashed + ".crash.1": "panic: on purpose"} {
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	}
	half := filepath.Join(t.TempDir(), "csi-proxy.exe")
	require.NoError(t, os.WriteFile(half+".old", []byte("MZ"), 0o600))
	for name, test := range map[string]struct {
		change func(*doctor.Doctor)
		want   string
		bad    bool
	}{
		"half upgraded": {with(func(s *service) {
			s.config.Command, s.status = half+" -v=2", scm.Status{State: scm.Stopped, ExitCode: 2}
		}), "the program of csi-proxy is missing or empty, as after an upgrade that a power cut ended; the old one is " + half + ".old", true},
		"foreign owner": {with(func(s *service) { s.status.PID = 1 }), "but the service csi-proxy is process 1", true},
		"not installed": {func(d *doctor.Doctor) { d.Services = func() (scm.Manager, error) { return manager{}, nil } }, "info service: csi-proxy is not installed as a service; process", false},
		"stopped":       {with(func(s *service) { s.status = scm.Status{State: scm.Stopped, ExitCode: 3} }), "error service: csi-proxy is stopped with exit code 3", true},
		"AKS": {with(func(s *service) {
			s.config = scm.Config{Command: `C:\k\nssm.exe`, Start: scm.Manual}
			s.recovery.Restart = 0
		}), "info service: csi-proxy runs under nssm, as on AKS", false},
		"manual":            {with(func(s *service) { s.config.Start = scm.Manual }), "warning service: start type is manual", true},
		"no recovery":       {with(func(s *service) { s.recovery.Restart = 0 }), "warning service: Windows does not restart it", true},
		"recovery of crash": {with(func(s *service) { s.recovery.OnErrors = false }), "warning service: Windows restarts it after a crash, but", true},
		"may not be asked":  {with(func(s *service) { s.err = fmt.Errorf("ask: %w", os.ErrPermission) }), "warning service: ask: permission denied", true},
		"several errors":    {with(func(s *service) { s.statusErr, s.recoveryErr = errors.New("first"), errors.New("second") }), "warning service: first\nwarning service: second\n", true},
		"no recovery known": {with(func(s *service) { s.recoveryErr = scm.ErrUnsupported }), "info service: not checked: not supported by this version of Windows", false},
		"other directories": {with(func(s *service) { s.config.Command += ` "-working-dir=D:\a b"` }), `error working directories: D:\a b: the daemon does not allow`, true},
		"no manager":        {func(d *doctor.Doctor) { d.Services = func() (scm.Manager, error) { return nil, errors.New("denied") } }, "info service: not checked: denied", false},
		"not Windows":       {func(d *doctor.Doctor) { d.Services = func() (scm.Manager, error) { return nil, scm.ErrNotWindows } }, "info service: skipped: not on Windows", false},
		"offline all":       {func(d *doctor.Doctor) { d.SANPolicy = func() (win.SANPolicy, error) { return win.SANOfflineAll, nil } }, "info SAN policy: offline all", false},
		"long paths off":    {func(d *doctor.Doctor) { d.LongPaths = func() (bool, error) { return false, nil } }, "info long paths: off", false},
		"no log file":       {func(d *doctor.Doctor) { d.LogFile = "/none/x.log" }, "warning log file: /none/x.log does not exist", true},
		"service without":   {func(d *doctor.Doctor) { d.LogFile = "" }, "warning log file: the service does not write a log", true},
		"large log":         {func(d *doctor.Doctor) { d.LogFile = big }, "warning log file: " + big + " and its backups use 3.0 GiB", true},
		"crashed before":    {func(d *doctor.Doctor) { d.LogFile = crashed }, "Z, and left " + crashed + ".crash.1", true},
		"directory refused": {func(d *doctor.Doctor) { d.WorkingDirs = []string{`D:\x`} }, `error working directories: D:\x: the daemon does not allow`, true},
		"program of users":  {writable(`C:\p\csi-proxy.exe`), `error permissions: program: C:\p\csi-proxy.exe belongs to Users`, true},
		"logs of users":     {writable(`D:\log`), `warning permissions: log: D:\log belongs to Users`, true},
		"kubelet of users":  {writable(`C:\var\lib`), `warning permissions: working directory C:\var\lib\kubelet: C:\var\lib belongs to Users`, true},
		"own descriptor":    {with(func(s *service) { s.config.Command += " -pipe-security-descriptor=O:SYD:P(A;;GA;;;SY)(A;;GA;;;BA)" }), "info permissions: -pipe-security-descriptor lets S-1-5-32-544 make instances", false},
		"drivers serve": {with(func(s *service) {
			s.config.Command += " -pipe-security-descriptor=D:P(A;;GA;;;SY)(A;;0x12019b;;;BA)(A;;GRGW;;;S-1-5-93-2-2)"
		}), "warning permissions: -pipe-security-descriptor lets S-1-5-93-2-2 make instances", true},
		"drivers connect": {with(func(s *service) {
			s.config.Command += " -pipe-security-descriptor=D:P(A;;GA;;;SY)(A;;0x12019b;;;BA)(A;;0x12019b;;;S-1-5-93-2-2)"
		}), "", false},
		"access is unknown": {func(d *doctor.Doctor) {
			d.Access = func(string) (installation.Access, error) { return installation.Access{}, os.ErrPermission }
		}, "info permissions: program: not checked: ", false},
		"other version": {func(d *doctor.Doctor) { d.Version = "v9" }, "info version skew: the server is devel, csi-proxyctl is v9", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := at(t, dir)
			test.change(&d)
			if got, bad := results(t, d); !strings.Contains(got, test.want) || bad != test.bad {
				t.Errorf("got\n%s\nwant %s, bad %v", got, test.want, test.bad)
			}
		})
	}
}

// TestExamine_Denied: the remedy names the accounts that may connect.
func TestExamine_Denied(t *testing.T) {
	if os.Getuid() == 0 && runtime.GOOS == "linux" {
		t.Skip("root may connect to every socket")
	}
	dir := serveNode(t)
	require.NoError(t, os.Chmod(endpoint.Node{Dir: dir}.Path(endpoint.Name{Group: "disk", Version: "v1"}), 0))
	const byDefault = "by default only LocalSystem and members of Administrators may connect"
	for command, want := range map[string]string{
		"csi-proxy.exe": byDefault,
		"csi-proxy.exe -pipe-security-descriptor=D:P(A;;GA;;;SY)": "the service's -pipe-security-descriptor is D:P(A;;GA;;;SY)",
	} {
		d := at(t, dir)
		s := good
		s.config.Command = command
		d.Services = func() (scm.Manager, error) { return manager{service: s}, nil }
		found := d.Examine(t.Context())
		if !slices.ContainsFunc(found, func(f doctor.Result) bool {
			return strings.Contains(f.Text, "denied") && strings.Contains(f.Remedy, want)
		}) {
			t.Errorf("%s: got %+v, want the remedy %s", command, found, want)
		}
	}
}

// TestExamine_Foreign: an endpoint of another account is named, and the way out.
func TestExamine_Foreign(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a socket to another user")
	}
	dir := serveNode(t)
	require.NoError(t, os.Chown(endpoint.Node{Dir: dir}.Path(endpoint.Name{Group: "disk", Version: "v1"}), 54321, -1))
	found := at(t, dir).Examine(t.Context())
	if !slices.ContainsFunc(found, func(f doctor.Result) bool {
		return strings.Contains(f.Text, "belongs to 54321") && strings.Contains(f.Remedy, "--trusted-owner")
	}) {
		t.Errorf("got %+v, want the owner of disk/v1", found)
	}
}

func TestExamine_Endpoints(t *testing.T) {
	t.Run("nothing is there", func(t *testing.T) {
		got, _ := results(t, at(t, "/none"))
		if !strings.Contains(got, "error endpoints: none found") || !strings.Contains(got, "info MSiSCSI: not checked") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("an older server", func(t *testing.T) {
		got, _ := results(t, at(t, serveNode(t, "disk/v1beta1", "filesystem", "system", "iscsi", "smb", "volume/v1")))
		if !strings.Contains(got, "warning version skew: the server does not serve the newest versions: disk/v1, volume/v2alpha1") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("not installed", func(t *testing.T) {
		d := at(t, "/none")
		d.Services = func() (scm.Manager, error) { return manager{}, nil }
		if got, _ := results(t, d); !strings.Contains(got, "warning service: csi-proxy is not installed as a service, and no other process serves") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("older versions only", func(t *testing.T) {
		d := at(t, serveNode(t, "disk/v1", "filesystem/v1", "smb/v1", "volume/v1"))
		got, _ := results(t, d)
		if strings.Contains(got, "filesystem group does not answer") || !strings.Contains(got, "the system group does not answer") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("fewer versions", func(t *testing.T) {
		got, bad := results(t, at(t, serveNode(t, "disk/v1", "filesystem", "system", "iscsi", "smb", "volume")))
		if !strings.Contains(got, "info version skew: the server does not serve older versions: disk/v1alpha1") || bad {
			t.Errorf("got %s", got)
		}
	})
	t.Run("foreign owner, dead, not serving", func(t *testing.T) {
		dir := serveNode(t, "disk/v1", "filesystem", "system", "iscsi", "smb", "volume")
		node := endpoint.Node{Dir: dir}
		listen := func(version string) *net.UnixListener {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", node.Path(endpoint.Name{Group: "disk", Version: version}))
			require.NoError(t, err)
			t.Cleanup(func() { listener.Close() })
			return listener.(*net.UnixListener)
		}
		talker := listen("v1alpha1")
		go func() { // does not speak gRPC
			for {
				conn, err := talker.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte("HTTP/1.0 400 no\r\n\r\n"))
				conn.Close()
			}
		}()
		dead := listen("v1beta1")
		dead.SetUnlinkOnClose(false)
		dead.Close()
		unwell := health.NewServer()
		unwell.Shutdown()
		server := grpc.NewServer()
		healthv1.RegisterHealthServer(server, unwell)
		listener, done := listen("v1beta2"), make(chan error, 1)
		go func() { done <- server.Serve(listener) }()
		t.Cleanup(func() { server.Stop(); <-done })

		got, _ := results(t, at(t, dir))
		for _, want := range []string{
			"error endpoints: disk/v1alpha1: the owner does not answer like csi-proxy",
			"error endpoints: disk/v1beta1: sockets without a server",
			"error health: disk/v1beta2: not serving",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("got\n%s\nwant %s", got, want)
			}
		}
	})
}

// TestStorage: every trouble of a node is a problem with a remedy.
func TestStorage(t *testing.T) {
	model := winsim.Broken()
	for i := range model.Disks {
		model.Disks[i].Hanging = false // every request waits for it
	}
	text, bad := results(t, at(t, serveModel(t, model)))
	if !bad {
		t.Error("the node passes for healthy")
	}
	for _, want := range []string{
		"disk 6: it cannot be read", "disk 4: offline: 2 paths lead to it; pods: 00000000-0000-4000-a000-000000000004",
		`share \\archive\media: Windows says: disconnected`, "info shares: whether they open is not known", `globalmount: stale: its volume is gone`, `pvc-9\mount: stale: its target`,
		"locked by BitLocker", `C:\ is 99% full`, "100% full",
	} {
		if n := strings.Count(text, want); n != 1 {
			t.Errorf("%q occurs %d times in\n%s", want, n, text)
		}
	}
	if hurts, silent := strings.Count(text, "error storage: "), strings.Count(text, "warning storage: "); hurts != 6 || silent != 2 { // what does not answer was not checked, and this daemon opens no share
		t.Errorf("%d and %d problems, want one per cause:\n%s", hurts, silent, text)
	}
}

// inspector is one that fails.
type inspector struct {
	extensionv1.UnimplementedInspectorServer
	code codes.Code
}

func (i inspector) DescribeNode(context.Context, *extensionv1.DescribeNodeRequest) (*extensionv1.Node, error) {
	return nil, status.Error(i.code, "x")
}

// TestStorage_NotChecked: if the daemon answers and its inspector does not, something was not checked, and doctor
// says so.
func TestStorage_NotChecked(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded} {
		dir := serveNode(t, "disk", "volume", "filesystem", "smb", "iscsi")
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: endpoint.Node{Dir: dir}.Path(endpoint.Name{Group: "system", Version: "v1alpha1"})})
		require.NoError(t, err)
		server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			_ = grpc.SetHeader(ctx, metadata.Pairs(version.Header, "devel"))
			return handler(ctx, request)
		}))
		healthv1.RegisterHealthServer(server, health.NewServer())
		extensionv1.RegisterInspectorServer(server, inspector{code: code})
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		if text, bad := results(t, at(t, dir)); !bad || !strings.Contains(text, "error storage: not checked: ") {
			t.Errorf("%s: got\n%s", code, text)
		}
	}
}

// TestStorage_NotSeen: what the server does not report was not checked, and is not said to be in order.
func TestStorage_NotSeen(t *testing.T) {
	for name, c := range map[string]struct {
		groups []string
		want   string
	}{
		"no inspector":  {[]string{"disk", "volume", "filesystem", "smb", "iscsi"}, "info storage: not checked: the system group does not answer"},
		"no filesystem": {[]string{"disk", "volume", "system", "smb", "iscsi"}, "info storage: not checked: the server does not report stale mounts and links: "},
		"no shares":     {[]string{"disk", "volume", "system", "filesystem"}, "info storage: not checked: the server does not report shares, iSCSI sessions: "},
		"no disks":      {[]string{"volume", "system", "filesystem"}, "info storage: not checked: describe node: this needs the csi-proxy of this project"},
	} {
		t.Run(name, func(t *testing.T) {
			d := at(t, serveModel(t, winsim.Default(), c.groups...))
			text, _ := results(t, d)
			if !strings.Contains(text, c.want) {
				t.Errorf("want %q in\n%s", c.want, text)
			}
			if !slices.ContainsFunc(d.Examine(t.Context()), func(f doctor.Result) bool { return f.Check == "storage" && f.Skipped }) {
				t.Error("no result says that something was skipped")
			}
		})
	}
}

// TestExamine_Containerd: the versions that are reported, and those between them, are named; what has no version is not.
func TestExamine_Containerd(t *testing.T) {
	d := at(t, serveNode(t))
	for flags, want := range map[string]bool{
		"-X github.com/containerd/containerd/version.Version=v1.7.3 -s": false,
		"-X github.com/containerd/containerd/version.Version=v1.7.4 -s": true,
		"-X github.com/containerd/containerd/version.Version=1.7.11":    true,
		"-X github.com/containerd/containerd/version.Version=v1.7.12":   false,
		"-X github.com/containerd/containerd/version.Version=v1.7.40":   false,
		"-X github.com/containerd/containerd/v2/version.Version=v2.1.5": false,
		"-s": false,
	} {
		d.BuildInfo = func(string) (*debug.BuildInfo, error) {
			return &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "-ldflags", Value: flags}}}, nil
		}
		if got, _ := results(t, d); strings.Contains(got, "warning containerd: 1.7.") != want {
			t.Errorf("%s: %q, want a warning %t", flags, got, want)
		}
	}
	d.BuildInfo = func(string) (*debug.BuildInfo, error) { return nil, os.ErrNotExist }
	if got, _ := results(t, d); got != "" {
		t.Error(got)
	}
}

// TestExamine_RootAccess: volumes of pods whose root ContainerUser cannot write to are named, others are not.
func TestExamine_RootAccess(t *testing.T) {
	got, _ := results(t, at(t, serveModel(t, winsim.Busy())))
	if !strings.Contains(got, "info root access: ") || strings.Contains(got, "0c51a9e0") {
		t.Error(got)
	}
}
