package api

import (
	"context"
	"errors"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskid"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskprobe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// ListDiskIDs implements HostAPI.
func (d DiskAPI) ListDiskIDs() (map[uint32]DiskIDs, error) {
	ctx, h := d.bound()
	ids, _, err := eachDisk(ctx, h, "list disk ids", func(ctx context.Context, d win.Device) (ids DiskIDs, ok bool, err error) {
		descriptor, err := h.m.DeviceDescriptor(ctx, d)
		if err := unanswered(ctx, d, "serial number", err); err != nil {
			return ids, false, err
		}
		if diskprobe.NoMedium(ctx, h.m, d, descriptor) {
			return ids, false, nil
		}
		identifiers, err := h.m.DeviceIdentifiers(ctx, d)
		if err := unanswered(ctx, d, "page 83", err); err != nil {
			return ids, false, err
		}
		return DiskIDs{Page83: diskid.Page83(identifiers), SerialNumber: descriptor.Serial}, true, nil
	})
	return ids, err
}

// unanswered decides what a failed question means. It returns the error only if the disk is gone
// or the time is over: then the disk does not belong in the list. Any other code means that this
// one answer is unknown. USB sticks have no page 83, and the drivers of virtual machines answer
// optional properties with ERROR_INVALID_FUNCTION (1) or ERROR_GEN_FAILURE (31), as Wine's tests
// on Windows show (dlls/kernel32/tests/volume.c); they are disks all the same.
func unanswered(ctx context.Context, d win.Device, question string, err error) error {
	switch {
	case err == nil, errors.Is(err, winerr.Unsupported):
		return nil
	case ctx.Err() != nil, errors.Is(err, winerr.NotFound):
		return err
	}
	klog.FromContext(ctx).V(2).Info("A disk did not answer a question", "device", d, "question", question, "err", err)
	return nil
}
