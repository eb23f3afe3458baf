package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
	"golang.org/x/mod/module"
)

// passOn are the licences that allow us to distribute programs with their code, if their text accompanies them.
var passOn = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// minCoverage is the percentage of a licence file that known licences must cover. The rest is headings.
const minCoverage = 75

// licensesOf returns the SPDX names of the licences of a text, which may have several.
func licensesOf(text []byte) (found []string, err error) {
	coverage := licensecheck.Scan(text)
	for _, match := range coverage.Match {
		switch {
		case match.IsURL: // a reference inside another licence's text
		case !slices.Contains(passOn, match.ID):
			return nil, fmt.Errorf("its licence is %s; read it, and add it to passOn in tools/release/licenses.go if we may pass it on", match.ID)
		default:
			found = append(found, match.ID)
		}
	}
	if len(found) == 0 || coverage.Percent < minCoverage {
		return nil, fmt.Errorf("known licences cover %.0f%% of it, want %d%%; read it; it begins with %.60q", coverage.Percent, minCoverage, bytes.TrimSpace(text))
	}
	return found, nil
}

// component is foreign code in our programs: a module, or Go's library.
type component struct {
	version, license string // the licence as SPDX writes it
	texts            string // of licences and notices
}

const goLibrary = "stdlib" // the component that has no module

// findComponents returns the foreign code in the programs by name, with the licences of the source that was linked.
func findComponents(programs []program) (map[string]component, error) {
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	places := strings.Split(string(out), "\n")
	found := map[string]component{}
	for _, p := range programs {
		for _, m := range p.modules {
			if _, known := found[m.Path]; known || strings.HasPrefix(m.Path, ourModules) {
				continue
			}
			dir := places[1]
			if m.Path != goLibrary {
				path, err := module.EscapePath(m.Path)
				if err != nil {
					return nil, err
				}
				dir = filepath.Join(places[0], filepath.FromSlash(path)+"@"+m.Version)
			} else if "go"+m.Version != places[2] {
				return nil, fmt.Errorf("%s was built by Go %s, and this is %s", p.name, m.Version, places[2])
			}
			if found[m.Path], err = readComponent(m.Path, m.Version, os.DirFS(dir)); err != nil {
				return nil, fmt.Errorf("read the licences of %s %s: %w", m.Path, m.Version, err)
			}
		}
	}
	return found, nil
}

// legalFile is the name of a file with a licence or a notice.
var legalFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([.-].*)?$`)

// readComponent reads the licences and notices of a component, also those in subdirectories with code from other
// projects. Go's library needs only those at the top.
func readComponent(name, version string, source fs.FS) (component, error) {
	var texts strings.Builder
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
		fmt.Fprintf(&texts, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 80), name, version, path, bytes.TrimSpace(text))
		if strings.HasPrefix(strings.ToLower(file.Name()), "notice") {
			return nil
		}
		found, err := licensesOf(text)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		ids = append(ids, found...)
		return nil
	})
	slices.Sort(ids)
	if err == nil && len(ids) == 0 {
		err = errors.New("the module has no licence file")
	}
	return component{version, strings.Join(slices.Compact(ids), " AND "), texts.String()}, err
}

// notices returns the licences and notices of all foreign code.
func (r *release) notices(all map[string]component) []byte {
	text, texts := fmt.Sprintf("Third-party notices of CSI Proxy %s\n\nThe programs contain these, under the following licences:\n\n", r.version), ""
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text += fmt.Sprintf("  %s %s: %s\n", name, all[name].version, all[name].license)
		texts += all[name].texts
	}
	return []byte(text + texts)
}
