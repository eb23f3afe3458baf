package manuals_test

import (
	"bufio"
	"errors"
	"io"
	"path/filepath"
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
	blocks, err := manuals.ReadAll(repository(t), "yaml", "yml")
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) < 10 {
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
		"unknown field":          "apiVersion: v1\nkind: Pod\nspec: {securityContext: {hostNetwork: true}}\n",
		"cannot unmarshal":       "apiVersion: apps/v1\nkind: DaemonSet\nspec: {minReadySeconds: soon}\n",
		"no kind":                "apiVersion: apps/v1\nkind: Daemon\n",
		`"hostProces"`:           "spec: {securityContext: {windowsOptions: {hostProces: true}}}\n",
		"already set":            "replicas: 1\nreplicas: 2\n",
		"there is no such field": "disks: [{size: 1GiB, sise: 2GiB}]\n",
	} {
		if err := decode(manuals.Block{File: "docs/winsim.md", Code: code}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", code, err, want)
		}
	}
}

// decode decodes the documents of a block. Objects of Kubernetes have an API version and a
// kind. What has neither is a model or a list of faults in the emulator's manual; a part of a
// pod, if it is nothing but a spec; else just YAML.
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
	_, isSpec := fields["spec"]
	_, isFaults := fields["faults"]
	version, _ := fields["apiVersion"].(string)
	switch {
	case version != "" && isKubernetes(version):
		return decodeKubernetes(document)
	case version != "": // of somebody else
		return nil
	case isSpec && len(fields) == 1:
		return yaml.UnmarshalStrict(document, &corev1.PodTemplateSpec{})
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
	return nil
}

// isKubernetes tells Kubernetes' own groups from those of others, which have a domain.
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
	_, _, err := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, strict).Decode(document, nil, nil)
	return err
}
