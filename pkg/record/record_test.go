package record_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/record"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// TestStart: hosts that are made after Start are recorded, and only those. Before and after, Machine is the
// machine itself, without a wrapper.
func TestStart(t *testing.T) {
	itself := fmt.Sprintf("%T", local.Machine())
	if !strings.HasPrefix(itself, "local.") {
		t.Fatalf("without a recording the machine is a %s", itself)
	}
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	before := volumeapi.New()
	stop, err := record.Start(t.Context(), record.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if now := fmt.Sprintf("%T", local.Machine()); now == itself {
		t.Error("the machine is not recorded")
	}
	const id = `\\?\Volume{0c51a9e0-0000-0000-0000-100000000000}\`
	_, _ = before.IsVolumeFormatted(id)
	_, _ = volumeapi.New().IsVolumeFormatted(id) // whatever this system answers
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if now := fmt.Sprintf("%T", local.Machine()); now != itself {
		t.Errorf("after the recording the machine is a %s", now)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.Index(string(text), `"method":"FileSystem"`)
	if first < 0 || !strings.Contains(string(text), `"seq":1,"method":"FileSystem"`) {
		t.Errorf("FileSystem is not the first call:\n%s", text)
	}
	// A second host asks the same, and so a machine that answers twice as often has recorded both.
	if runtime.GOOS != "windows" && strings.Contains(string(text)[first+1:], `"method":"FileSystem"`) {
		t.Errorf("a host that was made before is recorded, too:\n%s", text)
	}
}

func TestStart_Failed(t *testing.T) {
	for _, path := range []string{"", t.TempDir()} {
		if _, err := record.Start(t.Context(), record.Config{Path: path}); err == nil {
			t.Errorf("%q was opened", path)
		}
	}
	if now := fmt.Sprintf("%T", local.Machine()); !strings.HasPrefix(now, "local.") {
		t.Errorf("after a failure the machine is a %s", now)
	}
}
