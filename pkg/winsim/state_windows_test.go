package winsim_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// hold opens a file as programs do that do not share the right to delete it. It returns how to close it.
func hold(t *testing.T, path string, disposition uint32) func() {
	t.Helper()
	name, err := syscall.UTF16PtrFromString(path)
	mustAll(t, err)
	const share = syscall.FILE_SHARE_READ | syscall.FILE_SHARE_WRITE
	handle, err := syscall.CreateFile(name, syscall.GENERIC_READ, share, nil, disposition, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	mustAll(t, err)
	return func() {
		if err := syscall.CloseHandle(handle); err != nil {
			t.Error(err)
		}
	}
}

// openState is a new node with a state file, and the errors that it reports.
func openState(t *testing.T, readers time.Duration) (node *winsim.Node, path string, failures chan error) {
	t.Helper()
	path, failures = filepath.Join(t.TempDir(), "node.json"), make(chan error, 1)
	node, closeFile, err := winsim.OpenWithin(winsim.Default(), path, func(err error) { failures <- err }, readers)
	mustAll(t, err)
	t.Cleanup(closeFile)
	return node, path, failures
}

// TestOpen_Held: a change waits until another program closes the file, and no longer than the limit.
func TestOpen_Held(t *testing.T) {
	t.Run("for a moment", func(t *testing.T) {
		node, path, failures := openState(t, time.Hour)
		release := hold(t, path, syscall.OPEN_EXISTING)
		made := make(chan error, 1)
		go func() { made <- node.Mkdir(`C:\new`) }()
		// The new content exists once the change waits for its rename.
		for next := ""; !strings.Contains(next, `"new"`); {
			select {
			case err := <-made:
				t.Fatalf("the change did not wait for the other program: %v", err)
			default:
			}
			content, _ := os.ReadFile(path + ".new") // in the end; at first it does not exist
			next = string(content)
		}
		release()
		if err := <-made; err != nil || len(failures) > 0 {
			t.Errorf("%v, and %d failures to save", err, len(failures))
		}
		if !strings.Contains(readState(t, path), `"new"`) {
			t.Error("the change is not in the file")
		}
	})
	t.Run("too long", func(t *testing.T) {
		node, path, failures := openState(t, 20*time.Millisecond)
		defer hold(t, path, syscall.OPEN_EXISTING)()
		if err := node.Mkdir(`C:\new`); err != nil {
			t.Error(err)
		}
		if err := <-failures; !strings.Contains(err.Error(), "another program has had the file open for 20ms") {
			t.Error(err)
		}
	})
}

// TestOpen_NoRights: only the file itself is waited for. Windows has the same codes for a folder in which the
// user may create nothing.
func TestOpen_NoRights(t *testing.T) {
	node, path, failures := openState(t, 100*time.Hour)
	defer hold(t, path+".new", syscall.CREATE_NEW)()
	if err := node.Mkdir(`C:\new`); err != nil {
		t.Error(err)
	}
	if err := <-failures; !strings.Contains(err.Error(), "node.json.new") {
		t.Error(err)
	}
}
