//go:build !windows

package thismachine

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify"
)

var errNotWindows = fmt.Errorf("this is not Windows; only -list works here: %w", errors.ErrUnsupported)

// Machine is this machine during a run. It exists on Windows only.
type Machine struct {
	Site      *verify.Site
	Recording string
}

// Check fails.
func Check(Config) error { return errNotWindows }

// Open fails.
func Open(context.Context, Config, func(string)) (*Machine, error) { return nil, errNotWindows }

// Clean fails.
func Clean(context.Context, string, func(string)) error { return errNotWindows }

// Keep does nothing.
func (*Machine) Keep() error { return nil }

// AnnounceZip does nothing.
func (*Machine) AnnounceZip(string) error { return nil }

// KeepZip does nothing.
func (*Machine) KeepZip(string) error { return nil }

// Close does nothing.
func (*Machine) Close(context.Context) error { return nil }

// Serve fails.
func Serve([]string) error { return errNotWindows }

func detachAll(string) error { return nil }

func proceed(string) error { return nil }

func deleteService(string) error { return nil }
