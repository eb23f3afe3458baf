package daemon

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// Mitigate restricts the process until it ends, as far as this Windows can, and logs the result. As a service and in a
// container it then has the same privileges, however it was installed.
func Mitigate(ctx context.Context, strictHandles bool) {
	logger := klog.FromContext(ctx)
	switch missing, err := winapi.KeepPrivileges(); {
	case err != nil:
		logger.Error(err, "The process keeps the privileges that it does not need")
	case len(missing) > 0:
		logger.Info("The process lacks privileges; calls that need them will fail", "privileges", missing)
	}
	mitigations := winapi.Mitigations()
	if strictHandles {
		mitigations = append(mitigations, winapi.StrictHandleChecks())
	}
	var on []string
	var missing []string
	for _, m := range mitigations {
		if err := m.TurnOn(); err != nil {
			missing = append(missing, m.Name+": "+err.Error())
			continue
		}
		on = append(on, m.Name)
	}
	logger.Info("Restricted the process", "mitigations", on)
	if len(missing) > 0 {
		logger.Info("Windows lacks some restrictions of the process", "mitigations", missing)
	}
}
