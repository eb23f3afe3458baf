package manifests

import (
	"bytes"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// root is the root of the repository.
var root = filepath.Join("..", "..")

func TestSets(t *testing.T) {
	for _, set := range Sets {
		t.Run(filepath.Base(set.Values), func(t *testing.T) {
			got, err := RenderSet(root, set)
			must(t, err)
			_, want, _ := bytes.Cut(read(t, set.Manifest), []byte("\n")) // without the line on top that says whence it came
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s is out of date; run 'make generate' (-file +chart):\n%s", set.Manifest, diff)
			}
		})
	}
}

func TestLint(t *testing.T) {
	for _, set := range Sets {
		values, err := chartutil.ReadValues(read(t, set.Values))
		must(t, err)
		result := lint.AllWithKubeVersion(filepath.Join(root, ChartDir), values, "kube-system", nil)
		for _, message := range result.Messages {
			if message.Severity >= support.InfoSev && !strings.Contains(message.Err.Error(), "icon is recommended") {
				t.Errorf("%s: %v", set.Values, message)
			}
		}
	}
}

// TestAddresses: this source does not name the original's repository as its own. A release has the
// address that it is made with.
func TestAddresses(t *testing.T) {
	const original = "https://github.com/kubernetes-csi/csi-proxy"
	files := []string{ChartDir + "/Chart.yaml", "tools/image/main.go", "tools/release/sign.sh", "tools/release/bill.go", "Makefile"}
	for _, dir := range []string{".github", ".github/ISSUE_TEMPLATE", ".github/workflows"} {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		must(t, err)
		for _, entry := range entries {
			if !entry.IsDir() {
				files = append(files, dir+"/"+entry.Name())
			}
		}
	}
	for _, file := range files {
		if bytes.Contains(read(t, file), []byte(original)) {
			t.Errorf("%s names %s", file, original)
		}
	}
	c, err := Load(root)
	must(t, err)
	if c.Metadata.Home != "" || c.Metadata.Icon != "" || len(c.Metadata.Sources) > 0 {
		t.Errorf("the chart has addresses: %+v", c.Metadata)
	}
}

// TestSchema: the schema refuses values with which the daemon could not start, or could not be
// monitored as requested.
func TestSchema(t *testing.T) {
	c, err := Load(root)
	must(t, err)
	for values, want := range map[string]string{
		`colour: red`:                          "colour",
		`image: {repository: ""}`:              "image/repository",
		`image: {pullPolicy: Now}`:             "image/pullPolicy",
		`imagePullSecrets: [pull]`:             "imagePullSecrets/0",
		`takeOver: {services: ["CSI Proxy"]}`:  "takeOver/services/0",
		`kubeletPath: /var/lib/kubelet`:        "kubeletPath",
		`workingDirs: ['D:\a', 'c:\']`:         "workingDirs/1",
		`workingDirs: ['C:\WINDOWS\System32']`: "workingDirs/0",
		`allowUnsafeWorkingDirs: "true"`:       "allowUnsafeWorkingDirs",
		`apiGroups: [disk/v7]`:                 "apiGroups/0",
		`allowedServices: ["MSiSCSI,vds"]`:     "allowedServices/0",
		`pipeSecurityDescriptor: everyone`:     "pipeSecurityDescriptor",
		`mitigations: "off"`:                   "mitigations",
		`healStaleMounts: on`:                  "healStaleMounts", // a boolean, in YAML
		`format: {allocationUnitSize: 3000}`:   "format/allocationUnitSize",
		`format: {label: "a/b"}`:               "format/label",
		`format: {label: "a\u202eb"}`:          "format/label",
		`format: {label: "\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600"}`: "format/label", // 34 units of UTF-16
		`format: {label: CSI-Proxy unfinished format}`:         "format/label",
		`format: {rootAccess: everyone}`:                       "format/rootAccess",
		`format: {rootAccess: "D:(D;;FA;;;WD)"}`:               "format/rootAccess",
		`format: {rootAccess: "D:P(A;OICI;FA;;;SY)"}`:          "format/rootAccess",
		`allowedServices: [MSiSCSI, KUBELET]`:                  "allowedServices/1",
		`kubeletPath: 'C:\var\..\kubelet'`:                     "kubeletPath",
		`workingDirs: ['C:\a', 'C:\aux .d\b']`:                 "workingDirs/1",
		`log: {file: 'C:\a:b'}`:                                "log/file",
		`format: {rootAccess: "D:(A;;FA;;;WD)\n- -v=9"}`:       "format/rootAccess",
		`stopTimeoutSeconds: 0`:                                "stopTimeoutSeconds",
		`memoryLimitMiB: 16`:                                   "memoryLimitMiB",
		`log: {level: -1}`:                                     "log/level",
		`metrics: {bind: 0.0.0.0}`:                             "metrics/bind",
		`metrics: {port: 70000}`:                               "metrics/port",
		`metrics: {bind: node, admit: ["10.0.0.0/8 & del"]}`:   "metrics/admit/0",
		`metrics: {bind: node, admit: [any]}`:                  "metrics/admit/0",
		`metrics: {admit: [10.0.0.0/8]}`:                       "metrics/bind", // nothing listens there
		`monitoring: {alerts: {runbookURL: "{{ $value }}"}}`:   "monitoring/alerts/runbookURL",
		`monitoring: {serviceMonitor: {enabled: true}}`:        "metrics/bind",
		`monitoring: {serviceMonitor: {interval: often}}`:      "monitoring/serviceMonitor/interval",
		`updateStrategy: {maxUnavailable: 0}`:                  "updateStrategy/maxUnavailable",
		`updateStrategy: {maxSurge: 1}`:                        "updateStrategy",
		`nodeSelector: {kubernetes.io/os: 1}`:                  "nodeSelector/kubernetes.io~1os",
		`runAsUserName: ContainerUser`:                         "runAsUserName",
		`runAsUserName: 'user manager\containeradministrator'`: "runAsUserName",
		`runAsUserName: 'NT AUTHORITY\NETWORKSERVICE'`:         "runAsUserName",
		`fullVolume: 90%`:                                      "fullVolume",
		`nameOverride: CSI`:                                    "nameOverride",

		// Of what Prometheus cannot read there is nothing to show.
		`monitoring: {alerts: {enabled: true}}`:                          "metrics/bind",
		`{metrics: {bind: none}, monitoring: {alerts: {enabled: true}}}`: "metrics/bind",
		`metrics: {bind: off}`:                                           "metrics/bind", // a boolean, in YAML

		// More than the one value, if it were not for the schema and quotes.
		`priorityClassName: "a\n      hostPID: true"`:                      "priorityClassName",
		`image: {repository: "a\n          env: []"}`:                      "image/repository",
		`image: {repository: "x # y"}`:                                     "image/repository",
		`image: {tag: "sha256:a3ed95caeb02ffe68cdd9fd84406680ae93d633c"}`:  "image/tag",
		`image: {digest: a3ed95caeb02}`:                                    "image/digest",
		`kubeletPath: "C:\\a\n- -format-existing"`:                         "kubeletPath",
		`pipeSecurityDescriptor: "O:SY"`:                                   "pipeSecurityDescriptor",
		`pipeSecurityDescriptor: "D:P(D;;GA;;;BU)"`:                        "pipeSecurityDescriptor",
		`pipeSecurityDescriptor: "D:P(A;;GA;;;SY)(A;;GRGW;;;WD)"`:          "pipeSecurityDescriptor",
		`podLabels: {app.kubernetes.io/name: other}`:                       "podLabels",
		`monitoring: {alerts: {labels: {helm.sh/chart: other}}}`:           "monitoring/alerts/labels",
		`podAnnotations: {kubectl.kubernetes.io/default-container: other}`: "podAnnotations",

		// Null removes a default, so that templates would find nothing.
		`image: null`:                             "image",
		`kubeletPath: null`:                       "kubeletPath",
		`log: {level: null}`:                      "level",
		`metrics: {port: null}`:                   "port",
		`monitoring: {serviceMonitor: null}`:      "serviceMonitor",
		`nodeSelector: {kubernetes.io/os: null}`:  "kubernetes.io/os",
		`nodeSelector: {kubernetes.io/os: linux}`: "nodeSelector/kubernetes.io~1os",
	} {
		parsed, err := chartutil.ReadValues([]byte(values))
		must(t, err)
		_, err = Render(c, parsed)
		if err == nil || !strings.Contains(err.Error(), "schema") || !strings.Contains(strings.ReplaceAll(err.Error(), ".", "/"), strings.ReplaceAll(want, ".", "/")) {
			t.Errorf("%s: %v, want an error of the schema about %s", values, err, want)
		}
	}
}

// daemon renders the chart with values, and returns the daemon's pod. The chart is decoded strictly.
func daemon(t *testing.T, values string) corev1.PodSpec {
	t.Helper()
	c, err := Load(root)
	must(t, err)
	parsed, err := chartutil.ReadValues([]byte(values))
	must(t, err)
	rendered, err := Render(c, parsed)
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	for document := range bytes.SplitSeq(rendered, []byte("---\n")) {
		if bytes.Contains(document, []byte("\nkind: DaemonSet\n")) {
			var set appsv1.DaemonSet
			if err := yaml.UnmarshalStrict(document, &set); err != nil {
				t.Fatalf("%s: %v", values, err)
			}
			return set.Spec.Template.Spec
		}
	}
	t.Fatalf("%s: there is no DaemonSet", values)
	return corev1.PodSpec{}
}

// TestQuotes: names that mean something in YAML arrive as they are.
func TestQuotes(t *testing.T) {
	pod := daemon(t, `
takeOver: {services: ['a]b', '{c}', 'yes', '#d']}
runAsUserName: 'a: "b" # c'
priorityClassName: "7"
image: {tag: "1.10"}
podLabels: {example.com/number: "1"}
`)
	var services []string
	for _, container := range pod.InitContainers {
		services = append(services, container.Args[len(container.Args)-1])
	}
	if diff := cmp.Diff([]string{"a]b", "{c}", "yes", "#d"}, services); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
	if user := *pod.SecurityContext.WindowsOptions.RunAsUserName; user != `a: "b" # c` || pod.PriorityClassName != "7" {
		t.Errorf("runAsUserName is %q, priorityClassName %q", user, pod.PriorityClassName)
	}
}

// TestMemory: Windows must not end a daemon that keeps to its own limit.
func TestMemory(t *testing.T) {
	c, err := Load(root)
	must(t, err)
	for limit, refused := range map[string]bool{"64Mi": true, "159Mi": true, "160Mi": false, "0.1Gi": true, "1Gi": false, "160M": true, "200M": false, "1000": true, "167772160": false} {
		parsed, err := chartutil.ReadValues([]byte(`resources: {limits: {memory: ` + limit + `}}`))
		must(t, err)
		if _, err = Render(c, parsed); (err != nil) != refused || refused && !strings.Contains(err.Error(), "less than memoryLimitMiB, 160 MiB") {
			t.Errorf("%s: %v", limit, err)
		}
	}
	if account := daemon(t, "nameOverride: proxy").ServiceAccountName; account != "csi-proxy" { // of the release, which has it
		t.Errorf("nameOverride: %s", account)
	}
	if account := daemon(t, "fullnameOverride: storage").ServiceAccountName; account != "storage" {
		t.Errorf("fullnameOverride: %s", account)
	}
}

// TestNames: alerts and notes are about what this release is called, where it is.
func TestNames(t *testing.T) {
	c, err := Load(root)
	must(t, err)
	values, err := chartutil.ReadValues([]byte(`{fullnameOverride: win, metrics: {bind: node}, monitoring: {alerts: {enabled: true}}}`))
	must(t, err)
	elsewhere := release
	elsewhere.Namespace = "csi-proxy"
	all, err := chartutil.ToRenderValues(c, values, elsewhere, chartutil.DefaultCapabilities)
	must(t, err)
	files, err := engine.Render(c, all)
	must(t, err)
	alerts, notes := files["csi-proxy/templates/alerts.yaml"], files["csi-proxy/templates/NOTES.txt"]
	if !strings.Contains(alerts, `{namespace="csi-proxy", daemonset="win"}`) || strings.Count(alerts, "kubectl csi-proxy -n csi-proxy") != 3 || strings.Contains(alerts, "kube-system") {
		t.Error(alerts)
	}
	if !strings.Contains(notes, "'kubectl csi-proxy -n csi-proxy' does") {
		t.Error(notes)
	}
}

// TestHealStaleMounts: off without quotes is a boolean in YAML, and means the same.
func TestHealStaleMounts(t *testing.T) {
	for values, want := range map[string]string{
		`{}`: "after-restart", `healStaleMounts: off`: "off", `healStaleMounts: "off"`: "off", `healStaleMounts: remove`: "remove",
	} {
		if args := daemon(t, values).Containers[0].Args; !slices.Contains(args, "-heal-stale-mounts="+want) {
			t.Errorf("%s: %q, want %s", values, args, want)
		}
	}
}

func TestImage(t *testing.T) {
	const digest = "sha256:a3ed95caeb02ffe68cdd9fd84406680ae93d633cb16422d00e8a7c22955b46d4"
	for values, want := range map[string]string{
		`{}`:                              "registry.example/csi-proxy:v0.0.0-dev",
		`image: {tag: v1}`:                "registry.example/csi-proxy:v1",
		`image: {tag: null}`:              "registry.example/csi-proxy:v0.0.0-dev",
		`image: {digest: ` + digest + `}`: "registry.example/csi-proxy@" + digest,
		`image: {repository: "localhost:5000/a/b", tag: v1, digest: ` + digest + `}`: "localhost:5000/a/b:v1@" + digest,
	} {
		if got := daemon(t, values).Containers[0].Image; got != want {
			t.Errorf("%s: %s, want %s", values, got, want)
		}
	}
}

// TestNoMetrics: with metrics.bind=none, which needs no quotes in YAML, nothing listens, so nothing
// may ask.
func TestNoMetrics(t *testing.T) {
	container := daemon(t, `metrics: {bind: none}`).Containers[0]
	if len(container.Ports) > 0 || container.ReadinessProbe != nil || container.LivenessProbe != nil || strings.Contains(strings.Join(container.Args, " "), "metrics") {
		t.Errorf("%+v", container)
	}
}

// TestAdmit: the firewall admits only these addresses to the port that the daemon listens at, and a second start of the pod leaves
// one rule. Whatever netsh says, the daemon starts.
func TestAdmit(t *testing.T) {
	pod := daemon(t, `metrics: {bind: node, port: 9000, admit: [10.0.0.0/16, "fd00::1"]}`)
	const netsh = "netsh advfirewall firewall "
	want := netsh + "delete rule name=csi-proxy-metrics & " +
		netsh + "add rule name=csi-proxy-metrics dir=in action=allow protocol=TCP localport=9000 remoteip=10.0.0.0/16,fd00::1 & exit 0"
	if got := pod.InitContainers; len(got) != 1 || !slices.Equal(got[0].Command, []string{"cmd.exe"}) || !slices.Equal(got[0].Args, []string{"/c", want}) {
		t.Errorf("got %+v, want %s", got, want)
	}
	if args := pod.Containers[0].Args; !slices.Contains(args, "-metrics-bind-address=[$(NODE_ADDRESS)]:9000") {
		t.Errorf("the daemon does not listen there: %q", args)
	}
	if got := daemon(t, `metrics: {bind: node}`).InitContainers; len(got) > 0 {
		t.Errorf("without addresses: %+v", got)
	}
}

// TestAdmit_Addresses: the schema refuses what netsh would refuse while the pod starts all the same.
func TestAdmit_Addresses(t *testing.T) {
	c, err := Load(root)
	must(t, err)
	for address, wanted := range map[string]bool{
		"10.0.0.0/8": true, "0.0.0.0/0": true, "255.255.255.255/32": true, "10.1.2.3": true, "10.0.0.1-10.0.0.99": true, "10.0.0.0/255.0.0.0": true,
		"fd00::/8": true, "::/0": true, "::1": true, "fd00::1": true, "2001:db8:0:1:2:3:4:5/128": true, "fd00::1-fd00::9": true, "1::2:3:4:5:6:7": true, "1:2:3:4:5:6:7::": true,
		"10.0.0.0/99": false, "10.0.0.0/33": false, "10.0.0.0/08": false, "10.0.0.0/-1": false, "256.0.0.1": false, "10.0.0.300": false, "10.0.0": false, "1.2.3.4.5": false, "01.2.3.4": false,
		"10.0.0.1-": false, "10.0.0.1-9": false, "10.0.0.1-10.0.0.5/8": false, "10.0.0.1-fd00::1": false, "10.0.0.0/fd00::": false,
		"fd00::/129": false, "fd00::/200": false, "fd00::/": false, "fd00:::1": false, "1:2:3": false, "1:2:3:4:5:6:7:8:9": false, "12345::": false, "1::2::3": false, "fd00::%1": false, "": false,
	} {
		_, err := Render(c, map[string]any{"metrics": map[string]any{"bind": "node", "admit": []any{address}}})
		if (err == nil) != wanted || err != nil && !strings.Contains(strings.ReplaceAll(err.Error(), ".", "/"), "metrics/admit/0") {
			t.Errorf("%q: %v", address, err)
		}
		prefix, netErr := netip.ParsePrefix(address)
		if slash := strings.Contains(address, "/"); slash && !strings.Contains(address, "/255.") && (netErr == nil) != wanted {
			t.Errorf("%q is %v, %v", address, prefix, netErr)
		}
	}
}

// TestAbsent: a value that is null, or that the release of an older chart does not have, is refused by the schema, or means that
// there is none of it.
func TestAbsent(t *testing.T) {
	c, err := Load(root)
	must(t, err)
	accepted := map[string]bool{}
	var try func(path string, values map[string]any)
	try = func(path string, values map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			value, at := values[name], strings.TrimPrefix(path+"."+name, ".")
			delete(values, name)
			if err := chartutil.ValidateAgainstSchema(c, c.Values); err == nil {
				accepted[at] = true
				if _, err := Render(c, nil); err != nil {
					t.Errorf("without %s: %v", at, err)
				}
			}
			values[name] = value
			if inner, ok := value.(map[string]any); ok {
				try(at, inner)
			}
		}
	}
	c.Values["metrics"].(map[string]any)["bind"] = "node"
	for _, object := range []string{"serviceMonitor", "alerts", "dashboard"} {
		c.Values["monitoring"].(map[string]any)[object].(map[string]any)["enabled"] = true
	}
	try("", c.Values)
	for _, name := range []string{"plugin", "plugin.role", "metrics.admit", "monitoring.alerts.runbookURL"} {
		if !accepted[name] {
			t.Errorf("without %s the schema refuses the values of an older chart", name)
		}
	}
}

// read reads a file below the root of the repository.
func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	must(t, err)
	return text
}
