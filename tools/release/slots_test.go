package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"
)

// TestSlots: installers that take the original by an address, an image's name or a value take this one.
func TestSlots(t *testing.T) {
	r := newRelease(t)
	r.home = "https://git.test/o/csi-proxy"
	files := r.files(t)
	program := string(readFile(t, filepath.Join(r.dist, "build", "windows_amd64", "csi-proxy.exe")))
	if files["csi-proxy.exe"] != program { // as GKE has it, from a bucket; it has the signature in it
		t.Error("csi-proxy.exe is another program")
	}
	// Rancher, settings csi-proxy-agent-url and csi-proxy-agent-version: wins joins all entries whose names contain csi-proxy.exe.
	// https://github.com/rancher/wins/blob/a4db3731c7df46ac5b7605734842a5a6051c4415/pkg/csiproxy/csi.go#L122
	packed := files[fmt.Sprintf("csi-proxy-%[1]s.tar.gz", "v9.8.7")]
	var joined strings.Builder
	entries := map[string]string{}
	eachEntry(t, packed, func(name string, content []byte) {
		if entries[name] = string(content); strings.Contains(name, "csi-proxy.exe") {
			joined.Write(content)
		}
	})
	if joined.String() != program {
		t.Errorf("wins unpacks %d bytes of %d", joined.Len(), len(program))
	}
	// AKS, CSIProxyURL: tar -xzf, and then it copies bin\csi-proxy.exe.
	// https://github.com/Azure/AgentBaker/blob/master/staging/cse/windows/windowscsiproxyfunc.ps1
	if entries["bin/csi-proxy.exe"] != program || len(entries) != 2 { // and its directory
		t.Errorf("AKS finds %d entries", len(entries))
	}
	// csi-driver-smb, values image.csiproxy.repository and tag. The template sets neither command nor args, so the entry point of
	// the image is what runs; tools/image has the test of that.
	// https://github.com/kubernetes-csi/csi-driver-smb/blob/master/charts/latest/csi-driver-smb/templates/csi-proxy-windows.yaml#L42
	line := template.Must(template.New("").Funcs(template.FuncMap{"hasPrefix": func(prefix, text string) bool { return strings.HasPrefix(text, prefix) }}).Parse(
		`{{if hasPrefix "/" .repository}}{{.base}}{{end}}{{.repository}}:{{.tag}}`))
	var image strings.Builder
	must(t, line.Execute(&image, map[string]string{"base": "registry.k8s.io/sig-storage", "repository": r.imageRepository, "tag": r.version}))
	if !strings.Contains(files["csi-proxy_v9.8.7.yaml"], `"`+image.String()+`"`) {
		t.Errorf("csi-driver-smb pulls %s, and our manifests another image", &image)
	}
}

func eachEntry(t *testing.T, packed string, visit func(name string, content []byte)) {
	t.Helper()
	plain, err := gzip.NewReader(strings.NewReader(packed))
	must(t, err)
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		content, err := io.ReadAll(archive)
		must(t, err)
		visit(header.Name, content)
	}
}

// krewPlugin is index.Plugin of krew, whose module the rules of its index are made of: with UnmarshalStrict a field that it
// does not have fails. https://github.com/kubernetes-sigs/krew/blob/0a63f98b7e06/pkg/index/types.go#L21
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Homepage         string `json:"homepage"`
		Platforms        []struct {
			URI      string `json:"uri"`
			Sha256   string `json:"sha256"`
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			Files []struct{ From, To string } `json:"files"`
			Bin   string                      `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// TestKrew: what krew's validation demands, and that the archives have what the manifest says.
// https://github.com/kubernetes-sigs/krew/blob/65de93ccbe57/internal/index/validation/validate.go#L69
func TestKrew(t *testing.T) {
	r := newRelease(t)
	r.home = "https://git.test/o/csi-proxy"
	buildSmall(t, filepath.Join(r.dist, "plugin", "linux_amd64", "kubectl-csi_proxy"))
	files := r.files(t)
	var p krewPlugin
	must(t, yaml.UnmarshalStrict([]byte(files["kubectl-csi_proxy.yaml"]), &p))
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" || p.Metadata.Name != "csi-proxy" || p.Spec.Version != "v9.8.7" ||
		p.Spec.ShortDescription == "" || strings.Contains(p.Spec.ShortDescription, "\n") || len(p.Spec.Platforms) != 1 {
		t.Fatalf("%+v", p)
	}
	platform := p.Spec.Platforms[0]
	name := strings.TrimPrefix(platform.URI, "https://git.test/o/csi-proxy/releases/download/v9.8.7/")
	if files[name] == "" || platform.Sha256 != r.sums[name] || !regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString(platform.Sha256) {
		t.Errorf("%s is not there, or has another checksum", platform.URI)
	}
	if platform.Selector.MatchLabels["os"] != "linux" || platform.Selector.MatchLabels["arch"] != "amd64" || len(platform.Selector.MatchLabels) != 2 || platform.Files[0].To != "." {
		t.Errorf("%+v", platform)
	}
	var names []string
	eachEntry(t, files[name], func(name string, _ []byte) { names = append(names, name) })
	for _, want := range []string{platform.Bin, "LICENSE", "THIRD_PARTY_NOTICES"} {
		if !slices.Contains(names, strings.TrimSuffix(platform.Files[0].From, "*")+want) {
			t.Errorf("the archive lacks %s: %q", want, names)
		}
	}
	if !strings.Contains(files["csi-proxy_v9.8.7.spdx.json"], "kubectl-csi_proxy") {
		t.Error("the bill lacks the plugin")
	}
}

// TestVersions: each module that others import has a version, and the programs go on from the original's: documents, chart and
// workflow have theirs.
func TestVersions(t *testing.T) {
	root := filepath.Join("..", "..")
	modules, err := readVersions(root)
	must(t, err)
	r := &release{modules: modules}
	for _, line := range regexp.MustCompile(`(?m)^\t\./(.*)$`).FindAllStringSubmatch(string(readFile(t, filepath.Join(root, "go.work"))), -1) {
		if version := r.versionOf(ourModules + line[1]); (version == "(devel)") != (line[1] == "v2/test") {
			t.Errorf("%s has the version %s", line[1], version)
		}
	}
	programs := r.versionOf(ourModules + "v2/cmd")
	if len(modules) != 6 || r.versionOf(ourModules+"client") != programs || r.versionOf(ourModules+"kubectl-csi_proxy") != programs {
		t.Errorf("the versions are %v", modules)
	}
	for file, want := range map[string]string{
		"docs/releasing.md":               "VERSION=" + programs,
		"README.md":                       "csi-proxy_" + programs + "_windows_amd64.zip",
		"docs/mounter.md":                 "mountertest@" + r.versionOf(ourModules+"mounter/mountertest"),
		"docs/migration-from-original.md": "csi-proxy-" + programs + ".tar.gz",
		"deploy/README.md":                "--version " + strings.TrimPrefix(programs, "v"),
		"deploy/openshift/README.md":      "VERSION=" + programs,
		".github/workflows/release.yml":   `tags: ["v1.*"]`,
		"Makefile":                        "--match 'v1.*'",
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		must(t, err)
		if !strings.Contains(string(text), want) || regexp.MustCompile(`VERSION=v2|csi-proxy[-_]v?2\.`).Match(text) {
			t.Errorf("%s does not say %s, or has programs of version 2", file, want)
		}
	}
	if workflow := string(readFile(t, filepath.Join(root, ".github/workflows/release.yml"))); !strings.Contains(workflow, "helm push") || !strings.Contains(workflow, "oci://ghcr.io/") {
		t.Error("the workflow does not push the chart")
	}
}
