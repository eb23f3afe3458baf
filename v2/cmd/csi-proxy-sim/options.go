package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/metrics"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/service"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const controlUsage = "serve the control service at this `address`, so that csi-proxyctl sim can attach, grow and fail disks while the node runs: " +
	"the path of a Unix socket, on Windows the name of a pipe, or \"" + serve.DefaultControl + "\" for one beside the other endpoints (default: none)"

type options struct {
	model, preset, faults, socketDir, files, control string
	seed                                             uint64
}

func (o *options) register(set *flag.FlagSet) {
	set.StringVar(&o.model, "model", "", "YAML `file` that describes the node")
	set.StringVar(&o.preset, "preset", "default", "`name` of a built-in node: "+strings.Join(winsim.Presets(), ", "))
	set.StringVar(&o.faults, "faults", "", "YAML `file` of faults to inject")
	set.Uint64Var(&o.seed, "seed", 0, "seed for random faults (default: the seed of the model)")
	set.StringVar(&o.files, "files", "", filesUsage)
	set.Func("control", controlUsage, func(address string) error {
		if strings.HasPrefix(address, "-") { // the flag after it
			return errors.New(`it needs an address, or "default"`)
		}
		o.control = address
		return nil
	})
	set.StringVar(&o.socketDir, "socket-dir", "", "`directory` of the Unix sockets (default: $CSI_PROXY_SOCKET_DIR, $XDG_RUNTIME_DIR/csi-proxy or csi-proxy-UID in the temporary directory)")
}

func (o *options) serve(ctx context.Context, flags *daemon.Flags, notify service.Notify) error {
	node, err := o.node()
	if err != nil {
		return daemon.UsageError{Err: err}
	}
	stop, err := o.mirror(ctx, node, flags.AllowedDirs())
	if err != nil {
		return daemon.UsageError{Err: fmt.Errorf("-files: %w", err)}
	}
	defer stop()
	cfg := serve.Config{Config: flags.Config(notify), FormatOver: flags.FormatOver, Control: o.control}
	cfg.SocketDir = o.socketDir
	cfg.Ready = func() { o.printReady(); notify.Ready() }
	if flags.MetricsAddress == "" {
		return serve.Run(ctx, node, cfg)
	}
	m := metrics.New(metrics.Config{Storage: flags.StorageMetrics, Version: version.String()}) // no calls to Windows to count
	cfg.Observe(m, flags.StorageMetrics)
	return m.Run(ctx, flags.MetricsAddress, func(ctx context.Context) error { return serve.Run(ctx, node, cfg) })
}

// printReady shows at a terminal where the node is and what to type next.
func (o *options) printReady() {
	ctl := filepath.Join(filepath.Dir(os.Args[0]), "csi-proxyctl")
	dir := client.SocketDir()
	switch {
	case dir == "":
		fmt.Fprintf(os.Stdout, "Ready on the named pipes of csi-proxy. In another terminal, run: %s node\n", ctl)
	case o.socketDir == "":
		fmt.Fprintf(os.Stdout, "Ready on the sockets in %s. In another terminal, run: %s node\n", dir, ctl)
	default:
		fmt.Fprintf(os.Stdout, "Ready on the sockets in %s. In another terminal, run: %s node --endpoint-dir %[1]s\n", o.socketDir, ctl)
	}
	if o.control != "" {
		fmt.Fprintf(os.Stdout, "To change the node while it runs, run: %s sim --control %s show\n", ctl, serve.ControlPath(o.control, o.socketDir))
	}
}

func (o *options) node() (node *winsim.Node, err error) {
	model, ok := winsim.Preset(o.preset)
	if !ok {
		return nil, fmt.Errorf("-preset: unknown preset %q; use one of %s", o.preset, strings.Join(winsim.Presets(), ", "))
	}
	if o.model != "" {
		loaded, err := load(o.model, winsim.LoadModel)
		if err != nil {
			return nil, fmt.Errorf("-model: %w", err)
		}
		model = loaded
	}
	if o.seed != 0 {
		model.Seed = o.seed
	}
	model.RealTime = true
	var faults []winsim.Fault
	if o.faults != "" {
		if faults, err = load(o.faults, winsim.LoadFaults); err != nil {
			return nil, fmt.Errorf("-faults: %w", err)
		}
	}
	if node, err = winsim.New(model); err != nil {
		return nil, fmt.Errorf("-model: %w", err)
	}
	for _, fault := range faults {
		if _, err := node.Inject(fault); err != nil {
			return nil, fmt.Errorf("-faults: %w", err)
		}
	}
	return node, nil
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
