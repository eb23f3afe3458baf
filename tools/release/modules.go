package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

const versionsFile = "tools/release/versions.txt"

// readVersions returns the modules that others import or install, in the order of versions.txt: each follows those that it
// requires. They are tagged DIRECTORY/VERSION, and v2 as VERSION. That of v2/cmd is also the version of the programs, the image
// and the chart, which go on from the original's 1.3.0.
func readVersions(source string) (modules []module.Version, err error) {
	text, err := os.ReadFile(filepath.Join(source, versionsFile))
	for line := range strings.Lines(string(text)) {
		dir, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err := module.Check(ourModules+dir, version); err != nil {
			return nil, fmt.Errorf("versions.txt: %w", err)
		}
		modules = append(modules, module.Version{Path: ourModules + dir, Version: version})
	}
	return modules, err
}

// versionOf returns the version that a module of this repository gets, or "(devel)" if it gets none.
func (r *release) versionOf(path string) string {
	for _, m := range r.modules {
		if m.Path == path {
			return m.Version
		}
	}
	return "(devel)"
}

// goproxy writes the modules as the go command asks a module proxy for them, which may be a directory:
// https://go.dev/ref/mod#goproxy-protocol. They have the files that the go command takes from the commit that is tagged. With
// tag, it makes the go.mod and go.sum files of the source those of that commit.
func (r *release) goproxy(tag bool) error {
	proxy, sums := tree{}, map[module.Version]string{} // sums as in go.sum
	for _, m := range r.modules {
		dir := strings.TrimPrefix(m.Path, ourModules)
		files, err := r.moduleFiles(dir, sums)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			if tag {
				err = errors.Join(err, r.rewrite(path.Join(dir, name), files[name].Data))
			}
		}
		var listed []zip.File
		var names []string
		prefix := m.String() + "/"
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if files[name].Mode.IsRegular() {
				listed, names = append(listed, moduleFile{fstest.MapFS(files), name}), append(names, prefix+name)
			}
		}
		var packed bytes.Buffer
		open := func(name string) (io.ReadCloser, error) {
			return fstest.MapFS(files).Open(strings.TrimPrefix(name, prefix))
		}
		whole, hashErr := dirhash.Hash1(names, open)
		mod, modErr := dirhash.Hash1([]string{"go.mod"}, open)
		if err := errors.Join(err, zip.Create(&packed, m, listed), hashErr, modErr); err != nil {
			return err
		}
		sums[m], sums[module.Version{Path: m.Path, Version: m.Version + "/go.mod"}] = whole, mod
		for suffix, content := range map[string]string{
			m.Version + ".info": fmt.Sprintf(`{"Version":%q,"Time":%q}`, m.Version, r.date.UTC().Format(time.RFC3339)),
			m.Version + ".mod":  string(files["go.mod"].Data), m.Version + ".zip": packed.String(), "list": m.Version + "\n",
		} {
			proxy.add(path.Join("goproxy", m.Path, "@v", suffix), 0o644, []byte(content), r.date)
		}
	}
	if tag {
		if err := r.requireVersions("examples", "v2/test"); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(filepath.Join(r.dist, "goproxy")), os.CopyFS(r.dist, fstest.MapFS(proxy)),
		r.write(r.name("_goproxy.tar.gz"))(proxy.tarGzip()),
		r.write("versions.txt")(os.ReadFile(filepath.Join(r.source, versionsFile))))
}

// requireVersions makes modules that have no version themselves require those of the others, which they go on to replace.
func (r *release) requireVersions(dirs ...string) error {
	for _, dir := range dirs {
		name := path.Join(dir, "go.mod")
		text, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return err
		}
		mod, err := modfile.Parse(name, text, nil)
		if err != nil {
			return err
		}
		for _, required := range mod.Require {
			if version := r.versionOf(required.Mod.Path); version != "(devel)" {
				_ = mod.AddRequire(required.Mod.Path, version) // it never fails
			}
		}
		text, _ = mod.Format() // it never fails
		if err := r.rewrite(name, text); err != nil {
			return err
		}
	}
	return nil
}

// rewrite writes a file of the source.
func (r *release) rewrite(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.source, name), content, 0o644) //nolint:gosec // the directory is a flag
}

// moduleFiles returns the files of a module: those of its directory that git does not ignore, with the requirements that others
// get. What follows from the version set is the same in the commit that is tagged, and in what it was made from.
func (r *release) moduleFiles(dir string, ours map[module.Version]string) (tree, error) {
	found, err := zip.CheckDir(filepath.Join(r.source, dir))
	ignore, ignoreErr := os.ReadFile(filepath.Join(r.source, ".gitignore"))
	if err := errors.Join(err, found.Err(), ignoreErr); err != nil {
		return nil, err
	}
	files := tree{}
	read := func(name string) {
		content, readErr := os.ReadFile(filepath.Join(r.source, name))
		err = errors.Join(err, readErr)
		files.add(strings.TrimPrefix(name, dir+"/"), 0o644, content, r.date)
	}
	read("LICENSE") // as the go command adds it to a module that has none
	read(dir + "/go.mod")
	read(dir + "/go.sum")
	for _, file := range found.Valid {
		name, _ := filepath.Rel(r.source, file)
		ignored := slices.ContainsFunc(strings.Fields(string(ignore)), func(rule string) bool {
			full, rooted := strings.CutPrefix(rule, "/")
			matched, _ := path.Match(full, name)
			base, _ := path.Match(rule, path.Base(name))
			return rooted && matched || base
		})
		if !ignored {
			read(filepath.ToSlash(name))
		}
	}
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse("go.mod", files["go.mod"].Data, nil)
	if err != nil {
		return nil, err
	}
	sums := map[module.Version]string{}
	for line := range strings.Lines(string(files["go.sum"].Data)) {
		fields := strings.Fields(line)
		sums[module.Version{Path: fields[0], Version: fields[1]}] = fields[2]
	}
	for _, required := range mod.Require {
		if version := r.versionOf(required.Mod.Path); version != "(devel)" {
			if semver.Compare(version, required.Mod.Version) < 0 {
				return nil, fmt.Errorf("versions.txt: %s requires %s, which is newer than %s", dir, required.Mod, version)
			}
			_, _ = mod.AddRequire(required.Mod.Path, version), mod.DropReplace(required.Mod.Path, "") // which never fail
			maps.DeleteFunc(sums, func(m module.Version, _ string) bool { return m.Path == required.Mod.Path })
			for _, m := range []module.Version{{Path: required.Mod.Path, Version: version}, {Path: required.Mod.Path, Version: version + "/go.mod"}} {
				if sums[m] = ours[m]; sums[m] == "" {
					return nil, fmt.Errorf("versions.txt: %s does not follow %s, which it requires", dir, required.Mod.Path)
				}
			}
		}
	}
	mod.Cleanup()
	sorted := slices.Collect(maps.Keys(sums))
	module.Sort(sorted)
	files["go.sum"].Data = nil
	for _, m := range sorted {
		files["go.sum"].Data = fmt.Appendf(files["go.sum"].Data, "%s %s %s\n", m.Path, m.Version, sums[m])
	}
	files["go.mod"].Data, _ = mod.Format() // it never fails
	if len(mod.Replace) > 0 {
		return nil, fmt.Errorf("it replaces %s, which has no version", mod.Replace[0].Old.Path)
	}
	return files, nil
}

// moduleFile is a file for a module's archive.
type moduleFile struct {
	in   fs.FS
	name string
}

func (f moduleFile) Path() string                 { return f.name }
func (f moduleFile) Lstat() (os.FileInfo, error)  { return fs.Stat(f.in, f.name) }
func (f moduleFile) Open() (io.ReadCloser, error) { return f.in.Open(f.name) }
