package node_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// everywhere is a machine on which one volume is mounted at thousands of folders.
type everywhere struct{ *winsim.Node }

func (m everywhere) VolumePaths(ctx context.Context, id win.VolumeID) ([]string, error) {
	paths, err := m.Node.VolumePaths(ctx, id)
	if id != data {
		return paths, err
	}
	for i := range 10_000 {
		paths = append(paths, fmt.Sprintf(`C:\%s%d\`, strings.Repeat("x", 200), i))
	}
	for range 1000 { // until not even a drive fits
		paths = append(paths, `C:\y\`)
	}
	return append(paths, `Z:\`), err
}

// TestVolumes_MountPaths: they fit into the answer, drives come first, and a problem of that
// volume, and of no other, says what is left out.
func TestVolumes_MountPaths(t *testing.T) {
	got := describe(t, newOn(t, everywhere{newNode(t, zoo())}))
	for _, v := range got.Volumes {
		bytes := 0
		for _, path := range v.MountPaths {
			bytes += len(path)
		}
		if v.ID != data {
			if len(v.Problems) != 0 {
				t.Errorf("%s: %q", v.ID, v.Problems)
			}
			continue
		}
		want := []string{fmt.Sprintf("mount paths: only %d of 11001 are listed, because the answer would be too long", len(v.MountPaths))}
		if bytes > 1<<20 || bytes < 1<<19 || !slices.Contains(v.MountPaths, `Z:\`) || !slices.Equal(v.Problems, want) {
			t.Errorf("%d paths with %d bytes, problems %q", len(v.MountPaths), bytes, v.Problems)
		}
	}
}
