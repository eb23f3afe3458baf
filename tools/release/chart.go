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

// The placeholders for version and image in the chart and the manifests. The registry does not exist,
// so an unreleased manifest cannot pull a foreign image.
const (
	development      = "0.0.0-dev"
	developmentImage = "registry.example/csi-proxy"
)

// chart packages the Helm chart as "helm package" would, with the release's version and image.
func (r *release) chart() error {
	const name = "csi-proxy"
	source := os.DirFS(filepath.Join(r.source, "deploy", "charts", name))
	var entries []entry
	err := fs.WalkDir(source, ".", func(file string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() || strings.HasPrefix(found.Name(), ".") && found.Name() != ".helmignore" {
			return err
		}
		content, err := fs.ReadFile(source, file)
		if err == nil {
			switch file {
			case "Chart.yaml":
				content, err = stamp(file, content, development, r.number())
				if r.home != "" {
					content = fmt.Appendf(content, "home: %s\nsources:\n  - %[1]s\n", r.home)
				}
			case "values.yaml", "README.md":
				content, err = stamp(file, content, developmentImage, r.imageRepository)
			}
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

// manifests writes the plain manifests, with the release's version and image.
func (r *release) manifests() error {
	for _, name := range []string{"csi-proxy", "csi-proxy-monitored"} {
		content, err := os.ReadFile(filepath.Join(r.source, "deploy", "manifests", name+".yaml"))
		if err != nil {
			return err
		}
		if content, err = stamp(name, content, development, r.number()); err != nil {
			return err
		}
		if content, err = stamp(name, content, developmentImage, r.imageRepository); err != nil {
			return err
		}
		if err := r.write(name+"_"+r.version+".yaml", content); err != nil {
			return err
		}
	}
	return nil
}

// stamp replaces a placeholder in a file of the source.
func stamp(name string, content []byte, placeholder, value string) ([]byte, error) {
	if !bytes.Contains(content, []byte(placeholder)) {
		return nil, fmt.Errorf("%s: no placeholder %s to replace with %s", name, placeholder, value)
	}
	return bytes.ReplaceAll(content, []byte(placeholder), []byte(value)), nil
}
