//go:build !windows

package smb

import (
	"context"

	"k8s.io/kubernetes/pkg/volume"
	mount "k8s.io/mount-utils"
)

func withContext(_ context.Context, m *mount.SafeFormatAndMount) *mount.SafeFormatAndMount { return m }

func getMetrics(_ context.Context, _ *mount.SafeFormatAndMount, path string) (*volume.Metrics, error) {
	return volume.NewMetricsStatFS(path).GetMetrics()
}
