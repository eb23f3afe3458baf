package api

import (
	"context"
	"slices"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Windows cannot format a volume and set the access to its root in one step. A volume whose root
// access was asked for is formatted with this label, which goes when the access is set. If this
// process is killed in between, the next FormatVolume sees the label and continues. See ADR 0011.
const unfinishedLabel = "csi-proxy unfinished format"

// ownedByWindows are the directories that Windows creates in the root of a volume by itself.
var ownedByWindows = []string{"System Volume Information", "$RECYCLE.BIN"}

// unfinished reports whether a format of the volume was interrupted before its root access was
// set. A volume with files is finished: its root is not changed under its users.
func (h host) unfinished(ctx context.Context, op string, id win.VolumeID, info win.FileSystemInfo) (bool, error) {
	if !winpath.Equal(info.Label, unfinishedLabel) {
		return false, nil
	}
	empty, err := h.rootIsEmpty(ctx, id)
	if err != nil {
		return false, failed(op, id, err)
	}
	if !empty {
		klog.FromContext(ctx).Info("A format of the volume was interrupted, but it has files by now; its root access stays as it is", "volume", id, "label", info.Label)
	}
	return empty, nil
}

func (h host) rootIsEmpty(ctx context.Context, id win.VolumeID) (bool, error) {
	entries, err := h.m.RootEntries(ctx, id)
	return !slices.ContainsFunc(entries, func(e win.DirEntry) bool {
		return !slices.ContainsFunc(ownedByWindows, func(name string) bool { return winpath.Equal(name, e.Name) })
	}), err
}

// finish sets the root access of a new file system, and then its label. Both can be repeated.
func (h host) finish(ctx context.Context, id win.VolumeID, settings formatSettings) error {
	if settings.rootAccess != "" {
		if err := h.m.SetRootSecurity(ctx, id, settings.rootAccess); err != nil {
			return winerr.As(winerr.KindOf(err), opFormat, string(id), err, "the volume is formatted, but the access to its root is not set; call FormatVolume again")
		}
	}
	if err := h.m.SetVolumeLabel(ctx, id, settings.Label); err != nil {
		return winerr.As(winerr.KindOf(err), opFormat, string(id), err, "the volume is formatted, but its label is not set; call FormatVolume again")
	}
	return nil
}
