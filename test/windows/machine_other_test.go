//go:build !windows

package windows_test

import (
	"context"
	"errors"
	"os"
	"testing"
)

var errNotWindows = errors.New("this is not Windows; only the emulated node can be asked here: leave -emulator=false out")

func (options) open(context.Context) (func() error, error) { return nil, errNotWindows }
func (options) sweep(context.Context) (*journal, error)    { return nil, errNotWindows }
func runService(*testing.M, []string) bool                 { return false }
func mkdir(dir string) error                               { return os.Mkdir(dir, 0o700) }
func openAlone(path string) (*os.File, error)              { return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) }
