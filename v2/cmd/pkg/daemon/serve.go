package daemon

import (
	"cmp"
	"context"
	"net"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Config says what Serve serves, and where.
type Config struct {
	Hosts       Hosts
	WorkingDirs []string
	// UnsafeWorkingDirs accepts roots of drives and folders of Windows, programs and users.
	UnsafeWorkingDirs bool
	// AllowedServices are the services that requests can start and stop, see
	// system.AllowedServices; empty means none.
	AllowedServices []string
	NoPrivacy       bool // SMB servers need not encrypt
	RefuseOtherUser bool // see smb.RefuseOtherUser
	Format          volumeapi.FormatOptions
	Heal            HealMode
	StaleMounts     StaleObserver   // may be nil
	Storage         StorageObserver // may be nil
	// StorageEvent is called when a problem of the storage begins to hurt pods, and when it ends; may be nil. Without it
	// and Storage, the daemon looks at the storage only if it is asked to.
	StorageEvent func(hurts bool, text string)
	FullVolumes  problem.Limits // zero means the default
	LeaveShares  bool           // the daemon's own look opens no share
	APIGroups    []string       // see grpcapi.Select
	Pipe         pipe.Config
	SocketDir    string // of Unix sockets; empty means client.SocketDir
	// Listen replaces pipes and sockets, for clients in the same process; may be nil.
	Listen      func(group, version string) (net.Listener, error)
	StopTimeout time.Duration
	Observer    server.Observer // may be nil
	Progress    func()          // called when another endpoint listens; may be nil
	Ready       func()          // called when all endpoints listen; may be nil
}

// Observe makes the daemon report to m, and describe its storage for m if storage is set.
func (c *Config) Observe(m interface {
	server.Observer
	StaleObserver
	StorageObserver
	Ready()
}, storage bool,
) {
	ready := c.Ready
	c.Observer, c.StaleMounts, c.Ready = m, m, func() { m.Ready(); ready() }
	if storage {
		c.Storage = m
	}
}

// Serve runs the API of a machine until ctx ends.
func Serve(ctx context.Context, cfg Config) error {
	endpoints, err := grpcapi.Select(cfg.APIGroups)
	if err != nil {
		return UsageError{err}
	}
	services, whole, err := Services(cfg, endpoints)
	if err != nil {
		return UsageError{err}
	}
	known := &storage{limits: cmp.Or(cfg.FullVolumes, problem.DefaultLimits), observer: cfg.Storage, event: cfg.StorageEvent}
	known.healer, _ = services.Healer.(*healer)
	services.Annotate = known.annotate
	var look func(context.Context) (*node.Description, error)
	if cfg.Storage != nil || cfg.StorageEvent != nil {
		machine, parts, err := storageFor(cfg, endpoints)
		if err != nil {
			return UsageError{err}
		}
		look = func(ctx context.Context) (*node.Description, error) { return machine.Describe(ctx, parts...) }
		if !cfg.LeaveShares {
			known.servers.open = machine.OpenShares
		}
	}
	// What runs in the background ends before Serve returns.
	var background sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); background.Wait() }()
	return server.Run(ctx, server.Config{
		Endpoints:   endpoints,
		Services:    services,
		StopTimeout: cfg.StopTimeout,
		Observer:    cfg.Observer,
		Failures:    &known.failures,
		Listen: func(ctx context.Context, e grpcapi.Endpoint) (net.Listener, error) {
			if cfg.Listen != nil {
				return cfg.Listen(e.Group, e.Version)
			}
			path, err := endpointPath(e, cfg.SocketDir)
			if err != nil {
				return nil, err
			}
			listener, err := pipe.Listen(ctx, path, cfg.Pipe)
			if err == nil && cfg.Progress != nil {
				cfg.Progress()
			}
			return listener, err
		},
		Ready: func() {
			klog.FromContext(ctx).Info("Serving", "version", version.String(), "endpoints", len(endpoints), "workingDirs", cfg.WorkingDirs, "allowedServices", cfg.AllowedServices)
			if cfg.Ready != nil {
				cfg.Ready()
			}
			if h, ok := services.Healer.(*healer); ok {
				background.Go(func() { repeat(ctx, "look whether volumes are back", recheckPause, h.Recheck) })
			}
			background.Go(func() { repeat(ctx, "look at unlinked mounts", unlinkedPause, whole.RemoveUnlinked) })
			if services.Healer != nil && cfg.Heal != "" && cfg.Heal != HealOff {
				background.Go(func() { healAtStart(ctx, services.Healer, cfg.Heal) })
			}
			if look != nil {
				background.Go(func() { known.describe(ctx, look) })
			}
		},
	})
}

// endpointPath returns the path where clients look for an endpoint, in socketDir if it is set.
// Named pipes have no directory.
func endpointPath(e grpcapi.Endpoint, socketDir string) (string, error) {
	v, err := apiversion.NewVersion(e.Version)
	if err != nil {
		return "", err
	}
	path := client.PipePath(e.Group, v)
	if socketDir != "" && client.SocketDir() != "" {
		path = filepath.Join(socketDir, filepath.Base(path))
	}
	return path, nil
}
