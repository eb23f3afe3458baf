// Package api is the host side of the filesystem group: what pkg/filesystem needs
// from a machine (HostAPI), and our implementation of it.
//
// New returns the machine we run on. Elsewhere than on Windows its methods fail
// with an error that matches errors.ErrUnsupported; tests use the emulated node of
// pkg/winsim instead, and drivers may pass a HostAPI of their own.
//
// Paths must be absolute and clean: pkg/filesystem checks them before it calls. Only
// PathValid also takes network paths.
// All hosts made here are safe for concurrent use.
package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
)

// HostAPI is what the filesystem group does on a machine. Every method may be
// called again with the same arguments.
type HostAPI interface {
	// PathExists reports whether anything has this name, a dangling link included.
	PathExists(path string) (bool, error)
	// PathValid reports whether path, which may be a network path, leads to
	// something that can be opened.
	PathValid(path string) (bool, error)
	// Mkdir makes the directory and every missing parent.
	Mkdir(path string) error
	// Rmdir removes an empty directory, a link or a mounted folder; with force
	// also a file, or a directory with everything in it. It never removes what
	// lies behind a link or a mounted folder. A missing path is a success.
	Rmdir(path string, force bool) error
	// RmdirContents empties a directory and keeps it. It refuses a link or a
	// mounted folder.
	RmdirContents(path string) error
	// CreateSymlink makes newname a directory link to oldname. The same link
	// again is a success; anything else there is an error.
	CreateSymlink(oldname string, newname string) error
	// IsSymlink reports whether path is a link or mounted folder whose target
	// exists. It is an error if path itself does not exist.
	IsSymlink(path string) (bool, error)
}

// New returns the host of the machine we run on.
func New() HostAPI { return NewOn(local.Machine()) }

// NewOn returns the host of a given machine. Outside this module the only
// machines to be had are emulated ones: NewOn(node) with a *winsim.Node.
func NewOn(m win.Machine) HostAPI {
	var unlimited *policy.Policy
	return host{m: m, files: unlimited.Reach(m), ctx: context.Background()} //nolint:forbidigo // the published HostAPI has no context; WithContext replaces this one
}
