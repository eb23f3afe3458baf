package command

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

func (a *app) versions() *cobra.Command {
	return a.leaf(page{
		use:   "versions",
		short: "Show which API groups and versions answer",
		long: `Check all endpoints: whether they answer, their health and latency, and the version of the
server. The original csi-proxy has no health service and does not report its version.
The exit code is 3 if no endpoint answers. --version has the version of csi-proxyctl.`,
		example: "  csi-proxyctl versions\n  csi-proxyctl versions -o wide",
	}, 0, listVersions)
}

func listVersions(ctx context.Context, s *session, _ []string) error {
	type row struct {
		Group         string `json:"group"`
		Version       string `json:"version"`
		State         string `json:"state"`
		LatencyMicros int64  `json:"latencyMicros"`
		ServerVersion string `json:"serverVersion"`
		PID           int    `json:"pid"`
		Endpoint      string `json:"endpoint"`
	}
	list := []row{}
	rows := output.Rows{Header: []string{"GROUP", "VERSION", "STATE", "LATENCY", "SERVER", "PID", "ENDPOINT"}, Narrow: 5}
	answers := false
	var first error
	healths := s.node.CheckAll(ctx)
	if err := ctx.Err(); err != nil {
		return err // the states are those of checks that were cut short
	}
	for _, h := range healths {
		answers = answers || h.State.Answers()
		if h.Err != nil && first == nil {
			first = h.Err
		}
		list = append(list, row{h.Name.Group, h.Name.Version, string(h.State), h.Latency.Microseconds(), h.Version, h.PID, h.Path})
		latency, pid := "", ""
		if h.Latency > 0 {
			latency = h.Latency.Round(10 * time.Microsecond).String()
		}
		if h.PID > 0 {
			pid = strconv.Itoa(h.PID)
		}
		rows.Add(output.Text(h.Name.Group), output.Text(h.Name.Version), healthCell(h.State), output.Text(latency), output.Text(h.Version), output.Text(pid), output.Text(h.Path))
	}
	if err := s.list(list, &rows); err != nil || answers {
		return err
	}
	if first == nil {
		first = errors.New("no endpoint is healthy")
	}
	return &endpoint.UnreachableError{Err: first}
}

func healthCell(state endpoint.State) output.Cell {
	style := output.Bad
	switch state {
	case endpoint.Serving, endpoint.NoHealth:
		style = output.Good
	case endpoint.Missing:
		style = output.Faint
	default:
	}
	return output.Cell{Text: string(state), Style: style}
}
