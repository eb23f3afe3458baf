// Release makes the files of a release from programs such as dist/build/windows_amd64/csi-proxy.exe, into dist:
// archives, the modules, the chart, manifests, a bill of materials, licences of the linked modules, and checksums. 'make release'
// runs it. The same input gives the same bytes on every machine; docs/releasing.md says how to check that.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
)

func main() {
	r := release{sums: map[string]string{}}
	flag.StringVar(&r.source, "source", ".", "`directory` of the source")
	flag.StringVar(&r.dist, "dist", "dist", "`directory` for the release; its directory build has one directory of programs per platform")
	flag.StringVar(&r.version, "version", "", "the `version`, such as v1.4.0")
	flag.StringVar(&r.imageRepository, "image-repository", developmentImage, "`name` of the container image, without its tag, for chart and manifests")
	flag.StringVar(&r.home, "home", "", "`address` of the project, such as https://github.com/OWNER/csi-proxy, for the chart (default: it names none)")
	tag := flag.Bool("tag", false, "write only the modules, and into the source the go.mod files of the commit that is tagged")
	date := flag.String("date", "", "`time` of every file, such as 2026-11-15T08:00:00Z")
	flag.Parse()
	var err error
	r.date, err = time.Parse(time.RFC3339, *date)
	var versionsErr error
	r.modules, versionsErr = readVersions(r.source)
	switch err = errors.Join(err, versionsErr); {
	case err == nil && *tag:
		err = r.goproxy(true)
	case err == nil:
		err = r.make()
	}
	if err != nil {
		log.Fatal(err)
	}
}

type release struct {
	source, dist, version, imageRepository string
	home                                   string // may be empty
	date                                   time.Time
	sums                                   map[string]string // of the files
	modules                                []module.Version
}

func (r *release) make() error {
	if err := r.goproxy(false); err != nil {
		return err
	}
	programs, err := findPrograms(filepath.Join(r.dist, "build"))
	if err != nil {
		return err
	}
	foreign, err := findComponents(programs)
	if err != nil {
		return err
	}
	plugins, err := r.pluginPrograms()
	if err != nil {
		return err
	}
	theirs, err := findComponents(plugins)
	if err != nil {
		return err
	}
	texts, err := r.texts(r.notices(theirs))
	if err != nil {
		return err
	}
	if err := r.plugin(plugins, texts); err != nil {
		return err
	}
	texts["THIRD_PARTY_NOTICES"], texts["README.md"] = r.notices(foreign), bytes.ReplaceAll(readme, []byte("VERSION"), []byte(r.version))
	if err := errors.Join(r.archives("csi-proxy", programs, texts), r.installers(programs), r.chart(), r.index(), r.manifests()); err != nil {
		return err
	}
	maps.Copy(theirs, foreign)
	if err := r.write(r.name(".spdx.json"))(r.bill(append(programs, plugins...), theirs)); err != nil {
		return err
	}
	var sums []byte // in the format of sha256sum --check
	for _, name := range slices.Sorted(maps.Keys(r.sums)) {
		sums = fmt.Appendf(sums, "%s  %s\n", r.sums[name], name)
	}
	return r.write("SHA256SUMS")(sums, nil)
}

func (r *release) name(suffix string) string { return "csi-proxy_" + r.version + suffix }
func (r *release) number() string            { return strings.TrimPrefix(r.version, "v") } // as charts have it

// write returns a function that writes a file of the release, if there was no error.
func (r *release) write(name string) func([]byte, error) error {
	return func(content []byte, err error) error {
		if err != nil {
			return err
		}
		r.sums[name] = fmt.Sprintf("%x", sha256.Sum256(content))
		return os.WriteFile(filepath.Join(r.dist, name), content, 0o644) //nolint:gosec // the directory is a flag
	}
}

type program struct {
	name, platform string // csi-proxy.exe, windows_amd64
	content        []byte
	modules        []*debug.Module // that the linker put into it, with its own and Go's library
}

// findPrograms returns the built programs, sorted by platform and name.
func findPrograms(dir string) (programs []program, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_*", "*")) // sorted
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no programs in %s; 'make release' builds them", dir)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		info, err := buildinfo.Read(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		modules := append(info.Deps, &info.Main, &debug.Module{Path: goLibrary, Version: strings.TrimPrefix(info.GoVersion, "go")})
		programs = append(programs, program{filepath.Base(path), filepath.Base(filepath.Dir(path)), content, modules})
	}
	return programs, err
}
