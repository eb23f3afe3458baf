package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// root is the root of the repository.
var root = filepath.Join("..", "..")

func TestSets(t *testing.T) {
	for _, set := range Sets {
		t.Run(filepath.Base(set.Values), func(t *testing.T) {
			got, err := RenderSet(root, set)
			if err != nil {
				t.Fatal(err)
			}
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
		if err != nil {
			t.Fatal(err)
		}
		result := lint.AllWithKubeVersion(filepath.Join(root, ChartDir), values, "kube-system", nil)
		for _, message := range result.Messages {
			if message.Severity >= support.InfoSev {
				t.Errorf("%s: %v", set.Values, message)
			}
		}
	}
}

// TestSchema: values that would make a daemon which cannot start, or which nobody watches although
// somebody wants to, are refused when they are given.
func TestSchema(t *testing.T) {
	c, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for values, want := range map[string]string{
		`colour: red`:                                     "colour",
		`image: {repository: ""}`:                         "image/repository",
		`image: {tag: 2}`:                                 "image/tag",
		`image: {pullPolicy: Now}`:                        "image/pullPolicy",
		`imagePullSecrets: [pull]`:                        "imagePullSecrets/0",
		`takeOver: {services: ["CSI Proxy"]}`:             "takeOver/services/0",
		`takeOver: {services: [a, a]}`:                    "takeOver/services",
		`kubeletPath: /var/lib/kubelet`:                   "kubeletPath",
		`kubeletPath: '\\server\kubelet'`:                 "kubeletPath",
		`workingDirs: ['C:csi']`:                          "workingDirs/0",
		`workingDirs: 'C:\csi'`:                           "workingDirs",
		`apiGroups: [disk/v7]`:                            "apiGroups/0",
		`apiGroups: [disks]`:                              "apiGroups/0",
		`allowedServices: ["MSiSCSI,vds"]`:                "allowedServices/0",
		`pipeSecurityDescriptor: everyone`:                "pipeSecurityDescriptor",
		`requirePrivacy: "yes"`:                           "requirePrivacy",
		`stopTimeoutSeconds: 0`:                           "stopTimeoutSeconds",
		`stopTimeoutSeconds: 20s`:                         "stopTimeoutSeconds",
		`log: {level: -1}`:                                "log/level",
		`log: {file: csi-proxy.log}`:                      "log/file",
		`metrics: {bind: 0.0.0.0}`:                        "metrics/bind",
		`metrics: {port: 70000}`:                          "metrics/port",
		`monitoring: {serviceMonitor: {enabled: true}}`:   "metrics/bind",
		`monitoring: {serviceMonitor: {interval: often}}`: "monitoring/serviceMonitor/interval",
		`updateStrategy: {maxUnavailable: 0}`:             "updateStrategy/maxUnavailable",
		`updateStrategy: {maxUnavailable: 0%}`:            "updateStrategy/maxUnavailable",
		`updateStrategy: {maxSurge: 1}`:                   "updateStrategy",
		`nodeSelector: {kubernetes.io/os: 1}`:             "nodeSelector/kubernetes.io~1os",
		`runAsUserName: ""`:                               "runAsUserName",
	} {
		parsed, err := chartutil.ReadValues([]byte(values))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Render(c, parsed); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), ".", "/"), strings.ReplaceAll(want, ".", "/")) {
			t.Errorf("%s: %v, want an error about %s", values, err, want)
		}
	}
}

// read reads a file below the root of the repository.
func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
