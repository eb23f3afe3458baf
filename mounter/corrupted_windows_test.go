package mounter_test

import (
	"os"
	"syscall"
	"testing"

	"k8s.io/mount-utils"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestCorruptedMount: what k8s.io/mount-utils takes for a corrupted mount, IsSymlink and PathValid answer
// with no, so that drivers clean up. Only on Windows it has its codes.
func TestCorruptedMount(t *testing.T) {
	const path = `C:\var\lib\kubelet\link`
	known := 0
	for code := range uint32(12000) {
		if !mount.IsCorruptedMnt(&os.PathError{Err: syscall.Errno(code)}) {
			continue
		}
		known++
		node, err := winsim.New(winsim.Default())
		if err != nil {
			t.Fatal(err)
		}
		if err := node.Symlink(path, `\\files\data`); err != nil {
			t.Fatal(err)
		}
		for _, call := range []string{"TargetInfo", "FileInfo"} {
			if _, err := node.Inject(winsim.Fault{Call: call, Error: code}); err != nil {
				t.Fatal(err)
			}
		}
		for name, ask := range map[string]func(string) (bool, error){"IsSymlink": node.Filesystem().IsSymlink, "PathValid": node.Filesystem().PathValid} {
			if got, err := ask(path); err != nil || got {
				t.Errorf("%s with %d: %v, %v, want no error and false", name, code, got, err)
			}
		}
	}
	if known == 0 {
		t.Error("mount-utils knows no code")
	}
}
