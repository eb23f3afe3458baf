package manifests

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	spdx "github.com/spdx/tools-golang/json"
	helm "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
)

var dist = flag.String("dist", "", "the `directory` of a release, for TestHelmInstall")

// TestHelmInstall: what README.md says to operators of a cluster, Helm makes into the manifest of the release, from its files.
func TestHelmInstall(t *testing.T) {
	if *dist == "" {
		t.Skip("no release; make test-adopt makes one")
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	must(t, err)
	words := regexp.MustCompile(`(?m)^    helm install (\S+) (csi-proxy-(.+)\.tgz) --namespace (\S+)$`).FindStringSubmatch(string(readme))
	if words == nil || words[1] != release.Name || words[4] != release.Namespace {
		t.Fatalf("README.md has %q", words)
	}
	chart, err := loader.LoadFile(filepath.Join(*dist, words[2]))
	must(t, err)
	rendered, err := Render(chart, nil)
	must(t, err)
	manifest, err := os.ReadFile(filepath.Join(*dist, "csi-proxy_v"+words[3]+".yaml"))
	must(t, err)
	if !bytes.HasSuffix(manifest, rendered) || len(rendered) == 0 {
		t.Error("the chart of the release makes another manifest than it has")
	}
}

// TestRelease: Helm and SPDX's own library can read what tools/release writes.
func TestRelease(t *testing.T) {
	dist := t.TempDir()
	dir := filepath.Join(dist, "build", "linux_amd64")
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.Rename(program(t, "csi-proxy-sim"), filepath.Join(dir, "csi-proxy-sim")))
	source, err := filepath.Abs(root)
	must(t, err)
	runGo(t, "run", "-C", "tools", "./release", "-source", source, "-dist", dist, "-version", "v9.8.7", "-date", "2026-11-15T08:00:00Z", "-image-repository", "registry.test/csi-proxy", "-home", "https://git.test/csi-proxy")

	chart, err := loader.LoadFile(filepath.Join(dist, "csi-proxy-9.8.7.tgz"))
	must(t, err)
	if chart.Metadata.Version != "9.8.7" || chart.Metadata.AppVersion != "v9.8.7" || chart.Metadata.Home != "https://git.test/csi-proxy" || len(chart.Metadata.Sources) != 1 {
		t.Errorf("the chart is %+v", chart.Metadata)
	}
	rendered, err := Render(chart, nil)
	must(t, err)
	if !bytes.Contains(rendered, []byte(`image: "registry.test/csi-proxy:v9.8.7"`)) {
		t.Error("the chart does not have the image of the release")
	}
	published, err := os.ReadFile(filepath.Join(dist, "csi-proxy_v9.8.7.yaml"))
	must(t, err)
	if _, published, _ = bytes.Cut(published, []byte("\n")); !bytes.Equal(published, rendered) {
		t.Error("the manifest of the release is not what its chart renders to")
	}

	text, err := os.ReadFile(filepath.Join(dist, "index.yaml"))
	must(t, err)
	var index struct { // as repo.IndexFile of Helm, which has these fields
		APIVersion, Generated string
		Entries               map[string][]struct {
			helm.Metadata `json:",inline"`

			URLs            []string
			Digest, Created string
		}
	}
	must(t, yaml.UnmarshalStrict(text, &index))
	entry := index.Entries["csi-proxy"][0]
	must(t, entry.Validate())
	packed, err := os.ReadFile(filepath.Join(dist, "csi-proxy-9.8.7.tgz"))
	must(t, err)
	if entry.Digest != fmt.Sprintf("%x", sha256.Sum256(packed)) || entry.URLs[0] != "https://git.test/csi-proxy/releases/download/v9.8.7/csi-proxy-9.8.7.tgz" || entry.AppVersion != "v9.8.7" {
		t.Errorf("the index has %+v", entry)
	}

	file, err := os.Open(filepath.Join(dist, "csi-proxy_v9.8.7.spdx.json"))
	must(t, err)
	defer file.Close()
	bill, err := spdx.Read(file)
	must(t, err)
	modules := map[string]string{}
	for _, p := range bill.Packages {
		modules[p.PackageName] = p.PackageSourceInfo
		if p.PackageLicenseDeclared == "" || p.PackageLicenseDeclared == "NOASSERTION" {
			t.Errorf("the bill has no licence of %s", p.PackageName)
		}
	}
	if bill.SPDXVersion != "SPDX-2.3" || modules["google.golang.org/grpc"] == "" || len(bill.Relationships) < len(bill.Packages) {
		t.Errorf("the bill is %s, with %v", bill.SPDXVersion, modules)
	}
}
