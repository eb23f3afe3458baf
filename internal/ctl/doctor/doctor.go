// Package doctor checks what goes wrong on nodes in practice, and says what to do about it.
package doctor

import (
	"context"
	"fmt"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/scm"
)

// Level is how bad a finding is.
type Level string

// The levels. Only Warning and Error are for the exit code.
const (
	OK      Level = "ok"
	Info    Level = "info"
	Warning Level = "warning"
	Error   Level = "error"
)

// Finding is the outcome of a check.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// Bad reports whether somebody should act.
func (f Finding) Bad() bool { return f.Level == Warning || f.Level == Error }

// Doctor is what the checks look at.
type Doctor struct {
	Node        endpoint.Node
	Client      *call.Client
	WorkingDirs []string // that drivers need; empty: those of the service's command line
	KubeletPath string   // the daemon's default among them
	LogFile     string   // empty: the one that the service's command line names
	ServiceName string
	Version     string // of ourselves

	// The machine itself; on other systems than Windows they say so by their errors.
	Services  func() (scm.Manager, error)
	SANPolicy func() (string, error)
	LongPaths func() (bool, error)
}

// findings are what one topic has found, in order.
type findings []Finding

func (f *findings) add(level Level, check, remedy, format string, args ...any) {
	*f = append(*f, Finding{Check: check, Level: level, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// Examine runs all checks at once, and returns their findings in a fixed order.
func (d Doctor) Examine(ctx context.Context) []Finding {
	p := patient{Doctor: d, health: d.Node.CheckAll(ctx), daemon: d.installed()}
	topics := []func(context.Context, *findings){p.endpoints, p.service, p.directories, p.initiator, p.settings, p.logFile}
	results := make([]findings, len(topics))
	var wg sync.WaitGroup
	for i, topic := range topics {
		wg.Go(func() { topic(ctx, &results[i]) })
	}
	wg.Wait()
	var all []Finding
	for _, result := range results {
		all = append(all, result...)
	}
	return all
}

// patient is a node with what several checks start from.
type patient struct {
	Doctor
	health []endpoint.Health
	daemon installed
}
