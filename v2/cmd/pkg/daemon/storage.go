package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/kubelet"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// StorageObserver learns about the storage of the node, when it asks.
type StorageObserver interface {
	// StorageWanted receives a value when a newer description would be of use.
	StorageWanted() <-chan struct{}
	// Storage is called with each description. It must not change it.
	Storage(*extensionv1.Node)
}

const (
	// describePause is the least time from the start of one description to the start of the next. A
	// description of a large node makes thousands of calls to Windows.
	describePause = 30 * time.Second
	// describeAgain is the time without a reader of metrics.
	describeAgain = time.Minute
)

// storage is what the daemon knows about the node's storage besides a description.
type storage struct {
	history problem.History
	limits  problem.Limits
	healer  *healer // nil if it leaves stale mounts alone
	judging atomic.Bool
	servers servers

	failures server.Failures

	observer StorageObserver               // may be nil
	event    func(hurts bool, text string) // may be nil
}

func (s *storage) annotate(node *extensionv1.Node) { s.annotateAt(time.Now(), node) }

func (s *storage) annotateAt(now time.Time, node *extensionv1.Node) {
	node.FullPercent, node.FullBytes = s.limits.Percent, s.limits.Bytes
	s.servers.annotate(node)
	node.FailedCalls = s.failures.List(now)
	s.history.Fill(now, node)
	for _, l := range node.GetLinks() {
		if l.GetStale() != "" || l.GetShare() != "" {
			l.State, l.Reason = s.healer.verdict(l.GetPath())
		}
	}
}

// judge lets the healer look again, if there are stale mounts and its last look is old: what it said of them is so, too, when a disk
// is back. It removes nothing. Not each look, because the healer rescans all disks.
func (s *storage) judge(ctx context.Context, found *node.Description, run func(func())) {
	stale := func(l node.Link) bool {
		path, ok := kubelet.Parse(l.Path)
		return ok && path.Kind == kubelet.Staging && l.Stale != ""
	}
	if s.healer == nil || s.healer.age() < healPause || !slices.ContainsFunc(found.Links, stale) || !s.judging.CompareAndSwap(false, true) {
		return
	}
	run(func() {
		defer s.judging.Store(false)
		if err := tasks.Recover(ctx, func(ctx context.Context) error {
			_, err := s.healer.Heal(ctx, node.HealOptions{LeaveMapped: true})
			return err
		}); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Could not look at stale mounts")
		}
	})
}

// learn takes a description, and when it began: what hurts pods now, and what no longer does, goes to the log and the event log.
func (s *storage) learn(ctx context.Context, now time.Time, node *extensionv1.Node) {
	s.annotateAt(now, node)
	began, ended := s.history.Learn(now, node)
	names := problem.PodNames(node)
	report := func(hurts bool, message string, problems []problem.Problem) {
		for _, p := range problems {
			var pods []string
			for _, uid := range p.Pods {
				pods = append(pods, cmp.Or(names[uid], uid))
			}
			klog.FromContext(ctx).Info(message, "object", p.Name(), "problem", p.Text, "pods", pods)
			if s.event != nil {
				s.event(hurts, printable.Text(fmt.Sprintf("%s: %s: %s. Pods: %s. Run csi-proxyctl node to see what to do.", message, p.Name(), p.Text, cmp.Or(strings.Join(pods, ", "), "all"))))
			}
		}
	}
	report(true, "A problem of the storage hurts pods", began)
	report(false, "A problem of the storage that hurt pods has ended", ended)
	if s.observer != nil {
		node.Since = nil
		s.history.Fill(now, node)
		s.observer.Storage(node)
	}
}

// storageFor returns the machine as the observer may see it, and which parts: counts reveal nothing
// about what the endpoints do not serve, but asking costs. It has turns of its own, so that on a node
// that hangs it takes none from csi-proxyctl.
func storageFor(cfg Config, endpoints []grpcapi.Endpoint) (*node.Node, []node.Part, error) {
	served := map[string]bool{}
	for _, e := range endpoints {
		served[e.Group] = true
	}
	options := []node.Option{node.SMBHost(cfg.Hosts.SMB)}
	var parts []node.Part
	if served["filesystem"] {
		options, parts = append(options, nodeDirs(cfg)), append(parts, node.Links)
	}
	if served["smb"] {
		parts = append(parts, node.Shares)
	}
	if served["iscsi"] {
		parts = append(parts, node.Sessions)
	}
	machine, err := cfg.Hosts.Node(options...)
	return machine, parts, err
}

// describe describes the node at once, and then every minute, or sooner if the observer wants it and describePause
// allows. It ends with ctx.
func (s *storage) describe(ctx context.Context, describe func(context.Context) (*node.Description, error)) {
	var wanted <-chan struct{}
	if s.observer != nil {
		wanted = s.observer.StorageWanted()
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		begun := time.Now()
		enough, again := time.After(describePause), time.After(describeAgain)
		err := tasks.Recover(ctx, func(ctx context.Context) error {
			found, err := describe(ctx)
			if err == nil {
				s.learn(ctx, begun, grpcapi.WireNode(found))
				s.servers.ask(ctx, begun, found, asking.Go)
				s.judge(ctx, found, asking.Go)
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Could not describe the storage for the metrics")
		}
		select {
		case <-ctx.Done():
			return
		case <-enough:
		}
		select {
		case <-ctx.Done():
			return
		case <-wanted:
		case <-again:
		}
	}
}
