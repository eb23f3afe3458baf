// Package hosttest is the conformance suite of CSI Proxy: tests for any implementation of a
// group's Interface.
//
// This project runs them against the emulated node of v2/pkg/winsim, directly and through every
// version of the gRPC API, and against Wine and Windows. If two of them differ, one has a bug.
// A driver runs them against its own host like this:
//
//	func TestFilesystem(t *testing.T) {
//		hosttest.Filesystem(t, func(t *testing.T) hosttest.FilesystemNode {
//			fs, err := filesystem.New(myhost.New())
//			if err != nil {
//				t.Fatal(err)
//			}
//			return hosttest.FilesystemNode{
//				API:       fs,
//				Root:      `C:\hosttest`, // an existing directory for the suite
//				WriteFile: myhost.WriteFile,
//				ReadFile:  myhost.ReadFile,
//			}
//		})
//	}
//
// The suite skips cases for which the node lacks something.
package hosttest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

type testCase[Node any] struct {
	name string
	uses []string // methods and things that not every version or node has
	run  func(Node)
}

// runCases runs each case on a new node. newNode also returns the methods that the node lacks.
func runCases[Node any](t *testing.T, cases []testCase[Node], newNode func(*testing.T) (_ Node, lacks []string)) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n, lacks := newNode(t)
			for _, method := range c.uses {
				if slices.Contains(lacks, method) {
					t.Skipf("this version of the API, or this node, has no %s", method)
				}
			}
			c.run(n)
		})
	}
}

func errOf[Response any](_ *Response, err error) error { return err }

type runner struct{ t *testing.T }

func (r runner) ctx() context.Context { return r.t.Context() }

// need skips the case if the node does not have what it needs.
func (r runner) need(what string, have bool) {
	r.t.Helper()
	if !have {
		r.t.Skipf("this node has no %s", what)
	}
}

// atOnce makes the same call 16 times, all at the same time.
func (r runner) atOnce(what string, call func() error) {
	r.t.Helper()
	var calls []func() error
	for range 16 {
		calls = append(calls, call)
	}
	r.together(what, calls...)
}

// together makes calls at the same time. All must succeed.
func (r runner) together(what string, calls ...func() error) {
	r.t.Helper()
	var wg sync.WaitGroup
	for _, call := range calls {
		wg.Go(func() {
			if err := call(); err != nil {
				r.t.Errorf("%s: %v", what, err)
			}
		})
	}
	wg.Wait()
}

func (r runner) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// twice runs a mutating call two times: callers retry, so a repeated call must succeed.
func twice(t *testing.T, what string, call func() error) {
	t.Helper()
	for _, attempt := range []string{"first", "repeated"} {
		if err := call(); err != nil {
			t.Fatalf("%s, %s call: %v", what, attempt, err)
		}
	}
}

// wantError checks that err matches an error of the standard library.
func wantError(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got error %v, want one that is %q", what, err, kind)
	}
}
