package local

import (
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// SANPolicy reads the policy of this machine.
func SANPolicy() (win.SANPolicy, error) {
	policy, err := winapi.SANPolicy()
	return win.SANPolicy(policy), err
}
