package manuals_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubernetes-csi/csi-proxy/examples/manuals"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestYAML decodes every block of YAML into what it is, and refuses fields that this does not
// have.
func TestYAML(t *testing.T) {
	blocks, err := manuals.ReadAll(repository(t), "yaml")
	must(t, err)
	if len(blocks) < 4 {
		t.Fatalf("only %d blocks of YAML were found in the manuals", len(blocks))
	}
	for _, block := range blocks {
		if err := decode(block); err != nil {
			t.Errorf("%s: %v", block.Position(), err)
		}
	}
}

// TestYAML_Wrong shows that mistakes are found.
func TestYAML_Wrong(t *testing.T) {
	for want, code := range map[string]string{
		"unknown field":      "apiVersion: v1\nkind: Pod\nspec: {securityContext: {hostNetwork: true}}\n",
		"cannot unmarshal":   "apiVersion: apps/v1\nkind: DaemonSet\nspec: {minReadySeconds: soon}\n",
		"no kind":            "apiVersion: apps/v1\nkind: Daemon\n",
		`"hostProces"`:       "spec: {securityContext: {windowsOptions: {hostProces: true}}}\n",
		"already set":        "replicas: 1\nreplicas: 2\n",
		"unknown field; use": "disks: [{size: 1GiB, sise: 2GiB}]\n",
		`"hostNetwrk"`:       "metadata: {name: x}\nspec: {hostNetwrk: true}\n",
		"no way to check a":  "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nspec: {endpoint: []}\n",
		"container driver of": "apiVersion: apps/v1\nkind: DaemonSet\nspec: {template: {spec: " +
			"{securityContext: {windowsOptions: {hostProcess: true}}, containers: [{name: driver, image: example.com/x}]}}}\n",
		"container probe of": "spec: {containers: [{name: probe, securityContext: {windowsOptions: {hostProcess: true}}}]}\n",
	} {
		if err := decode(manuals.Block{File: "docs/winsim.md", Code: code}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", code, err, want)
		}
	}
	for _, code := range []string{"containers: [{nam: x}]\n", "replicas: 1\n", "kind: Pod\nspec: {}\n"} {
		err := decode(manuals.Block{File: "docs/library.md", Code: code})
		if err == nil || !strings.Contains(err.Error(), "unknown kind of document") {
			t.Errorf("%q: got %v, want it refused, because it cannot be checked", code, err)
		}
	}
}

// TestRegistrar shows that manuals and manifests have one version of the registrar.
func TestRegistrar(t *testing.T) {
	manifests, err := filepath.Glob(filepath.Join(repository(t), "deploy", "drivers", "*.yaml"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no manifests of drivers were found: %v", err)
	}
	texts := map[string]string{}
	for _, file := range manifests {
		content, err := os.ReadFile(file)
		must(t, err)
		texts[file] = string(content)
	}
	blocks, err := manuals.ReadAll(repository(t), "yaml")
	must(t, err)
	for _, block := range blocks {
		texts[block.Position()] = block.Code
	}
	places := map[string][]string{}
	for place, text := range texts {
		for _, image := range regexp.MustCompile(`csi-node-driver-registrar:\S+`).FindAllString(text, -1) {
			places[image] = append(places[image], place)
		}
	}
	if len(places) != 1 {
		t.Errorf("the registrar should have one version everywhere: %v", places)
	}
}

// decode decodes the documents of a block. Objects of Kubernetes have an API version and a
// kind. What has neither is a part of a pod, if it is nothing but a spec and metadata, or a model
// or a list of faults in the emulator's manual. Everything else is refused: it would not be
// checked.
func decode(block manuals.Block) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(block.Code)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var fields map[string]any
		if err := yaml.UnmarshalStrict(document, &fields); err != nil {
			return err
		}
		if err := decodeDocument(filepath.Base(block.File), document, fields); err != nil {
			return err
		}
	}
}

func decodeDocument(file string, document []byte, fields map[string]any) error {
	_, hasSpec := fields["spec"]
	_, hasMetadata := fields["metadata"]
	_, isFaults := fields["faults"]
	_, isPrometheus := fields["scrape_configs"]
	version, _ := fields["apiVersion"].(string)
	switch {
	case version != "" && isKubernetes(version):
		return decodeKubernetes(document)
	case version != "":
		return fmt.Errorf("no way to check a %v of %s; link to a tested file instead", fields["kind"], version)
	case hasSpec && (len(fields) == 1 || len(fields) == 2 && hasMetadata):
		var pod corev1.PodTemplateSpec
		if err := yaml.UnmarshalStrict(document, &pod); err != nil {
			return err
		}
		return checkCommands(pod.Spec)
	case isPrometheus:
		return nil // test/manifests has Prometheus' own types and checks it
	case file == "winsim.md" && isFaults:
		_, err := winsim.LoadFaults(strings.NewReader(string(document)), file)
		return err
	case file == "winsim.md":
		model, err := winsim.LoadModel(strings.NewReader(string(document)), file)
		if err != nil {
			return err
		}
		_, err = winsim.New(model)
		return err
	}
	return errors.New("unknown kind of document; write the whole object, or a pod's spec from its first level on")
}

// isKubernetes distinguishes Kubernetes' own groups from those of others, which have a domain.
func isKubernetes(version string) bool {
	group, _, _ := strings.Cut(version, "/")
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// decodeKubernetes decodes one of the objects that manuals speak of.
func decodeKubernetes(document []byte) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, storagev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	strict := json.SerializerOptions{Yaml: true, Strict: true}
	object, _, err := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, strict).Decode(document, nil, nil)
	if err != nil {
		return err
	}
	switch object := object.(type) {
	case *appsv1.DaemonSet:
		return checkCommands(object.Spec.Template.Spec)
	case *corev1.Pod:
		return checkCommands(object.Spec)
	}
	return nil
}

// checkCommands demands a command for each HostProcess container: there the entry point of an image
// would be an absolute path of the node, where the program is not.
func checkCommands(pod corev1.PodSpec) error {
	ofPod := pod.SecurityContext != nil && isHostProcess(pod.SecurityContext.WindowsOptions)
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		own := container.SecurityContext != nil && isHostProcess(container.SecurityContext.WindowsOptions)
		if (ofPod || own) && len(container.Command) == 0 {
			return fmt.Errorf("container %s of a HostProcess pod has no command", container.Name)
		}
	}
	return nil
}

func isHostProcess(options *corev1.WindowsSecurityContextOptions) bool {
	return options != nil && options.HostProcess != nil && *options.HostProcess
}
