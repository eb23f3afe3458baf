package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/sweep"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/winpathtest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// swap exchanges what stands at a path for a link.
func swap(t testing.TB, at string, link func(n *winsim.Node, at string) error) func(*winsim.Node) {
	t.Helper()
	return func(n *winsim.Node) { check(t, n.RemoveAll(at), link(n, at)) }
}

// turn empties a directory and makes it a junction in place, so that its open handles are those of the
// junction. Files cannot become one, and missing directories neither.
func turn(t testing.TB, at string, answer uint32) func(*winsim.Node) {
	t.Helper()
	return func(n *winsim.Node) {
		for line := range strings.Lines(n.Tree(at)) {
			if child, _, _ := strings.Cut(strings.TrimPrefix(line, at+`\`), `\`); strings.HasPrefix(line, at+`\`) {
				name, _, _ := strings.Cut(strings.TrimSpace(child), " ")
				check(t, n.RemoveAll(at+`\`+name))
			}
		}
		if err := n.TurnIntoJunction(at, mirror(`C:\Windows`, at), answer); err != nil && !errors.Is(err, winerr.NotFound) && winerr.CodeOf(err) != winerr.Directory {
			t.Errorf("turn %s into a junction: %v", at, err)
		}
	}
}

// turnAnswers are what Windows answers to opens relative to a directory that became a junction. After 0 they
// succeed in the directory itself.
var turnAnswers = []winerr.Code{0, winerr.FileNotFound, winerr.InvalidName, winerr.BadPathname, winerr.CantResolveFilename}

// swaps are what an attacker puts in the place of a directory.
var swaps = map[string]func(n *winsim.Node, at string) error{
	"symlink":       func(n *winsim.Node, at string) error { return n.Symlink(at, mirror(`C:\Windows`, at)) },
	"junction":      func(n *winsim.Node, at string) error { return n.Junction(at, mirror(`C:\Windows`, at)) },
	"mount":         func(n *winsim.Node, at string) error { return n.MountFolder(at, dataVolume) },
	"symlink to \\": func(n *winsim.Node, at string) error { return n.Symlink(at, `\Windows`) },
	"inner symlink": func(n *winsim.Node, at string) error { return n.Symlink(at, work+`\elsewhere`) },
	"file":          func(n *winsim.Node, at string) error { return n.WriteFile(at, "") },
	"nothing":       func(*winsim.Node, string) error { return nil },
}

// mirror is the place in another directory that corresponds to one in the working directory.
func mirror(dir, at string) string {
	for _, name := range winpath.Components(at)[len(winpath.Components(work)):] {
		dir = winpath.Join(dir, name)
	}
	return dir
}

// TestSwaps_EachCall exchanges each directory on the way to a path for each kind of link before each
// of the calls that an operation makes to Windows: nothing outside is ever touched. Whether
// the operation then succeeds depends on who came first.
func TestSwaps_EachCall(t *testing.T) {
	tried, try := 0, sweep.OneIn(t, 8)
	for _, call := range names(pathCalls) {
		for _, path := range []string{work + `\a\b\c`, work + `\a\b\empty`, work + `\a\b\new\deep`, work + `\a\mounted`} {
			for n := 1; ; n++ {
				counted := newWorld(t)
				fault, err := counted.node.Inject(winsim.Fault{Nth: n, Do: func(*winsim.Node) {}})
				check(t, err, counted.node.MountFolder(work+`\a\mounted`, dataVolume))
				_ = counted.run(call, path)
				if fault.Hits() == 0 {
					break
				}
				for _, at := range []string{work + `\a`, work + `\a\b`, path} {
					for _, kind := range names(swaps) {
						if tried++; !try() {
							continue
						}
						w := newWorld(t)
						check(t, w.node.MountFolder(work+`\a\mounted`, dataVolume), w.node.Mkdir(work+`\elsewhere\b\c`))
						before := w.outside()
						_, err := w.node.Inject(winsim.Fault{Nth: n, Times: 1, Do: swap(t, at, swaps[kind])})
						check(t, err)
						err = w.run(call, path)
						if got := w.outside(); got != before {
							t.Errorf("%s of %s with a %s at %s before call %d: %v, and outside this changed:\n%s", call, path, kind, at, n, err, cmp.Diff(before, got))
						}
					}
					for i := range 2 { // each answer in turn; all would take too long
						if tried++; !try() {
							continue
						}
						w := newWorld(t)
						check(t, w.node.MountFolder(work+`\a\mounted`, dataVolume))
						before, answer := w.outside(), turnAnswers[(n+i*2)%len(turnAnswers)]
						_, err := w.node.Inject(winsim.Fault{Nth: n, Times: 1, Do: turn(t, at, uint32(answer))})
						check(t, err)
						err = w.run(call, path)
						if got := w.outside(); got != before {
							t.Errorf("%s of %s with %s turned into a junction (answer %d) before call %d: %v, and outside this changed:\n%s", call, path, at, answer, n, err, cmp.Diff(before, got))
						}
					}
				}
			}
		}
	}
	if tried < 1000 {
		t.Errorf("there are only %d exchanges to try", tried)
	}
}

// TestSwaps_ThereAndBack exchanges a directory for a link and back again, so that code that
// looks twice sees the directory both times.
func TestSwaps_ThereAndBack(t *testing.T) {
	const dir = work + `\a\b`
	back := func(n *winsim.Node) {
		check(t, n.RemoveAll(dir), n.WriteFile(dir+`\c\file`, "data"), n.Mkdir(dir+`\empty`))
	}
	for _, call := range names(pathCalls) {
		for n := 1; n <= 8; n++ {
			for _, kind := range []string{"symlink", "junction"} {
				w := newWorld(t)
				before := w.outside()
				_, err := w.node.Inject(winsim.Fault{Nth: n, Times: 1, Do: swap(t, dir, swaps[kind])})
				_, err2 := w.node.Inject(winsim.Fault{Nth: n + 1, Times: 1, Do: back})
				check(t, err, err2)
				err = w.run(call, dir+`\c`)
				if got := w.outside(); got != before {
					t.Errorf("%s with a %s from call %d to the next: %v, and outside this changed:\n%s", call, kind, n, err, cmp.Diff(before, got))
				}
			}
		}
	}
}

// FuzzReach lets an attacker prepare the working directory, choose a call and a path, and
// exchange something for a link at any moment. The path is one of those that lead through
// the links, or any at all. Whatever happens: what is touched lies in
// the working directory or, if it is only looked at, on the data volume. Each byte of the
// script is one choice.
func FuzzReach(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0}, "")
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, work+`\link\..\..\x`)
	f.Add([]byte("link swap link swap"), work+`\a::$INDEX_ALLOCATION`)
	for _, c := range winpathtest.Corpus() {
		f.Add([]byte{0, 0, 0, 0, 0, 0, 5, 255}, c.Path)
	}
	paths := []string{
		work, work + `\a`, work + `\a\b`, work + `\a\b\c`, work + `\link`, work + `\link\a`, work + `\link\new`, work + `\mounted`,
		work + `\mounted\a`, work + `\mounted\out\a`, work + `\mounted\back`, work + `\mounted\up\Windows`, work + `\second`, work + `\second\link\a`,
		work + `\a\link\b`, work + `\new\deep`, work + `\A\B`, `C:\Windows`, `C:\var\lib\kubelet-evil\a`, `D:\x`, `C:\`,
	}
	targets := []string{
		`C:\Windows`, `C:\`, `C:\var\lib`, work, work + `\a`, work + `\link`, work + `\second`, work + `\mounted`, work + `\mounted\out`, `..`, `..\..`,
		`.`, `a`, `a\..\..\..\..\Windows`, `\Windows`, `\\server\share`, `\\?\C:\Windows`, `link`, `second\link`, dataVolume, dataVolume + `out`,
		`C:\Windows\mounted`, `c:\VAR\lib\KUBELET\A`, `\\?\GLOBALROOT\Device\x`, `mounted\up`, work + `-evil`,
	}
	calls := names(pathCalls)
	f.Fuzz(func(t *testing.T, script []byte, raw string) {
		next := func(n int) int {
			if len(script) == 0 {
				return 0
			}
			choice := int(script[0])
			script = script[1:]
			return choice % n
		}
		link := func() (string, func(*winsim.Node)) {
			at, target, kind := paths[1+next(16)], targets[next(len(targets))], next(4)
			return fmt.Sprintf("link %d at %s to %s", kind, at, target), func(n *winsim.Node) {
				if kind == 3 {
					_ = n.TurnIntoJunction(at, target, uint32(turnAnswers[len(target)%len(turnAnswers)]))
					return
				}
				_ = n.RemoveAll(at)
				switch kind {
				case 0:
					_ = n.Symlink(at, target)
				case 1:
					_ = n.Junction(at, target)
				case 2:
					_ = n.MountFolder(at, dataVolume)
				}
			}
		}
		w := newWorld(t)
		var story []string
		for range next(4) {
			text, do := link()
			story = append(story, text)
			do(w.node)
		}
		for range 1 + next(3) {
			before := w.outside()
			text, do := link()
			nth := 1 + next(12)
			injection, err := w.node.Inject(winsim.Fault{Nth: nth, Times: 1, Do: do})
			check(t, err)
			call, path := calls[next(len(calls))], paths[next(len(paths))]
			if next(2) == 1 {
				path = raw
			}
			err = w.run(call, path)
			injection.Remove()
			story = append(story, fmt.Sprintf("%s of %s with %s before call %d: %v", call, path, text, nth, err))
			after := w.outside()
			if injection.Hits() == 0 && after != before || t.Failed() {
				t.Fatalf("%v:\n%s", errors.New(fmt.Sprint(story)), cmp.Diff(before, after))
			}
		}
	})
}
