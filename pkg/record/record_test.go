package record_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	if _, err := volumeapi.New().IsVolumeFormatted(id); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Logf("on this system the answer is %v", err)
	}
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
	if lines := strings.Count(string(text), `"method":"FileSystem"`); lines != 1 {
		t.Errorf("FileSystem is recorded %d times:\n%s", lines, text)
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
