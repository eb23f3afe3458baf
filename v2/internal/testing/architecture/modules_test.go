package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestUseFromOtherModule makes modules of the programs in testdata, which stand for
// drivers. To use this checkout, one "go mod edit -replace" for each module of ours that the driver imports must be
// enough. 'make test-adopt' builds a driver and runs its tests.
func TestUseFromOtherModule(t *testing.T) {
	if testing.Short() {
		t.Skip("it may ask the module proxy")
	}
	root, err := filepath.Abs(root)
	require.NoError(t, err)
	useMain := "-replace=github.com/kubernetes-csi/csi-proxy/v2=" + filepath.Join(root, "v2")
	usePrograms := "-replace=github.com/kubernetes-csi/csi-proxy/v2/cmd=" + filepath.Join(root, "v2", "cmd")
	useClient := "-replace=github.com/kubernetes-csi/csi-proxy/client=" + filepath.Join(root, "client")

	t.Run("library", func(t *testing.T) {
		t.Parallel()
		driver := newModule(t, "library", useMain)
		for line := range strings.Lines(driver.run("", "list", "-m", "all")) { // whatever it does not import, it may have in another version
			if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); !slices.Contains(ofTheLibrary, name) {
				t.Errorf("a driver that requires the library gets a version of %s", name)
			}
		}
		for _, goos := range []string{"linux", "windows"} {
			for name := range strings.FieldsSeq(driver.run(goos, "list", "-deps", ".")) {
				if matches("google.golang.org/grpc/... google.golang.org/protobuf/... client/...", shorten(name)) {
					t.Errorf("a driver that uses the library on %s contains %s", goos, name)
				}
			}
		}
	})
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		driver := newModule(t, "client", useClient)
		driver.run("linux", "list", "-deps", ".")
		driver.run("windows", "list", "-deps", ".")
	})
	t.Run("mounter", func(t *testing.T) {
		t.Parallel()
		useMounter := "-replace=github.com/kubernetes-csi/csi-proxy/mounter=" + filepath.Join(root, "mounter")
		driver := newModule(t, "mounter", useMain, useClient, useMounter)
		driver.run("linux", "list", "-deps", ".")
		driver.run("windows", "list", "-deps", ".")
		if got := driver.run("", "list", "-m", "-f", "{{.GoVersion}}", "github.com/kubernetes-csi/csi-proxy/mounter"); strings.TrimSpace(got) != "1.25.0" {
			t.Errorf("the mounter requires go %s", got)
		}
		for line := range strings.Lines(driver.run("", "list", "-m", "all")) {
			name, version, _ := strings.Cut(strings.TrimSpace(line), " ")
			if newest := ofADriver[name]; newest != "" && compareVersions(version, newest) > 0 {
				t.Errorf("a driver that requires %s %s gets %s", name, newest, version)
			}
		}
	})
	t.Run("emulator", func(t *testing.T) {
		t.Parallel()
		driver := newModule(t, "emulator", useMain, usePrograms, useClient)
		driver.run("linux", "list", "-deps", "-test", ".")
		driver.run("windows", "list", "-deps", "-test", ".")
	})
}

// ofTheLibrary are the modules in the graph of a driver that requires the library and nothing else.
var ofTheLibrary = strings.Fields(`example.org/driver github.com/kubernetes-csi/csi-proxy/v2 github.com/go-logr/logr
	github.com/go-ole/go-ole github.com/google/go-cmp go.yaml.in/yaml/v3 golang.org/x/sys gopkg.in/check.v1 k8s.io/klog/v2`)

// ofADriver are the versions of csi-driver-smb v1.20.1, which has what a driver of 2025 has. The mounter raises none of them.
var ofADriver = map[string]string{
	"github.com/Microsoft/go-winio": "v0.6.2", "github.com/go-logr/logr": "v1.4.3", "github.com/moby/sys/mountinfo": "v0.7.2",
	"github.com/stretchr/testify": "v1.11.1", "go.yaml.in/yaml/v3": "v3.0.3", "golang.org/x/net": "v0.47.0", "golang.org/x/sys": "v0.40.0", "golang.org/x/text": "v0.31.0",
	"google.golang.org/genproto/googleapis/rpc": "v0.0.0-20240826202546-f6391c0de4c7", "google.golang.org/grpc": "v1.65.0",
	"google.golang.org/protobuf": "v1.35.1", "k8s.io/klog/v2": "v2.130.1", "k8s.io/mount-utils": "v0.32.0", "k8s.io/utils": "v0.0.0-20241104100929-3ea5e8cea738",
}

// compareVersions compares versions number by number, which also orders those with a date.
func compareVersions(a, b string) int {
	numbers := func(version string) (all []int) {
		for part := range strings.FieldsFuncSeq(version, func(r rune) bool { return r < '0' || r > '9' }) {
			n, _ := strconv.Atoi(part)
			all = append(all, n)
		}
		return all
	}
	return slices.Compare(numbers(a), numbers(b))
}

// module is a Go module that uses ours.
type module struct {
	t   *testing.T
	dir string
}

// newModule makes a module of a program in testdata.
func newModule(t *testing.T, program string, replace ...string) module {
	t.Helper()
	m := module{t, t.TempDir()}
	require.NoError(t, os.CopyFS(m.dir, os.DirFS(filepath.Join("testdata", program))))
	m.run("", "mod", "init", "example.org/driver")
	m.run("", append([]string{"mod", "edit"}, replace...)...)
	m.run("", "mod", "tidy")
	return m
}

// run runs the go command in the module, for a system or, without one, for this one.
func (m module) run(goos string, args ...string) string {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), "go", args...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOWORK=off", "GOFLAGS=-mod=mod -trimpath", "CGO_ENABLED=0")
	cmd.Stderr = m.t.Output()
	output, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("GOOS=%s go %s: %v\n%s", goos, strings.Join(args, " "), err, output)
	}
	return string(output)
}
