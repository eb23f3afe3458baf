package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// installers writes what installers of nodes fetch: the daemon alone, as it is, and at the place in an archive where AKS and
// Rancher look for it, see TestSlots.
func (r *release) installers(programs []program) error {
	i := slices.IndexFunc(programs, func(p program) bool { return p.platform == "windows_amd64" && p.name == "csi-proxy.exe" })
	if i < 0 {
		return nil
	}
	files := tree{}
	files.add("bin/csi-proxy.exe", 0o755, programs[i].content, r.date)
	return errors.Join(r.write("csi-proxy.exe")(programs[i].content, nil), r.write("csi-proxy-"+r.version+".tar.gz")(files.tarGzip()))
}

// download is where a release on GitHub has a file, or its name if it is unknown where the project lives.
func (r *release) download(file string) string {
	if r.home == "" {
		return file
	}
	return r.home + "/releases/download/" + r.version + "/" + file
}

// index is the chart's entry for helm repo add. It has no other versions: each release has its own.
// https://helm.sh/docs/topics/chart_repository/#the-index-file
func (r *release) index() error {
	chart, err := os.ReadFile(filepath.Join(r.source, "deploy", "charts", "csi-proxy", "Chart.yaml"))
	file, created := "csi-proxy-"+r.number()+".tgz", r.date.UTC().Format("2006-01-02T15:04:05Z")
	about := strings.ReplaceAll(strings.TrimSpace(string(r.stamped(chart))), "\n", "\n    ")
	return r.write("index.yaml")(fmt.Appendf(nil, "apiVersion: v1\ngenerated: %q\nentries:\n  csi-proxy:\n  - urls: [%q]\n    digest: %s\n    created: %q\n    %s\n",
		created, r.download(file), r.sums[file], created, about), err)
}

// plugin writes the archives of kubectl's plugin, if it was built, and its manifest for krew if it is known where they will be.
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
func (r *release) plugin(programs []program, texts map[string][]byte) error {
	const base = "kubectl-csi_proxy"
	err := r.archives(base, programs, texts)
	if len(programs) == 0 || r.home == "" || err != nil {
		return err
	}
	manifest := fmt.Appendf(nil, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: csi-proxy
spec:
  version: %s
  homepage: %s
  shortDescription: Show the storage of Windows nodes and its problems
  description: Lists the Windows nodes of a cluster with the problems of their volumes, and runs csi-proxyctl on one of them.
  platforms:
`, r.version, r.home)
	for _, p := range programs {
		dir, suffix := base+"_"+r.version+"_"+p.platform, archiveSuffix(p.platform)
		system, architecture, _ := strings.Cut(p.platform, "_")
		manifest = fmt.Appendf(manifest, `  - selector: {matchLabels: {os: %s, arch: %s}}
    uri: %s
    sha256: %s
    files: [{from: "%s/*", to: "."}]
    bin: %s
`, system, architecture, r.download(dir+suffix), r.sums[dir+suffix], dir, path.Base(p.name))
	}
	return r.write(base+".yaml")(manifest, nil)
}

// pluginPrograms returns the built plugins; there may be none.
func (r *release) pluginPrograms() ([]program, error) {
	dir := filepath.Join(r.dist, "plugin")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return findPrograms(dir)
}
