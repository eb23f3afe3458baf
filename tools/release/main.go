// Release makes the files of a release from the built programs: archives, the chart, manifests, a
// bill of materials, licences of the linked modules, and checksums. The same input gives the same
// bytes on every machine; docs/releasing.md says how to check that.
//
// 'make release' runs it twice: with -check before it builds the programs, and afterwards
//
//	release -source . -dist dist -version v2.0.0 -date 2026-11-15T08:00:00Z
//
// reads dist/build/windows_amd64/csi-proxy.exe and so on, and writes into dist.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	var r release
	date := flag.String("date", "", "`time` of the release's commit, such as 2026-11-15T08:00:00Z")
	flag.StringVar(&r.source, "source", ".", "`directory` of the source")
	flag.StringVar(&r.dist, "dist", "dist", "`directory` for the release; its directory build has one directory of programs per platform")
	flag.StringVar(&r.version, "version", "", "the `version`, such as v2.0.0")
	check := flag.Bool("check", false, "only check the names and the source")
	notes := flag.Bool("notes", false, "only print what CHANGELOG.md says about the version")
	flag.StringVar(&r.home, "home", "", "`address` of the project, such as https://github.com/OWNER/csi-proxy, for the chart, the signatures and the notes (default: they name none)")
	unreleased := flag.Bool("unreleased", false, "with -check, check only the names: the source may have changes and needs no tag")
	flag.StringVar(&r.imageRepository, "image-repository", developmentImage, "`name` of the container image, without its tag, for chart and manifests")
	flag.StringVar(&r.signer.certificate, "sign-cert", "", "`file` with the certificate chain that signs the programs for Windows")
	flag.StringVar(&r.signer.key, "sign-key", "", "`file` with the key of the certificate")
	flag.StringVar(&r.signer.timestampServer, "sign-timestamp", "", "`address` of a timestamp server for the signatures")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := r.checkNames()
	switch {
	case err != nil || *check && *unreleased:
	case *check:
		if err = checkSource(ctx, r.source, r.version); err == nil {
			_, err = r.notes()
		}
	case *notes:
		var text []byte
		if text, err = r.notes(); err == nil {
			_, err = os.Stdout.Write(text)
		}
	default:
		if r.date, err = time.Parse(time.RFC3339, *date); err == nil {
			r.signer.date, r.signer.home = r.date, r.home
			err = r.make(ctx)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// release is a release in the making.
type release struct {
	source  string
	dist    string
	version string
	date    time.Time // of every file
	signer  signer

	imageRepository string
	home            string // address of the project; empty if it has none
}

func (r *release) make(ctx context.Context) error {
	if err := r.checkNames(); err != nil {
		return err
	}
	programs, err := findPrograms(filepath.Join(r.dist, "build"))
	if err != nil {
		return err
	}
	if err := r.signer.sign(ctx, programs); err != nil {
		return err
	}
	foreign, err := r.findComponents(ctx, programs)
	if err != nil {
		return err
	}
	bill, err := r.bill(programs, foreign)
	if err != nil {
		return err
	}
	if err := r.write(r.name(".spdx.json"), bill); err != nil {
		return err
	}
	if err := r.archives(programs, r.notices(foreign)); err != nil {
		return err
	}
	for _, step := range []func() error{r.chart, r.manifests} {
		if err := step(); err != nil {
			return err
		}
	}
	return writeChecksums(r.dist)
}

// name returns the name of a file of this release.
func (r *release) name(suffix string) string { return "csi-proxy_" + r.version + suffix }

// number returns the version as charts have it.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// write writes a file of the release.
func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.dist, name), content, 0o644) //nolint:gosec // the directory is a flag
}

// program is a program for one platform.
type program struct {
	path     string // of the file
	platform string // windows_amd64
}

func (p program) name() string  { return filepath.Base(p.path) }
func (p program) windows() bool { return strings.HasPrefix(p.platform, "windows_") }

// findPrograms returns the built programs, sorted by platform and name.
func findPrograms(dir string) ([]program, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_*", "*")) // sorted
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no programs in %s; 'make release' builds them", dir)
	}
	programs := make([]program, len(paths))
	for i, path := range paths {
		programs[i] = program{path: path, platform: filepath.Base(filepath.Dir(path))}
	}
	return programs, nil
}
