//go:build !windows

package local

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

func (machine) FileInfo(context.Context, string) (win.FileInfo, error) {
	return win.FileInfo{}, ErrNotWindows
}

func (machine) TargetInfo(context.Context, string) (win.FileInfo, error) {
	return win.FileInfo{}, ErrNotWindows
}

func (machine) ReparsePoint(context.Context, string) (win.ReparsePoint, error) {
	return win.ReparsePoint{}, ErrNotWindows
}

func (machine) ListDirectory(context.Context, string, func(win.Tree, []win.DirEntry) error) error {
	return ErrNotWindows
}

func (machine) CreateDirectory(context.Context, string) error { return ErrNotWindows }

func (machine) CreateDirectoryLink(context.Context, string, string) error { return ErrNotWindows }

func (machine) Remove(context.Context, string) error { return ErrNotWindows }

func (machine) DeleteMountPoint(context.Context, string) error { return ErrNotWindows }
