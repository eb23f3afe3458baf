package main

import (
	"context"
	"errors"
	"runtime"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// onDrives is the value of -files that mirrors files at their own paths.
const onDrives = "drives"

const filesUsage = "mirror the node's files in this `directory`, for drivers that open files themselves: C:\\ is DIR/C; " +
	"the directory must be empty or used by csi-proxy-sim before, and each start empties it; on Windows \"" + onDrives + "\" mirrors the working directories at their own paths (default: keep files in memory)"

// mirror mirrors the node's files as -files says, until stop is called.
func (o *options) mirror(ctx context.Context, node *winsim.Node, workingDirs []string) (stop func(), err error) {
	report := func(err error) {
		klog.FromContext(ctx).Info("Mirroring the node's files is incomplete", "err", err)
	}
	switch {
	case o.files == "":
		return func() {}, nil
	case o.files != onDrives:
		return node.Mirror(o.files, report)
	case runtime.GOOS != "windows":
		return nil, errors.New(`"drives" works only on Windows; use a directory (or ./drives if that is its name)`)
	default:
		return node.MirrorDrives(workingDirs, report)
	}
}
