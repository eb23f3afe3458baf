// Package daemon has what csi-proxy and csi-proxy-sim share: their flags, and the assembly of
// hosts, groups, policy and endpoints.
package daemon

import (
	"context"
	"errors"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Hosts are the host sides of all groups on one machine.
type Hosts struct {
	Disk       diskapi.HostAPI
	Filesystem fsapi.HostAPI
	ISCSI      iscsiapi.HostAPI
	SMB        smbapi.HostAPI
	System     systemapi.HostAPI
	Volume     volumeapi.HostAPI
	// Node returns the whole machine, for the inspector.
	Node func(...node.Option) (*node.Node, error)
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
		Node:       node.New,
	}
}

// HostsOn are the hosts of an emulated machine, for a daemon that starts: they know nothing of those before them.
func HostsOn(m win.Machine, ofVolumes ...volumeapi.Option) Hosts {
	return Hosts{
		Disk: diskapi.NewOn(m), Filesystem: fsapi.NewOn(m), ISCSI: iscsiapi.NewOn(m),
		SMB: smbapi.NewOn(m), System: systemapi.NewOn(m), Volume: volumeapi.NewOn(m, ofVolumes...),
		Node: func(options ...node.Option) (*node.Node, error) { return node.NewOn(m, options...) },
	}
}

// Services builds the groups on their hosts, limited as the configuration says, and the
// inspector if the endpoints allow one. The node knows which links were removed, see NoteUnlinked.
func Services(cfg Config, endpoints []grpcapi.Endpoint) (grpcapi.Services, *node.Node, error) {
	hosts, workingDirs := cfg.Hosts, cfg.WorkingDirs
	inFiles, inShares, inVolumes := filesystem.WorkingDirs, smb.WorkingDirs, volume.WorkingDirs
	if cfg.UnsafeWorkingDirs {
		inFiles, inShares, inVolumes = filesystem.UnsafeWorkingDirs, smb.UnsafeWorkingDirs, volume.UnsafeWorkingDirs
	}
	var shares *smb.SMB
	linksGone := func(ctx context.Context, path string) { shares.LinksGone(ctx, path) }
	whole, err := hosts.Node(nodeDirs(cfg), node.VolumeHost(hosts.Volume), node.SMBHost(hosts.SMB), node.OnRemove(linksGone))
	if err != nil {
		return grpcapi.Services{}, nil, err
	}
	files, err := filesystem.New(hosts.Filesystem, inFiles(workingDirs...), filesystem.OnRemove(linksGone), filesystem.OnUnlink(whole.NoteUnlinked))
	if err != nil {
		return grpcapi.Services{}, nil, err
	}
	disks, diskErr := disk.New(hosts.Disk)
	targets, iscsiErr := iscsi.New(hosts.ISCSI)
	shares, smbErr := smb.New(hosts.SMB, files, inShares(workingDirs...), smb.RequirePrivacy(!cfg.NoPrivacy), smb.RefuseOtherUser(cfg.RefuseOtherUser))
	machine, systemErr := system.New(hosts.System, system.AllowedServices(cfg.AllowedServices...))
	volumes, volumeErr := volume.New(hosts.Volume, inVolumes(workingDirs...), volume.AcceptDiskNumbers(), volume.FormatDefaults(cfg.Format))
	inspector, inspectorErr := inspectorFor(cfg, endpoints)
	return grpcapi.Services{
		Inspector:  inspector,
		Healer:     healerFor(cfg, endpoints, whole),
		Disk:       disks,
		Filesystem: files,
		ISCSI:      targets,
		SMB:        shares,
		System:     machine,
		Volume:     volumes,
	}, whole, errors.Join(diskErr, iscsiErr, smbErr, systemErr, volumeErr, inspectorErr)
}

func nodeDirs(cfg Config) node.Option {
	if cfg.UnsafeWorkingDirs {
		return node.UnsafeWorkingDirs(cfg.WorkingDirs...)
	}
	return node.WorkingDirs(cfg.WorkingDirs...)
}

// inspectorFor returns nil if the endpoints do not allow an inspector.
func inspectorFor(cfg Config, endpoints []grpcapi.Endpoint) (grpcapi.Inspector, error) {
	described, links, shares, sessions := grpcapi.Describes(endpoints)
	if !described {
		return nil, nil
	}
	var options []node.Option
	if links {
		options = append(options, nodeDirs(cfg))
	}
	if shares {
		options = append(options, node.SMBHost(cfg.Hosts.SMB))
	}
	inspector, err := cfg.Hosts.Node(options...)
	if err != nil {
		return nil, err
	}
	var hidden []node.Part
	if !shares {
		hidden = append(hidden, node.Shares, node.ShareAnswers)
	}
	if !sessions {
		hidden = append(hidden, node.Sessions)
	}
	if len(hidden) > 0 {
		return limited{inspector, hidden}, nil
	}
	return inspector, nil
}

// healerFor returns nil if no endpoint serves requests about stale mounts.
func healerFor(cfg Config, endpoints []grpcapi.Endpoint, machine *node.Node) grpcapi.Healer {
	serves := func(e grpcapi.Endpoint) bool { return e.Group == grpcapi.HealGroup }
	switch {
	case !slices.ContainsFunc(endpoints, serves):
		return nil
	case cfg.Heal == HealOff:
		return healOff{}
	default:
		return &healer{Node: machine, observer: cfg.StaleMounts}
	}
}

// limited is an inspector on endpoints that do not serve all groups.
type limited struct {
	grpcapi.Inspector
	hidden []node.Part
}

// Describe leaves out what the endpoints do not serve.
func (i limited) Describe(ctx context.Context, parts ...node.Part) (*node.Description, error) {
	parts = slices.DeleteFunc(parts, func(part node.Part) bool { return slices.Contains(i.hidden, part) })
	return i.Inspector.Describe(ctx, parts...)
}

// SessionsOf fails unless the group iscsi is served.
func (i limited) SessionsOf(ctx context.Context, targets []string, disks ...uint32) ([]node.Session, error) {
	if slices.Contains(i.hidden, node.Sessions) {
		return nil, winerr.New(winerr.Unsupported, "describe sessions", "", "the daemon does not serve the group iscsi")
	}
	return i.Inspector.SessionsOf(ctx, targets, disks...)
}
