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

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
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
	*settings
	disks, vols, files, shares, targets, system pipe
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
	d := &Daemon{
		settings: s, disks: s.pipe("disk"), vols: s.pipe("volume"), files: s.pipe("filesystem"),
		shares: s.pipe("smb"), targets: s.pipe("iscsi"), system: s.pipe("system"),
	}
	err := d.files.Connect(ctx)
	switch {
	case err != nil && s.wait:
		var conn *grpc.ClientConn
		if conn, err = s.open(ctx, "filesystem", "v1", client.WithWait()); err == nil {
			_ = conn.Close()
			err = d.files.Connect(ctx)
		}
	case err != nil && ctx.Err() != nil:
		err = ctx.Err()
	}
	return d, classed(err)
}

// Disk returns the group disk.
func (d *Daemon) Disk() disk.Extended { return disks{d, diskv1.NewDiskClient(d.disks)} }

// Volume returns the group volume.
func (d *Daemon) Volume() volume.Extended { return volumes{d, volumev2alpha1.NewVolumeClient(d.vols)} }

// Filesystem returns the group filesystem. Its PathValid is not supported: no version of the API has it.
func (d *Daemon) Filesystem() filesystem.Extended {
	return files{d, filesystemv2alpha1.NewFilesystemClient(d.files)}
}

// SMB returns the group smb.
func (d *Daemon) SMB() smb.Interface { return shares{d, smbv1.NewSmbClient(d.shares)} }

// ISCSI returns the group iscsi.
func (d *Daemon) ISCSI() iscsi.Interface { return targets{d, iscsiv1alpha2.NewIscsiClient(d.targets)} }

// System returns the group system.
func (d *Daemon) System() system.Interface {
	return services{d, systemv1alpha1.NewSystemClient(d.system)}
}

// Node returns the node as a whole. It finds disks by the keys that the published API lists if the daemon, or the
// container, has no inspector.
func (d *Daemon) Node() nodeapi.Interface { return machine{d} }

// Close ends the connections. Afterwards every call fails with an error that matches fs.ErrClosed.
func (d *Daemon) Close() error {
	return errors.Join(d.disks.Close(), d.vols.Close(), d.files.Close(), d.shares.Close(), d.targets.Close(), d.system.Close())
}
