package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"golang.org/x/mod/module"
)

var testDate = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

// newRelease returns a release of small programs for two platforms.
func newRelease(t *testing.T) *release {
	t.Helper()
	r := &release{
		source: filepath.Join("..", ".."), dist: t.TempDir(), version: "v9.8.7", date: testDate,
		imageRepository: "registry.test/storage/csi-proxy", sums: map[string]string{},
	}
	var err error
	r.modules, err = readVersions(r.source)
	must(t, err)
	buildSmall(t, filepath.Join(r.dist, "build", "windows_amd64", "csi-proxy.exe"))
	buildSmall(t, filepath.Join(r.dist, "build", "linux_amd64", "csi-proxyctl"))
	return r
}

// buildSmall builds testdata/small for the platform that the file's directory names. An overlay
// puts it into the root module, because a release is made of programs of that module.
func buildSmall(t *testing.T, file string) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	must(t, err)
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	small := filepath.Join(root, "tools", "release", "testdata", "small.go")
	writeFile(t, overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, filepath.Join(root, "v2", "small", "main.go"), small))
	goos, goarch, _ := strings.Cut(filepath.Base(filepath.Dir(file)), "_")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-overlay", overlay, "-o", file, "./v2/small")
	build.Dir = root
	build.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOWORK=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(path, content, 0o755))
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return content
}

// files makes the release and returns its files, without what it was built from.
func (r *release) files(t *testing.T) map[string]string {
	t.Helper()
	must(t, r.make())
	all := map[string]string{}
	for name := range r.sums {
		all[name] = string(readFile(t, filepath.Join(r.dist, name)))
	}
	return all
}

// TestRelease: a second release has the same bytes, also of programs whose files are younger and have other rights.
func TestRelease(t *testing.T) {
	r := newRelease(t)
	first := r.files(t)
	want := []string{
		"SHA256SUMS", "csi-proxy-9.8.7.tgz", "csi-proxy-monitored_v9.8.7.yaml", "csi-proxy-v9.8.7.tar.gz", "csi-proxy.exe", "csi-proxy_v9.8.7.spdx.json", "csi-proxy_v9.8.7.yaml",
		"csi-proxy_v9.8.7_goproxy.tar.gz", "csi-proxy_v9.8.7_linux_amd64.tar.gz", "csi-proxy_v9.8.7_windows_amd64.zip", "index.yaml", "versions.txt",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(first))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if sums := strings.Count(first["SHA256SUMS"], "\n"); sums != len(want)-1 {
		t.Errorf("there are %d checksums", sums)
	}
	if text := first["csi-proxy_v9.8.7.yaml"]; !strings.Contains(text, `"registry.test/storage/csi-proxy:v9.8.7"`) || strings.Contains(text, "0.0.0-dev") || strings.Contains(text, developmentImage) {
		t.Error("the manifest is not for the image of this release")
	}
	checkArchives(t, first)
	checkBill(t, first["csi-proxy_v9.8.7.spdx.json"])
	younger := filepath.Join(r.dist, "build", "linux_amd64", "csi-proxyctl")
	must(t, errors.Join(os.Chtimes(younger, time.Time{}, time.Now().Add(time.Hour)), os.Chmod(younger, 0o700)))
	r.sums = map[string]string{}
	for name, content := range r.files(t) {
		if content != first[name] {
			t.Errorf("%s is another one the second time", name)
		}
	}
}

func checkArchives(t *testing.T, files map[string]string) {
	t.Helper()
	packed := files["csi-proxy_v9.8.7_windows_amd64.zip"]
	archive, err := zip.NewReader(strings.NewReader(packed), int64(len(packed)))
	must(t, err)
	var names []string
	for _, file := range archive.File {
		names = append(names, strings.TrimPrefix(file.Name, "csi-proxy_v9.8.7_windows_amd64/"))
		if !file.Modified.Equal(testDate) {
			t.Errorf("%s is of %v", file.Name, file.Modified)
		}
	}
	if diff := cmp.Diff([]string{"", "CHANGELOG.md", "LICENSE", "README.md", "THIRD_PARTY_NOTICES", "csi-proxy.exe"}, names); diff != "" {
		t.Errorf("zip (-want +got):\n%s", diff)
	}
	notices, err := fs.ReadFile(archive, "csi-proxy_v9.8.7_windows_amd64/THIRD_PARTY_NOTICES")
	must(t, err)
	for _, want := range []string{
		"CSI Proxy v9.8.7", "  stdlib ", ": BSD-3-Clause\n", "  go.yaml.in/yaml/v3 ", ": Apache-2.0 AND MIT\n",
		"Copyright 2009 The Go Authors", ": NOTICE\n", "Kirill Simonov",
	} {
		if !strings.Contains(string(notices), want) {
			t.Errorf("the notices lack %q", want)
		}
	}
}

// checkBill: every relationship is between existing elements, every element has a licence, and every program is
// described and depends on Go's library.
func checkBill(t *testing.T, bill string) {
	t.Helper()
	var document spdx.Document
	must(t, json.ReadInto(strings.NewReader(bill), &document))
	elements := map[common.ElementID]*spdx.Package{document.SPDXIdentifier: {}}
	for _, p := range document.Packages {
		elements[p.PackageSPDXIdentifier] = p
		if p.PackageLicenseDeclared == "" || p.PackageLicenseDeclared == noAssertion {
			t.Errorf("%s has no licence", p.PackageSPDXIdentifier)
		}
	}
	if len(elements) != 6 { // itself, two programs, their module, its module, Go's library
		t.Errorf("the elements are %v", elements)
	}
	related := map[string]int{}
	for _, relationship := range document.Relationships {
		from, to := elements[relationship.RefA.ElementRefID], elements[relationship.RefB.ElementRefID]
		if from == nil || to == nil {
			t.Fatalf("%+v names a missing element", relationship)
		}
		related[relationship.Relationship+" "+to.PackageName]++
	}
	if related["DEPENDS_ON "+goLibrary] != 2 || related["DESCRIBES csi-proxy"] != 1 || related["DESCRIBES csi-proxyctl"] != 1 {
		t.Errorf("the relationships are %v", related)
	}
	if !strings.HasPrefix(document.DocumentNamespace, "https://") || document.CreationInfo.Created != "2026-11-15T08:00:00Z" {
		t.Errorf("namespace %s, created %s", document.DocumentNamespace, document.CreationInfo.Created)
	}
}

func TestModulePackage(t *testing.T) {
	r := &release{version: "v9.8.7", modules: []module.Version{{Path: ourModules + "v2", Version: "v2.0.0"}, {Path: ourModules + "client", Version: "v1.4.0"}}}
	foreign := map[string]component{"github.com/Microsoft/go-winio": {license: "MIT"}, "github.com/kubernetes-csi/csi-proxy-of-another": {license: "BSD-2-Clause"}}
	for _, test := range []struct {
		module                                debug.Module
		version, license, sourceInfo, locator string
	}{
		{debug.Module{Path: "github.com/Microsoft/go-winio", Version: "v0.6.4", Sum: "h1:abc="}, "v0.6.4", "MIT", "go.sum h1:abc=", "pkg:golang/github.com/microsoft/go-winio@v0.6.4"},
		{debug.Module{Path: ourModules + "v2", Version: "(devel)"}, "v2.0.0", ourLicense, "from the source of csi-proxy v9.8.7", "pkg:golang/github.com/kubernetes-csi/csi-proxy/v2@v2.0.0"},
		// Without a workspace: the version that others get, and the source beside it.
		{debug.Module{Path: ourModules + "client", Version: "v1.3.0"}, "v1.4.0", ourLicense, "from the source of csi-proxy v9.8.7", "pkg:golang/github.com/kubernetes-csi/csi-proxy/client@v1.4.0"},
		{debug.Module{Path: ourModules + "v2/cmd", Version: "(devel)"}, "v9.8.7", ourLicense, "", "pkg:golang/github.com/kubernetes-csi/csi-proxy/v2/cmd@v9.8.7"},
		{debug.Module{Path: ourModules + "v2/test", Version: "(devel)"}, "(devel)", ourLicense, "from the source of csi-proxy v9.8.7", "pkg:golang/github.com/kubernetes-csi/csi-proxy/v2/test"},
		{debug.Module{Path: "github.com/kubernetes-csi/csi-proxy-of-another", Version: "v0.1.0"}, "v0.1.0", "BSD-2-Clause", "", "pkg:golang/github.com/kubernetes-csi/csi-proxy-of-another@v0.1.0"},
	} {
		got := r.modulePackage(&test.module, foreign)
		if got.PackageVersion != test.version || got.PackageLicenseDeclared != test.license || got.PackageSourceInfo != test.sourceInfo || got.PackageExternalReferences[0].Locator != test.locator {
			t.Errorf("%s: %+v", test.module.Path, got)
		}
	}
}

// TestReadComponent: also the licences of what a module has taken from others count, and each must be known.
func TestReadComponent(t *testing.T) {
	file := func(text ...string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(strings.Join(text, ""))} }
	mit, apache := string(readFile(t, "testdata/mit.txt")), string(readFile(t, "../../LICENSE"))
	// With one more sentence MIT is another licence.
	json := strings.Replace(mit, "THE SOFTWARE IS", "The Software shall be used for Good, not Evil.\n\nTHE SOFTWARE IS", 1)
	got, err := readComponent("example.com/m", "v1.0.0", fstest.MapFS{
		"LICENSE.txt": file(apache), "NOTICE": file("Made in Springfield."), "license.go": file("package m"),
		"internal/taken/COPYING": file(mit), "testdata/LICENSE": file("All rights reserved."),
	})
	if err != nil || got.license != "Apache-2.0 AND MIT" || strings.Count(got.texts, "====\n") != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	for want, source := range map[string]fstest.MapFS{
		"has no licence file":     {"NOTICE": file("Made in Springfield."), "README.md": file(mit)},
		"internal/taken/LICENCE:": {"LICENSE": file(mit), "internal/taken/LICENCE": file(json)},
		"its licence is JSON":     {"LICENSE": file(json)},
		"begins with":             {"LICENSE": file(mit, strings.Repeat("You must also send the authors a postcard. ", 20))},
		"cover 0%":                {"LICENSE": file("All rights reserved.")},
	} {
		if _, err := readComponent("example.com/m", "v1.0.0", source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

func TestRelease_Refused(t *testing.T) {
	r := &release{source: filepath.Join("..", ".."), dist: t.TempDir(), sums: map[string]string{}}
	if err := r.make(); err == nil || !strings.Contains(err.Error(), "'make release' builds them") {
		t.Errorf("nothing is built: %v", err)
	}
	other := []program{{modules: []*debug.Module{{Path: goLibrary, Version: "1.0"}}}}
	if _, err := findComponents(other); err == nil || !strings.Contains(err.Error(), "was built by Go 1.0") {
		t.Errorf("another version of Go: %v", err)
	}
}

// must ends the test if err is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
