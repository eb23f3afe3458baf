package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var testDate = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

// newRelease returns a release of small programs for two platforms.
func newRelease(t *testing.T) *release {
	t.Helper()
	r := &release{source: filepath.Join("..", ".."), dist: t.TempDir(), version: "v9.8.7", date: testDate, imageRepository: "registry.test/storage/csi-proxy"}
	for _, file := range []string{"windows_amd64/csi-proxy.exe", "linux_arm64/csi-proxyctl"} {
		buildSmall(t, filepath.Join(r.dist, "build", file))
	}
	return r
}

// buildSmall builds testdata/small for the platform that the file's directory names. An overlay
// puts it into the root module, because a release is made of programs of that module.
func buildSmall(t *testing.T, file string) {
	t.Helper()
	root, small := absolute(t, filepath.Join("..", "..")), absolute(t, filepath.Join("testdata", "small.go"))
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	writeFile(t, overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, filepath.Join(root, "cmd", "small", "main.go"), small))
	goos, goarch, _ := strings.Cut(filepath.Base(filepath.Dir(file)), "_")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-overlay", overlay, "-o", file, "./cmd/small")
	build.Dir = root
	build.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOWORK=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// files returns the files of a release, without what it was built from.
func (r *release) files(t *testing.T) map[string]string {
	t.Helper()
	found, err := os.ReadDir(r.dist)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range found {
		if !file.IsDir() {
			content, err := os.ReadFile(filepath.Join(r.dist, file.Name()))
			if err != nil {
				t.Fatal(err)
			}
			all[file.Name()] = string(content)
		}
	}
	return all
}

// contents returns the programs of a release, and what they contain.
func (r *release) contents(t *testing.T) ([]program, components) {
	t.Helper()
	programs, err := findPrograms(r.dist + "/build")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := r.findComponents(t.Context(), programs)
	if err != nil {
		t.Fatal(err)
	}
	return programs, foreign
}

func TestRelease(t *testing.T) {
	r := newRelease(t)
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := r.files(t)
	want := []string{
		"SHA256SUMS", "csi-proxy-9.8.7.tgz", "csi-proxy-monitored_v9.8.7.yaml", "csi-proxy_v9.8.7.spdx.json", "csi-proxy_v9.8.7.yaml",
		"csi-proxy_v9.8.7_linux_arm64.tar.gz", "csi-proxy_v9.8.7_windows_amd64.zip",
	}
	var got []string
	for name := range first {
		got = append(got, name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if sums := strings.Count(first["SHA256SUMS"], "\n"); sums != len(want)-1 {
		t.Errorf("there are %d checksums", sums)
	}
	if text := first["csi-proxy_v9.8.7.yaml"]; !strings.Contains(text, `"registry.test/storage/csi-proxy:v9.8.7"`) || strings.Contains(text, development) || strings.Contains(text, developmentImage) {
		t.Error("the manifest is not for the image of this release")
	}
	// Again, over what is there, with programs whose files are younger and have other rights.
	for _, p := range []string{"windows_amd64/csi-proxy.exe", "linux_arm64/csi-proxyctl"} {
		path := filepath.Join(r.dist, "build", p)
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, content := range r.files(t) {
		if content != first[name] {
			t.Errorf("%s is another one the second time", name)
		}
	}
}

func TestArchives(t *testing.T) {
	r := newRelease(t)
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := r.files(t)
	packed := files["csi-proxy_v9.8.7_windows_amd64.zip"]
	archive, err := zip.NewReader(strings.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range archive.File {
		names = append(names, file.Name)
		if !file.Modified.Equal(testDate) {
			t.Errorf("%s is of %v", file.Name, file.Modified)
		}
	}
	want := below("csi-proxy_v9.8.7_windows_amd64/", "CHANGELOG.md", "LICENSE", "README.md", "THIRD_PARTY_NOTICES", "csi-proxy.exe")
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("zip (-want +got):\n%s", diff)
	}
	want = below("csi-proxy_v9.8.7_linux_arm64/", "CHANGELOG.md 644", "LICENSE 644", "README.md 644", "THIRD_PARTY_NOTICES 644", "csi-proxyctl 755")
	if diff := cmp.Diff(want, tarNames(t, files["csi-proxy_v9.8.7_linux_arm64.tar.gz"])); diff != "" {
		t.Errorf("tar (-want +got):\n%s", diff)
	}
	chart := tarNames(t, files["csi-proxy-9.8.7.tgz"])
	for _, name := range []string{"csi-proxy/.helmignore 644", "csi-proxy/Chart.yaml 644", "csi-proxy/templates/daemonset.yaml 644", "csi-proxy/values.schema.json 644"} {
		if !slices.Contains(chart, name) {
			t.Errorf("the chart lacks %s; it has %q", name, chart)
		}
	}
}

// below returns names in a directory.
func below(dir string, names ...string) []string {
	for i := range names {
		names[i] = dir + names[i]
	}
	return names
}

// tarNames returns names and rights of the files of an archive, all of which have the right date.
func tarNames(t *testing.T, packed string) (names []string) {
	t.Helper()
	unpacked, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(unpacked); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%s %o", header.Name, header.Mode))
		if !header.ModTime.Equal(testDate) || header.Uid != 0 {
			t.Errorf("%s is of %v, and belongs to %d", header.Name, header.ModTime, header.Uid)
		}
	}
}

func TestRelease_Refused(t *testing.T) {
	for name, want := range map[string]struct {
		change  func(*release)
		message string
	}{
		"no version":         {func(r *release) { r.version = "" }, "version"},
		"a commit's name":    {func(r *release) { r.version = "1f94e68-dirty" }, "version"},
		"an image's tag":     {func(r *release) { r.imageRepository += ":v1" }, "without a tag"},
		"no address":         {func(r *release) { r.home = "github.com/o/p" }, "want the form https://"},
		"no image":           {func(r *release) { r.imageRepository = "" }, "image repository"},
		"nothing is built":   {func(r *release) { r.dist = t.TempDir() }, "'make release' builds them"},
		"a key only":         {func(r *release) { r.signer.key = "key.pem" }, "a key its certificate"},
		"another source":     {func(r *release) { r.source = t.TempDir() }, "go.mod file not found"},
		"a certificate only": {func(r *release) { r.signer.certificate = "cert.pem" }, "a certificate needs its key"},
		"not a Go program": {func(r *release) {
			writeFile(t, filepath.Join(r.dist, "build", "linux_arm64", "csi-proxyctl"), []byte("#!/bin/sh\n"))
		}, "csi-proxyctl"},
	} {
		r := newRelease(t)
		want.change(r)
		if err := r.make(t.Context()); err == nil || !strings.Contains(err.Error(), want.message) {
			t.Errorf("%s: %v, want an error with %q", name, err, want.message)
		}
	}
}
