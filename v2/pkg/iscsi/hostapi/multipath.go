package api

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// mpioDriver is the driver of MPIO, which is a service for Windows.
const mpioDriver = "mpio"

// hasMPIO reports whether the driver of MPIO runs. Then all sessions allow for others, as
// "Enable multi-path" of Windows' own dialog does.
func (h *host) hasMPIO(ctx context.Context) bool {
	status, err := h.m.ServiceStatus(ctx, mpioDriver)
	return err == nil && status.State == win.ServiceRunning
}

// addsPath reports whether a login to a target with sessions is a new path to its disks: through a
// portal of the target without a session, while MPIO has claimed the disks. Without MPIO each disk would
// appear twice, and two writers would destroy what is on it.
//
// A target may redirect a login to another portal, so that ours never has a session. There are never more
// sessions than portals.
func (h *host) addsPath(ctx context.Context, login win.Login, sessions []win.Session) (bool, error) {
	for _, session := range sessions {
		if !login.Portal.IsIP() || slices.ContainsFunc(session.Portals, login.Portal.Same) {
			return false, nil
		}
	}
	claimed, err := h.claimed(ctx, sessions)
	if err != nil || !claimed {
		return false, failed(opConnect, login.Target, err)
	}
	portals, err := h.m.ReportTargetPortals(ctx, login.Target)
	if err != nil && !errors.Is(err, winerr.NotFound) {
		return false, failed(opConnect, login.Target, err)
	}
	return len(sessions) < len(portals), nil
}

// claimed reports whether MPIO has claimed the disks of a target: it has enumerated their devices, as also
// OpenStack's os-win finds out. A target whose disks have not come yet may get another path later.
func (h *host) claimed(ctx context.Context, sessions []win.Session) (bool, error) {
	devices, err := h.m.DiskDevices(ctx)
	if err != nil {
		return false, err
	}
	var multipath []uint32
	var failure error
	for _, device := range devices {
		if !strings.HasPrefix(strings.ToLower(string(device)), `\\?\mpio#`) {
			continue
		}
		number, err := h.m.DeviceNumber(ctx, device)
		if err != nil {
			failure = err // of a disk that may be another one
			continue
		}
		multipath = append(multipath, number.Number)
	}
	if len(multipath) == 0 {
		return false, failure
	}
	found := false
	for _, session := range sessions {
		devices, err := h.m.DevicesForSession(ctx, session.ID)
		if err != nil {
			return false, err
		}
		for _, d := range devices {
			if d.Device.Type != win.DeviceTypeDisk || d.Device.Number == win.NoDeviceNumber {
				continue
			}
			if found = slices.Contains(multipath, d.Device.Number); !found {
				return false, failure
			}
		}
	}
	return found, nil
}
