package client_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
)

func TestEndpoint(t *testing.T) {
	v1, v2alpha1 := apiversion.NewVersionOrPanic("v1"), apiversion.NewVersionOrPanic("v2alpha1")
	tests := []struct {
		goos, dir, group string
		version          apiversion.Version
		want             string
	}{
		{"windows", "", "disk", v1, `\\.\pipe\csi-proxy-disk-v1`},
		{"windows", "/ignored", "volume", v2alpha1, `\\.\pipe\csi-proxy-volume-v2alpha1`},
		{"linux", "/run/x", "disk", v1, "/run/x/csi-proxy-disk-v1.sock"},
		{"darwin", "/run/x/", "volume", v2alpha1, "/run/x/csi-proxy-volume-v2alpha1.sock"},
		{"linux", "sockets", "smb", v1, "sockets/csi-proxy-smb-v1.sock"},
	}
	for _, test := range tests {
		if got := client.Endpoint(test.goos, test.dir, test.group, test.version); got != test.want {
			t.Errorf("on %s: got %s, want %s", test.goos, got, test.want)
		}
	}
}

func TestSocketDir(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		want string
	}{
		{"nothing set", nil, "/tmp/csi-proxy-1000"},
		{"own variable", map[string]string{"CSI_PROXY_SOCKET_DIR": "/a", "XDG_RUNTIME_DIR": "/b"}, "/a"},
		{"own variable, relative", map[string]string{"CSI_PROXY_SOCKET_DIR": "a"}, "a"},
		{"own variable, empty", map[string]string{"CSI_PROXY_SOCKET_DIR": "", "XDG_RUNTIME_DIR": "/b"}, "/b/csi-proxy"},
		{"runtime directory", map[string]string{"XDG_RUNTIME_DIR": "/run/user/1000"}, "/run/user/1000/csi-proxy"},
		{"runtime directory, relative", map[string]string{"XDG_RUNTIME_DIR": "b"}, "/tmp/csi-proxy-1000"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			getenv := func(name string) string { return test.env[name] }
			if got := client.SocketDirFrom(getenv, "/tmp", 1000); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestPipePath_ThisSystem(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CSI_PROXY_SOCKET_DIR", dir)
	want := filepath.Join(dir, "csi-proxy-disk-v1.sock")
	wantDir := dir
	if runtime.GOOS == "windows" {
		want, wantDir = `\\.\pipe\csi-proxy-disk-v1`, ""
	}
	if got := client.PipePath("disk", apiversion.NewVersionOrPanic("v1")); got != want {
		t.Errorf("PipePath: got %s, want %s", got, want)
	}
	if got := client.SocketDir(); got != wantDir {
		t.Errorf("SocketDir: got %q, want %q", got, wantDir)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("the directory holds %v, error %v; naming an endpoint should create nothing", entries, err)
	}
}

// must ends the test if err is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
