package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing/fstest"
	"time"
)

// readme is the README of the archives. The repository's has links to files that are not in them.
//
//go:embed archive.md
var readme []byte

// texts returns what is beside programs. The README is about those of nodes.
func (r *release) texts(notices []byte) (map[string][]byte, error) {
	texts := map[string][]byte{"THIRD_PARTY_NOTICES": notices}
	for _, name := range []string{"LICENSE", "CHANGELOG.md"} {
		content, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return nil, err
		}
		texts[name] = content
	}
	return texts, nil
}

func archiveSuffix(platform string) string {
	if strings.HasPrefix(platform, "windows_") {
		return ".zip"
	}
	return ".tar.gz"
}

// archives writes an archive per platform: zip for Windows, tar.gz for others. Its files are in a directory with
// the archive's name.
func (r *release) archives(base string, programs []program, texts map[string][]byte) (err error) {
	platforms := map[string]tree{}
	for _, p := range programs {
		dir := base + "_" + r.version + "_" + p.platform
		if platforms[dir] == nil {
			platforms[dir] = tree{}
			for name, content := range texts {
				platforms[dir].add(path.Join(dir, name), 0o644, content, r.date)
			}
		}
		platforms[dir].add(path.Join(dir, p.name), 0o755, p.content, r.date)
	}
	for dir, files := range platforms {
		pack, suffix := files.tarGzip, archiveSuffix(strings.TrimPrefix(dir, base+"_"+r.version+"_"))
		if suffix == ".zip" {
			pack = files.zip
		}
		err = errors.Join(err, r.write(dir+suffix)(pack()))
	}
	return err
}

// chart packages the Helm chart as "helm package" would, with the release's version and image.
func (r *release) chart() error {
	const name = "csi-proxy"
	source := os.DirFS(filepath.Join(r.source, "deploy", "charts", name))
	files := tree{}
	err := fs.WalkDir(source, ".", func(file string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		content, err := fs.ReadFile(source, file)
		content = r.stamped(content)
		if file == "Chart.yaml" && r.home != "" {
			content = fmt.Appendf(content, "home: %s\nsources:\n  - %[1]s\n", r.home)
		}
		files.add(path.Join(name, file), 0o644, content, r.date)
		return err
	})
	return errors.Join(err, r.write(name+"-"+r.number()+".tgz")(files.tarGzip()))
}

// manifests writes the plain manifests, with the release's version and image.
func (r *release) manifests() (err error) {
	for _, name := range []string{"csi-proxy", "csi-proxy-monitored"} {
		content, err := os.ReadFile(filepath.Join(r.source, "deploy", "manifests", name+".yaml"))
		if err := r.write(name+"_"+r.version+".yaml")(r.stamped(content), err); err != nil {
			return err
		}
	}
	return nil
}

// The image in the source. The registry does not exist, so an unreleased manifest cannot pull a foreign image.
const developmentImage = "registry.example/csi-proxy"

func (r *release) stamped(text []byte) []byte {
	return []byte(strings.NewReplacer("0.0.0-dev", r.number(), developmentImage, r.imageRepository).Replace(string(text)))
}

// tree is the files of an archive. Nothing of them depends on the machine.
type tree fstest.MapFS

func (t tree) add(name string, mode fs.FileMode, content []byte, date time.Time) {
	t[name] = &fstest.MapFile{Data: content, Mode: mode, ModTime: date.UTC()}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		t[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: date.UTC()}
	}
}

func (t tree) zip() ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	err := cmp.Or(archive.AddFS(fstest.MapFS(t)), archive.Close())
	return out.Bytes(), err
}

func (t tree) tarGzip() ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out) // without a name and a date
	archive := tar.NewWriter(compressed)
	err := cmp.Or(archive.AddFS(fstest.MapFS(t)), archive.Close(), compressed.Close())
	return out.Bytes(), err
}
