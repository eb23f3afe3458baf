package winsim_test

import (
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout/smbios"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// services runs the seam's calls about firmware and services, and a test's own access to
// them.
func (s *shell) services(command string, argument func(int) string, arguments []string) (result string, err error) {
	ctx, n, name := s.t.Context(), s.node, argument(0)
	switch command {
	case "FirmwareTable":
		var table []byte
		table, err = n.FirmwareTable(ctx)
		result = fmt.Sprintf("%d bytes, serial %q", len(table), smbios.SerialNumber(table))
	case "BIOSSerialNumber":
		result, err = n.BIOSSerialNumber(ctx)
		result = fmt.Sprintf("%q", result)
	case "ServiceConfig":
		var config win.ServiceConfig
		if config, err = n.ServiceConfig(ctx, name); err == nil {
			result = fmt.Sprintf("%q, start type %d", config.DisplayName, config.StartType)
		}
	case "ServiceStatus":
		var status win.ServiceStatus
		if status, err = n.ServiceStatus(ctx, name); err == nil {
			result = fmt.Sprintf("state %d, exit %d/%d, hint %v", status.State, status.ExitCode, status.SpecificExitCode, status.WaitHint)
			if status.OwnProcess {
				result += ", own process"
			}
		}
	case "StartService":
		err = n.StartService(ctx, name)
	case "StopService":
		err = n.StopService(ctx, name)
	case "ActiveDependents":
		var names []string
		names, err = n.ActiveDependents(ctx, name)
		result = fmt.Sprint(names)
	case "service":
		var info winsim.Service
		info, err = n.ServiceInfo(name)
		result = fmt.Sprintf("%s, %q, %s, %s, %d", info.Name, info.DisplayName, info.StartType, info.State, info.LastExit)
	case "set-service":
		err = n.SetServiceState(name, winsim.ServiceState(argument(1)))
	case "add-service": // a name, and what it depends on
		err = n.Add(winsim.Model{Services: []winsim.Service{{Name: name, DependsOn: arguments[1:]}}})
	case "states": // of some services
		for _, name := range arguments {
			info, _ := n.ServiceInfo(name)
			result += " " + string(info.State)
		}
		result = strings.TrimSpace(result)
	default:
		err = errUnknown
	}
	return result, err
}
