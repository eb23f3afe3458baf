package local_test

import (
	"context"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
)

// The tests of this package that run on any Windows machine are in test/windows.

func BenchmarkRemove(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	dir, err := local.Machine().OpenDirectory(ctx, win.Following(b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := dir.CreateDirectory(ctx, "x"); err != nil {
			b.Fatal(err)
		}
		if err := dir.Remove(ctx, "x"); err != nil {
			b.Fatal(err)
		}
	}
}
