package main

import (
	"archive/tar"
	"archive/zip"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
)

var date = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

// newArchive writes an archive with files of the given names, each of which contains its name.
func newArchive(t *testing.T, names ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "csi-proxy_v9.8.7_windows_amd64.zip")
	file, err := os.Create(name)
	must(t, err)
	archive := zip.NewWriter(file)
	for _, name := range names {
		entry, err := archive.Create("csi-proxy_v9.8.7_windows_amd64/" + name)
		if err == nil {
			_, err = io.WriteString(entry, "the "+name)
		}
		must(t, err)
	}
	must(t, errors.Join(archive.Close(), file.Close()))
	return name
}

// unpack returns the files of a layer by name, and checks what Windows needs.
func unpack(t *testing.T, layer v1.Layer) map[string]string {
	t.Helper()
	content, err := layer.Uncompressed()
	must(t, err)
	defer content.Close()
	found := map[string]string{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		text, readErr := io.ReadAll(archive)
		must(t, errors.Join(err, readErr))
		found[header.Name] = string(text)
		if header.Typeflag == tar.TypeReg && (header.PAXRecords["MSWINDOWS.rawsd"] == "" || !header.ModTime.Equal(date)) {
			t.Errorf("%s is of %v, with %v", header.Name, header.ModTime, header.PAXRecords)
		}
	}
}

// TestBuild: on a base for Windows, the image has one more layer with the files of the archive, and the same digest each
// time.
func TestBuild(t *testing.T) {
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	base := strings.TrimPrefix(server.URL, "http://") + "/base:v1"
	below, err := random.Image(100, 1)
	if err == nil {
		config, _ := below.ConfigFile()
		config.OS, config.Architecture = "windows", "amd64"
		below, err = mutate.ConfigFile(below, config)
	}
	if err == nil {
		err = crane.Push(below, base)
	}
	must(t, err)
	archive := newArchive(t, append(files, "csi-proxy-sim.exe")...)
	digests := map[v1.Hash]bool{}
	for range 2 {
		image, err := build(archive, base, date, map[string]string{"revision": "abc", "source": ""})
		must(t, err)
		digest, err := image.Digest()
		must(t, err)
		digests[digest] = true
		layers, err := image.Layers()
		if err != nil || len(layers) != 2 {
			t.Fatalf("%d layers, %v", len(layers), err)
		}
		want := map[string]string{"Files": "", "Hives": ""}
		for _, name := range files {
			want["Files/"+name] = "the " + name
		}
		if diff := cmp.Diff(want, unpack(t, layers[1])); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		config, err := image.ConfigFile()
		must(t, err)
		baseDigest, _ := below.Digest()
		wantLabels := map[string]string{}
		for key, value := range map[string]string{
			"title": "csi-proxy", "licenses": "Apache-2.0", "version": "v9.8.7", "revision": "abc", "created": "2026-11-15T08:00:00Z",
			"base.name": base, "base.digest": baseDigest.String(),
		} {
			wantLabels["org.opencontainers.image."+key] = value
		}
		if diff := cmp.Diff(wantLabels, config.Config.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if config.OS != "windows" || config.Architecture != "amd64" || !config.Created.Equal(date) || cmp.Diff([]string{"csi-proxy.exe"}, config.Config.Entrypoint) != "" {
			t.Errorf("%+v", config)
		}
	}
	if len(digests) != 1 {
		t.Errorf("two builds are not the same: %v", digests)
	}
}

func TestBuild_Refused(t *testing.T) {
	for archive, want := range map[string]string{
		"csi-proxy_v9.8.7_linux_amd64.tar.gz":                      "not the name of an archive for Windows",
		filepath.Join(t.TempDir(), "csi-proxy_v1_windows_arm.zip"): "no such file",
		newArchive(t, files[1:]...):                                files[0],
	} {
		if _, err := build(archive, "", date, map[string]string{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", archive, err, want)
		}
	}
}

// must ends the test if err is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
