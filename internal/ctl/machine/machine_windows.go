package machine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows/registry"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
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
