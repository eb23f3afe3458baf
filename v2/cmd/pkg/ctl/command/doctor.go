package command

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/doctor"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
)

func (a *app) doctor() *cobra.Command {
	var dirs []string
	var logFile, serviceName string
	c := a.leaf(page{
		use:   "doctor",
		short: "Diagnose problems of the daemon and of the storage, and suggest remedies",
		long: `Check the endpoints (missing, owned by another process, unhealthy, split between
processes), versions, the service (installed, start type, recovery), who can change its
program and folders, working directories, the iSCSI initiator, the SAN policy, long paths,
the log file and crashes; and the storage of the node: disks, volumes, mounts, links, shares
and iSCSI sessions, with the problems of 'csi-proxyctl node' in their order:
those that hurt pods now, those that will, and notes. Problems come with a remedy. The last
line says what was not checked.

The exit code is 0 without problems, and 4 after a warning or an error, or if something was not
checked although the daemon answers. Notes do not change it.`,
		example: `  csi-proxyctl doctor
  csi-proxyctl doctor --working-dir 'D:\kubelet' --log-file 'D:\log\csi-proxy.log'
  csi-proxyctl doctor -o json`,
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		found := doctor.Doctor{
			Node: s.node, Client: s.client, WorkingDirs: dirs, KubeletPath: kubeletPath, LogFile: logFile, ServiceName: serviceName, Version: version.String(),
			Host: a.env.Host, Now: a.env.Now, Services: a.env.Services, SANPolicy: doctor.SANPolicy, LongPaths: doctor.LongPaths, Access: installation.AccessOf, BuildInfo: buildinfo.ReadFile,
		}.Examine(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.Value(found, func() string { return diagnosis(s.Printer, found) }); err != nil {
			return err
		}
		if slices.ContainsFunc(found, doctor.Result.IsProblem) {
			return errProblems
		}
		return nil
	})
	c.Flags().StringArrayVar(&dirs, "working-dir", nil, "directory that drivers need; repeatable (default: those in the service's command line, else "+kubeletPath+")")
	c.Flags().StringVar(&logFile, "log-file", "", "log file of the daemon (default: the one in the service's command line)")
	c.Flags().StringVar(&serviceName, "service-name", installation.DefaultName, "name of the daemon's service")
	return c
}

var levelStyles = map[doctor.Level]output.Style{
	doctor.OK: output.Good, doctor.Info: output.Faint, doctor.Warning: output.Warning, doctor.Error: output.Bad,
}

// diagnosis returns a line per result, with its remedy below.
func diagnosis(p *output.Printer, found []doctor.Result) string {
	var b strings.Builder
	bad := 0
	for _, f := range found {
		if f.IsProblem() {
			bad++
		}
		f.Text, f.Remedy, f.Advice = output.Printable(f.Text), output.Printable(f.Remedy), output.Printable(f.Advice)
		level := cmp.Or(f.Severity.Words(), string(f.Level))
		fmt.Fprintf(&b, "%s%s  %-19s  %s\n", p.Paint(levelStyles[f.Level], level), strings.Repeat(" ", len("hurts pods")-len(level)), f.Check, f.Text)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "%34s%s\n", "", p.Paint(output.Bold, "→ "+f.Remedy))
		}
		if f.Advice != "" {
			fmt.Fprintf(&b, "%36s%s\n", "", f.Advice)
		}
	}
	var skipped []string
	for _, f := range found {
		if f.Skipped && !slices.Contains(skipped, f.Check) {
			skipped = append(skipped, f.Check)
		}
	}
	switch {
	case bad == 0 && len(skipped) == 0:
		b.WriteString("Nothing needs to be done.\n")
	case bad == 0:
		b.WriteString("No problems found in what was checked.\n")
	case bad == 1:
		b.WriteString("1 problem needs attention.\n")
	default:
		fmt.Fprintf(&b, "%d problems need attention.\n", bad)
	}
	if len(skipped) > 0 {
		fmt.Fprintf(&b, "Not checked: %s.\n", strings.Join(skipped, ", "))
	}
	return b.String()
}
