package main

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/module"
)

// TestGoproxy: modules require each other's versions and replace nothing, have what git has, and are the same made from the
// commit that is tagged. make test-adopt uses ours.
func TestGoproxy(t *testing.T) {
	source := t.TempDir()
	for name, content := range map[string]string{
		".gitignore": "/m/bin\n/m/*/gen.syso\n*.test\n", "LICENSE": "ours", versionsFile: "m v0.1.0\nm/n v1.4.0\n",
		"m/go.mod": "module " + ourModules + "m\n\ngo 1.25.0\n", "m/go.sum": "", "m/m.go": "package m\n", "m/bin": "", "m/p/gen.syso": "", "m/p/p.go": "package p\n", "m/m.test": "",
		"m/n/go.mod": "module " + ourModules + "m/n\n\ngo 1.25.0\n\nrequire (\n\texample.com/x v1.0.0\n\t" + ourModules + "m v0.0.0-00010101000000-000000000000 // indirect\n)\n\nreplace " + ourModules + "m => ../\n",
		"m/n/go.sum": "example.com/x v0.9.0/go.mod h1:a=\nexample.com/x v0.10.0/go.mod h1:b=\n", "m/n/LICENSE": "another's",
		"examples/go.mod": "module example\n\nrequire " + ourModules + "m v0.0.1\n\nreplace " + ourModules + "m => ../m\n", "v2/test/go.mod": "module test\n",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(source, name)), 0o755))
		writeFile(t, filepath.Join(source, name), []byte(content))
	}
	modules, err := readVersions(source)
	must(t, err)
	pack := func(tag bool) string {
		r := &release{source: source, dist: t.TempDir(), version: "v1.4.0", date: testDate, modules: modules, sums: map[string]string{}}
		must(t, r.goproxy(tag))
		for i, want := range []string{"LICENSE go.mod go.sum m.go p/p.go", "LICENSE go.mod go.sum"} {
			archive, err := zip.OpenReader(filepath.Join(r.dist, "goproxy", modules[i].Path, "@v", modules[i].Version+".zip"))
			must(t, err)
			var names []string
			for _, file := range archive.File {
				names = append(names, strings.TrimPrefix(file.Name, modules[i].String()+"/"))
			}
			must(t, archive.Close())
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s has %s, want %s", modules[i], got, want)
			}
		}
		return string(readFile(t, filepath.Join(r.dist, "csi-proxy_v1.4.0_goproxy.tar.gz")))
	}
	first := pack(false)
	if pack(true) != first || pack(false) != first {
		t.Error("the modules are others, made from what is tagged")
	}
	want := "module " + ourModules + "m/n\n\ngo 1.25.0\n\nrequire (\n\texample.com/x v1.0.0\n\t" + ourModules + "m v0.1.0 // indirect\n)\n"
	if diff := cmp.Diff(want, string(readFile(t, filepath.Join(source, "m/n/go.mod")))); diff != "" {
		t.Errorf("go.mod (-want +got):\n%s", diff)
	}
	if example := string(readFile(t, filepath.Join(source, "examples/go.mod"))); !strings.Contains(example, "m v0.1.0\n") || !strings.Contains(example, "=> ../m") {
		t.Errorf("examples do not build beside what is tagged: %s", example)
	}
	var order []string
	for line := range strings.Lines(string(readFile(t, filepath.Join(source, "m/n/go.sum")))) {
		order = append(order, strings.Join(strings.Fields(line)[:2], " "))
	}
	if diff := cmp.Diff([]string{"example.com/x v0.9.0/go.mod", "example.com/x v0.10.0/go.mod", ourModules + "m v0.1.0", ourModules + "m v0.1.0/go.mod"}, order); diff != "" {
		t.Errorf("go.sum (-want +got):\n%s", diff)
	}
	refused := func(want string, modules ...module.Version) {
		t.Helper()
		if err := (&release{source: source, dist: t.TempDir(), modules: modules}).goproxy(false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused("m/n does not follow", modules[1], modules[0])
	refused("v0.1.0, which is newer than v0.0.9", module.Version{Path: modules[0].Path, Version: "v0.0.9"}, modules[1])
	writeFile(t, filepath.Join(source, "m/n/go.mod"), []byte("module m\n\nreplace example.com/x => ../x\n"))
	refused("replaces example.com/x", modules...)
}
