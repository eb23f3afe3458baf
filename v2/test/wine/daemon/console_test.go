//go:build windows && wine

package daemon

import (
	"slices"
	"strings"
	"testing"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/client"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// TestAttached is for a daemon that another process starts and stops, or for
// csi-proxy-sim.
func TestAttached(t *testing.T) {
	if !*attached {
		t.Skip("-attached is not set; this test is for programs that another process starts")
	}
	wantAllServing(t)
	wantWork(t, connect(t), `\attached`)
}

// wantWork lets the daemon make and remove a directory.
func wantWork(t *testing.T, c *fsv1.Client, name string) {
	t.Helper()
	path := kubelet + name
	for _, want := range []bool{true, false} {
		var err error
		if want {
			_, err = c.Mkdir(t.Context(), &filesystemv1.MkdirRequest{Path: path})
		} else {
			_, err = c.Rmdir(t.Context(), &filesystemv1.RmdirRequest{Path: path})
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		got, err := c.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: path})
		if err != nil || got.GetExists() != want {
			t.Errorf("%s exists: %v, %v, want %v", path, got, err, want)
		}
	}
}

// TestConsole_Mitigations: the daemon restricts its process before it listens. Wine accepts all and
// enforces none, so what Windows has in force cannot be asked. An operator can have one more, or none.
func TestConsole_Mitigations(t *testing.T) {
	log := func(args ...string) string {
		p := start(t, args...)
		defer p.kill()
		return p.output()
	}
	output, strict := log(), `"`+winapi.StrictHandleChecks().Name+`"`
	restricted, serving := strings.Index(output, "Restricted the process"), strings.Index(output, `"Serving"`)
	if restricted < 0 || serving < restricted {
		t.Errorf("it does not restrict itself before it serves:\n%s", output)
	}
	for _, m := range winapi.Mitigations() {
		if !strings.Contains(output, `"`+m.Name+`"`) {
			t.Errorf("%s is not accepted:\n%s", m.Name, output)
		}
	}
	if strings.Contains(output, strict) || !strings.Contains(log("-strict-handle-checks"), strict) {
		t.Errorf("handle checks are on without their flag, or off with it:\n%s", output)
	}
	if output := log("-mitigations=false"); strings.Contains(output, "Restricted the process") {
		t.Errorf("it restricts itself:\n%s", output)
	}
	if code, output := launch(t, *program, "-strict-handle-checks", "-mitigations=false").exit(); code != 2 || !strings.Contains(output, "remove -mitigations=false") {
		t.Errorf("with both: exit code %d and %s, want 2", code, oneLine(output))
	}
}

// TestConsole_Killed: what a killed daemon leaves does not block the next one.
func TestConsole_Killed(t *testing.T) {
	for range 3 {
		start(t).kill()
		wantPipesFree(t)
	}
}

// TestConsole_SecurityDescriptor: the pipes get the access list that was asked for. Whether
// it is obeyed is a question for Windows; Wine does not.
func TestConsole_SecurityDescriptor(t *testing.T) {
	for _, c := range []struct{ flag, servers, clients string }{
		{"-v=2", ownAccount(t), "S-1-5-18 S-1-5-32-544"},
		{"-pipe-security-descriptor=D:P(A;;GA;;;SY)(A;;GA;;;BA)(A;;GA;;;S-1-5-93-2-1)", "S-1-5-18 S-1-5-32-544 S-1-5-93-2-1", ""},
	} {
		t.Run(c.flag, func(t *testing.T) { wantAccess(t, c.flag, strings.Fields(c.servers), strings.Fields(c.clients)) })
	}
}

func ownAccount(t *testing.T) string {
	t.Helper()
	account, err := windows.GetCurrentProcessToken().GetTokenUser()
	require.NoError(t, err)
	return account.User.Sid.String()
}

// wantAccess checks who can connect to the pipes of a daemon, and who of them can serve them.
func wantAccess(t *testing.T, flag string, servers, clients []string) {
	t.Helper()
	start(t, flag)
	conn, err := winio.DialPipe(client.PipePath(fsv1.GroupName, fsv1.Version), nil)
	require.NoError(t, err)
	defer conn.Close()
	pipe := windows.Handle(conn.(interface{ Fd() uintptr }).Fd())
	descriptor, err := windows.GetSecurityInfo(pipe, windows.SE_KERNEL_OBJECT, windows.DACL_SECURITY_INFORMATION)
	require.NoError(t, err)
	list, _, err := descriptor.DACL()
	require.NoError(t, err)
	allowed, err := winapi.Allowed(list)
	require.NoError(t, err)
	for _, sid := range slices.Concat(servers, clients) {
		const writeData, createInstance = 0x2, 0x4
		if !allowed.Allows(writeData, sid) || allowed.Allows(createInstance, sid) != slices.Contains(servers, sid) {
			t.Errorf("the pipe has %s, want that %v connect and %v serve", descriptor, slices.Concat(servers, clients), servers)
		}
	}
}
