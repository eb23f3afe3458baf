// Package require ends a test that cannot go on.
package require

import "testing"

// NoError ends the test if err is an error. What was done can be said before it.
func NoError(t testing.TB, err error, what ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(append(what, err)...)
	}
}
