package api

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// diskTimeout is how long one disk may delay a list. A disk whose controller is resetting
// answers after 10 to 60 seconds, or never.
const diskTimeout = 5 * time.Second

// eachDisk asks every disk that is present and returns the answers by disk number. It leaves out
// a disk that does not answer: most callers look for another one, and a caller that looks for
// this one asks again. complete is false if it left out a disk that is not gone.
//
// Numbers come from the device, not from counting \\.\PhysicalDrive0 up: they have gaps and no
// upper bound.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_storage_get_device_number
func eachDisk[T any](ctx context.Context, h *host, op string, ask func(context.Context, win.Device) (T, bool, error)) (disks map[uint32]T, complete bool, err error) {
	devices, err := h.m.DiskDevices(ctx)
	if err != nil {
		return nil, false, winerr.Wrap(op, "", err)
	}
	answers := make([]struct {
		number uint32
		value  T
		ok     bool
	}, len(devices))
	limit := diskTimeout
	if deadline, ok := ctx.Deadline(); ok && win.IsInspector(ctx) { // it wants the others in time
		limit = min(limit, time.Until(deadline)/4*3)
	}
	failures := tasks.Each(ctx, len(devices), limit, func(ctx context.Context, i int) error {
		ctx, done := h.slow.Bound(ctx, string(devices[i]))
		defer done()
		number, err := h.m.DeviceNumber(ctx, devices[i])
		if err != nil || number.Type != win.DeviceTypeDisk {
			return err
		}
		answers[i].number = number.Number
		answers[i].value, answers[i].ok, err = ask(ctx, devices[i])
		return err
	})
	if err := ctx.Err(); err != nil {
		return nil, false, winerr.Wrap(op, "", err)
	}

	log := klog.FromContext(ctx)
	disks, complete = make(map[uint32]T, len(devices)), true
	for i, answer := range answers {
		if err := failures[i]; err != nil {
			log.V(2).Info("Left a disk out of a list because it does not answer", "operation", op, "device", devices[i], "err", err)
			complete = complete && errors.Is(err, winerr.NotFound)
			continue
		}
		if _, twice := disks[answer.number]; answer.ok && !twice {
			disks[answer.number] = answer.value
		}
	}
	return disks, complete, nil
}
