// Package doctor diagnoses problems of the daemon and of the node's storage, and suggests remedies.
package doctor

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/storage/warning"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Level is the severity of a finding.
type Level string

// The levels. Warning and Error change the exit code.
const (
	OK      Level = "ok"
	Info    Level = "info"
	Warning Level = "warning"
	Error   Level = "error"
)

// Finding is the result of a check.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
	// Advice is what to know before the remedy is run, or if it does not help.
	Advice string `json:"advice,omitempty"`
	// Skipped means that something was not checked; the text says why.
	Skipped bool `json:"skipped,omitempty"`
	// Severity, Pods and PVs are those of a problem of the storage, as csi-proxyctl node has them.
	Severity warning.Severity `json:"severity,omitempty"`
	Pods     []string         `json:"pods,omitempty"`
	PVs      []string         `json:"persistentVolumes,omitempty"`
}

// Bad reports whether the finding is a problem.
func (f Finding) Bad() bool { return f.Level == Warning || f.Level == Error }

// Doctor is the input of the checks.
type Doctor struct {
	Node        endpoint.Node
	Client      *call.Client
	WorkingDirs []string // that drivers need; empty: those in the service's command line
	KubeletPath string   // the daemon's default working directory
	LogFile     string   // empty: the one in the service's command line
	ServiceName string
	Version     string // of csi-proxyctl
	Host        string // name of the machine; empty if it is unknown
	Now         func() time.Time

	// The machine. On other systems than Windows they return ErrNotWindows.
	Services  func() (scm.Manager, error)
	SANPolicy func() (win.SANPolicy, error)
	LongPaths func() (bool, error)
	Access    func(path string) (installation.Access, error)
}

// findings are the findings of one topic.
type findings []Finding

func (f *findings) add(level Level, check, remedy, format string, args ...any) {
	*f = append(*f, Finding{Check: check, Level: level, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// skip adds a finding about something that was not checked.
func (f *findings) skip(check, format string, args ...any) {
	*f = append(*f, Finding{Check: check, Level: Info, Text: fmt.Sprintf(format, args...), Skipped: true})
}

// Examine runs all checks concurrently and returns their findings in a fixed order.
func (d Doctor) Examine(ctx context.Context) []Finding {
	e := examination{Doctor: d, health: d.Node.CheckAll(ctx), daemon: d.serviceState()}
	topics := []func(context.Context, *findings){e.endpoints, e.service, e.permissions, e.directories, e.initiator, e.settings, e.logFile, e.crash, e.storage}
	results := make([]findings, len(topics))
	var wg sync.WaitGroup
	for i, topic := range topics {
		wg.Go(func() { topic(ctx, &results[i]) })
	}
	wg.Wait()
	all := []Finding{{Check: "node", Level: OK, Text: strings.TrimPrefix(d.Host+", ", ", ") + d.Now().UTC().Format("2006-01-02 15:04:05 UTC") + ", csi-proxyctl " + d.Version}}
	for _, result := range results {
		all = append(all, result...)
	}
	return all
}

// examination adds the facts that several checks share.
type examination struct {
	Doctor
	health []endpoint.Health
	daemon serviceState
}
