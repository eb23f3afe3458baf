package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// wrongCommandLine is the exit code of our programs for arguments that they do not understand.
// Those that they do understand get csi-proxy and csi-proxyctl as far as to notice that this is
// not Windows, which is another code.
const wrongCommandLine = 2

// program builds one of our programs for this system.
func program(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	runGo(t, "build", "-C=v2/cmd", "-trimpath", "-tags=grpcnotrace,nethttpomithttp2", "-o", file, "./"+name)
	return file
}

// runGo runs the go command in the root of the repository. It builds as the Makefile does, so that
// what that has compiled need not be compiled again.
func runGo(t *testing.T, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command.Args, err, out)
	}
}

// understands reports whether a program accepts its arguments, and what it says.
func understands(t *testing.T, program string, args []string) (bool, string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return exit != nil && exit.ExitCode() != wrongCommandLine, string(out)
}

// TestCommandLines: every command line that our manifests have for our programs is one that the
// programs understand.
func TestCommandLines(t *testing.T) {
	const dir = `%CONTAINER_SANDBOX_MOUNT_POINT%\`
	programs := map[string]string{dir + "csi-proxy.exe": program(t, "csi-proxy"), dir + "csi-proxyctl.exe": program(t, "csi-proxyctl")}
	for _, file := range programs {
		if ok, out := understands(t, file, []string{"--no-such-flag"}); ok {
			t.Fatalf("%s accepts a flag that it does not have, so this test shows nothing: %s", file, out)
		}
	}
	seen := map[string]int{}
	for file, set := range of[appsv1.DaemonSet](t) {
		pod := set.Spec.Template.Spec
		for _, container := range append(pod.InitContainers, pod.Containers...) {
			if !strings.Contains(container.Image, "/csi-proxy:") || container.Name == "admit-metrics" {
				continue // not ours, or a program of Windows
			}
			if len(container.Command) != 1 {
				t.Errorf("%s: container %s: its command is %q, want a program and no more", file, container.Name, container.Command)
				continue
			}
			known := programs[container.Command[0]]
			if known == "" {
				t.Errorf("%s: container %s: the image does not have %q", file, container.Name, container.Command)
				continue
			}
			seen[container.Command[0]]++
			args := make([]string, len(container.Args))
			for i, arg := range container.Args {
				args[i] = strings.ReplaceAll(arg, "$(NODE_ADDRESS)", "10.0.0.1")
			}
			if ok, out := understands(t, known, args); !ok {
				t.Errorf("%s: container %s: %q: %s", file, container.Name, args, out)
			}
		}
	}
	for command := range programs {
		if seen[command] == 0 {
			t.Errorf("no container runs %s", command)
		}
	}
	for _, service := range windowsServices(t) {
		binary, flags, _ := strings.Cut(service.Command, " ")
		if binary != `C:\k\csi-proxy.exe` {
			t.Errorf("service %s is %s", service.Name, binary)
		}
		if ok, out := understands(t, programs[dir+"csi-proxy.exe"], strings.Fields(flags)); !ok {
			t.Errorf("service %s: %s: %s", service.Name, service.Command, out)
		}
	}
}

// TestSchema_AgreesWithDaemon: the daemon starts with what the schema accepts, and the schema accepts
// what people write.
func TestSchema_AgreesWithDaemon(t *testing.T) {
	csiProxy := program(t, "csi-proxy")
	for _, values := range []string{
		`kubeletPath: 'D:\kubelet'`,
		`{kubeletPath: 'D:\', allowUnsafeWorkingDirs: true}`,
		`workingDirs: ['C:\Windows Data', 'C:\usersx', 'C:\var\Users']`,
		`workingDirs: ['C:\a.b\.c\console', 'C:\data é']`,
		`allowedServices: ['*']`,
		`allowedServices: [MSiSCSI, kubelet-helper]`,
		`format: {label: "data é \U0001F600"}`,
		`format: {label: "` + strings.Repeat("é", 32) + `"}`,
		`format: {label: "` + strings.Repeat("\U0001F600", 16) + `"}`,
		`format: {rootAccess: users-modify}`,
		`format: {rootAccess: "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"}`,
		`format: {rootAccess: "D:PAIAR(A;CIOI;GA;;;S-1-5-18)(A;OICI;0x1f01ff;;;S-1-5-32-544)(A;OICIIO;FRFX;;;AU)(A;;0x1200a9;;;BU)"}`,
		`format: {rootAccess: "D:(A;OICI;0x10000000;;;SY)(A;OICI;0x001F01FF;;;BA)"}`,
		`pipeSecurityDescriptor: "O:SYG:SYD:P(A;;GA;;;SY)(A;;GRGW;;;S-1-5-21-1-2-3-1001)"`, // only Windows can parse it
	} {
		if ok, out := understands(t, csiProxy, daemon(t, values).Containers[0].Args); !ok {
			t.Errorf("%s: %s", values, out)
		}
	}
}

// TestPaths: paths reach the daemon as they were given, with whatever YAML would rather quote or
// break.
func TestPaths(t *testing.T) {
	set := Sets[len(Sets)-1]
	var values struct {
		KubeletPath string   `json:"kubeletPath"`
		WorkingDirs []string `json:"workingDirs"`
	}
	must(t, yaml.Unmarshal(read(t, set.Values), &values))
	want := []string{"-kubelet-path=" + values.KubeletPath}
	for _, dir := range values.WorkingDirs {
		want = append(want, "-working-dir="+dir)
	}
	got := of[appsv1.DaemonSet](t)[set.Manifest].Spec.Template.Spec.Containers[0].Args
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

// windowsService is a service of OpenShift's windows-services ConfigMap, with all the fields that
// the operator reads, see pkg/servicescm of openshift/windows-machine-config-operator.
type windowsService struct {
	Name                   string              `json:"name"`
	Command                string              `json:"path"`
	NodeVariablesInCommand []map[string]string `json:"nodeVariablesInCommand"`
	PowershellPreScripts   []map[string]string `json:"powershellPreScripts"`
	Dependencies           []string            `json:"dependencies"`
	Bootstrap              bool                `json:"bootstrap"`
	Priority               uint                `json:"priority"`
}

// windowsServices returns the services of deploy/openshift.
func windowsServices(t *testing.T) []windowsService {
	t.Helper()
	data := of[corev1.ConfigMap](t)["deploy/openshift/windows-services.yaml"].Data
	var services []windowsService
	var files []struct {
		Path     string `json:"path"`
		Checksum string `json:"checksum"`
	}
	for key, value := range map[string]any{"services": &services, "files": &files} {
		decoder := json.NewDecoder(bytes.NewReader([]byte(data[key])))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(value); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	if len(data) != 2 || len(services) != 1 || len(files) != 1 {
		t.Fatalf("data has %d keys, %d services and %d files", len(data), len(services), len(files))
	}
	return services
}

// TestOpenShiftEntry: the service is called, and logs, as OpenShift's support collects it.
func TestOpenShiftEntry(t *testing.T) {
	service := windowsServices(t)[0]
	if service.Name != "csi-proxy" || !strings.Contains(service.Command, ` -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -windows-service`) {
		t.Errorf("%+v", service)
	}
}
