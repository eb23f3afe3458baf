package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

// trust is the help about the programs of services.
const trust = `
Fails, unless forced, if the program is not csi-proxy, or if others than LocalSystem,
Administrators and TrustedInstaller own it or a folder on the way to it, or can change them.`

// force adds the flag that accepts such a program.
func force(c *cobra.Command, forced *bool) {
	c.Flags().BoolVar(forced, "force", false, "accept a program that is not csi-proxy, or that others than administrators can change")
}

const dependents = "\nFails if a running service, such as the kubelet, depends on it; the error names the services to stop first."

func (a *app) service() *cobra.Command {
	return a.group(page{
		use:   "service",
		short: "Install, start, stop and upgrade the daemon as a Windows service",
		long: `Install, start, stop and upgrade csi-proxy.exe as a Windows service. Run these commands from
an elevated prompt. Each of them is safe to repeat.`,
		example: `  csi-proxyctl service install --binary "C:\Program Files\csi-proxy\csi-proxy.exe"
  csi-proxyctl service upgrade --binary "C:\Program Files\csi-proxy\csi-proxy-v1.4.0.exe"`,
	},
		a.install(),
		a.onService(page{
			use:   "uninstall",
			short: "Stop and remove the service",
			long: `Stop and remove the service and its event-log source. Keeps all files. Refuses services whose
program is not csi-proxy.` + dependents,
			example: "  csi-proxyctl service uninstall",
		}, func(ctx context.Context, s *session, i *installation.Installer) error {
			removed, err := i.Uninstall(ctx)
			if err != nil {
				return err
			}
			if !removed {
				return s.done("service "+i.Name, "was not installed")
			}
			return s.done("service "+i.Name, "removed")
		}),
		a.onService(page{
			use:     "start",
			short:   "Start the service and wait until it runs",
			long:    "Start the service and wait until all its pipes listen.",
			example: "  csi-proxyctl service start",
		}, func(ctx context.Context, s *session, i *installation.Installer) error {
			if err := i.Start(ctx); err != nil {
				return err
			}
			return s.done("service "+i.Name, "running")
		}),
		a.onService(page{
			use:     "stop",
			short:   "Stop the service and wait until it has stopped",
			long:    "Stop the service and wait until it has stopped. Calls in flight can finish." + dependents,
			example: "  csi-proxyctl service stop",
		}, func(ctx context.Context, s *session, i *installation.Installer) error {
			if err := i.Stop(ctx); err != nil {
				return err
			}
			return s.done("service "+i.Name, "stopped")
		}),
		a.onService(page{
			use:     "status",
			short:   "Show the state, start type and command line of the service",
			long:    "Show the state, start type, recovery and command line of the service, and how many endpoints answer.",
			example: "  csi-proxyctl service status -o json",
		}, serviceStatus),
		a.upgrade(),
	)
}

func (a *app) onService(p page, run func(ctx context.Context, s *session, i *installation.Installer) error) *cobra.Command {
	var serviceName string
	c := a.leaf(p, 0, func(ctx context.Context, s *session, _ []string) error {
		manager, err := a.env.Services()
		if err != nil {
			return err
		}
		defer manager.Close()
		return run(ctx, s, &installation.Installer{
			Manager: manager, Name: serviceName, Check: s.node.CheckAll, After: a.env.After, Access: installation.AccessOf,
			Progress: func(text string) { fmt.Fprintf(a.env.Err, "%s: %s\n", serviceName, text) },
		})
	})
	c.Flags().StringVar(&serviceName, "name", installation.DefaultName, "name of the service")
	return c
}

func (a *app) install() *cobra.Command {
	var binary string
	var forced bool
	var flags []string
	c := a.onService(page{
		use:   "install",
		short: "Install the service, or correct its settings",
		long: `Install the service: automatic start, restart ten seconds after a failure, a description and
an event-log source. The service has a SID of its own, and cannot use the desktop.

If the service is installed, correct these settings, but never its start type. Keep its
program and flags unless --binary or flags after -- replace them. The default flags of a
new service are -windows-service -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -v=2.

Install does not start the service, and a running service keeps its old command line.
Settings that this version of Windows does not support are reported and skipped.
` + trust,
		example: `  csi-proxyctl service install
  csi-proxyctl service install --binary "C:\Program Files\csi-proxy\csi-proxy.exe" -- -log_file=D:\log\csi-proxy.log -logtostderr=false -v=4`,
	}, func(_ context.Context, s *session, i *installation.Installer) error {
		i.Force = forced
		if executable, err := os.Executable(); err == nil {
			beside := filepath.Join(filepath.Dir(executable), "csi-proxy.exe")
			if _, err := os.Stat(beside); err == nil {
				i.Beside = beside
			}
		}
		outcome, err := i.Install(installation.Options{Binary: binary, Flags: flags})
		switch {
		case err != nil:
			return err
		case outcome.Created:
			return s.done("service "+i.Name, "installed")
		case outcome.Outdated:
			return s.done("service "+i.Name, "installed; stop and start it to apply its new settings")
		default:
			return s.done("service "+i.Name, "installed already")
		}
	})
	c.Args = func(c *cobra.Command, args []string) error {
		a.current = c
		if c.ArgsLenAtDash() != 0 && len(args) > 0 {
			return usagef("put the daemon's flags after --")
		}
		if len(args) > 0 {
			flags = args
		}
		return nil
	}
	c.Use += " [-- FLAGS...]"
	c.Flags().StringVar(&binary, "binary", "", "full path of csi-proxy.exe; of a new service by default the one beside this program")
	force(c, &forced)
	return c
}

func (a *app) upgrade() *cobra.Command {
	var binary string
	var forced bool
	c := a.onService(page{
		use:   "upgrade",
		short: "Replace the daemon's program, and roll back if the new one is not healthy",
		long: `Replace the program of the service: copy the new file beside the old one, stop the service,
wait until all pipes are free, swap the files, start the service, and wait until every
endpoint that answered before answers again. If any of this fails, or after an interrupt,
put the old program back and start it. A program that hangs while it starts or stops is
killed after 30 seconds. The old program stays as FILE.old.

A stopped service stays stopped.` + dependents + trust,
		example: `  csi-proxyctl service upgrade --binary "C:\Program Files\csi-proxy\csi-proxy-v1.4.0.exe"`,
	}, func(ctx context.Context, s *session, i *installation.Installer) error {
		if binary == "" {
			return usagef("--binary is required")
		}
		i.Force = forced
		if err := i.Upgrade(ctx, binary); err != nil {
			return err
		}
		return s.done("service "+i.Name, "upgraded")
	})
	c.Flags().StringVar(&binary, "binary", "", "path of the new program (required)")
	force(c, &forced)
	return c
}

func serviceStatus(ctx context.Context, s *session, i *installation.Installer) error {
	state, err := i.Status(ctx)
	if err != nil {
		return err
	}
	rows := output.Rows{Header: []string{"SERVICE", "STATE", "PID", "START", "RESTARTS", "ENDPOINTS", "COMMAND"}}
	rows.Add(output.Text(state.Name), output.Text(state.State), output.Text(strconv.FormatUint(uint64(state.PID), 10)), output.Text(state.Start),
		output.Text(strconv.FormatBool(state.Restarts)), output.Text(strconv.Itoa(state.Endpoints)), output.Text(state.Command))
	return s.list(state, &rows)
}
