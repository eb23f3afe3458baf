//go:build linux

// Package rig puts the rig together: a driver and a COM server under Wine, behind them an
// emulated node, and before them the daemon as it is.
package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

// The files of a rig.
const (
	driverFile     = "winsim.sys"
	comServerFile  = "winsimwmi.dll"
	nodeServerFile = "nodeserver.exe"
	callerFile     = "caller.exe"
	daemonFile     = "csi-proxy.exe"
)

const output = "bin/wine"

// Build builds all files of a rig, into bin/wine.
func Build(ctx context.Context) error {
	root, err := prefix.Root()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, output)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as the linker makes it
		return err
	}
	gcc, err := prefix.InstallCompiler(ctx)
	if err != nil {
		return err
	}
	for name, source := range map[string]string{driverFile: "driver", comServerFile: "wmi"} {
		if err := run(ctx, root, filepath.Join(root, "v2", "test", "wine", source, "build.sh"), gcc, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return run(ctx, root, "go", "build", "-trimpath", "-buildvcs=false", "-tags="+prefix.Tags, "-o", dir+"/",
		"./v2/cmd/csi-proxy", "./v2/test/wine/nodeserver", "./v2/test/wine/caller")
}

func run(ctx context.Context, dir, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // of this repository, and the go command
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, output)
	}
	return nil
}
