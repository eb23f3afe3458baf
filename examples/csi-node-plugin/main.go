// Csi-node-plugin is the node part of a small CSI driver for Windows. It shows how a driver
// uses CSI Proxy in both of its forms from one code base:
//
//	csi-node-plugin -mode=proxy      an ordinary container; the daemon csi-proxy.exe does the work
//	csi-node-plugin -mode=library    a HostProcess container; the work is done in this process
//
// See the README beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/kubernetes-csi/csi-proxy/examples/csi-node-plugin/internal/plugin"
	"github.com/kubernetes-csi/csi-proxy/mounter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stderr); {
	case err == nil, errors.Is(err, flag.ErrHelp):
	default:
		fmt.Fprintf(os.Stderr, "csi-node-plugin: %v\n", err)
		os.Exit(1)
	}
}

// run serves CSI until ctx ends.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("csi-node-plugin", flag.ContinueOnError)
	flags.SetOutput(stderr)
	mode := flags.String("mode", "proxy", "`how` to reach the node's storage: proxy or library")
	endpoint := flags.String("endpoint", `unix://C:\csi\csi.sock`, "`address` of the CSI socket")
	nodeID := flags.String("node-id", os.Getenv("NODE_NAME"), "`name` of this node; default is $NODE_NAME")
	kubelet := flags.String("kubelet-path", `C:\var\lib\kubelet`, "`directory` of the kubelet; the plugin touches nothing outside it")
	name := flags.String("driver-name", "csi-node-plugin.example.com", "`name` of the driver")
	controller := flags.Bool("controller", false, "the driver has a controller, on another node")
	switch err := flags.Parse(args); {
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *nodeID == "":
		return errors.New("set -node-id or NODE_NAME")
	}

	socket, err := socketPath(*endpoint)
	if err != nil {
		return err
	}
	var options []mounter.Option
	switch *mode {
	case "proxy":
		options = []mounter.Option{mounter.WithMode(mounter.Daemon), mounter.WithWait()}
	case "library":
		// A HostProcess container has no other limit.
		options = []mounter.Option{mounter.WithMode(mounter.Library), mounter.WithWorkingDirs(*kubelet)}
	default:
		return fmt.Errorf("-mode must be proxy or library, got %q", *mode)
	}
	m, err := mounter.New(ctx, options...)
	if err != nil {
		return err
	}
	defer m.Close()
	// The library compiles on every system. It is better to say now that it cannot work than with
	// every request.
	if _, err := m.WithContext(ctx).IsLikelyNotMountPoint(*kubelet); errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("-mode=%s cannot work on %s; use -mode=proxy: %w", *mode, runtime.GOOS, err)
	}

	listener, err := listen(ctx, socket)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	log.Info("Serving", "mode", *mode, "endpoint", *endpoint, "version", version())
	return plugin.Serve(ctx, listener, plugin.Config{
		Name:        *name,
		Version:     version(),
		NodeID:      *nodeID,
		Controller:  *controller,
		KubeletPath: *kubelet,
		Mounter:     m,
		Log:         log,
	})
}

// listen opens the CSI socket. It replaces one that an earlier process left, and creates its
// directory: in a HostProcess container nothing is mounted there, so kubelet has not created it.
func listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var config net.ListenConfig
	return config.Listen(ctx, "unix", path)
}

// socketPath returns the path of an endpoint. Manifests have unix://C:\csi\csi.sock,
// unix:/csi/csi.sock and unix:/C:\csi\csi.sock, whose slash before the drive is not part of it.
func socketPath(endpoint string) (string, error) {
	path, ok := strings.CutPrefix(endpoint, "unix:")
	path = strings.TrimPrefix(path, "//")
	if !ok || path == "" {
		return "", fmt.Errorf("-endpoint must be unix://PATH, got %q", endpoint)
	}
	if len(path) > 2 && path[0] == '/' && path[2] == ':' {
		path = path[1:]
	}
	return path, nil
}

// version is the module's, if "go install" built this program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
