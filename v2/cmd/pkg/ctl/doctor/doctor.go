// Package doctor diagnoses problems of the daemon and of the node's storage, and suggests remedies.
package doctor

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Level says how bad the result of a check is.
type Level string

// The levels. Warning and Error change the exit code.
const (
	OK      Level = "ok"
	Info    Level = "info"
	Warning Level = "warning"
	Error   Level = "error"
)

// Result is what a check found, which may be a problem.
type Result struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
	// Advice is what to know before the remedy is run, or if it does not help.
	Advice string `json:"advice,omitempty"`
	// Skipped means that something was not checked; the text says why.
	Skipped bool `json:"skipped,omitempty"`
	// Severity, Pods and PVs are those of a problem of the storage, as csi-proxyctl node has them.
	Severity problem.Severity `json:"severity,omitempty"`
	Pods     []string         `json:"pods,omitempty"`
	PVs      []string         `json:"persistentVolumes,omitempty"`
}

// IsProblem reports whether something is wrong.
func (r Result) IsProblem() bool { return r.Level == Warning || r.Level == Error }

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
	// BuildInfo is buildinfo.ReadFile.
	BuildInfo func(path string) (*debug.BuildInfo, error)
}

type results []Result

func (r *results) add(level Level, check, remedy, format string, args ...any) {
	*r = append(*r, Result{Check: check, Level: level, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (r *results) skip(check, format string, args ...any) {
	*r = append(*r, Result{Check: check, Level: Info, Text: fmt.Sprintf(format, args...), Skipped: true})
}

// Examine runs all checks concurrently and returns their results in a fixed order.
func (d Doctor) Examine(ctx context.Context) []Result {
	e := examination{Doctor: d, health: d.Node.CheckAll(ctx), daemon: d.serviceState()}
	topics := []func(context.Context, *results){e.endpoints, e.service, e.permissions, e.directories, e.initiator, e.settings, e.containerd, e.logFile, e.crash, e.storage}
	byTopic := make([]results, len(topics))
	var wg sync.WaitGroup
	for i, topic := range topics {
		wg.Go(func() { topic(ctx, &byTopic[i]) })
	}
	wg.Wait()
	all := []Result{{Check: "node", Level: OK, Text: strings.TrimPrefix(d.Host+", ", ", ") + d.Now().UTC().Format("2006-01-02 15:04:05 UTC") + ", csi-proxyctl " + d.Version}}
	for _, found := range byTopic {
		all = append(all, found...)
	}
	return all
}

// examination adds the facts that several checks share.
type examination struct {
	Doctor
	health []endpoint.Health
	daemon serviceState
}
