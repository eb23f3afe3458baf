package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

func (a *app) system() *cobra.Command {
	return a.group(page{
		use:     "system",
		short:   "Show the machine's serial number, control Windows services",
		long:    "Show the machine's serial number and control Windows services. To install the daemon, use 'csi-proxyctl service'.",
		example: "  csi-proxyctl system bios\n  csi-proxyctl system service get MSiSCSI",
	},
		a.simple(simple{page: page{
			use:     "bios",
			short:   "Show the machine's serial number",
			long:    "Show the machine's serial number from its firmware (GetBIOSSerialNumber).",
			example: "  csi-proxyctl system bios",
		}, method: "system/GetBIOSSerialNumber"}),
		a.group(page{
			use:     "service",
			short:   "Show, start and stop Windows services",
			long:    "Show, start and stop Windows services. The daemon's -allowed-services limits which ones can be started and stopped.",
			example: "  csi-proxyctl system service get MSiSCSI",
		},
			a.leaf(page{
				use:     "get NAME",
				short:   "Show the state and start type of a service",
				long:    "Show the state and start type of a service (GetService).",
				example: "  csi-proxyctl system service get MSiSCSI",
			}, 1, getService),
			a.simple(simple{page: page{
				use:     "start NAME",
				short:   "Start a service",
				long:    "Start a service and wait until it runs (StartService). Does nothing if it is running.",
				example: "  csi-proxyctl system service start MSiSCSI",
			}, method: "system/StartService", object: "service {1}", done: "started"}),
			a.stopService(),
		),
	)
}

func (a *app) stopService() *cobra.Command {
	var force bool
	c := a.leaf(page{
		use:     "stop NAME",
		short:   "Stop a service",
		long:    "Stop a service and wait until it has stopped (StopService). Does nothing if it is stopped.",
		example: "  csi-proxyctl system service stop MSiSCSI --force",
	}, 1, func(ctx context.Context, s *session, args []string) error {
		request := &systemv1alpha1.StopServiceRequest{Name: args[0], Force: force}
		return s.change(ctx, "system", "StopService", request, &systemv1alpha1.StopServiceResponse{}, "service "+args[0], "stopped")
	})
	c.Flags().BoolVar(&force, "force", false, "also stop the services that depend on it")
	return c
}

func getService(ctx context.Context, s *session, args []string) error {
	var response systemv1alpha1.GetServiceResponse
	if err := s.client.Do(ctx, "system", "GetService", &systemv1alpha1.GetServiceRequest{Name: args[0]}, &response); err != nil {
		return err
	}
	status, start := enumWords(response.GetStatus().String()), enumWords(response.GetStartType().String())
	rows := output.Rows{Header: []string{"SERVICE", "STATE", "START", "DISPLAY NAME"}}
	rows.Add(output.Text(args[0]), output.Text(status), output.Text(start), output.Text(response.GetDisplayName()))
	return s.list(output.Object{{Name: "name", Value: args[0]}, {Name: "displayName", Value: response.GetDisplayName()}, {Name: "status", Value: status}, {Name: "startType", Value: start}}, &rows)
}

// enumWords turns START_PENDING into "start pending".
func enumWords(enum string) string { return strings.ToLower(strings.ReplaceAll(enum, "_", " ")) }
