package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
)

// sanPolicies are the policies by number; 0 is what Windows chooses.
var sanPolicies = [...]string{"default of Windows", "online all", "offline shared", "offline all", "offline internal"}

func sanPolicy() (string, error) {
	policy, err := winapi.SANPolicy()
	switch {
	case winerr.CodeOf(err) == winerr.FileNotFound: // nobody has ever set it
		return sanPolicies[0], nil
	case err != nil:
		return "", err
	case int(policy) >= len(sanPolicies):
		return fmt.Sprintf("unknown (%d)", policy), nil
	}
	return sanPolicies[policy], nil
}

func longPaths() (bool, error) {
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

// mountPaths asks the mount manager.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumepathnamesforvolumenamew
func mountPaths(volumeID string) ([]string, error) {
	name, err := windows.UTF16PtrFromString(volumeID)
	if err != nil {
		return nil, err
	}
	for size := uint32(1 << 10); ; {
		buffer := make([]uint16, size)
		err := windows.GetVolumePathNamesForVolumeName(name, &buffer[0], size, &size)
		if errors.Is(err, windows.ERROR_MORE_DATA) && size > uint32(len(buffer)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var paths []string
		for len(buffer) > 0 && buffer[0] != 0 {
			end := slices.Index(buffer, 0)
			if end < 0 {
				break
			}
			path := windows.UTF16ToString(buffer[:end])
			if len(path) > len(`C:\`) {
				path = strings.TrimSuffix(path, `\`)
			}
			paths, buffer = append(paths, path), buffer[end+1:]
		}
		return paths, nil
	}
}
