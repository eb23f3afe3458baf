package groups_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kubernetes-csi/csi-proxy/client/groups"
)

// TestConn_Versions: a connection tries the versions that have the same messages until one is served, keeps it, and takes
// the newest for a method that no other has.
func TestConn_Versions(t *testing.T) {
	var tried []string
	served := map[string]bool{"v1beta3": true, "v2alpha1": false}
	conn := groups.New("volume", func(_ context.Context, version string) (*grpc.ClientConn, error) {
		tried = append(tried, version)
		if !served[version] {
			return nil, fmt.Errorf("%s: %w", version, fs.ErrNotExist)
		}
		return grpc.NewClient("passthrough:///none", grpc.WithTransportCredentials(insecure.NewCredentials()))
	})
	for _, want := range [][]string{{"v1", "v2alpha1", "v1beta3"}, nil} {
		if tried = nil; conn.Connect(t.Context()) != nil || !slices.Equal(tried, want) {
			t.Errorf("tried %q, want %q", tried, want)
		}
	}
	tried = nil
	err := conn.Invoke(t.Context(), "/v2alpha1.Volume/GetClosestVolumeIDFromTargetPath", nil, nil)
	if !errors.Is(err, fs.ErrNotExist) || !slices.Equal(tried, []string{"v2alpha1"}) {
		t.Errorf("tried %q, got %v", tried, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := conn.Connect(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestConn_Refused: a version that exists and refuses is the answer; an older one is not asked.
func TestConn_Refused(t *testing.T) {
	tried := 0
	conn := groups.New("disk", func(context.Context, string) (*grpc.ClientConn, error) {
		tried++
		return nil, fs.ErrPermission
	})
	if err := conn.Connect(t.Context()); !errors.Is(err, fs.ErrPermission) || tried != 1 {
		t.Errorf("tried %d, got %v", tried, err)
	}
}
