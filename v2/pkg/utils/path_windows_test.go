package utils_test

import (
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/utils"
)

func TestIsPathValid(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]bool{dir: true, filepath.VolumeName(dir): true, filepath.Join(dir, "x"): false, "invalid-path": false} {
		if got, err := utils.IsPathValid(path); got != want || err != nil {
			t.Errorf("IsPathValid(%s) is %t, %v", path, got, err)
		}
	}
	if _, err := utils.IsPathValid(dir + "\x00"); err == nil {
		t.Error("a NUL byte is accepted")
	}
	if got, err := utils.IsMountedFolder(dir); got || err != nil {
		t.Errorf("a directory is a mounted folder: %t, %v", got, err)
	}
	if _, err := utils.IsMountedFolder(filepath.Join(dir, "x")); err == nil {
		t.Error("a missing path is not an error")
	}
}
