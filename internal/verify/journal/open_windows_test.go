package journal

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

// TestOpen_Private: only the system and administrators may use the folder and the journal that a run makes. Wine
// turns the list into permissions of Unix and back.
func TestOpen_Private(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "verify")
	j, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, path := range []string{dir, filepath.Join(dir, FileName)} {
		descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
		if err != nil {
			t.Fatal(err)
		}
		for _, others := range []string{";WD)", ";AU)", ";BU)"} { // everyone, those who have logged in, users
			if list := descriptor.String(); strings.Contains(list, others) {
				t.Errorf("others than administrators may use %s: %s", path, list)
			}
		}
	}
}

// TestTrusted: an administrator, the system or the present user may have written a journal.
func TestTrusted(t *testing.T) {
	sid := func(text string) *windows.SID {
		s, err := windows.StringToSid(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	user := sid("S-1-5-21-1-2-3-1001")
	for text, want := range map[string]bool{
		"S-1-5-32-544": true, "S-1-5-18": true, "S-1-5-21-1-2-3-1001": true,
		"S-1-5-21-1-2-3-1002": false, "S-1-5-32-545": false, "S-1-1-0": false, "S-1-5-11": false,
	} {
		if got := trusted(sid(text), user); got != want {
			t.Errorf("%s is trusted: %t", text, got)
		}
	}
	if trusted(nil, user) {
		t.Error("a file without an owner is trusted")
	}
}
