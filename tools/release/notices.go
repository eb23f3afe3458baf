package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// noticesFile has the licences of the foreign code in the programs. All of them require that their
// text accompanies the programs.
const noticesFile = "THIRD_PARTY_NOTICES"

// component is foreign code in our programs: a module, or Go's library.
type component struct {
	name, version string
	license       string  // as SPDX writes it
	texts         []entry // of licences and notices
}

// components are by name.
type components map[string]component

// goLibrary is the component that has no module.
const goLibrary = "stdlib"

// ours reports whether a module is in this repository.
func ours(module string) bool {
	return module == ourModules || strings.HasPrefix(module, ourModules+"/")
}

// modulesOf returns the modules that the linker put into a program, including its own module and
// Go's library.
func modulesOf(p program) ([]*debug.Module, error) {
	info, err := buildinfo.ReadFile(p.path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	library := &debug.Module{Path: goLibrary, Version: strings.TrimPrefix(info.GoVersion, "go")}
	return append(info.Deps, &info.Main, library), nil
}

// findComponents returns the foreign code in the programs, with the licences from its source.
func (r *release) findComponents(ctx context.Context, programs []program) (components, error) {
	versions := map[string]string{}
	for _, p := range programs {
		modules, err := modulesOf(p)
		if err != nil {
			return nil, err
		}
		for _, module := range modules {
			if !ours(module.Path) {
				versions[module.Path] = module.Version
			}
		}
	}
	dirs, err := r.sourceDirs(ctx, versions)
	if err != nil {
		return nil, err
	}
	all := components{}
	for name, version := range versions {
		found, err := readComponent(name, version, os.DirFS(dirs[name]))
		if err != nil {
			return nil, fmt.Errorf("read the licences of %s %s: %w", name, version, err)
		}
		all[name] = found
	}
	return all, nil
}

// sourceDirs returns the source directories of modules, and fails if they have other versions.
func (r *release) sourceDirs(ctx context.Context, versions map[string]string) (map[string]string, error) {
	args := []string{"list", "-m", "-json"}
	for name := range versions {
		if name != goLibrary {
			args = append(args, name)
		}
	}
	root, err := output(ctx, r.source, "go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	dir, version, _ := strings.Cut(string(root), "\n")
	dirs := map[string]string{goLibrary: dir}
	have := map[string]string{goLibrary: strings.TrimPrefix(strings.TrimSpace(version), "go")}
	if len(versions) > 1 {
		listed, err := output(ctx, r.source, "go", args...)
		if err != nil {
			return nil, err
		}
		for decoder := json.NewDecoder(bytes.NewReader(listed)); ; {
			var module struct{ Path, Version, Dir string }
			if err := decoder.Decode(&module); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			have[module.Path], dirs[module.Path] = module.Version, module.Dir
		}
	}
	for name, version := range versions {
		if have[name] != version || dirs[name] == "" {
			return nil, fmt.Errorf("the programs have %s %s, but the source here has %q in %q; build them from this source", name, version, have[name], dirs[name])
		}
	}
	return dirs, nil
}

// legalFile is the name of a file with a licence or a notice.
var legalFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([.-].*)?$`)

// readComponent reads the licences and notices of a component, also those in subdirectories with
// code from other projects. Go's library needs only those at the top.
func readComponent(name, version string, source fs.FS) (component, error) {
	found := component{name: name, version: version}
	var ids []string
	err := fs.WalkDir(source, ".", func(path string, file fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case file.IsDir() && (file.Name() == "testdata" || name == goLibrary && path != "."):
			return fs.SkipDir
		case file.IsDir() || !legalFile.MatchString(file.Name()) || strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := fs.ReadFile(source, path)
		if err != nil {
			return err
		}
		found.texts = append(found.texts, entry{name: path, content: text})
		if strings.HasPrefix(strings.ToLower(file.Name()), "notice") {
			return nil
		}
		of, err := licensesOf(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		ids = append(ids, of...)
		return nil
	})
	if err != nil {
		return found, err
	}
	if len(ids) == 0 {
		return found, errors.New("the module has no licence file")
	}
	slices.Sort(ids)
	found.license = strings.Join(slices.Compact(ids), " AND ")
	return found, nil
}

// notices returns the text of noticesFile.
func (r *release) notices(all components) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "Third-party notices of CSI Proxy %s\n\nThe programs contain these, under the following licences:\n\n", r.version)
	sorted := slices.SortedFunc(maps.Values(all), func(a, b component) int { return strings.Compare(a.name, b.name) })
	for _, c := range sorted {
		fmt.Fprintf(&out, "  %s %s: %s\n", c.name, c.version, c.license)
	}
	for _, c := range sorted {
		for _, text := range c.texts {
			fmt.Fprintf(&out, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 80), c.name, c.version, text.name, bytes.TrimSpace(text.content))
		}
	}
	return out.Bytes()
}
