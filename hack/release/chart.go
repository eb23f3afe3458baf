package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// development is the version of the chart and of the manifests in the source.
const development = "0.0.0-dev"

// chart packages the Helm chart as "helm package" would, with the release's version.
func (r *release) chart([]program) error {
	const name = "csi-proxy"
	source := os.DirFS(filepath.Join(r.source, "deploy", "charts", name))
	var entries []entry
	err := fs.WalkDir(source, ".", func(file string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() || strings.HasPrefix(found.Name(), ".") && found.Name() != ".helmignore" {
			return err
		}
		content, err := fs.ReadFile(source, file)
		if err == nil && file == "Chart.yaml" {
			content, err = r.stamp(file, content)
		}
		entries = append(entries, entry{path.Join(name, file), 0o644, content})
		return err
	})
	if err != nil {
		return err
	}
	packed, err := tarball(entries, r.date)
	if err != nil {
		return err
	}
	return r.write(name+"-"+r.number()+".tgz", packed)
}

// manifests writes the plain manifests, with the release's version.
func (r *release) manifests([]program) error {
	for _, name := range []string{"csi-proxy", "csi-proxy-monitored"} {
		content, err := os.ReadFile(filepath.Join(r.source, "deploy", "manifests", name+".yaml"))
		if err != nil {
			return err
		}
		if content, err = r.stamp(name, content); err != nil {
			return err
		}
		if err := r.write(name+"_"+r.version+".yaml", content); err != nil {
			return err
		}
	}
	return nil
}

// stamp replaces the version of the source by that of the release.
func (r *release) stamp(name string, content []byte) ([]byte, error) {
	if !bytes.Contains(content, []byte(development)) {
		return nil, fmt.Errorf("%s: it does not have the version %s, which stands for that of a release", name, development)
	}
	return bytes.ReplaceAll(content, []byte(development), []byte(r.number())), nil
}
