package winsim_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func inject(t *testing.T, node *winsim.Node, fault winsim.Fault) *winsim.Injection {
	t.Helper()
	injection, err := node.Inject(fault)
	mustAll(t, err)
	return injection
}

// bare reports whether err is want itself: the seam wraps nothing.
func bare(err, want error) bool { return err == want } //nolint:errorlint // that is the point

// checkFault injects a fault once, and wants the call to fail with its code and to be counted.
func checkFault(t *testing.T, node *winsim.Node, call string, code winerr.Code, run func() error) {
	t.Helper()
	node.ResetCalls()
	injection := inject(t, node, winsim.Fault{Call: call, Error: uint32(code), Times: 1})
	if err := run(); !bare(err, code) || injection.Hits() != 1 {
		t.Errorf("%s: %v and %d hits, want the bare code %d once", call, err, injection.Hits(), code)
	}
	if diff := cmp.Diff(map[string]int{call: 1}, node.Calls()); diff != "" {
		t.Errorf("%s counted as (-want +got):\n%s", call, diff)
	}
}

// open opens a directory until the end of the test.
func open(t *testing.T, node *winsim.Node, path string) win.Directory {
	t.Helper()
	dir, err := node.OpenDirectory(t.Context(), win.Following(path))
	mustAll(t, err)
	t.Cleanup(dir.Close)
	return dir
}

// look makes count calls to FileInfo and returns what each answered: 0 or a code.
func look(t *testing.T, node *winsim.Node, path string, count int) []winerr.Code {
	t.Helper()
	var codes []winerr.Code
	for range count {
		_, err := node.FileInfo(t.Context(), win.Anywhere(path))
		if err != nil && winerr.CodeOf(err) == 0 {
			t.Fatalf("FileInfo(%s): %v, want a bare code", path, err)
		}
		codes = append(codes, winerr.CodeOf(err))
	}
	return codes
}

func countOf(codes []winerr.Code, code winerr.Code) (n int) {
	for _, c := range codes {
		if c == code {
			n++
		}
	}
	return n
}

func TestFault_ByCallAndObject(t *testing.T) {
	const path = `C:\var\lib\kubelet\pods`
	for _, c := range []struct {
		call, object string
		want         bool
	}{
		{"", "", true},
		{"FileInfo", "", true},
		{"TargetInfo", "", false},
		{"", path, true},
		{"", path + `\x`, false},
		{"", `C:\var\lib\kubelet`, false},
		{"", `C:\var\*`, true},
		{"", `C:*lib*pods`, true},
		{"", `C:\var\lib\kubelet\pods*s`, false}, // the s is used up
		{"", `*lib*lib*`, false},
		{"", `D:*`, false},
		{"", `C:\var\?ib\*`, false}, // only * is special
	} {
		node := newNode(t, winsim.Default())
		injection := inject(t, node, winsim.Fault{Call: c.call, Object: c.object, Error: 21})
		want := []winerr.Code{0}
		if c.want {
			want = []winerr.Code{21}
		}
		if got := look(t, node, path, 1); !slices.Equal(got, want) || (injection.Hits() == 1) != c.want {
			t.Errorf("call %q, object %q: answered %d with %d hits, want %d", c.call, c.object, got, injection.Hits(), want)
		}
	}
}

// TestFault_ChanceIsReproducible: the same seed gives the same faults, with about the right
// frequency.
func TestFault_ChanceIsReproducible(t *testing.T) {
	run := func(seed uint64) []winerr.Code {
		model := winsim.Default()
		model.Seed = seed
		node := newNode(t, model)
		inject(t, node, winsim.Fault{Chance: 0.25, Error: 21})
		return look(t, node, `C:\`, 1000)
	}
	first := run(1)
	if !slices.Equal(first, run(1)) {
		t.Error("two runs with the same seed differ")
	}
	if slices.Equal(first, run(2)) {
		t.Error("two runs with different seeds are the same")
	}
	if hits := countOf(first, 21); hits < 200 || hits > 300 {
		t.Errorf("%d of 1000 calls failed, want about 250", hits)
	}
}

func TestInject_Refuses(t *testing.T) {
	node := newNode(t, winsim.Default())
	for _, c := range []struct {
		fault winsim.Fault
		field string
	}{
		{winsim.Fault{Call: "Fileinfo", Error: 5}, "call"},
		{winsim.Fault{Call: "Sleep", Error: 5}, "call"},
		{winsim.Fault{Chance: -0.1, Error: 5}, "chance"},
		{winsim.Fault{Chance: 1.1, Error: 5}, "chance"},
		{winsim.Fault{Chance: math.NaN(), Error: 5}, "chance"},
		{winsim.Fault{}, "error"},
		{winsim.Fault{Call: "FileInfo", Nth: 2, Times: 1}, "error"},
	} {
		_, err := node.Inject(c.fault)
		var problem *winsim.ModelError
		if !errors.As(err, &problem) || problem.Field != c.field {
			t.Errorf("Inject(%+v): %v, want an error about %q", c.fault, err, c.field)
		}
	}
	if _, err := node.Inject(winsim.Fault{Call: "Fileinfo", Error: 5}); err == nil || !strings.Contains(err.Error(), "CreateDirectory, CreateDirectoryLink, ") {
		t.Errorf("%v does not list the calls there are", err)
	}
	if got, want := look(t, node, `C:\`, 1), []winerr.Code{0}; !slices.Equal(got, want) {
		t.Errorf("a refused fault hit: %d", got)
	}
}

// callMethod makes a call of the seam with arguments that mean nothing: it fails before they matter.
func callMethod(t *testing.T, on any, name string) error {
	t.Helper()
	method := reflect.ValueOf(on).MethodByName(name)
	arguments := []reflect.Value{reflect.ValueOf(t.Context())}
	for i := 1; i < method.Type().NumIn(); i++ {
		arguments = append(arguments, reflect.Zero(method.Type().In(i)))
	}
	results := method.Call(arguments)
	err, _ := reflect.TypeAssert[error](results[len(results)-1])
	return err
}

// TestFault_EveryCall: each of the seam's calls can be failed, fails with the bare code, is counted once, and
// does nothing then.
func TestFault_EveryCall(t *testing.T) {
	node := newNode(t, storageModel())
	root, before := open(t, node, `C:\`), node.Describe()
	for on, parts := range map[any][]reflect.Type{
		node: {reflect.TypeFor[win.Files](), reflect.TypeFor[win.Disks](), reflect.TypeFor[win.Volumes](), reflect.TypeFor[win.ISCSI](), reflect.TypeFor[win.SMB](), reflect.TypeFor[win.System]()},
		root: {reflect.TypeFor[win.Directory]()},
	} {
		for _, part := range parts {
			for i := range part.NumMethod() {
				method := part.Method(i)
				call := method.Name
				switch call {
				case "Close", "String": // not calls
					continue
				case "Open":
					call = "OpenDirectory"
				}
				checkFault(t, node, call, winerr.IODevice, func() error { return callMethod(t, on, method.Name) })
			}
		}
	}
	if diff := cmp.Diff(before, node.Describe()); diff != "" {
		t.Errorf("calls changed the node although they failed:\n%s", diff)
	}
}

func TestListDirectory_Batches(t *testing.T) {
	node := newNode(t, winsim.Default())
	for i := range 600 {
		mustAll(t, node.Mkdir(fmt.Sprintf(`C:\many\%d`, i)))
	}
	var batches []int
	seen := map[string]bool{}
	note := func(entries []win.DirEntry) {
		batches = append(batches, len(entries))
		for _, entry := range entries {
			seen[entry.Name] = true
		}
	}
	root := open(t, node, `C:\`)
	mustAll(t, win.List(t.Context(), root, "many", func(_ win.Tree, entries []win.DirEntry) error { note(entries); return nil }))
	if len(seen) != 600 || len(batches) < 2 {
		t.Errorf("%d names in batches of %d, want 600 in more than one", len(seen), batches)
	}
	if calls := node.Calls()["ListDirectory"]; calls != 1 {
		t.Errorf("%d calls for one listing", calls)
	}
	// The volume can fail between two batches, the caller can leave, and the listener can stop.
	batches = nil
	if err := win.List(t.Context(), root, "many", func(_ win.Tree, entries []win.DirEntry) error {
		note(entries)
		return node.FailDisk(0)
	}); !bare(err, winerr.IODevice) || len(batches) != 1 {
		t.Errorf("with a failing batch: %v after %d batches, want code 1117 after one", err, len(batches))
	}
	mustAll(t, node.HealDisk(0))
	ctx, leave := context.WithCancel(t.Context())
	if err := win.List(ctx, root, "many", func(win.Tree, []win.DirEntry) error { leave(); return nil }); !bare(err, context.Canceled) {
		t.Errorf("a caller that leaves: %v", err)
	}
	stop := errors.New("enough")
	if err := win.List(t.Context(), root, "many", func(win.Tree, []win.DirEntry) error { return stop }); !bare(err, stop) {
		t.Errorf("a listener that stops: %v, want its own error", err)
	}
}
