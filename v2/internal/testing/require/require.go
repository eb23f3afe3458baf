// Package require ends a test that cannot go on.
package require

import (
	"os"
	"testing"
)

// NoError ends the test if err is an error. What was done can be said before it.
func NoError(t testing.TB, err error, what ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(append(what, err)...)
	}
}

// File fails the test if the file has another content, or writes it with update.
func File(t testing.TB, name, want string, update bool) {
	t.Helper()
	got, err := os.ReadFile(name)
	switch {
	case err == nil && string(got) == want:
	case update:
		NoError(t, os.WriteFile(name, []byte(want), 0o644))
	default:
		t.Errorf("%s is out of date; run this test with -update (%v)", name, err)
	}
}

// Link makes a symbolic link. The test is skipped where this account cannot, or where Wine shows what it leads to.
func Link(t testing.TB, target, path string) {
	t.Helper()
	err := os.Symlink(target, path)
	if info, infoErr := os.Lstat(path); err != nil || infoErr != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Skip("this system makes no symbolic links:", err)
	}
}
