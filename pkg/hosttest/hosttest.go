// Package hosttest is the conformance suite: what every CSI Proxy node must do, as
// tests that run over any implementation of a group's Interface.
//
// The same cases run over the emulated node of pkg/winsim, directly and through every
// version of the gRPC API, and over a real Windows machine. A difference between two
// of them is a bug in one. A driver that brings its own implementation can run them
// too:
//
//	func TestFilesystem(t *testing.T) {
//		hosttest.Filesystem(t, func(t *testing.T) hosttest.FilesystemNode { ... })
//	}
package hosttest

import (
	"errors"
	"testing"
)

// twice runs a mutating call two times: callers retry, so a repeated call that finds
// its work done must succeed.
func twice(t *testing.T, what string, call func() error) {
	t.Helper()
	for _, attempt := range []string{"first", "repeated"} {
		if err := call(); err != nil {
			t.Fatalf("%s, %s call: %v", what, attempt, err)
		}
	}
}

// wantError checks that err is of a kind, named by an error of the standard library.
func wantError(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got error %v, want one that is %q", what, err, kind)
	}
}
