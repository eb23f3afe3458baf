package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const opDisks = "get disks of target"

const (
	// arrivalTimeout is how long Plug and Play may take to bring the disks of a session.
	arrivalTimeout = 30 * time.Second
	// rescanAfter is when a rescan helps it along.
	rescanAfter = 2 * time.Second
	// rescanLimit is how long the rescan may take: an adapter that hangs must not delay us.
	rescanLimit = 10 * time.Second
)

// errNoSession is the answer about a target that is known and not logged in. For its last word
// see errUnknown.
var errNoSession = errors.New("the target has no session (ObjectNotFound)")

func (b boundHost) GetTargetDisks(portal *TargetPortal, iqn string) ([]string, error) {
	ctx, h := b.ctx, b.host
	at, err := parsePortal(opDisks, portal)
	if err != nil {
		return nil, err
	}
	begin, timeout, rescanned := h.m.Elapsed(), timeLeft(ctx, arrivalTimeout), false
	clock := clockUntil{h.m, begin + timeout}
	backoff := win.Backoff{First: 100 * time.Millisecond, Longest: time.Second, Limit: timeout}
	var disks []string
	var missing, failure error
	_, err = win.Poll(ctx, clock, backoff, func(time.Duration) (bool, error) {
		disks, missing, failure = h.disks(ctx, at, iqn)
		if failure != nil {
			return false, failure
		}
		if missing == nil || clock.left() == 0 {
			return true, nil
		}
		if !rescanned && h.m.Elapsed()-begin >= rescanAfter {
			h.rescan(ctx)
			rescanned = true
		}
		return false, nil
	})
	switch {
	case failure != nil:
		return nil, failure
	case err != nil:
		return nil, winerr.As(winerr.KindOf(err), opDisks, iqn, err, missing.Error())
	case missing != nil:
		return nil, winerr.As(winerr.Unavailable, opDisks, iqn, missing, "check that the target offers disks to this node, then try again")
	}
	return disks, nil
}

// disks returns the numbers of the disks of a target, in the order of their LUNs. Missing says
// what has not come yet: a session lists its devices before Plug and Play has finished with them.
// For a moment after the login, or while it reconnects, it lists none.
func (h *host) disks(ctx context.Context, portal win.TargetPortal, target string) (disks []string, missing, err error) {
	sessions, err := h.sessions(ctx, target)
	if err != nil {
		return nil, nil, failed(opDisks, target, err)
	}
	if len(sessions) == 0 {
		if err := h.checkKnown(ctx, opDisks, portal, target); err != nil {
			return nil, nil, err
		}
		return nil, nil, winerr.As(winerr.NotFound, opDisks, target, errNoSession, "log in with ConnectTarget first")
	}
	var found []win.SessionDevice
	for _, session := range sessions {
		devices, err := h.m.DevicesForSession(ctx, session.ID)
		switch {
		case errors.Is(err, winerr.Busy) || errors.Is(err, winerr.NotFound) || winerr.IsBufferTooSmall(err):
			return nil, fmt.Errorf("its session has just begun or ended: %w", err), nil
		case err != nil:
			return nil, nil, failed(opDisks, target, err)
		}
		for _, device := range devices {
			if pending(device) {
				return nil, fmt.Errorf("LUN %d is not ready in Windows yet", device.LUN), nil
			}
			if device.Device.Type == win.DeviceTypeDisk {
				found = append(found, device)
			}
		}
	}
	if len(found) == 0 {
		return nil, errors.New("its sessions show no disk"), nil
	}
	return numbers(found), nil, nil
}

// pending reports whether Plug and Play has not finished with a disk, or with something that
// may become one. Other devices, such as the array's own, may never get a number.
func pending(d win.SessionDevice) bool {
	const unknownType win.DeviceType = 0xFFFFFFFF
	switch d.Device.Type {
	case win.DeviceTypeDisk, unknownType, 0:
		return d.Device.Number == win.NoDeviceNumber || d.LegacyName == ""
	default:
		return false
	}
}

// numbers returns the numbers of disks by LUN. Two sessions may show the same disk.
func numbers(devices []win.SessionDevice) (ids []string) {
	slices.SortStableFunc(devices, func(a, b win.SessionDevice) int {
		return cmp.Or(cmp.Compare(a.LUN, b.LUN), cmp.Compare(a.Device.Number, b.Device.Number))
	})
	for _, device := range devices {
		if id := strconv.FormatUint(uint64(device.Device.Number), 10); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// rescan makes the initiator's adapter look for disks, or all adapters if it cannot be found. It
// may fail: the disks usually come without it.
// https://learn.microsoft.com/windows/win32/api/cfgmgr32/nf-cfgmgr32-cm_reenumerate_devnode
func (h *host) rescan(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, rescanLimit)
	defer cancel()
	adapters, err := h.m.StorageAdapters(ctx)
	own := slices.DeleteFunc(adapters, func(id string) bool { return !strings.Contains(strings.ToUpper(id), "ISCSI") })
	if len(own) == 0 {
		own = []string{""} // the root of the device tree
	}
	for _, adapter := range own {
		err = errors.Join(err, h.m.RescanAdapter(ctx, adapter))
	}
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Could not rescan the iSCSI adapter", "err", err)
	}
}
