package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

// kubeletPath is the daemon's default for -kubelet-path.
const kubeletPath = `C:\var\lib\kubelet`

const pathsHelp = "a path whose volume to show, such as a mount; repeatable"

func (a *app) node() *cobra.Command {
	var paths []string
	c := a.leaf(page{
		use:   "node",
		short: "Show disks, partitions, volumes and mounts as a tree, and what is odd",
		long: `Show the node's storage as a tree: disks, their partitions and volumes, how full they are,
where they are mounted, and the links in the working directories that lead to them.
Lines with ! are odd: disks that are offline, read-only or do not answer, volumes
without a file system or locked, file systems that lag behind their disk, mounts that
lead nowhere.

The server's inspector tells all of it. An older server does not have one, and with
--api-version it is not asked: then a warning says what cannot be seen, and --path
shows where a path leads. On a terminal long paths and ids are shortened; -o wide
shows them whole.`,
		example: `  csi-proxyctl node
  csi-proxyctl node --path 'C:\var\lib\kubelet\plugins\x\globalmount'
  csi-proxyctl node -o json`,
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		node, err := s.source.Node(ctx, paths)
		if err != nil {
			return err
		}
		return a.draw(s, node)
	})
	c.Flags().StringArrayVar(&paths, "path", nil, pathsHelp)
	return c
}

// draw prints a node as wide as the terminal.
func (a *app) draw(s *session, node inventory.Node) error {
	width := 0
	if a.env.Width != nil {
		width = a.env.Width()
	}
	return s.Value(node, func() string { return node.Draw(s.Printer, width) })
}

func (a *app) watch() *cobra.Command {
	var paths []string
	var interval time.Duration
	var count int
	c := a.leaf(page{
		use:   "watch",
		short: "Show the node again and again",
		long: `Show what 'csi-proxyctl node' shows, again and again until it is interrupted. A daemon that is
restarted meanwhile is an error in between. --timeout bounds each look.`,
		example: "  csi-proxyctl watch\n  csi-proxyctl watch --interval 10s",
	}, 0, nil)
	c.RunE = func(c *cobra.Command, _ []string) error {
		a.started = true
		if interval <= 0 {
			return usagef("--interval %s is no time to wait", interval)
		}
		for shown := 1; ; shown++ {
			if err := a.look(c.Context(), paths); err != nil {
				return err
			}
			if shown == count {
				return nil
			}
			select {
			case <-c.Context().Done():
				return c.Context().Err()
			case <-a.env.After(interval):
			}
		}
	}
	c.Flags().StringArrayVar(&paths, "path", nil, pathsHelp)
	c.Flags().DurationVar(&interval, "interval", 2*time.Second, "time between two looks")
	c.Flags().IntVar(&count, "count", 0, "how many times to look; 0 is without end")
	return c
}

// clearScreen moves to the top and clears, so that what follows takes the place of what was.
const clearScreen = "\x1b[H\x1b[2J"

// look shows the node once, for watch. A node that does not answer is shown, too.
func (a *app) look(ctx context.Context, paths []string) error {
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if a.timeout > 0 {
		bounded, cancel = context.WithTimeout(ctx, a.timeout)
	}
	defer cancel()
	s := a.session()
	defer s.client.Close()
	node, err := s.source.Node(bounded, paths)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if a.env.Terminal && !a.format.ForScripts() {
		_, _ = io.WriteString(a.env.Out, clearScreen)
	}
	if err != nil {
		_, err = fmt.Fprintf(a.env.Err, "%s: %s\n", name, sentence(ctx, err))
		return err
	}
	return a.draw(s, node)
}

func (a *app) versions() *cobra.Command {
	return a.leaf(page{
		use:   "versions",
		short: "Show which API groups and versions answer",
		long: `Look at all endpoints and show which answer, their health, how quick they are, and the
version of the server. The original csi-proxy has no health service and does not tell
its version. The exit code is 3 if not a single endpoint answers.`,
		example: "  csi-proxyctl versions\n  csi-proxyctl versions -o wide",
	}, 0, versions)
}

func versions(ctx context.Context, s *session, _ []string) error {
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
		return err // the others are not silent: nobody has waited for them
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
	if err := s.Value(list, func() string { return s.Table(&rows) }); err != nil || answers {
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
