//go:build drivers

// Package ported replaces the Windows mounters of released CSI drivers by the mounter kit, builds
// the drivers for Windows, and runs their node services on an emulated node, on every system. It is
// part of what `make test-drivers` starts.
//
// The files of a port are in testdata, at the paths that they have in the driver. The overlay of the
// go command puts them there, so that the driver's own files stay as they are.
package ported

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/fetch"
)

// A port is a driver whose mounter is the kit.
type port struct {
	name   string
	module fetch.Module
	main   string // the package of the program
	// deleted are the files that the port makes unnecessary. They are for Windows only.
	deleted []string
	// edits are what the port changes in files that the driver keeps.
	edits []edit
	// aside are the files for other systems that the port's files stand in for in the test. The
	// driver keeps them.
	aside []string
	// whole are the systems for which the driver's own tests compile.
	whole []string
	// asks are what the driver's files ask the machine that they run on, such as os.Lstat. In the test
	// they ask the emulated node, see package machine.
	asks map[string][]string
}

// An edit replaces text that is in a file once.
type edit struct{ file, old, text string }

func ports() []port {
	return []port{elasticBlockStore(), computeDisk(), azureDisk(), share()}
}

func elasticBlockStore() port {
	return port{
		name:   "aws-ebs",
		module: fetch.Module{Path: "github.com/kubernetes-sigs/aws-ebs-csi-driver", Version: "v1.63.0"},
		main:   "./cmd",
		deleted: []string{
			"pkg/mounter/mount_windows.go", "pkg/mounter/mount_windows_proxyV1.go", "pkg/mounter/mount_windows_proxyV2.go",
		},
		edits: requests("pkg/driver/node.go", "d", "ctx", calls...),
		aside: []string{"pkg/mounter/mount_linux.go", "pkg/mounter/mount_unsupported.go"},
		whole: []string{"linux", "darwin", "windows"},
		asks:  map[string][]string{"pkg/driver/node.go": {"runtime.GOOS"}},
	}
}

func computeDisk() port {
	return port{
		name:   "gcp-pd",
		module: fetch.Module{Path: "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver", Version: "v1.28.1"},
		main:   "./cmd/gce-pd-csi-driver",
		deleted: []string{
			"pkg/gce-pd-csi-driver/utils_windows.go",
			"pkg/mount-manager/safe-mounter-v1_windows.go", "pkg/mount-manager/safe-mounter-v1beta_windows.go",
			"pkg/mount-manager/safe-mounter_windows.go", "pkg/mount-manager/statter_windows.go",
			"pkg/resizefs/resizefs_windows.go",
		},
		edits: requests("pkg/gce-pd-csi-driver/node.go", "ns", "ctx", calls...),
		aside: []string{
			"pkg/gce-pd-csi-driver/utils_linux.go", "pkg/mount-manager/safe-mounter_linux.go",
			"pkg/mount-manager/statter_linux.go", "pkg/resizefs/resizefs_linux.go",
		},
		whole: []string{"linux"}, // the driver has no files for darwin, and its tests do not compile for Windows
		asks:  map[string][]string{"pkg/gce-pd-csi-driver/node.go": {"os.Lstat", "runtime.GOOS"}},
	}
}

func azureDisk() port {
	return port{
		name:   "azuredisk",
		module: fetch.Module{Path: "sigs.k8s.io/azuredisk-csi-driver", Version: "v1.30.0"},
		main:   "./pkg/azurediskplugin",
		deleted: []string{
			"pkg/azuredisk/azure_common_windows.go",
			"pkg/mounter/safe_mounter_host_process_windows.go", "pkg/mounter/safe_mounter_v1beta_windows.go", "pkg/mounter/safe_mounter_windows.go",
			"pkg/os/disk/disk.go", "pkg/os/disk/types.go", "pkg/os/filesystem/filesystem.go", "pkg/os/volume/volume.go",
		},
		edits: requests("pkg/azuredisk/nodeserver.go", "d", "_", calls[:5]...), // NodeGetVolumeStats passes its context on
		aside: []string{"pkg/azuredisk/azure_common_linux.go", "pkg/azuredisk/azure_common_darwin.go", "pkg/mounter/safe_mounter_unix.go"},
		whole: []string{"linux", "darwin", "windows"},
		asks:  map[string][]string{"pkg/azuredisk/nodeserver.go": {"os.ReadDir", "runtime.GOOS"}},
	}
}

func share() port {
	const node = "pkg/smb/nodeserver.go"
	return port{
		name:   "csi-driver-smb",
		module: fetch.Module{Path: "github.com/kubernetes-csi/csi-driver-smb", Version: "v1.20.1"},
		main:   "./cmd/smbplugin",
		deleted: []string{
			"pkg/mounter/refcounter_windows.go", "pkg/mounter/refcounter_windows_test.go", "pkg/mounter/safe_mounter_host_process_windows.go",
			"pkg/mounter/safe_mounter_v1beta_windows.go", "pkg/mounter/safe_mounter_windows.go",
			"pkg/os/filesystem/filesystem.go", "pkg/os/smb/smb.go", "pkg/os/smb/smb_test.go", "pkg/smb/smb_common_windows.go",
		},
		edits: slices.Concat([]edit{
			{node, "\t\"k8s.io/kubernetes/pkg/volume\"\n", ""},
			{node, "volume.NewMetricsStatFS(req.VolumePath).GetMetrics()", "getMetrics(ctx, d.mounter, req.VolumePath)"},
			{node, "NodeGetVolumeStats(_ context", "NodeGetVolumeStats(ctx context"},
			{node, "NodeUnpublishVolume(_ context", "NodeUnpublishVolume(ctx context"},
			{node, "NodeUnstageVolume(_ context", "NodeUnstageVolume(ctx context"},
			{node, " CleanupMountPoint(d.mounter", " CleanupMountPoint(ctx, d.mounter"},
			{node, " CleanupSMBMountPoint(d.mounter", " CleanupSMBMountPoint(ctx, d.mounter"},
			{node, " Mount(d.mounter", " Mount(ctx, d.mounter"},
			{node, "d.mounter.Mount(", "withContext(ctx, d.mounter).Mount("},
		}, contexts("pkg/smb/smb_common_linux.go"), contexts("pkg/smb/smb_common_darwin.go")),
		aside: []string{"pkg/mounter/safe_mounter_unix.go", "pkg/smb/smb_common_darwin.go", "pkg/smb/smb_common_linux.go"},
		whole: []string{"linux", "darwin", "windows"},
		asks:  map[string][]string{node: {"os.Lstat", "os.MkdirAll", "os.ReadDir", "runtime.GOOS"}},
	}
}

// calls are those that a node service makes the mounter's.
var calls = []string{"NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeExpandVolume", "NodeGetVolumeStats"}

// requests are the edits of calls, so that what the mounter does ends with the context of the request. Its parameter is named ctx.
func requests(file, receiver, ctx string, calls ...string) (edits []edit) {
	for _, call := range calls {
		rest := fmt.Sprintf(" context.Context, req *csi.%[1]sRequest) (*csi.%[1]sResponse, error) {\n", call)
		bind := fmt.Sprintf("\t%[1]s = %[1]s.withContext(ctx)\n", receiver)
		edits = append(edits, edit{file, call + "(" + ctx + rest, call + "(ctx" + rest + bind})
	}
	return edits
}

// contexts are the edits of the functions for another system.
func contexts(file string) []edit {
	return []edit{
		{file, "import (\n", "import (\n\t\"context\"\n"},
		{file, "\nfunc Mount(", "\nfunc Mount(_ context.Context, "},
		{file, "\nfunc Mkdir(", "\nfunc Mkdir(_ context.Context, "},
		{file, "\nfunc CleanupMountPoint(", "\nfunc CleanupMountPoint(_ context.Context, "},
		{file, "\nfunc CleanupSMBMountPoint(", "\nfunc CleanupSMBMountPoint(_ context.Context, "},
	}
}

// A tree is the sources of a port, ready to be built.
type tree struct {
	port
	sources string // the driver's own files
	dir     string // go.mod, go.sum and the overlays
}

// prepare gets the driver, and writes what the go command needs to build the port. Root is the top
// directory of the repository. With a released version of the mounter, our modules are not those that are here.
func (p port) prepare(ctx context.Context, root, released string) (*tree, error) {
	drivers := filepath.Join(root, "bin", "drivers")
	t := &tree{
		port:    p,
		sources: filepath.Join(drivers, "src", strings.ReplaceAll(p.module.String(), "/", "_")),
		dir:     filepath.Join(drivers, "ported", p.name),
	}
	if err := p.module.Copy(ctx, t.sources); err != nil {
		return nil, err
	}
	writeModule := func() error { return t.writeModule(ctx, root) }
	if released != "" {
		t.dir += "@" + released
		writeModule = func() error { return t.adopt(ctx, released) }
	}
	if err := errors.Join(os.MkdirAll(t.dir, 0o750), writeModule()); err != nil {
		return nil, err
	}
	if err := t.writeOverlay(root, program); err != nil {
		return nil, err
	}
	return t, t.writeOverlay(root, test)
}

// ours are the modules of this repository that a port needs, and their directories.
var ours = map[string]string{
	"github.com/kubernetes-csi/csi-proxy/mounter":             "mounter",
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest": "mounter/mountertest",
	"github.com/kubernetes-csi/csi-proxy/client":              "client",
	"github.com/kubernetes-csi/csi-proxy/v2":                  "v2",
	"github.com/kubernetes-csi/csi-proxy/v2/cmd":              "v2/cmd",
}

// writeModule writes the go.mod of the port: that of the driver, with our modules as they are here.
func (t *tree) writeModule(ctx context.Context, root string) error {
	mod, err := os.ReadFile(filepath.Join(t.sources, "go.mod"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(t.dir, "go.mod"), mod, 0o600); err != nil {
		return err
	}
	sums := []string{filepath.Join(t.sources, "go.sum")}
	args := []string{"mod", "edit"}
	for path, dir := range ours {
		dir = filepath.Join(root, dir)
		version := "@v0.0.0-00010101000000-000000000000"
		if strings.HasSuffix(path, "/v2") {
			version = "@v2.0.0-00010101000000-000000000000"
		}
		args = append(args, "-replace="+path+"="+dir, "-require="+path+version)
		sums = append(sums, filepath.Join(dir, "go.sum"))
	}
	if err := writeSums(filepath.Join(t.dir, "go.sum"), sums); err != nil {
		return err
	}
	return t.goCommand(ctx, nil, append(args, filepath.Join(t.dir, "go.mod"))...)
}

// adopt writes the go.mod of a driver that gets a released version of the mounter. Nothing else is needed, but that aws-ebs no
// longer replaces the library, by a version of the original: https://github.com/kubernetes-csi/csi-proxy/issues/411
func (t *tree) adopt(ctx context.Context, released string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(t.sources, name))
		if err := errors.Join(err, os.WriteFile(filepath.Join(t.dir, name), content, 0o600)); err != nil {
			return err
		}
	}
	mod := filepath.Join(t.dir, "go.mod")
	if err := t.goCommand(ctx, nil, "mod", "edit", "-dropreplace=github.com/kubernetes-csi/csi-proxy/v2", mod); err != nil {
		return err
	}
	return t.get(ctx, "mounter@"+released)
}

func (t *tree) get(ctx context.Context, module string) error {
	return t.goCommand(ctx, nil, "get", "-modfile="+filepath.Join(t.dir, "go.mod"), "github.com/kubernetes-csi/csi-proxy/"+module)
}

// raised returns the requirements in the go.mod of the port that the driver's does not have.
func (t *tree) raised() (lines []string, err error) {
	before, err := os.ReadFile(filepath.Join(t.sources, "go.mod"))
	after, afterErr := os.ReadFile(filepath.Join(t.dir, "go.mod"))
	had := strings.Split(strings.ReplaceAll(string(before), " // indirect", ""), "\n")
	for line := range strings.Lines(string(after)) {
		if line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), " // indirect"); !slices.Contains(had, line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines, errors.Join(err, afterErr)
}

// writeSums writes the lines of several files, each line once.
func writeSums(to string, from []string) error {
	var lines []string
	for _, name := range from {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines = slices.AppendSeq(lines, strings.Lines(string(content)))
	}
	slices.Sort(lines)
	return os.WriteFile(to, []byte(strings.Join(slices.Compact(lines), "")), 0o600)
}

type build string

const (
	// program is the driver's program for Windows, as it is after the port.
	program build = "program"
	// test is the node service for this system, and the port's test.
	test build = "test"
)

// The ends of the names of a port's files. Those of the mounter are for Windows in the driver, and for every system in the test.
const (
	kitFile     = "_kit.go"
	windowsFile = "_windows.go"
	unixFile    = "_unix.go"
)

// writeOverlay writes the overlay of a build, and the files that the build edits.
func (t *tree) writeOverlay(root string, b build) error {
	replace := map[string]string{}
	gone := t.deleted
	if b == test {
		gone = slices.Concat(gone, t.aside)
	}
	for _, name := range gone {
		path := filepath.Join(t.sources, name)
		if _, err := os.Stat(path); err != nil {
			return err
		}
		replace[path] = "" // the file is not there
	}
	ported := filepath.Join(root, "v2", "test", "drivers", "ported")
	files, err := t.files(root)
	if err != nil {
		return err
	}
	for _, name := range files {
		as := name
		if b == program { // as the driver would have it
			as = strings.Replace(name, kitFile, windowsFile, 1)
		}
		if b == test && strings.HasSuffix(name, unixFile) || b == program && isTest(name) {
			continue
		}
		replace[filepath.Join(t.sources, as)] = filepath.Join(ported, "testdata", t.name, name)
	}
	if b == test {
		for _, shared := range []string{"life", "machine"} {
			replace[filepath.Join(t.sources, "ported", shared, shared+".go")] = filepath.Join(ported, shared, shared+".go")
		}
	}
	edited, err := t.edited(b)
	if err != nil {
		return err
	}
	for name, content := range edited {
		to := filepath.Join(t.dir, string(b)+"_"+strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(to, content, 0o600); err != nil {
			return err
		}
		replace[filepath.Join(t.sources, name)] = to
	}
	content, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(t.overlay(b), content, 0o600)
}

func (t *tree) overlay(b build) string { return filepath.Join(t.dir, string(b)+".json") }

// edited returns the driver's files that are not the same in a build, by their paths in the driver.
func (t *tree) edited(b build) (map[string][]byte, error) {
	files := map[string][]byte{}
	read := func(name string) (err error) {
		if _, ok := files[name]; !ok {
			files[name], err = os.ReadFile(filepath.Join(t.sources, name))
		}
		return err
	}
	for _, e := range t.edits {
		if b == test && slices.Contains(t.aside, e.file) {
			continue
		}
		if err := read(e.file); err != nil {
			return nil, err
		}
		if n := bytes.Count(files[e.file], []byte(e.old)); n != 1 {
			return nil, fmt.Errorf("%s of %s: %q is there %d times, want 1", e.file, t.module, e.old, n)
		}
		files[e.file] = bytes.Replace(files[e.file], []byte(e.old), []byte(e.text), 1)
	}
	if b != test {
		return files, nil
	}
	for name, asks := range t.asks {
		if err := read(name); err != nil {
			return nil, err
		}
		content, err := askEmulatedNode(files[name], t.module.Path, asks)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", name, t.module, err)
		}
		files[name] = content
	}
	return files, nil
}

// askEmulatedNode returns a Go file that uses package machine, which is then a part of the module, for
// each of the names. The file has imports in parentheses.
func askEmulatedNode(source []byte, module string, names []string) ([]byte, error) {
	const imports = "import (\n"
	if !bytes.Contains(source, []byte(imports)) {
		return nil, fmt.Errorf("no %q", imports)
	}
	source = bytes.Replace(source, []byte(imports), fmt.Appendf(nil, "%s\t%q\n", imports, module+"/ported/machine"), 1)
	for _, name := range names {
		old := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`)
		if !old.Match(source) {
			return nil, fmt.Errorf("%s is not there", name)
		}
		_, function, _ := strings.Cut(name, ".")
		source = old.ReplaceAllLiteral(source, []byte("machine."+function))
	}
	// The packages stay imported, so they must be used.
	for used, text := range map[string]string{"os": "os.Args", "runtime": "runtime.Version"} {
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, used+".") }) {
			source = fmt.Appendf(source, "\nvar _ = %s\n", text)
		}
	}
	return source, nil
}

// files returns the files of the port, by their paths in the driver.
func (p port) files(root string) ([]string, error) {
	dir := filepath.Join(root, "v2", "test", "drivers", "ported", "testdata", p.name)
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, name)
		return err
	})
	return names, err
}

// buildForWindows builds the driver's program.
func (t *tree) buildForWindows(ctx context.Context) error {
	return t.goCommand(ctx, []string{"GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"},
		t.flags(program, "build", "-o", filepath.Join(t.dir, "driver.exe"), t.main)...)
}

// checkWhole compiles the packages that the port changes, and their tests, for each system, and runs the tests on this one.
func (t *tree) checkWhole(ctx context.Context, root string) error {
	if len(t.whole) == 0 {
		return nil
	}
	files, err := t.files(root)
	if err != nil {
		return err
	}
	for _, e := range t.edits {
		files = append(files, e.file)
	}
	var packages []string
	for _, name := range files {
		if !isTest(name) {
			packages = append(packages, "./"+filepath.ToSlash(filepath.Dir(name)))
		}
	}
	slices.Sort(packages)
	packages = slices.Compact(packages)
	for _, system := range t.whole {
		env := []string{"GOOS=" + system, "GOARCH=amd64", "CGO_ENABLED=0"}
		if err := t.goCommand(ctx, env, t.flags(program, "vet", append([]string{"-asmdecl"}, packages...)...)...); err != nil {
			return err
		}
	}
	return t.goCommand(ctx, nil, t.flags(program, "test", append([]string{"-vet=off", "-short"}, packages...)...)...)
}

// test runs the port's tests, and returns what they say.
func (t *tree) test(ctx context.Context) ([]byte, error) {
	// The directory of the package is in the overlay only, so the go command cannot run the test there.
	executable := filepath.Join(t.dir, "ported.test")
	if err := t.goCommand(ctx, nil, t.flags(test, "test", "-c", "-vet=off", "-o", executable, "./ported")...); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, executable, "-test.v")
	cmd.Dir = t.dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		return output, fmt.Errorf("test of %s: %w\n%s", t.name, err, output)
	}
	return output, nil
}

// flags adds the flags for the module and the overlay after the verb.
func (t *tree) flags(b build, verb string, args ...string) []string {
	// A driver has a thousand packages, and other work may go on.
	packages := fmt.Sprintf("-p=%d", max(runtime.NumCPU()/2, 1))
	return append([]string{verb, packages, "-modfile=" + filepath.Join(t.dir, "go.mod"), "-overlay=" + t.overlay(b)}, args...)
}

// goCommand runs the go command in the driver's directory.
func (t *tree) goCommand(ctx context.Context, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.sources
	cmd.Env = slices.Concat(os.Environ(), []string{"GOWORK=off", "GOFLAGS=-mod=mod -trimpath -buildvcs=false"}, env)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return nil
}

// isTest reports whether a file of a port is part of its test: it is in the package ported, or it is
// the file of another package with which the test makes a node service.
func isTest(name string) bool {
	return filepath.Dir(name) == "ported" || filepath.Base(name) == "ported.go"
}
