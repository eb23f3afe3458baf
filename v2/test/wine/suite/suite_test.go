//go:build linux && wine

// Package suite runs under Wine what is built for Windows: the tests of all packages, the
// conformance suite on named pipes, and bin/csi-proxy.exe, bin/csi-proxy-sim.exe and
// bin/csi-proxyctl.exe themselves. It is what `make test-wine` starts.
//
// Here, on Linux, is only what prepares and reports. What is tested are test binaries for
// Windows, which would run there as well: those of test/wine/daemon start the daemon, and
// talk to it.
package suite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

func TestMain(m *testing.M) {
	prefix.CloseOnSignal()
	m.Run()
}

// timeLimit is for one test binary that hangs. Most take seconds, the longest 100 s; that one needed more than 8
// minutes while the host took most of the processors.
const timeLimit = 20 * time.Minute

// The directories of drive C: with the sources, for tests that read files of their package,
// and with test binaries.
const (
	sources  = `C:\src`
	binaries = `C:\test`
)

// machine is a prefix with all that tests need.
type machine struct {
	*prefix.Prefix
	links bool // whether Wine stores them; what a test finds out by itself may be the fault to find
}

func open(t *testing.T) *machine {
	t.Helper()
	wine := prefix.Need(t)
	p, err := wine.New(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close the prefix: %v", err)
		}
	})
	require.NoError(t, os.Mkdir(p.Path(binaries), 0o700))
	links, err := p.StoresLinks(t.Context())
	switch {
	case err != nil:
		t.Fatal(err)
	case !links && os.Getenv(prefix.RequiredVariable) == "links":
		t.Fatalf("this Wine stores no links; %s has to name one that does", prefix.WineVariable)
	case links:
		// As on Windows, files can be found by the names of volumes: of drive C:, whose last byte is the letter in
		// Wine, and of one for tests.
		for name, dir := range map[string]string{"Volume{00000000-0000-0000-0000-000000000043}": `C:\`, dataVolume: `C:\volume`} {
			require.NoError(t, p.Volume(name, dir))
		}
	}
	return &machine{p, links}
}

// dataVolume is a volume with files, where Wine can mount it.
const dataVolume = "Volume{5ba7e000-0000-4000-8000-000000000001}"

// install copies programs of `make build` to drive C:.
func install(t *testing.T, p *machine, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if err := p.Copy(filepath.Join(root(t), "bin", name)); err != nil {
			t.Fatalf("%v; make build builds it", err)
		}
	}
}

// copySources copies the repository to drive C:, so that no test can change what is here.
func copySources(t *testing.T, p *machine) {
	t.Helper()
	from, to := root(t), p.Path(sources)
	err := filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		relative := strings.TrimPrefix(name, from)
		switch {
		case err != nil:
			return err
		case relative == "/.git" || relative == "/bin":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return os.MkdirAll(to+relative, 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(name)
		return errors.Join(err, os.WriteFile(to+relative, content, 0o600))
	})
	require.NoError(t, err)
}

// compile builds the tests of packages for Windows, as NAME.test.exe in the directory of
// test binaries.
func compile(t *testing.T, p *machine, packages ...string) {
	t.Helper()
	began := time.Now()
	goTool(t, append([]string{"test", "-c", "-vet=off", "-tags=wine," + prefix.Tags, "-o", p.Path(binaries) + "/"}, packages...)...)
	t.Logf("%d test binaries were built for Windows in %s", len(packages), since(began))
}

// goTool runs the go command for Windows, at the root of the repository.
func goTool(t *testing.T, args ...string) {
	t.Helper()
	goToolFor(t, "windows", args...)
}

// run runs a test binary in a directory of drive C:, with variables of the environment, and
// reports what came of it.
func run(t *testing.T, p *machine, dir string, environment []string, binary string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	began := time.Now()
	output, err := execute(ctx, t, p, dir, environment, binary, args...)
	result := parse(output)
	switch {
	case err != nil:
		t.Errorf("%s: %s", binary, brief(err.Error())) // which contains the output
	case result.passed+result.skipped == 0:
		t.Errorf("%s: no test has run:\n%s", binary, output)
	}
	t.Logf("%s: %s, in %s%s", binary, result, since(began), result.details())
	return result
}

// execute runs a test binary and returns what it said. The error contains that, too.
func execute(ctx context.Context, t *testing.T, p *machine, dir string, environment []string, binary string, args ...string) (string, error) {
	t.Helper()
	flags := []string{"-test.v"}
	if deadline, ok := ctx.Deadline(); ok {
		flags = append(flags, "-test.timeout="+(time.Until(deadline)-10*time.Second).String()) // it says where it hangs
	}
	process, err := p.Launch(ctx, prefix.Program{Path: binaries + `\` + binary, Args: append(flags, args...), Dir: dir, Environment: environment})
	require.NoError(t, err)
	err = process.Wait()
	return process.Output(), err
}

func since(began time.Time) time.Duration { return time.Since(began).Round(100 * time.Millisecond) }
