package daemon

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// Mitigate restricts the process until it ends, as far as this Windows can, and logs the result.
func Mitigate(ctx context.Context) {
	var on []string
	var missing []string
	for _, m := range winapi.Mitigations() {
		if err := m.TurnOn(); err != nil {
			missing = append(missing, m.Name+": "+err.Error())
			continue
		}
		on = append(on, m.Name)
	}
	logger := klog.FromContext(ctx)
	logger.Info("Restricted the process", "mitigations", on)
	if len(missing) > 0 {
		logger.Info("Windows lacks some restrictions of the process", "mitigations", missing)
	}
}
