// Package iscsi is the library's view of the iSCSI initiator of a Windows node:
// register portals, discover the targets behind them, log in and out, and find
// the disks a login brought.
//
// It neither partitions nor mounts these disks: packages disk and volume do. It
// does not start the initiator's service either; package system can.
//
// Start with New and the host of this machine:
//
//	initiator, err := iscsi.New(iscsiapi.New())
//
// On systems other than Windows that host fails with errors.ErrUnsupported; a host of your own works everywhere.
//
// An ISCSI is safe for concurrent use if its host is; the host of this machine
// is. There is one initiator per node: portals and the mutual CHAP secret are
// shared with every other driver.
package iscsi

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hostctx"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
)

// Interface is what a driver can ask of the initiator. Errors match those of the
// standard library: fs.ErrNotExist for a target that is not there,
// fs.ErrInvalid for a wrong request, and so on.
type Interface interface {
	// AddTargetPortal registers a portal, for good, and asks it for its targets.
	// Windows chooses the initiator instance and the network interface.
	AddTargetPortal(context.Context, *AddTargetPortalRequest) (*AddTargetPortalResponse, error)

	// ConnectTarget logs in to a target that was discovered. A target with a
	// session is a success. The session does not outlive a restart of the node.
	ConnectTarget(context.Context, *ConnectTargetRequest) (*ConnectTargetResponse, error)

	// DisconnectTarget logs out of all sessions of a target, and makes Windows
	// forget logins that it would repeat.
	DisconnectTarget(context.Context, *DisconnectTargetRequest) (*DisconnectTargetResponse, error)

	// DiscoverTargetPortal asks a registered portal which targets it offers.
	DiscoverTargetPortal(context.Context, *DiscoverTargetPortalRequest) (*DiscoverTargetPortalResponse, error)

	// GetTargetDisks returns the disks of a target that is logged in, when Windows
	// has set them up.
	GetTargetDisks(context.Context, *GetTargetDisksRequest) (*GetTargetDisksResponse, error)

	// ListTargetPortals returns the registered portals.
	ListTargetPortals(context.Context, *ListTargetPortalsRequest) (*ListTargetPortalsResponse, error)

	// RemoveTargetPortal removes the registration of a portal.
	RemoveTargetPortal(context.Context, *RemoveTargetPortalRequest) (*RemoveTargetPortalResponse, error)

	// SetMutualChapSecret sets the secret by which targets prove themselves to
	// this node. It holds for the whole node, other drivers included.
	SetMutualChapSecret(context.Context, *SetMutualChapSecretRequest) (*SetMutualChapSecretResponse, error)
}

var _ Interface = (*ISCSI)(nil)

// ISCSI implements Interface over a host.
type ISCSI struct {
	host iscsiapi.HostAPI
}

// New returns an ISCSI that works on the given host, which must not be nil.
func New(hostAPI iscsiapi.HostAPI) (*ISCSI, error) {
	if hostAPI == nil {
		return nil, winerr.New(winerr.Invalid, "open iSCSI library", "", "the host API is nil")
	}
	return &ISCSI{host: hostAPI}, nil
}

// AddTargetPortal implements Interface.
func (ic *ISCSI) AddTargetPortal(ctx context.Context, request *AddTargetPortalRequest) (*AddTargetPortalResponse, error) {
	const op = "add target portal"
	return hostctx.Do(ctx, op, ic.host, request, func(h iscsiapi.HostAPI, _ *AddTargetPortalResponse) error {
		portal, err := toHost(op, request.TargetPortal)
		if err != nil {
			return err
		}
		return winerr.Wrap(op, address(portal), h.AddTargetPortal(portal))
	})
}

// ConnectTarget implements Interface.
func (ic *ISCSI) ConnectTarget(ctx context.Context, request *ConnectTargetRequest) (*ConnectTargetResponse, error) {
	const op = "connect target"
	return hostctx.Do(ctx, op, ic.host, request, func(h iscsiapi.HostAPI, _ *ConnectTargetResponse) error {
		portal, err := toHostWithIQN(op, request.TargetPortal, request.IQN)
		if err != nil {
			return err
		}
		authType, err := AuthTypeToString(request.AuthType)
		if err != nil {
			return err
		}
		user, secret, err := credentials(op, request)
		if err != nil {
			return err
		}
		return winerr.Wrap(op, request.IQN, h.ConnectTarget(portal, request.IQN, authType, user, secret))
	})
}

// DisconnectTarget implements Interface.
func (ic *ISCSI) DisconnectTarget(ctx context.Context, request *DisconnectTargetRequest) (*DisconnectTargetResponse, error) {
	const op = "disconnect target"
	return hostctx.Do(ctx, op, ic.host, request, func(h iscsiapi.HostAPI, _ *DisconnectTargetResponse) error {
		portal, err := toHostWithIQN(op, request.TargetPortal, request.IQN)
		if err != nil {
			return err
		}
		return winerr.Wrap(op, request.IQN, h.DisconnectTarget(portal, request.IQN))
	})
}

// DiscoverTargetPortal implements Interface.
func (ic *ISCSI) DiscoverTargetPortal(ctx context.Context, request *DiscoverTargetPortalRequest) (*DiscoverTargetPortalResponse, error) {
	const op = "discover target portal"
	return hostctx.Do(ctx, op, ic.host, request, func(h iscsiapi.HostAPI, out *DiscoverTargetPortalResponse) (err error) {
		portal, err := toHost(op, request.TargetPortal)
		if err != nil {
			return err
		}
		out.IQNs, err = h.DiscoverTargetPortal(portal)
		return winerr.Wrap(op, address(portal), err)
	})
}

// GetTargetDisks implements Interface.
func (ic *ISCSI) GetTargetDisks(ctx context.Context, request *GetTargetDisksRequest) (*GetTargetDisksResponse, error) {
	const op = "get disks of target"
	return hostctx.Do(ctx, op, ic.host, request, func(h iscsiapi.HostAPI, out *GetTargetDisksResponse) (err error) {
		portal, err := toHostWithIQN(op, request.TargetPortal, request.IQN)
		if err != nil {
			return err
		}
		out.DiskIDs, err = h.GetTargetDisks(portal, request.IQN)
		return winerr.Wrap(op, request.IQN, err)
	})
}

// ListTargetPortals implements Interface.
func (ic *ISCSI) ListTargetPortals(ctx context.Context, request *ListTargetPortalsRequest) (*ListTargetPortalsResponse, error) {
	const op = "list target portals"
	return hostctx.Do(ctx, op, ic.host, request, func(h iscsiapi.HostAPI, out *ListTargetPortalsResponse) error {
		found, err := h.ListTargetPortals()
		if err != nil {
			return winerr.Wrap(op, "", err)
		}
		out.TargetPortals = make([]*TargetPortal, len(found))
		for i, portal := range found {
			out.TargetPortals[i] = &TargetPortal{TargetAddress: portal.Address, TargetPort: portal.Port}
		}
		return nil
	})
}

// RemoveTargetPortal implements Interface.
func (ic *ISCSI) RemoveTargetPortal(ctx context.Context, request *RemoveTargetPortalRequest) (*RemoveTargetPortalResponse, error) {
	const op = "remove target portal"
	return hostctx.Do(ctx, op, ic.host, request, func(h iscsiapi.HostAPI, _ *RemoveTargetPortalResponse) error {
		portal, err := toHost(op, request.TargetPortal)
		if err != nil {
			return err
		}
		return winerr.Wrap(op, address(portal), h.RemoveTargetPortal(portal))
	})
}

// SetMutualChapSecret implements Interface.
func (ic *ISCSI) SetMutualChapSecret(ctx context.Context, request *SetMutualChapSecretRequest) (*SetMutualChapSecretResponse, error) {
	const op = "set mutual CHAP secret"
	return hostctx.Do(ctx, op, ic.host, request, func(h iscsiapi.HostAPI, _ *SetMutualChapSecretResponse) error {
		if err := checkSecret(op, "", request.MutualChapSecret); err != nil {
			return err
		}
		return winerr.Wrap(op, "", h.SetMutualChapSecret(request.MutualChapSecret))
	})
}
