package doctor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// SANPolicy returns the policy that decides whether new disks come online.
// https://learn.microsoft.com/windows-hardware/customize/desktop/unattend/microsoft-windows-partitionmanager-sanpolicy
func SANPolicy() (win.SANPolicy, error) {
	policy, err := winapi.SANPolicy()
	return win.SANPolicy(policy), err
}

// WindowsBuild is the build of Windows, such as 10.0.20348.
func WindowsBuild() string {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}

// LongPaths reports whether programs that ask for it may use paths of more than 260 characters without a prefix.
// https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation
func LongPaths() (bool, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\CurrentControlSet\Control\FileSystem`, registry.QUERY_VALUE)
	if err != nil {
		return false, err
	}
	defer key.Close()
	enabled, _, err := key.GetIntegerValue("LongPathsEnabled")
	if errors.Is(err, registry.ErrNotExist) {
		return false, nil
	}
	return enabled != 0, err
}
