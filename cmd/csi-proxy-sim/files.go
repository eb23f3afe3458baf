package main

import (
	"context"
	"errors"
	"runtime"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// onDrives is the value of -files that shows files at their own paths.
const onDrives = "drives"

const filesUsage = "`directory` in which the node's files are real files, for drivers that look at them by themselves: C:\\ is DIR/C; " +
	"it must be empty or have been used for this, and is emptied; on Windows \"" + onDrives + "\" shows the working directories at their own paths (default: in memory only)"

// mirror shows the node's files where -files says, until stop is called.
func (o *options) mirror(ctx context.Context, node *winsim.Node, workingDirs []string) (stop func(), err error) {
	report := func(err error) {
		klog.FromContext(ctx).Info("Some of the node's files are not what they are in the real directory", "err", err)
	}
	switch {
	case o.files == "":
		return func() {}, nil
	case o.files != onDrives:
		return node.Mirror(o.files, report)
	case runtime.GOOS != "windows":
		return nil, errors.New(`"drives" is for Windows, which has them: name a directory (./drives, if it has that name)`)
	default:
		return node.MirrorDrives(workingDirs, report)
	}
}
