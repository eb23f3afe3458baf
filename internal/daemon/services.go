// Package daemon has what csi-proxy and csi-proxy-sim share: their flags, and the assembly of
// hosts, groups, policy and endpoints.
package daemon

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/inspect"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Hosts are the host sides of all groups on one machine, and its inspector.
type Hosts struct {
	Disk       diskapi.HostAPI
	Filesystem fsapi.HostAPI
	ISCSI      iscsiapi.HostAPI
	SMB        smbapi.HostAPI
	System     systemapi.HostAPI
	Volume     volumeapi.HostAPI
	Inspector  inspect.Inspector
}

// LocalHosts are the hosts of the machine we run on.
func LocalHosts() Hosts {
	return Hosts{
		Disk:       diskapi.New(),
		Filesystem: fsapi.New(),
		ISCSI:      iscsiapi.New(),
		SMB:        smbapi.New(),
		System:     systemapi.New(),
		Volume:     volumeapi.New(),
		Inspector:  inspect.New(),
	}
}

// Services builds the groups on their hosts, limited as the configuration says, and the
// inspector if the endpoints allow one.
func Services(cfg Config, endpoints []grpcapi.Endpoint) (grpcapi.Services, error) {
	hosts, workingDirs := cfg.Hosts, cfg.WorkingDirs
	var shares *smb.SMB
	files, err := filesystem.New(hosts.Filesystem, filesystem.WorkingDirs(workingDirs...),
		filesystem.OnRemove(func(ctx context.Context, path string) { shares.LinksGone(ctx, path) }))
	if err != nil {
		return grpcapi.Services{}, err
	}
	disks, diskErr := disk.New(hosts.Disk)
	targets, iscsiErr := iscsi.New(hosts.ISCSI)
	shares, smbErr := smb.New(hosts.SMB, files, smb.WorkingDirs(workingDirs...), smb.RequirePrivacy(!cfg.NoPrivacy))
	machine, systemErr := system.New(hosts.System, system.AllowedServices(cfg.AllowedServices...))
	volumes, volumeErr := volume.New(hosts.Volume, volume.WorkingDirs(workingDirs...), volume.AcceptDiskNumbers(), volume.FormatDefaults(cfg.Format))
	inspector, inspectorErr := inspectorFor(cfg, endpoints)
	return grpcapi.Services{
		Inspector:  inspector,
		Disk:       disks,
		Filesystem: files,
		ISCSI:      targets,
		SMB:        shares,
		System:     machine,
		Volume:     volumes,
	}, errors.Join(diskErr, iscsiErr, smbErr, systemErr, volumeErr, inspectorErr)
}

// inspectorFor returns nil if the endpoints do not allow an inspector.
func inspectorFor(cfg Config, endpoints []grpcapi.Endpoint) (grpcapi.Inspector, error) {
	node, links := grpcapi.Describes(endpoints)
	switch {
	case !node:
		return nil, nil
	case !links:
		return cfg.Hosts.Inspector, nil
	}
	limits, err := policy.New(cfg.WorkingDirs)
	return cfg.Hosts.Inspector.Searching(limits), err
}
