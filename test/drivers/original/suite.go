package original

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/fetch"
)

// Suite is the integration tests of one released module, or some of its unit tests.
type Suite struct {
	Name   string
	Module fetch.Module
	// Units are the packages below pkg whose unit tests are the suite. Each runs in our package of the
	// same name. Without it, the integration tests are the suite.
	Units []string
	// Without are the files that are not part of the suite: they test what only the original has.
	Without []string
	// Helpers are the functions that only those files need, and tests of what is not exported.
	Helpers []string
	// Tests is the number of tests without subtests. A suite that loses some does not pass.
	Tests int
}

// Suites are what runs.
var Suites = []Suite{
	{
		Name:   "library",
		Module: fetch.Module{Path: "github.com/kubernetes-csi/csi-proxy/v2", Version: "v2.0.0-alpha.2"},
		Tests:  22,
	},
	{
		Name:    "library-units",
		Module:  fetch.Module{Path: "github.com/kubernetes-csi/csi-proxy/v2", Version: "v2.0.0-alpha.2"},
		Units:   []string{"filesystem", "smb", "volume"},
		Helpers: []string{"TestGetRootMappingPath"},
		Tests:   4,
	},
	{
		Name:    "daemon",
		Module:  fetch.Module{Path: "github.com/kubernetes-csi/csi-proxy", Version: "v1.3.0"},
		Without: []string{"api_groups_test.go", "csi_api_gen_test.go"},
		Helpers: []string{"startServer", "recursiveDiff", "fileHashes", "readFile"},
		Tests:   51,
	},
}

// write writes the package of a suite for the emulated machine to a directory, from the files of
// its module.
func (s Suite) write(to, module string) error {
	from := filepath.Join(module, "integrationtests")
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o750); err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() || filepath.Ext(entry.Name()) != ".go" || slices.Contains(s.Without, entry.Name()) {
			continue
		}
		source, err := os.ReadFile(filepath.Join(from, entry.Name()))
		if err != nil {
			return err
		}
		rewritten, err := rewrite(entry.Name(), source, s.Helpers)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, entry.Name()), rewritten, 0o600); err != nil {
			return err
		}
	}
	const start = "package integrationtests\n\nimport (\n\t\"os\"\n\t\"testing\"\n\n\t%q\n)\n\n" +
		"func TestMain(m *testing.M) { os.Exit(machine.Main(m)) }\n"
	return os.WriteFile(filepath.Join(to, "machine_test.go"), fmt.Appendf(nil, start, machinePackage), 0o600)
}

// writeModule writes the go.mod of the suites: that of this module, which has all they import, with
// this module in addition. So everything they need is known and has a checksum.
func writeModule(ctx context.Context, to, root string) error {
	drivers := filepath.Join(root, "test", "drivers")
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(drivers, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), content, 0o600); err != nil {
			return err
		}
	}
	const ours = "github.com/kubernetes-csi/csi-proxy"
	_, err := goCommand(ctx, to, "mod", "edit", "-module=original.example/suites",
		"-require="+ours+"/v2/test/drivers@v0.0.0-00010101000000-000000000000",
		"-replace="+ours+"/v2/test/drivers="+drivers,
		"-replace="+ours+"/v2="+root,
		"-replace="+ours+"/client="+filepath.Join(root, "client"),
		"-replace="+ours+"/mounter="+filepath.Join(root, "mounter"))
	return err
}

// goCommand runs the go command in a directory, and returns its output.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own arguments
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return output, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return output, nil
}

// Result is how one test of a suite ended.
type Result struct {
	Test   string
	Action string // pass, fail or skip
	Output string
	// parent is a test with subtests.
	parent bool
}

// Run runs a suite from the files of its module, and returns its results. Dir is the module of the
// suites, root the top directory of our repository.
func (s Suite) Run(ctx context.Context, root, dir, module string) ([]Result, error) {
	if len(s.Units) == 0 {
		if err := s.write(filepath.Join(dir, s.Name), module); err != nil {
			return nil, err
		}
		return s.test(ctx, dir, "./"+s.Name)
	}
	overlay, err := s.overlay(root, dir, module)
	if err != nil {
		return nil, err
	}
	args := []string{"-overlay=" + overlay}
	for _, unit := range s.Units {
		args = append(args, "./pkg/"+unit)
	}
	return s.test(ctx, root, args...)
}

// overlay writes a file for the go command that puts the unit tests in the place of ours.
func (s Suite) overlay(root, dir, module string) (string, error) {
	replace := map[string]string{}
	for _, unit := range s.Units {
		ours, err := filepath.Glob(filepath.Join(root, "pkg", unit, "*_test.go"))
		if err != nil {
			return "", err
		}
		for _, file := range ours {
			replace[file] = "" // as if it did not exist
		}
		name := unit + "_test.go"
		source, err := os.ReadFile(filepath.Join(module, "pkg", unit, name))
		if err != nil {
			return "", err
		}
		rewritten, err := rewriteUnit(name, source, s.Helpers)
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, unit+".txt")
		if err := os.WriteFile(path, rewritten, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, "pkg", unit, name)] = path
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, content, 0o600)
}

// test runs tests in a directory. An error means that there are no results.
func (s Suite) test(ctx context.Context, dir string, args ...string) ([]Result, error) {
	// What vet says about the tests is for their authors.
	output, err := goCommand(ctx, dir, append([]string{"test", "-json", "-count=1", "-vet=off"}, args...)...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	results, parseErr := parseEvents(output)
	if parseErr != nil || len(results) == 0 {
		return nil, errors.Join(err, parseErr, fmt.Errorf("the suite %s has no results: %s", s.Name, output))
	}
	return results, nil
}

// parseEvents reads the output of go test -json. It returns the tests without subtests, and those
// with subtests that fail although none of these fails, in alphabetical order.
func parseEvents(output []byte) ([]Result, error) {
	tests := map[string]*Result{}
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, len(output)+1)
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("read an event of go test: %w: %s", err, lines.Bytes())
		}
		if event.Test == "" {
			continue
		}
		test := tests[event.Test]
		if test == nil {
			test = &Result{Test: event.Test, Action: "fail"} // unless it says how it ended
			tests[event.Test] = test
		}
		switch event.Action {
		case "output":
			test.Output += event.Output
		case "pass", "fail", "skip":
			test.Action = event.Action
		}
	}
	failedBelow := map[string]bool{}
	for name, test := range tests {
		for at := strings.LastIndexByte(name, '/'); at > 0; at = strings.LastIndexByte(name[:at], '/') {
			if parent := tests[name[:at]]; parent != nil {
				parent.parent = true
				failedBelow[name[:at]] = failedBelow[name[:at]] || test.Action == "fail"
			}
		}
	}
	var results []Result
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		if test := tests[name]; !test.parent || test.Action == "fail" && !failedBelow[name] {
			results = append(results, *test)
		}
	}
	return results, lines.Err()
}
