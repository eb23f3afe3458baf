package api

import (
	"strings"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout/smbios"
)

const opSerial = "get BIOS serial number"

// GetBIOSSerialNumber reads the table of the firmware, which is a read of memory. Win32_BIOS takes its
// serial number from the same table, and is asked only where the table has none or cannot be
// read.
// https://learn.microsoft.com/windows/win32/cimwin32prov/win32-bios
func (b boundHost) GetBIOSSerialNumber() (string, error) {
	ctx, h := b.ctx, b.host
	table, failure := h.m.FirmwareTable(ctx)
	if failure != nil && winerr.CodeOf(failure) == 0 { // not an answer of Windows
		return "", winerr.Wrap(opSerial, "", failure)
	}
	if failure == nil {
		if serial := smbios.SerialNumber(table); serial != "" {
			return serial, nil
		}
	}
	serial, err := h.m.BIOSSerialNumber(ctx)
	switch {
	case err == nil:
		return strings.TrimRight(serial, " "), nil
	case ctx.Err() != nil:
		return "", winerr.Wrap(opSerial, "", err)
	case failure != nil:
		return "", winerr.As(winerr.KindOf(failure), opSerial, "", failure, "WMI does not know it either: "+err.Error())
	default:
		klog.FromContext(ctx).V(2).Info("The firmware has no serial number, and WMI did not answer", "err", err)
		return "", nil
	}
}
