package winsim_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

func TestFault_NthAndTimes(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault winsim.Fault
		want  []winerr.Code
	}{
		{"always", winsim.Fault{Error: 5}, []winerr.Code{5, 5, 5, 5, 5}},
		{"the first two", winsim.Fault{Error: 5, Times: 2}, []winerr.Code{5, 5, 0, 0, 0}},
		{"from the third", winsim.Fault{Error: 5, Nth: 3}, []winerr.Code{0, 0, 5, 5, 5}},
		{"only the third", winsim.Fault{Error: 5, Nth: 3, Times: 1}, []winerr.Code{0, 0, 5, 0, 0}},
		{"a code without a name", winsim.Fault{Error: 4711, Times: 1}, []winerr.Code{4711, 0, 0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := newNode(t, winsim.Default())
			injection := inject(t, node, c.fault)
			got := look(t, node, `C:\`, len(c.want))
			if !slices.Equal(got, c.want) {
				t.Errorf("five calls answered %d, want %d", got, c.want)
			}
			want := len(c.want) - countOf(got, 0)
			if hits := injection.Hits(); hits != want {
				t.Errorf("Hits() = %d, want %d", hits, want)
			}
		})
	}
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
		{"", strings.ToUpper(path), true},
		{"FileInfo", path, true},
		{"Remove", path, false},
		{"", path + `\x`, false},
		{"", `C:\var\lib\kubelet`, false},
		{"", `C:\var\*`, true},
		{"", `C:\VAR\*`, true},
		{"", `*\pods`, true},
		{"", `*kubelet*`, true},
		{"", `C:*lib*pods`, true},
		{"", `C:\*\*\*\pods`, true},
		{"", `*`, true},
		{"", `**`, true},
		{"", `C:\var\lib\kubelet\pods*`, true},
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

// TestFault_ChanceCountsOnlyItsOwn: calls that do not match do not consume random numbers.
func TestFault_ChanceCountsOnlyItsOwn(t *testing.T) {
	run := func(others bool) []winerr.Code {
		node := newNode(t, winsim.Default())
		inject(t, node, winsim.Fault{Object: `C:\var`, Chance: 0.5, Error: 21})
		var codes []winerr.Code
		for range 50 {
			if others {
				look(t, node, `C:\Windows`, 1)
			}
			codes = append(codes, look(t, node, `C:\var`, 1)...)
		}
		return codes
	}
	if !slices.Equal(run(false), run(true)) {
		t.Error("calls on another object changed which calls fail")
	}
}

func TestFault_DelayEndsWithTheContext(t *testing.T) {
	node := newNode(t, winsim.Default())
	ctx, cancel := context.WithCancel(t.Context())
	injection := inject(t, node, winsim.Fault{Delay: time.Hour, Error: 5, Do: func(*winsim.Node) { cancel() }})
	inject(t, node, winsim.Fault{Do: func(*winsim.Node) { t.Error("a later fault ran for a caller who has left") }})
	if _, err := node.FileInfo(ctx, win.Anywhere(`C:\`)); !bare(err, context.Canceled) {
		t.Errorf("a call cancelled while it is delayed: %v, want %v", err, context.Canceled)
	}
	if hits := injection.Hits(); hits != 1 {
		t.Errorf("Hits() = %d, want 1", hits)
	}
}

func TestFault_DelayThenError(t *testing.T) {
	node := newNode(t, winsim.Default())
	inject(t, node, winsim.Fault{Delay: time.Nanosecond, Error: 21, Times: 1})
	if got, want := look(t, node, `C:\`, 2), []winerr.Code{21, 0}; !slices.Equal(got, want) {
		t.Errorf("answered %d, want %d", got, want)
	}
	inject(t, node, winsim.Fault{Delay: time.Nanosecond})
	if got, want := look(t, node, `C:\`, 1), []winerr.Code{0}; !slices.Equal(got, want) {
		t.Errorf("a mere delay answered %d, want %d", got, want)
	}
}

func TestFault_CancelledCallIsNotStruck(t *testing.T) {
	node := newNode(t, winsim.Default())
	injection := inject(t, node, winsim.Fault{Error: 5})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := node.FileInfo(ctx, win.Anywhere(`C:\`)); !errors.Is(err, context.Canceled) || injection.Hits() != 0 {
		t.Errorf("%v with %d hits, want %v and none", err, injection.Hits(), context.Canceled)
	}
}

// TestFault_DoChangesTheNodeBeforeTheCall: the call sees what the hook did, and the hook
// may use the node freely.
func TestFault_DoChangesTheNodeBeforeTheCall(t *testing.T) {
	node := newNode(t, winsim.Default())
	inject(t, node, winsim.Fault{Call: "FileInfo", Object: `C:\new`, Times: 1, Do: func(n *winsim.Node) {
		if n != node {
			t.Error("the hook got another node")
		}
		if err := n.Mkdir(`C:\new`); err != nil {
			t.Error(err)
		}
		if _, err := n.FileInfo(t.Context(), win.Anywhere(`C:\new`)); err != nil {
			t.Error(err)
		}
	}})
	if got, want := look(t, node, `C:\new`, 1), []winerr.Code{0}; !slices.Equal(got, want) {
		t.Errorf("answered %d, want %d", got, want)
	}
}

// TestFault_SeveralOnOneCall: all hooks run, the first error is the answer.
func TestFault_SeveralOnOneCall(t *testing.T) {
	node := newNode(t, winsim.Default())
	var ran []string
	note := func(name string) func(*winsim.Node) {
		return func(*winsim.Node) { ran = append(ran, name) }
	}
	injections := []*winsim.Injection{
		inject(t, node, winsim.Fault{Do: note("first")}),
		inject(t, node, winsim.Fault{Error: 21, Do: note("second")}),
		inject(t, node, winsim.Fault{Error: 5, Do: note("third")}),
	}
	if got, want := look(t, node, `C:\`, 1), []winerr.Code{21}; !slices.Equal(got, want) {
		t.Errorf("answered %d, want %d", got, want)
	}
	if diff := cmp.Diff([]string{"first", "second", "third"}, ran); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	for i, injection := range injections {
		if injection.Hits() != 1 {
			t.Errorf("fault %d has %d hits, want 1", i, injection.Hits())
		}
	}
}

func TestInjection_Remove(t *testing.T) {
	node := newNode(t, winsim.Default())
	first, second := inject(t, node, winsim.Fault{Error: 5}), inject(t, node, winsim.Fault{Error: 21})
	answers := look(t, node, `C:\`, 1)
	first.Remove()
	first.Remove()
	answers = append(answers, look(t, node, `C:\`, 1)...)
	second.Remove()
	answers = append(answers, look(t, node, `C:\`, 1)...)
	if want := []winerr.Code{5, 21, 0}; !slices.Equal(answers, want) {
		t.Errorf("answered %d, want %d", answers, want)
	}
	if first.Hits() != 1 || second.Hits() != 2 {
		t.Errorf("hits %d and %d, want 1 and 2", first.Hits(), second.Hits())
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
		{winsim.Fault{Nth: -1, Error: 5}, "nth"},
		{winsim.Fault{Times: -1, Error: 5}, "times"},
		{winsim.Fault{Chance: -0.1, Error: 5}, "chance"},
		{winsim.Fault{Chance: 1.1, Error: 5}, "chance"},
		{winsim.Fault{Chance: math.NaN(), Error: 5}, "chance"},
		{winsim.Fault{Delay: -1}, "delay"},
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
	root, before := open(t, node, `C:\`), modelOf(t, node)
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
	if diff := cmp.Diff(before, modelOf(t, node)); diff != "" {
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
	mustAll(t, root.ListDirectory(t.Context(), "many", func(_ win.Tree, entries []win.DirEntry) error { note(entries); return nil }))
	if len(seen) != 600 || len(batches) < 2 {
		t.Errorf("%d names in batches of %d, want 600 in more than one", len(seen), batches)
	}
	if calls := node.Calls()["ListDirectory"]; calls != 1 {
		t.Errorf("%d calls for one listing", calls)
	}
	// The volume can fail between two batches, the caller can leave, and the listener can stop.
	batches = nil
	if err := root.ListDirectory(t.Context(), "many", func(_ win.Tree, entries []win.DirEntry) error {
		note(entries)
		return node.FailDisk(0)
	}); !bare(err, winerr.IODevice) || len(batches) != 1 {
		t.Errorf("with a failing batch: %v after %d batches, want code 1117 after one", err, len(batches))
	}
	mustAll(t, node.HealDisk(0))
	ctx, leave := context.WithCancel(t.Context())
	if err := root.ListDirectory(ctx, "many", func(win.Tree, []win.DirEntry) error { leave(); return nil }); !bare(err, context.Canceled) {
		t.Errorf("a caller that leaves: %v", err)
	}
	stop := errors.New("enough")
	if err := root.ListDirectory(t.Context(), "many", func(win.Tree, []win.DirEntry) error { return stop }); !bare(err, stop) {
		t.Errorf("a listener that stops: %v, want its own error", err)
	}
}

func TestCalls_CountAndReset(t *testing.T) {
	node := newNode(t, winsim.Default())
	if calls := node.Calls(); len(calls) != 0 {
		t.Errorf("a new node was called already: %v", calls)
	}
	look(t, node, `C:\`, 2)
	look(t, node, `C:\missing`, 1)
	mustAll(t, open(t, node, `C:\`).CreateDirectory(t.Context(), "new"))
	// What a test does itself does not count.
	mustAll(t, errors.Join(node.Mkdir(`C:\x`), node.WriteFile(`C:\x\y`, ""), node.RemoveAll(`C:\x`), node.Sleep(t.Context(), time.Hour)))
	counts := node.Calls()
	if diff := cmp.Diff(map[string]int{"FileInfo": 3, "OpenDirectory": 1, "CreateDirectory": 1}, counts); diff != "" {
		t.Errorf("Calls() (-want +got):\n%s", diff)
	}
	counts["FileInfo"] = 100
	if got := node.Calls()["FileInfo"]; got != 3 {
		t.Errorf("a caller's change of the map reached the node: %d", got)
	}
	node.ResetCalls()
	if calls := node.Calls(); len(calls) != 0 {
		t.Errorf("after ResetCalls: %v", calls)
	}
}

// TestNode_ConcurrentUse runs goroutines on one tree while faults come and go. At the end the
// node must be consistent.
func TestNode_ConcurrentUse(t *testing.T) {
	node := newNode(t, withDataVolume())
	mustAll(t, node.MountFolder(`C:\mount`, dataVolume))
	const workers, rounds = 8, 50
	ctx, mount := t.Context(), open(t, node, `C:\mount`)
	var made atomic.Int64
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			name := string(rune('a' + worker))
			own := `C:\mount\` + name
			for round := range rounds {
				// Everybody wants the same name; it is made as often as removed.
				if mount.CreateDirectory(ctx, "shared") == nil {
					made.Add(1)
				}
				if mount.Remove(ctx, "shared") == nil {
					made.Add(-1)
				}
				if err := errors.Join(node.WriteFile(own+`\file`, own), node.Symlink(own+`\link`, `C:\mount`)); err != nil {
					t.Error(err)
				}
				_ = mount.ListDirectory(ctx, string(rune('a'+round%workers)), func(win.Tree, []win.DirEntry) error { return nil })
				_, _ = node.TargetInfo(ctx, win.Anywhere(own+`\link\shared`))
				_, _ = node.ReparsePoint(ctx, win.Anywhere(own+`\link`))
				_ = node.Tree(`C:\`)
				_ = node.Calls()
				injection, err := node.Inject(winsim.Fault{Call: "DeleteMountPoint", Error: 5, Chance: 0.5})
				if err != nil {
					t.Error(err)
					return
				}
				if dir, err := mount.Open(ctx, name); err == nil {
					_ = dir.DeleteMountPoint(ctx, "link")
					dir.Close()
				}
				_ = injection.Hits()
				injection.Remove()
				if release, err := node.Hold(own); err == nil {
					release()
				}
				if worker == 0 {
					_ = node.SetVolumeState(dataVolume, winsim.Healthy)
				}
				if content, err := node.ReadFile(own + `\file`); content != own {
					t.Errorf("%s\\file contains %q, %v", own, content, err)
				}
				if err := node.RemoveAll(own); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if exists := node.Exists(`C:\mount\shared`); exists != (made.Load() == 1) || made.Load() < 0 {
		t.Errorf("the shared directory exists: %v, but was made %d times more than removed", exists, made.Load())
	}
	if got := node.Calls()["CreateDirectory"]; got != workers*rounds {
		t.Errorf("%d calls counted, want %d", got, workers*rounds)
	}
}
