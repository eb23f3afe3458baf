//go:build linux

// Package onrig lends the rig to tests of other modules: a Windows machine under Wine, with the disks of an
// emulated node.
package onrig

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/internal/rig"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

// Config says what a rig is to be.
type Config = rig.Config

// Rig is the machine.
type Rig = rig.Rig

// Start builds a rig and starts it in a prefix, in which there is none yet.
func Start(ctx context.Context, p *prefix.Prefix, config Config) (*Rig, error) {
	if err := rig.Build(ctx); err != nil {
		return nil, err
	}
	return rig.Start(ctx, p, config)
}
