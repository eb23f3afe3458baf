package mounter

import (
	"context"

	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"k8s.io/mount-utils"
)

// NewSafeMounter works in a HostProcess container, or through the pipes of CSI Proxy.
func NewSafeMounter(enableWindowsHostProcess, _ bool) (*mount.SafeFormatAndMount, error) {
	mode := kit.Daemon
	if enableWindowsHostProcess {
		mode = kit.Library
	}
	m, err := kit.New(context.Background(), kit.WithMode(mode))
	if err != nil {
		return nil, err
	}
	return kit.NewSafeFormatAndMount(m).SafeFormatAndMount, nil
}
