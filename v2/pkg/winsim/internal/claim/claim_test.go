package claim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/internal/claim"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	first, err := claim.New(path)
	must(t, err)
	must(t, first.Root.WriteFile("file", []byte("x"), 0o600))
	must(t, first.Root.Mkdir(filepath.Join(claim.Mark, "own"), 0o700))

	if _, err := claim.New(path); err == nil || !strings.Contains(err.Error(), "another csi-proxy-sim") {
		t.Errorf("claimed twice: %v", err)
	}
	if _, err := first.Root.Stat("file"); err != nil {
		t.Errorf("the second claim removed something: %v", err)
	}

	first.Close()
	second, err := claim.New(path)
	must(t, err)
	defer second.Close()
	for _, name := range []string{"file", filepath.Join(claim.Mark, "own")} {
		if _, err := second.Root.Lstat(name); !os.IsNotExist(err) {
			t.Errorf("%s was left: %v", name, err)
		}
	}
}

// TestNew_Refuses: what is not ours is left alone.
func TestNew_Refuses(t *testing.T) {
	for name, arrange := range map[string]func(dir string) error{
		"a file":           func(dir string) error { return os.WriteFile(filepath.Join(dir, "thesis"), nil, 0o600) },
		"a directory":      func(dir string) error { return os.Mkdir(filepath.Join(dir, "photos"), 0o700) },
		"a mark of a file": func(dir string) error { return os.WriteFile(filepath.Join(dir, claim.Mark), nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, arrange(dir))
			if _, err := claim.New(dir); err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("accepted, or without its name: %v", err)
			}
			if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
				t.Errorf("there are now %v, %v", names, err)
			}
		})
	}
}
