//go:build unix

package soak

import (
	"context"
	"errors"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// process is a node as one process sees it, which can end. Work that has outlived its callers
// ends with its process, and must not go on beside the next one.
type process struct {
	*winsim.Node
	mu    sync.RWMutex // held for reading while the process changes something
	ended bool
}

var errEnded = errors.New("the process has ended")

// end returns when the process does nothing any more.
func (p *process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// act makes a change unless the process has ended.
func (p *process) act(change func() error) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.ended {
		return errEnded
	}
	return change()
}

// The methods below are those of the node that change it, or lead to such.

func (p *process) CreateDisk(ctx context.Context, d win.Device, id win.GUID) error {
	return p.act(func() error { return p.Node.CreateDisk(ctx, d, id) })
}

func (p *process) SetDriveLayout(ctx context.Context, d win.Device, layout win.DriveLayout) error {
	return p.act(func() error { return p.Node.SetDriveLayout(ctx, d, layout) })
}

func (p *process) SetDiskAttributes(ctx context.Context, d win.Device, attributes, mask win.DiskAttributes) error {
	return p.act(func() error { return p.Node.SetDiskAttributes(ctx, d, attributes, mask) })
}

func (p *process) GrowPartition(ctx context.Context, d win.Device, number uint32, bytes int64) error {
	return p.act(func() error { return p.Node.GrowPartition(ctx, d, number, bytes) })
}

func (p *process) ExtendVolume(ctx context.Context, id win.VolumeID, sectors int64) error {
	return p.act(func() error { return p.Node.ExtendVolume(ctx, id, sectors) })
}

func (p *process) Format(ctx context.Context, id win.VolumeID, options win.FormatOptions) error {
	return p.act(func() error { return p.Node.Format(ctx, id, options) })
}

func (p *process) SetVolumeLabel(ctx context.Context, id win.VolumeID, label string) error {
	return p.act(func() error { return p.Node.SetVolumeLabel(ctx, id, label) })
}

func (p *process) SetRootSecurity(ctx context.Context, id win.VolumeID, accessList string) error {
	return p.act(func() error { return p.Node.SetRootSecurity(ctx, id, accessList) })
}

func (p *process) FormatLegacy(ctx context.Context, id win.VolumeID, options win.FormatOptions) error {
	return p.act(func() error { return p.Node.FormatLegacy(ctx, id, options) })
}

func (p *process) CreateDirectory(ctx context.Context, path win.Path) error {
	return p.act(func() error { return p.Node.CreateDirectory(ctx, path) })
}

func (p *process) OpenDirectory(ctx context.Context, path win.Path) (dir win.Directory, err error) {
	err = p.act(func() error {
		dir, err = p.Node.OpenDirectory(ctx, path)
		return err
	})
	return dir, err
}

func (p *process) CreateSMBMapping(ctx context.Context, request win.SMBMappingRequest) error {
	return p.act(func() error { return p.Node.CreateSMBMapping(ctx, request) })
}

func (p *process) RemoveSMBMapping(ctx context.Context, remote string, force bool) error {
	return p.act(func() error { return p.Node.RemoveSMBMapping(ctx, remote, force) })
}

func (p *process) AddSendTargetPortal(ctx context.Context, portal win.TargetPortal) error {
	return p.act(func() error { return p.Node.AddSendTargetPortal(ctx, portal) })
}

func (p *process) Login(ctx context.Context, login win.Login) (id win.SessionID, err error) {
	err = p.act(func() error {
		id, err = p.Node.Login(ctx, login)
		return err
	})
	return id, err
}

func (p *process) Logout(ctx context.Context, id win.SessionID) error {
	return p.act(func() error { return p.Node.Logout(ctx, id) })
}
