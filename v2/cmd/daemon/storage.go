package daemon

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/grpcapi"
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

// describePause is the least time from the start of one description to the start of the next. A
// description of a large node makes thousands of calls to Windows.
const describePause = 30 * time.Second

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

// describe describes the node at once, and then whenever the observer wants it, but not more often than
// describePause allows. It ends with ctx.
func describe(ctx context.Context, observer StorageObserver, look func(context.Context) (*node.Description, error), after func(time.Duration) <-chan time.Time) {
	for {
		enough := after(describePause)
		err := tasks.Recover(ctx, func(ctx context.Context) error {
			found, err := look(ctx)
			if err == nil {
				observer.Storage(grpcapi.WireNode(found))
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
		case <-observer.StorageWanted():
		}
	}
}
