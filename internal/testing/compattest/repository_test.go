package compattest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// repository is what the page refers to.
type repository struct {
	root     string
	flags    map[string]map[string]bool // of each of our programs
	commands map[string]bool            // of csi-proxyctl, such as "disk list"
	targets  map[string]bool            // of the Makefile
}

// file returns the path of a file of the repository, which has slashes.
func (r *repository) file(name string) string { return filepath.Join(r.root, filepath.FromSlash(name)) }

var (
	target     = regexp.MustCompile(`(?m)^([a-z-]+):`)
	helpFlag   = regexp.MustCompile(`(?m)^  -(\S+)`)
	ctlFlag    = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)`)
	ctlHeading = regexp.MustCompile(`(?m)^#+ csi-proxyctl ?(.*)$`)
)

// load reads the repository. Flags of the daemons come from -help, those of csi-proxyctl from its
// reference, which another test compares with the program.
func load(t *testing.T) *repository {
	t.Helper()
	r := &repository{root: filepath.Join("..", "..", ".."), flags: map[string]map[string]bool{}, commands: map[string]bool{}}
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	r.targets = found(target, read(r.file("Makefile")))
	for _, program := range []string{"csi-proxy", "csi-proxy-sim"} {
		r.flags[program] = found(helpFlag, help(t, r.root, program))
	}
	pages, err := filepath.Glob(r.file("docs/cli/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var reference strings.Builder
	for _, page := range pages {
		reference.WriteString(read(page))
	}
	r.flags["csi-proxyctl"] = found(ctlFlag, reference.String())
	r.commands = found(ctlHeading, reference.String())
	return r
}

// found returns what the expression's group matches.
func found(expression *regexp.Regexp, text string) map[string]bool {
	set := map[string]bool{}
	for _, match := range expression.FindAllStringSubmatch(text, -1) {
		set[match[1]] = true
	}
	return set
}

// help returns what -help prints.
func help(t *testing.T, root, program string) string {
	t.Helper()
	// As the Makefile builds it, so that the build cache has most of it.
	cmd := exec.CommandContext(t.Context(), "go", "run", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace", "./cmd/"+program, "-help")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return string(out)
}
