package api

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

const opGet = "get service"

// GetService asks Windows twice. The GetService may change in between.
func (b boundHost) GetService(name string) (*ServiceInfo, error) {
	ctx, h := b.ctx, b.host
	config, err := h.m.ServiceConfig(ctx, name)
	if err != nil {
		return nil, failed(opGet, name, err)
	}
	status, err := h.m.ServiceStatus(ctx, name)
	if err != nil {
		return nil, failed(opGet, name, err)
	}
	return &ServiceInfo{
		DisplayName: config.DisplayName,
		StartType:   word(startTypes, config.StartType),
		Status:      word(states, status.State),
	}, nil
}

// word translates a number of Windows into the word WMI has for it, which is what HostAPI
// speaks. A number without one is its own word.
func word[N ~uint32](words map[N]string, n N) string {
	if word, known := words[n]; known {
		return word
	}
	return fmt.Sprint(uint32(n))
}

// https://learn.microsoft.com/windows/win32/cimwin32prov/win32-service
var startTypes = map[win.StartType]string{
	win.StartBoot:      "Boot",
	win.StartSystem:    "System",
	win.StartAutomatic: "Auto",
	win.StartManual:    "Manual",
	win.StartDisabled:  "Disabled",
}

var states = map[win.ServiceState]string{
	win.ServiceStopped:         "Stopped",
	win.ServiceStartPending:    "Start Pending",
	win.ServiceStopPending:     "Stop Pending",
	win.ServiceRunning:         "Running",
	win.ServiceContinuePending: "Continue Pending",
	win.ServicePausePending:    "Pause Pending",
	win.ServicePaused:          "Paused",
}
