// Package remote is the library over the pipes of the CSI Proxy daemon. It implements the interfaces of the groups, so a
// driver that is written for them changes one line to run in a container that is not a HostProcess container:
//
//	disks, err := disk.New(diskapi.New()) // in this process
//
//	daemon, err := remote.New(ctx)
//	disks := daemon.Disk() // through the daemon
//
// Errors have the classes of package failure that those of the library have. Responses are never nil.
//
// It works with every daemon that serves v1, also with the original one. What a daemon does not have is an error that
// matches errors.ErrUnsupported and names it.
//
// The package is v0, as package mounter.
package remote

import (
	"context"
	"errors"
	"net"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// Daemon is CSI Proxy on this node. It is safe for concurrent use. Close ends its connections.
type Daemon struct {
	disks, vols, files, shares, targets, system *pipe
	// Two methods are in no stable version.
	volsAlpha, filesAlpha *pipe
}

// Option changes how New connects.
type Option func(*settings)

type settings struct {
	path func(group, version string) string
	dial func(ctx context.Context, group, version string) (net.Conn, error)
	wait bool
}

// WithPipePaths uses other endpoints than those of client.PipePath. Path returns the pipe, or the Unix socket, of an API
// group in a version, such as "disk" and "v1".
func WithPipePaths(path func(group, version string) string) Option {
	return func(s *settings) { s.path = path }
}

// WithDialer connects with f, to a daemon in the same process. It is for tests.
func WithDialer(f func(ctx context.Context, group, version string) (net.Conn, error)) Option {
	return func(s *settings) { s.dial = f }
}

// WithWait makes New wait for the daemon until its context ends.
func WithWait() Option { return func(s *settings) { s.wait = true } }

// New returns the daemon. It fails if the daemon does not serve the group filesystem, which every driver needs. It connects
// to the other groups at their first use, so a driver needs only the pipes of the groups that it uses.
func New(ctx context.Context, options ...Option) (*Daemon, error) {
	s := &settings{}
	for _, option := range options {
		option(s)
	}
	// The versions of a line have the same messages. The first is the one that drivers mount into their containers.
	d := &Daemon{
		disks:      newPipe(s, "disk", "v1", "v1", "v1beta3"),
		vols:       newPipe(s, "volume", "v2alpha1", "v1", "v2alpha1", "v1beta3"),
		files:      newPipe(s, "filesystem", "v2alpha1", "v1", "v2alpha1", "v1beta2"),
		shares:     newPipe(s, "smb", "v1", "v1", "v1beta2"),
		targets:    newPipe(s, "iscsi", "v1alpha2", "v1alpha2", "v1alpha1"),
		system:     newPipe(s, "system", "v1alpha1", "v1alpha1"),
		volsAlpha:  newPipe(s, "volume", "v2alpha1", "v2alpha1"),
		filesAlpha: newPipe(s, "filesystem", "v2alpha1", "v2alpha1"),
	}
	_, err := d.files.connect(ctx, s.wait)
	return d, err
}

// Disk returns the group disk.
func (d *Daemon) Disk() disk.Extended { return disks{d} }

// Volume returns the group volume.
func (d *Daemon) Volume() volume.Extended { return volumes{d} }

// Filesystem returns the group filesystem. Its PathValid is not supported: no version of the API has it.
func (d *Daemon) Filesystem() filesystem.Extended { return files{d} }

// SMB returns the group smb.
func (d *Daemon) SMB() smb.Interface { return shares{d} }

// ISCSI returns the group iscsi.
func (d *Daemon) ISCSI() iscsi.Interface { return targets{d} }

// System returns the group system.
func (d *Daemon) System() system.Interface { return services{d} }

// Node returns the node as a whole. It finds disks by the keys that the published API lists if the daemon, or the
// container, has no inspector.
func (d *Daemon) Node() nodeapi.Interface { return machine{d} }

// Close ends the connections. Afterwards every call fails with an error that matches fs.ErrClosed.
func (d *Daemon) Close() error {
	var errs []error
	for _, p := range []*pipe{d.disks, d.vols, d.files, d.shares, d.targets, d.system, d.volsAlpha, d.filesAlpha} {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}
