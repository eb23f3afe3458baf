package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/metrics"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/service"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/serve"
)

// options are the flags that only the simulator has.
type options struct {
	model, preset, faults, socketDir, files, state string
	seed                                           uint64
	realTime                                       bool // always, but in tests
}

func (o *options) register(set *flag.FlagSet) {
	set.StringVar(&o.model, "model", "", "YAML `file` that describes the node")
	set.StringVar(&o.preset, "preset", "default", "`name` of a built-in node: "+strings.Join(winsim.Presets(), ", "))
	set.StringVar(&o.faults, "faults", "", "YAML `file` with faults to inject")
	set.Uint64Var(&o.seed, "seed", 0, "seed for random faults (default: the model's)")
	set.StringVar(&o.files, "files", "", filesUsage)
	set.StringVar(&o.state, "state", "", stateUsage)
	set.StringVar(&o.socketDir, "socket-dir", "", "`directory` of the Unix sockets (default: $CSI_PROXY_SOCKET_DIR, else the runtime directory)")
}

func (o *options) serve(ctx context.Context, flags *daemon.Flags, notify service.Notify) error {
	node, closeState, err := o.node()
	if err != nil {
		return daemon.UsageError{Err: err}
	}
	defer closeState()
	stop, err := o.mirror(ctx, node, flags.AllowedDirs())
	if err != nil {
		return daemon.UsageError{Err: fmt.Errorf("-files: %w", err)}
	}
	defer stop()
	cfg := serve.Config{
		SocketDir:       o.socketDir,
		APIGroups:       flags.APIGroups,
		WorkingDirs:     flags.AllowedDirs(),
		AllowedServices: flags.AllowedServices,
		StopTimeout:     flags.StopTimeout,
		FormatOver:      flags.FormatOver,
		NoPrivacy:       !flags.Privacy,
		Ready:           notify.Ready,
	}
	if flags.MetricsAddress == "" {
		return serve.Run(ctx, node, cfg)
	}
	m := metrics.New(metrics.Config{ // without calls to Windows: there are none
		Version: version.String(),
		SMBMappings: func(ctx context.Context) (int, error) {
			mappings, err := node.SMBMappings(ctx)
			return len(mappings), err
		},
	})
	cfg.Observer = m
	cfg.Ready = func() { m.Ready(); notify.Ready() }
	return m.Run(ctx, flags.MetricsAddress, func(ctx context.Context) error { return serve.Run(ctx, node, cfg) })
}

// node builds the node that the flags describe.
func (o *options) node() (_ *winsim.Node, closeState func(), err error) {
	model, ok := winsim.Preset(o.preset)
	if !ok {
		return nil, nil, fmt.Errorf("-preset: there is no %q; known are %s", o.preset, strings.Join(winsim.Presets(), ", "))
	}
	if o.model != "" {
		loaded, err := load(o.model, winsim.LoadModel)
		if err != nil {
			return nil, nil, fmt.Errorf("-model: %w", err)
		}
		model = loaded
	}
	if o.seed != 0 {
		model.Seed = o.seed
	}
	model.RealTime = o.realTime
	var faults []winsim.Fault
	if o.faults != "" {
		if faults, err = load(o.faults, winsim.LoadFaults); err != nil {
			return nil, nil, fmt.Errorf("-faults: %w", err)
		}
	}
	node, closeState, err := o.open(model)
	if err != nil {
		return nil, nil, err
	}
	for _, fault := range faults {
		if _, err := node.Inject(fault); err != nil {
			closeState()
			return nil, nil, fmt.Errorf("-faults: %w", err)
		}
	}
	return node, closeState, nil
}

func load[T any](path string, parse func(io.Reader, string) (T, error)) (T, error) {
	file, err := os.Open(path)
	if err != nil {
		var none T
		return none, err
	}
	defer file.Close()
	return parse(file, path)
}
