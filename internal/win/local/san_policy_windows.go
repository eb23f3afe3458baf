package local

import (
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// ReadSANPolicy reads the policy of this machine. It stands in the registry, unless nobody
// has ever set it.
func ReadSANPolicy() (SANPolicy, error) {
	policy, err := winapi.SANPolicy()
	if winerr.CodeOf(err) == winerr.FileNotFound {
		return 0, nil
	}
	return SANPolicy(policy), err
}
