package manifests

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestDependabot: it watches every Go module, the actions and the base image.
func TestDependabot(t *testing.T) {
	var config struct {
		Version int `json:"version"`
		Updates []struct {
			Ecosystem   string            `json:"package-ecosystem"`
			Directory   string            `json:"directory"`
			Directories []string          `json:"directories"`
			Schedule    map[string]string `json:"schedule"`
			Limit       int               `json:"open-pull-requests-limit"`
			Ignore      []map[string]any  `json:"ignore"`
			Groups      map[string]any    `json:"groups"`
		} `json:"updates"`
	}
	must(t, yaml.UnmarshalStrict(read(t, ".github/dependabot.yml"), &config))
	got := map[string][]string{}
	for _, update := range config.Updates {
		for _, directory := range append(update.Directories, update.Directory) {
			if directory != "" {
				got[update.Ecosystem] = append(got[update.Ecosystem], directory)
			}
		}
	}
	var modules []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (name == "bin" || name == "dist" || strings.HasPrefix(entry.Name(), ".") && name != "." || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if path.Base(name) == "go.mod" {
			modules = append(modules, path.Join("/", path.Dir(name)))
		}
		return err
	})
	must(t, err)
	slices.Sort(got["gomod"])
	want := map[string][]string{"gomod": modules, "github-actions": {"/"}}
	slices.Sort(want["gomod"])
	if diff := cmp.Diff(want, got); diff != "" || config.Version != 2 {
		t.Errorf("version %d, directories (-want +got):\n%s", config.Version, diff)
	}
}
