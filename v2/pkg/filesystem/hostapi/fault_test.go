package api_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

var update = flag.Bool("update", false, "replace the golden files in testdata")

const (
	volume = `\\?\Volume{11111111-2222-3333-4444-555555555555}\`
	work   = `C:\work`    // where operations happen
	aside  = `C:\sibling` // what links in work lead to, and nothing may touch
)

// newNode is a node with everything an operation can meet in C:\work:
//
//	dir      an empty directory
//	file
//	link     to C:\sibling
//	mount    a mounted folder with a file on its volume
//	tree     a directory with all of these in it, and a subdirectory
func newNode(t *testing.T) *winsim.Node {
	t.Helper()
	model := winsim.Model{
		Volumes: []winsim.Volume{{ID: winsim.SystemVolume, Letter: "C"}, {ID: volume}},
		Files: []winsim.File{
			{Path: aside + `\file`, Content: "precious"},
			{Path: aside + `\sub\file`, Content: "precious"},
			{Path: work + `\dir`},
			{Path: work + `\file`, Content: "data"},
			{Path: work + `\link`, Symlink: aside},
			{Path: work + `\mount`, Volume: volume},
			{Path: work + `\mount\file`, Content: "precious"},
			{Path: work + `\tree\dir`},
			{Path: work + `\tree\file`, Content: "data"},
			{Path: work + `\tree\junction`, Junction: aside},
			{Path: work + `\tree\link`, Symlink: aside},
			{Path: work + `\tree\mount`, Volume: volume},
			{Path: work + `\tree\sub\file`, Content: "data", ReadOnly: true},
		},
	}
	node, err := winsim.New(model)
	require.NoError(t, err)
	return node
}

// outside is the state of everything that no operation in C:\work may change.
func outside(node *winsim.Node) string { return node.Tree(aside) + node.Tree(volume) }

// bind returns the node's host for a caller with that context.
func bind(ctx context.Context, node *winsim.Node) fsapi.HostAPI {
	return node.Filesystem().(fsapi.Extended).WithContext(ctx)
}

// operation is something a caller can ask for. Its answer is "" if it has none.
type operation struct {
	name   string
	object string // which every error must name, or a parent or child of it
	run    func(host fsapi.HostAPI) (answer string, err error)
}

func asks(name, path string, ask func(host fsapi.HostAPI, path string) (bool, error)) operation {
	return operation{name, path, func(host fsapi.HostAPI) (string, error) {
		answer, err := ask(host, path)
		return fmt.Sprint(answer), err
	}}
}

func changes(name, path string, change func(host fsapi.HostAPI, path string) error) operation {
	return operation{name, path, func(host fsapi.HostAPI) (string, error) { return "", change(host, path) }}
}

func measure(host fsapi.HostAPI, path string) (bool, error) {
	total, available, err := host.(fsapi.Extended).PathStats(path)
	return err == nil && 0 < available && available < total, err
}

func rmdir(host fsapi.HostAPI, path string) error      { return host.Rmdir(path, false) }
func forceRmdir(host fsapi.HostAPI, path string) error { return host.Rmdir(path, true) }
func linkAside(host fsapi.HostAPI, path string) error  { return host.CreateSymlink(aside, path) }

func setRecord(host fsapi.HostAPI, path string) error {
	return host.(fsapi.Extended).SetRecord(path, `{}`)
}

var operations = []operation{
	asks("PathExists of a directory", work+`\dir`, fsapi.HostAPI.PathExists),
	asks("PathValid of a link", work+`\link`, fsapi.HostAPI.PathValid),
	asks("PathStats of a mounted folder", work+`\mount`, measure),
	asks("IsSymlink of a link", work+`\link`, fsapi.HostAPI.IsSymlink),
	asks("IsSymlink of a mounted folder", work+`\mount`, fsapi.HostAPI.IsSymlink),
	changes("Mkdir", work+`\new`, fsapi.HostAPI.Mkdir),
	changes("Mkdir with missing parents", work+`\a\b\c`, fsapi.HostAPI.Mkdir),
	changes("Mkdir of what exists", work+`\dir`, fsapi.HostAPI.Mkdir),
	changes("CreateSymlink", work+`\new`, linkAside),
	changes("CreateSymlink of what exists", work+`\link`, linkAside),
	changes("Rmdir of an empty directory", work+`\dir`, rmdir),
	changes("Rmdir of a link", work+`\link`, rmdir),
	changes("Rmdir of a mounted folder", work+`\mount`, rmdir),
	changes("Rmdir of nothing", work+`\nothing`, rmdir),
	changes("Rmdir of a file with force", work+`\file`, forceRmdir),
	changes("Rmdir of a tree with force", work+`\tree`, forceRmdir),
	changes("RmdirContents of a tree", work+`\tree`, fsapi.HostAPI.RmdirContents),
	changes("SetRecord", work+`\plugins\x`, setRecord),
}

// faultCodes are the ways a call fails in the sweep: denied, held open, gone, its parent
// gone, the device not ready, the device broken, the link corrupt.
var faultCodes = []uint32{5, 32, 2, 3, 21, 1117, 4392}

// TestFaults fails each call of each operation in turn, and checks that nothing outside is
// touched, that the error names the object and the code, and that the operation can simply
// be repeated. How each ends is in testdata/faults.txt:
//
//	done      as without the fault
//	false     the answer was no instead of yes
//	nothing   it reported success and did nothing, or not all: Windows said that there is
//	          nothing to do
//	a kind    it failed so
func TestFaults(t *testing.T) {
	const golden = "testdata/faults.txt"
	var table strings.Builder
	for _, op := range operations {
		fmt.Fprintln(&table, op.name)
		rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
		fmt.Fprint(rows, "  call\t")
		for _, code := range faultCodes {
			fmt.Fprintf(rows, "%d\t", code)
		}
		fmt.Fprintln(rows, "cancelled")
		t.Run(op.name, func(t *testing.T) {
			clean := observe(t, op)
			for n, call := range clean.calls {
				fmt.Fprintf(rows, "  %d %s\t", n+1, call)
				for _, code := range faultCodes {
					fmt.Fprintf(rows, "%s\t", clean.withFault(t, n+1, code))
				}
				fmt.Fprintln(rows, clean.cancelledAt(t, n+1))
			}
		})
		require.NoError(t, rows.Flush())
		fmt.Fprintln(&table)
	}
	got := strings.TrimSpace(table.String()) + "\n"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Errorf("%s differs (-want +got); run the test with -update to accept it:\n%s", golden, diff)
	}
}

// observed is an operation with what it does when all goes well.
type observed struct {
	operation
	calls   []string // the seam's calls it makes, in order
	answer  string
	work    string // the state of C:\work afterwards
	outside string
}

func observe(t *testing.T, op operation) observed {
	t.Helper()
	node := newNode(t)
	result := observed{operation: op, outside: outside(node)}
	before := map[string]int{}
	_, err := node.Inject(winsim.Fault{Do: func(node *winsim.Node) {
		for call, count := range node.Calls() {
			if count > before[call] {
				before[call] = count
				result.calls = append(result.calls, call)
			}
		}
	}})
	require.NoError(t, err)
	if result.answer, err = op.run(bind(t.Context(), node)); err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	result.work = node.Tree(work)
	if got := outside(node); got != result.outside {
		t.Errorf("it reached outside:\n%s", cmp.Diff(result.outside, got))
	}
	return result
}

// withFault runs the operation with its n-th call failing and returns how it ended.
func (o observed) withFault(t *testing.T, n int, code uint32) (outcome string) {
	t.Helper()
	node := newNode(t)
	fault, err := node.Inject(winsim.Fault{Nth: n, Times: 1, Error: code})
	require.NoError(t, err)
	answer, err := o.run(bind(t.Context(), node))
	if fault.Hits() != 1 {
		t.Errorf("call %d, code %d: %d hits, want 1", n, code, fault.Hits())
	}
	where := fmt.Sprintf("call %d with code %d", n, code)
	switch {
	case err != nil:
		o.checkError(t, where, err)
		if got := uint32(winerr.CodeOf(err)); got != code {
			t.Errorf("%s: the error carries the code %d: %v", where, got, err)
		}
		outcome = winerr.KindOf(err).String()
	case answer != o.answer:
		outcome = answer
	case node.Tree(work) != o.work:
		// The machine said that it does not exist; nothing else excuses this.
		if code != 2 && code != 3 {
			t.Errorf("%s: it reports success, but:\n%s", where, cmp.Diff(o.work, node.Tree(work)))
		}
		outcome = "nothing"
	default:
		outcome = "done"
	}
	o.checkRetry(t, where, node)
	return outcome
}

// cancelledAt runs the operation for a caller who leaves during its n-th call.
func (o observed) cancelledAt(t *testing.T, n int) (outcome string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		fault, err := node.Inject(winsim.Fault{Nth: n, Times: 1, Delay: time.Hour, Do: func(*winsim.Node) { cancel() }})
		require.NoError(t, err)
		answer, err := o.run(bind(ctx, node))
		fault.Remove() // so that Windows carries the call out
		synctest.Wait()
		where := fmt.Sprintf("cancelled during call %d", n)
		switch {
		case err != nil:
			o.checkError(t, where, err)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want an error that is %q", where, err, context.Canceled)
			}
			outcome = winerr.KindOf(err).String()
		case answer != o.answer || node.Tree(work) != o.work:
			t.Errorf("%s: it reports success with the answer %q, but:\n%s", where, answer, cmp.Diff(o.work, node.Tree(work)))
		default:
			outcome = "done"
		}
		o.checkRetry(t, where, node)
	})
	return outcome
}

// checkError looks for what every error must have: the operation, an object, one line.
func (o observed) checkError(t *testing.T, where string, err error) {
	t.Helper()
	var known *winerr.Error
	if !errors.As(err, &known) || known.Op == "" || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v is not one of our errors", where, err)
		return
	}
	if !strings.HasPrefix(known.Object, o.object) && !strings.HasPrefix(o.object, known.Object+`\`) {
		t.Errorf("%s: the error does not name %s: %v", where, o.object, err)
	}
}

// checkRetry repeats the operation without the fault.
func (o observed) checkRetry(t *testing.T, where string, node *winsim.Node) {
	t.Helper()
	if got := outside(node); got != o.outside {
		t.Errorf("%s: it reached outside:\n%s", where, cmp.Diff(o.outside, got))
	}
	answer, err := o.run(bind(t.Context(), node))
	if err != nil || answer != o.answer || node.Tree(work) != o.work {
		t.Errorf("%s: repeated it gives %q, %v and\n%s", where, answer, err, cmp.Diff(o.work, node.Tree(work)))
	}
	if got := outside(node); got != o.outside {
		t.Errorf("%s: repeated it reached outside:\n%s", where, cmp.Diff(o.outside, got))
	}
	if open := node.OpenDirectories(); open != 0 {
		t.Errorf("%s: %d directories stay open", where, open)
	}
}
