package manifests

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the types of the objects that we have manifests of, as their own projects define them.
var kinds = map[string]any{
	"apps/v1 DaemonSet":                        appsv1.DaemonSet{},
	"rbac.authorization.k8s.io/v1 Role":        rbacv1.Role{},
	"rbac.authorization.k8s.io/v1 ClusterRole": rbacv1.ClusterRole{},
	"v1 ConfigMap":                             corev1.ConfigMap{},
	"v1 Service":                               corev1.Service{},
	"v1 ServiceAccount":                        corev1.ServiceAccount{},
	"storage.k8s.io/v1 CSIDriver":              storagev1.CSIDriver{},
	"monitoring.coreos.com/v1 ServiceMonitor":  monitoringv1.ServiceMonitor{},
	"monitoring.coreos.com/v1 PrometheusRule":  monitoringv1.PrometheusRule{},
}

// object is an object of a manifest, and where it stands.
type object struct {
	file  string
	value any
}

// objects reads every object of every manifest. A field that the type does not have, one that
// stands there twice, and a kind that is not in kinds are errors.
func objects(t *testing.T) []object {
	t.Helper()
	var all []object
	for _, file := range manifestFiles(t) {
		for document := range bytes.SplitSeq(read(t, file), []byte("\n---\n")) {
			var meta struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal(document, &meta); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if meta.Kind == "" {
				continue // comments only
			}
			prototype, known := kinds[meta.APIVersion+" "+meta.Kind]
			if !known {
				t.Errorf("%s: %s %s: there is no such kind, or kinds lacks it", file, meta.APIVersion, meta.Kind)
				continue
			}
			value := reflect.New(reflect.TypeOf(prototype)).Interface()
			if err := yaml.UnmarshalStrict(document, value); err != nil {
				t.Errorf("%s: %s: %v", file, meta.Kind, err)
			}
			all = append(all, object{file, value})
		}
	}
	return all
}

// manifestFiles are all manifests below deploy, and those rendered for tests only.
func manifestFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(root), "deploy", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && path == ChartDir {
			return fs.SkipDir // templates
		}
		if strings.HasSuffix(path, ".yaml") {
			files = append(files, path)
		}
		return err
	})
	must(t, err)
	for _, set := range Sets {
		if !strings.HasPrefix(set.Manifest, ManifestsDir) {
			files = append(files, set.Manifest)
		}
	}
	return files
}

// of returns the objects of one type, by file. A file has one of each at most.
func of[T any](t *testing.T) map[string]*T {
	t.Helper()
	found := map[string]*T{}
	for _, o := range objects(t) {
		if value, ok := o.value.(*T); ok {
			if found[o.file] != nil {
				t.Fatalf("%s has two objects of type %T", o.file, *value)
			}
			found[o.file] = value
		}
	}
	if len(found) == 0 {
		t.Fatalf("there is no %T", *new(T))
	}
	return found
}

func TestObjects(t *testing.T) {
	if got := len(objects(t)); got < 12 {
		t.Errorf("there are %d objects only", got)
	}
}

// TestObjects_NotOfHelm: kubectl applies the manifests, so no object says that Helm manages it.
func TestObjects_NotOfHelm(t *testing.T) {
	for _, file := range manifestFiles(t) {
		if text := string(read(t, file)); strings.Contains(text, "managed-by") || strings.Contains(text, "helm.sh/") {
			t.Errorf("%s has a label of Helm", file)
		}
	}
}

// TestHostProcess: every pod runs on Windows only, and a HostProcess pod has what Kubernetes
// demands of one. Other pods have no such right, and mount only pipes that the daemon serves.
func TestHostProcess(t *testing.T) {
	for file, set := range of[appsv1.DaemonSet](t) {
		pod := set.Spec.Template.Spec
		if pod.NodeSelector["kubernetes.io/os"] != "windows" {
			t.Errorf("%s: it would run on other nodes than Windows: %v", file, pod.NodeSelector)
		}
		options := &corev1.WindowsSecurityContextOptions{}
		if pod.SecurityContext != nil && pod.SecurityContext.WindowsOptions != nil {
			options = pod.SecurityContext.WindowsOptions
		}
		hostProcess := options.HostProcess != nil && *options.HostProcess
		if hostProcess != pod.HostNetwork || hostProcess != (options.RunAsUserName != nil) {
			t.Errorf("%s: hostProcess is %v, hostNetwork %v, runAsUserName %v; all of them or none", file, hostProcess, pod.HostNetwork, options.RunAsUserName)
		}
		for _, container := range append(pod.InitContainers, pod.Containers...) {
			if hostProcess && len(container.Command) == 0 {
				t.Errorf("%s: container %s has no command, and the image's entry point is a path of the node here", file, container.Name)
			}
		}
		if update := set.Spec.UpdateStrategy.RollingUpdate; update != nil && update.MaxSurge != nil && update.MaxSurge.IntValue() != 0 {
			t.Errorf("%s: two daemons at once on a node", file)
		}
		var pipes []string
		for _, volume := range pod.Volumes {
			if volume.HostPath != nil && strings.HasPrefix(volume.HostPath.Path, `\\.\pipe\csi-proxy-`) {
				pipes = append(pipes, volume.HostPath.Path)
			}
			if hostProcess && volume.HostPath != nil {
				t.Errorf("%s: it mounts %s; a HostProcess container sees the node's files as they are", file, volume.HostPath.Path)
			}
		}
		if hostProcess == (len(pipes) > 0) {
			t.Errorf("%s: hostProcess is %v, and it mounts the pipes %q", file, hostProcess, pipes)
		}
		mounted := map[string]string{}
		for _, volume := range pod.Volumes {
			mounted[volume.Name] = ""
		}
		for _, container := range pod.Containers {
			for _, mount := range container.VolumeMounts {
				if _, known := mounted[mount.Name]; !known {
					t.Errorf("%s: container %s mounts %s, which is not a volume", file, container.Name, mount.Name)
				}
				mounted[mount.Name] = mount.MountPath
			}
		}
		for _, volume := range pod.Volumes {
			if path := mounted[volume.Name]; path == "" || strings.Contains(volume.Name, "pipe") && path != volume.HostPath.Path {
				t.Errorf("%s: volume %s is mounted at %q", file, volume.Name, path)
			}
		}
	}
}

// TestPipes: the pipes of the driver's example are pipes of the daemon.
func TestPipes(t *testing.T) {
	for file, set := range of[appsv1.DaemonSet](t) {
		for _, volume := range set.Spec.Template.Spec.Volumes {
			if volume.HostPath == nil {
				continue
			}
			name, isPipe := strings.CutPrefix(volume.HostPath.Path, `\\.\pipe\csi-proxy-`)
			if !isPipe {
				continue
			}
			group, version, _ := strings.Cut(name, "-")
			if _, err := os.Stat(filepath.Join(root, "client", "groups", group, version)); err != nil {
				t.Errorf("%s: %s: %v", file, volume.HostPath.Path, err)
			}
		}
	}
}

// must ends the test if err is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
