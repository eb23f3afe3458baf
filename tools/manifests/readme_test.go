package manifests

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

func TestReadme(t *testing.T) {
	want, err := Readme(root)
	must(t, err)
	if diff := cmp.Diff(string(want), string(read(t, ReadmeFile))); diff != "" {
		t.Errorf("%s is out of date; run 'make generate' (-values.yaml +file):\n%s", ReadmeFile, diff)
	}
}

// TestReadme_Backslashes: what the manual says about --set is what Helm does.
func TestReadme_Backslashes(t *testing.T) {
	manual := string(read(t, ReadmeFile))
	for _, test := range []struct{ line, want string }{
		{`--set log.file='C:\log\x.log'`, ""},
		{`--set log.file='C:\\log\\x.log'`, `C:\log\x.log`},
		{`--set-literal log.file='C:\log\x.log'`, `C:\log\x.log`},
	} {
		if !strings.Contains(manual, test.line) {
			t.Errorf("the manual does not have %s", test.line)
		}
		flag, setting, _ := strings.Cut(strings.ReplaceAll(test.line, "'", ""), " ")
		values := map[string]any{}
		parse := map[string]func(string, map[string]any) error{"--set": strvals.ParseInto, "--set-literal": strvals.ParseLiteralInto}[flag]
		must(t, parse(setting, values))
		c, err := Load(root)
		must(t, err)
		rendered, err := Render(c, values)
		if (test.want == "") != (err != nil) {
			t.Errorf("%s: %v", test.line, err)
		}
		if test.want != "" && !strings.Contains(string(rendered), "-log_file="+test.want) {
			t.Errorf("%s does not arrive as %s", test.line, test.want)
		}
	}
}

// scrapeJob returns the only job of the example for Prometheus in a manual.
func scrapeJob(t *testing.T, file, role string) (discovery []string, rules []*relabel.Config) {
	t.Helper()
	example := regexp.MustCompile("(?s)```yaml\n(scrape_configs:.*?)```").FindSubmatch(read(t, file))
	if example == nil {
		t.Fatalf("%s has no example", file)
	}
	var config struct {
		Jobs []struct {
			Name      string `yaml:"job_name"`
			Discovery []struct {
				Role       string
				Namespaces struct{ Names []string }
			} `yaml:"kubernetes_sd_configs"`
			Relabel []*relabel.Config `yaml:"relabel_configs"`
		} `yaml:"scrape_configs"`
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(example[1])))
	decoder.KnownFields(true)
	must(t, decoder.Decode(&config))
	jobs := config.Jobs
	if len(jobs) != 1 || jobs[0].Name != "csi-proxy" || len(jobs[0].Discovery) != 1 || jobs[0].Discovery[0].Role != role {
		t.Fatalf("%s: %+v", file, jobs)
	}
	for _, rule := range jobs[0].Relabel {
		must(t, rule.Validate(model.UTF8Validation))
	}
	return jobs[0].Discovery[0].Namespaces.Names, jobs[0].Relabel
}

// TestReadme_Scrape: with the example for Prometheus without its operator, a pod of the daemon gets
// the labels that alerts and dashboard rely on, and other pods are not scraped.
func TestReadme_Scrape(t *testing.T) {
	namespaces, rules := scrapeJob(t, ReadmeFile, "pod")
	if !slices.Equal(namespaces, []string{release.Namespace}) {
		t.Errorf("namespaces %q", namespaces)
	}
	for port, wanted := range map[string]bool{"metrics": true, "https": false} {
		builder := labels.NewBuilder(labels.FromStrings(
			"job", "csi-proxy", "__meta_kubernetes_pod_label_app_kubernetes_io_name", "csi-proxy",
			"__meta_kubernetes_pod_container_port_name", port, "__meta_kubernetes_pod_node_name", "win-1"))
		if kept := relabel.ProcessBuilder(builder, rules...); kept != wanted || kept && builder.Get("node") != "win-1" {
			t.Errorf("port %s: kept is %v, labels %v", port, kept, builder.Labels())
		}
	}
}

// TestReadme_Services: with the example for services, the port of each Windows node is scraped, with the same labels, and the
// daemon listens there with the flag that stands beside it, whether the addresses of nodes are IPv4 or IPv6.
func TestReadme_Services(t *testing.T) {
	const file, flag = "deploy/README.md", "-metrics-bind-address=:9761"
	_, rules := scrapeJob(t, file, "node")
	for kubelet, address := range map[string]string{"10.1.2.3:10250": "10.1.2.3:9761", "[fd00::7]:10250": "[fd00::7]:9761", "[::1]:10250": "[::1]:9761"} {
		for system, wanted := range map[string]bool{"windows": true, "linux": false} {
			builder := labels.NewBuilder(labels.FromStrings(
				"job", "csi-proxy", "__address__", kubelet, "__meta_kubernetes_node_label_kubernetes_io_os", system, "__meta_kubernetes_node_name", "win-1"))
			kept := relabel.ProcessBuilder(builder, rules...)
			if kept != wanted || kept && (builder.Get("node") != "win-1" || builder.Get("__address__") != address) {
				t.Errorf("%s, %s: kept is %v, labels %v", kubelet, system, kept, builder.Labels())
			}
		}
	}
	if !strings.Contains(string(read(t, file)), "`"+flag+"`") {
		t.Errorf("%s does not have %s", file, flag)
	}
	if ok, out := understands(t, program(t, "csi-proxy"), []string{flag}); !ok {
		t.Errorf("%s: %s", flag, out)
	}
}

// cluster has one namespace, and answers no other question.
type cluster struct {
	dynamic.NamespaceableResourceInterface

	labels map[string]any
}

func (c cluster) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return c, false, nil
}

func (c cluster) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	metadata := map[string]any{"name": name}
	if c.labels != nil {
		metadata["labels"] = c.labels
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}}, nil
}

// TestNotes: after the installation, Helm warns of a namespace that does not admit the pods, and says
// what is needed if it cannot know.
func TestNotes(t *testing.T) {
	const label = "pod-security.kubernetes.io/enforce"
	for name, test := range map[string]struct {
		provider engine.ClientProvider
		want     string
		unwanted string
	}{
		"baseline":   {cluster{labels: map[string]any{label: "baseline"}}, "WARNING: the namespace kube-system has the Pod Security level baseline.", "If there are no pods"},
		"restricted": {cluster{labels: map[string]any{label: "restricted"}}, "kubectl label namespace kube-system --overwrite " + label + "=privileged", "If there are no pods"},
		"privileged": {cluster{labels: map[string]any{label: "privileged"}}, "--allow-privileged=true", label},
		"no label":   {cluster{labels: map[string]any{"team": "storage"}}, "has no label for it, so the default of the cluster applies", "WARNING"},
		"no labels":  {cluster{}, "has no label for it, so the default of the cluster applies", "WARNING"},
		"no cluster": {nil, "it needs the Pod Security level\nprivileged. Admit them:", "WARNING"},
	} {
		c, err := Load(root)
		must(t, err)
		values, err := chartutil.ToRenderValues(c, nil, release, chartutil.DefaultCapabilities)
		must(t, err)
		var files map[string]string
		if test.provider == nil {
			files, err = engine.Render(c, values)
		} else {
			files, err = engine.RenderWithClientProvider(c, values, test.provider)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		notes := files["csi-proxy/templates/NOTES.txt"]
		if _, line, _ := strings.Cut(notes, "\n  kubectl -n kube-system exec "); name == "no cluster" {
			line, _, _ = strings.Cut(line, " doctor\n")
			for _, file := range []string{ReadmeFile, "deploy/README.md", "docs/operations.md", ManifestsDir + "/csi-proxy-monitored.yaml"} {
				text := strings.Join(strings.Fields(strings.ReplaceAll(string(read(t, file)), "{{ $labels.node }}", "NODE")), " ")
				if command := daemon(t, "{}").Containers[0].Command[0]; !strings.Contains(text, line) || !strings.HasSuffix(line, " '"+strings.ReplaceAll(command, "csi-proxy.exe", "csi-proxyctl.exe")+"'") {
					t.Errorf("%s does not have the command that runs csi-proxyctl: %s", file, line)
				}
			}
		}
		if !strings.Contains(notes, test.want) || strings.Contains(notes, test.unwanted) {
			t.Errorf("%s: want %q and not %q in\n%s", name, test.want, test.unwanted, notes)
		}
	}
}
