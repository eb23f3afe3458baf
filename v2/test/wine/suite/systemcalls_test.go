//go:build linux && wine

package suite

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/calltable"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

var update = flag.Bool("update", false, "write the tables of system calls and messages")

// counting is the package that counts system calls, in the copies that TestSystemCalls is built with.
const counting = "v2/internal/win/winapi"

// counter is added to it.
const counter = `package winapi

import "sync"

var made struct {
	sync.Mutex
	byName map[string]int
}

// Counted counts a call to a function of Windows.
func Counted[F any](name string, f F) F {
	made.Lock()
	defer made.Unlock()
	if made.byName == nil {
		made.byName = map[string]int{}
	}
	made.byName[name]++
	return f
}

// TakeCalls returns the calls since it was called before.
func TakeCalls() map[string]int {
	made.Lock()
	defer made.Unlock()
	defer func() { made.byName = nil }()
	return made.byName
}
`

// TestSystemCalls compares the system calls of operations, and the messages that they send to Wine's
// server, with tables. The program that makes them is built with copies of our packages below the seam
// in which every call to Windows is counted, so that the ones that we release need not count.
//
// The tables are those of Wine 10, which opens a handle for each question. Where Wine has links, it resolves names as
// Windows does, and questions must take one system call.
func TestSystemCalls(t *testing.T) {
	// Before the prefix is there: without programs, Wine's server ends before a slow machine has built this, and the
	// trace goes with it.
	const program = "systemcalls.test.exe"
	built := filepath.Join(t.TempDir(), program)
	goTool(t, "test", "-c", "-vet=off", "-tags=wine,counted,grpcnotrace", "-overlay="+countingCopies(t), "-o", built, "./v2/test/wine/systemcalls")
	p := open(t)
	if p.links {
		copyFiles(t, filepath.Dir(built), p.Path(binaries), program)
		run(t, p, `C:\`, nil, program, "-test.run=^TestQuestions$").wantPassed(t, "TestQuestions")
		return
	}
	require.NoError(t, p.Copy(built))
	tables := filepath.Join(root(t), "v2", "test", "wine", "systemcalls", "testdata")
	dir := p.Path(`C:\systemcalls\testdata`)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	copyFiles(t, tables, dir, "calls.txt")
	args := []string{"-test.run=^TestSystemCalls$"}
	if *update {
		args = append(args, "-update")
	}
	process, err := p.Launch(t.Context(), prefix.Program{
		Path: `C:\` + program, Args: args, Dir: `C:\systemcalls`, Environment: []string{"WINEDEBUG=+server"},
	})
	require.NoError(t, err)
	require.NoError(t, process.Wait())
	trace, err := p.ServerTrace()
	require.NoError(t, err)
	if *update {
		copyFiles(t, dir, tables, "calls.txt")
	}
	compareMessages(t, filepath.Join(tables, "calls.txt"), filepath.Join(tables, "messages.txt"), trace)
}

func copyFiles(t *testing.T, from, to string, names ...string) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o644)
		}
		if err != nil && !(*update && os.IsNotExist(err)) {
			t.Fatal(err)
		}
	}
}

// countingCopies writes copies of our packages below the seam that count their calls to Windows, and
// returns the file with which go build takes them.
func countingCopies(t *testing.T) string {
	t.Helper()
	dir, functions := t.TempDir(), windowsFunctions(t)
	replace := map[string]string{}
	write := func(original, text string) {
		name := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		replace[original] = name
	}
	for _, room := range []string{counting, "v2/internal/win/local"} {
		sources, err := filepath.Glob(filepath.Join(root(t), room, "*_windows.go"))
		if err != nil || len(sources) == 0 {
			t.Fatalf("no sources in %s: %v", room, err)
		}
		for _, source := range sources {
			write(source, counted(t, source, room == counting, functions))
		}
	}
	write(filepath.Join(root(t), counting, "counted.go"), counter)
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	name := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(name, overlay, 0o600))
	return name
}

// windowsFunctions are the functions of golang.org/x/sys/windows that call Windows, by their public
// names: those in the file of generated ones, and those that begin with another case there.
func windowsFunctions(t *testing.T) map[string]bool {
	t.Helper()
	dir := strings.TrimSpace(goTool(t, "list", "-f", "{{.Dir}}", "golang.org/x/sys/windows"))
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, "zsyscall_windows.go"), nil, 0)
	require.NoError(t, err)
	functions := map[string]bool{}
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok {
			first, size := utf8.DecodeRuneInString(f.Name.Name)
			functions[string(unicode.ToUpper(first))+f.Name.Name[size:]] = true
		}
	}
	return functions
}

// counted returns a source file in which the calls to Windows are counted: those of
// golang.org/x/sys/windows, and those that mkwinsyscall has generated.
func counted(t *testing.T, source string, own bool, functions map[string]bool) string {
	t.Helper()
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, source, text, 0)
	require.NoError(t, err)
	count := "winapi.Counted"
	if own {
		count = "Counted"
	}
	insert := map[int]string{} // by offset
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if name := generated(n); name != "" {
				insert[set.Position(n.Body.Lbrace).Offset+1] = fmt.Sprintf("; %s(%q, 0)", count, name)
			}
		case *ast.CallExpr:
			if name := windowsFunction(n.Fun); functions[name] {
				insert[set.Position(n.Fun.Pos()).Offset] = fmt.Sprintf("%s(%q, ", count, name)
				insert[set.Position(n.Fun.End()).Offset] = ")"
			}
		}
		return true
	})
	var b strings.Builder
	for i, c := range text {
		b.WriteString(insert[i])
		b.WriteByte(c)
		if !own && len(insert) > 0 && i == set.Position(file.Name.End()).Offset-1 && !imports(file, counting) {
			fmt.Fprintf(&b, "\nimport %q", "github.com/kubernetes-csi/csi-proxy/"+counting)
		}
	}
	return b.String()
}

// windowsFunction is the name of a function of golang.org/x/sys/windows.
func windowsFunction(fun ast.Expr) string {
	selector, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if of, ok := selector.X.(*ast.Ident); !ok || of.Name != "windows" {
		return ""
	}
	return selector.Sel.Name
}

// generated is the name of the procedure that a generated function calls.
func generated(f *ast.FuncDecl) (procedure string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok && selector.Sel.Name == "Addr" {
			if of, ok := selector.X.(*ast.Ident); ok {
				procedure, _ = strings.CutPrefix(of.Name, "proc")
			}
		}
		return true
	})
	return procedure
}

func imports(file *ast.File, path string) bool {
	for _, spec := range file.Imports {
		if strings.HasSuffix(strings.Trim(spec.Path.Value, `"`), path) {
			return true
		}
	}
	return false
}

// request is the first line of a message to Wine's server in a trace, with the number of a mark.
var request = regexp.MustCompile(`(?m)^[0-9a-f]{4}: ([a-z_]+)\( (?:handle=7f0000([0-9a-f]{2}) \))?`)

// aboutFiles are the messages that count. Others come from threads that wait for each other, and
// their number depends on the scheduler.
var aboutFiles = []string{
	"create_file", "open_file_object", "get_handle_fd", "get_file_info", "get_volume_info", "get_handle_unix_name",
	"set_fd_disp_info", "set_fd_name_info", "ioctl", "flush",
}

// compareMessages compares the messages between the marks of each operation with a table.
func compareMessages(t *testing.T, operations, table, trace string) {
	t.Helper()
	text, err := os.ReadFile(operations)
	require.NoError(t, err)
	rows, err := calltable.Parse(string(text))
	require.NoError(t, err)
	begun, running := 0, false
	for i := range rows {
		rows[i].Calls = map[string]int{}
	}
	for _, found := range request.FindAllStringSubmatch(trace, -1) {
		switch name, number := found[1], found[2]; {
		case name == "close_handle" && number != "":
			running = !running
			if n, err := strconv.ParseInt(number, 16, 0); err != nil || int(n) != 2*begun && int(n) != 2*begun+1 || begun >= len(rows) {
				t.Fatalf("mark %s comes after %d operations", number, begun)
			}
			if !running {
				begun++
			}
		case running && slices.Contains(aboutFiles, name):
			rows[begun].Calls[name]++
		}
	}
	if begun != len(rows) {
		t.Fatalf("the trace has %d operations, want %d", begun, len(rows))
	}
	got := calltable.Format(rows)
	if *update {
		require.NoError(t, os.WriteFile(table, []byte(got), 0o644))
	}
	want, err := os.ReadFile(table)
	require.NoError(t, err)
	if got != string(want) {
		t.Errorf("%s differs; if that is intended, run the test with -update.\ngot:\n%swant:\n%s", filepath.Base(table), got, want)
	}
}
