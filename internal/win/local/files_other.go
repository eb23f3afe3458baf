//go:build !windows

package local

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

func (machine) FileInfo(context.Context, win.Path) (win.FileInfo, error) {
	return win.FileInfo{}, ErrNotWindows
}

func (machine) TargetInfo(context.Context, win.Path) (win.FileInfo, error) {
	return win.FileInfo{}, ErrNotWindows
}

func (machine) PathSpace(context.Context, win.Path) (win.Space, error) {
	return win.Space{}, ErrNotWindows
}

func (machine) ReparsePoint(context.Context, win.Path) (win.ReparsePoint, error) {
	return win.ReparsePoint{}, ErrNotWindows
}

func (machine) CreateDirectory(context.Context, win.Path) error { return ErrNotWindows }

func (machine) OpenDirectory(context.Context, win.Path) (win.Directory, error) {
	return nil, ErrNotWindows
}

func (machine) Location(context.Context, win.Path) (string, error) { return "", ErrNotWindows }
