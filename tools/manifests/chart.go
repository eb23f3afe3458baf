// Package manifests renders the Helm chart in deploy/charts, for the plain manifests in
// deploy/manifests and for the tests of this package, which check all that is in deploy.
package manifests

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// Paths below the root of the repository.
const (
	ChartDir     = "deploy/charts/csi-proxy"
	ManifestsDir = "deploy/manifests"
)

// Sets are the rendered manifests, each with the file of its values. They are published as they
// are, except for the last, which turns every knob.
var Sets = []Set{
	{Values: "tools/manifests/testdata/default.values.yaml", Manifest: ManifestsDir + "/csi-proxy.yaml"},
	{Values: "tools/manifests/testdata/monitored.values.yaml", Manifest: ManifestsDir + "/csi-proxy-monitored.yaml"},
	{Values: "tools/manifests/testdata/custom.values.yaml", Manifest: "tools/manifests/testdata/custom.golden.yaml"},
}

// Set is a set of values, and where what it renders to is kept.
type Set struct{ Values, Manifest string }

// Load reads the chart below the root of the repository.
func Load(root string) (*chart.Chart, error) {
	return loader.LoadDir(path.Join(root, ChartDir))
}

// RenderSet renders the chart with the values of a set.
func RenderSet(root string, set Set) ([]byte, error) {
	text, err := os.ReadFile(path.Join(root, set.Values))
	if err != nil {
		return nil, err
	}
	values, err := chartutil.ReadValues(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", set.Values, err)
	}
	c, err := Load(root)
	if err != nil {
		return nil, err
	}
	return Render(c, values)
}

var release = chartutil.ReleaseOptions{Name: "csi-proxy", Namespace: "kube-system", Revision: 1, IsInstall: true}

// helmLabels say that Helm manages an object, which is not true of one that is applied without it.
var helmLabels = regexp.MustCompile(`(?m)^ *(app\.kubernetes\.io/managed-by|helm\.sh/chart): .*\n`)

// Render returns what "helm template csi-proxy --namespace kube-system" prints for a chart and
// values, without the labels that only Helm may set, or why the values are refused.
func Render(c *chart.Chart, values chartutil.Values) ([]byte, error) {
	all, err := chartutil.ToRenderValues(c, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	for name := range files {
		if strings.HasSuffix(name, ".txt") { // for the eyes of who installs
			delete(files, name)
		}
	}
	_, sorted, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, m := range sorted {
		fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", m.Name, strings.TrimSpace(helmLabels.ReplaceAllString(m.Content, "")))
	}
	return out.Bytes(), nil
}
