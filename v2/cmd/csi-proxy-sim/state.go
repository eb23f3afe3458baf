package main

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const stateUsage = "save the node's state in this `file`, and continue from it after a stop or a crash; " +
	"use the same -model or -preset each time; cannot be combined with -files (default: each start is a new node)"

// open returns a new node, or the node whose state is in the file.
func (o *options) open(model winsim.Model) (*winsim.Node, func(), error) {
	switch {
	case o.state != "" && o.files != "":
		return nil, nil, errors.New("-state and -files cannot be combined; each start empties the directory of -files")
	case o.state != "":
		node, closeFile, err := winsim.Open(model, o.state, stateLost)
		if _, wrong := errors.AsType[*winsim.ModelError](err); wrong {
			return nil, nil, fmt.Errorf("-model: %w", err)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("-state: %w", err)
		}
		return node, closeFile, nil
	default:
		node, err := winsim.New(model)
		if err != nil {
			return nil, nil, fmt.Errorf("-model: %w", err)
		}
		return node, func() {}, nil
	}
}

// stateLost ends the simulator at once: after the next start its answers would be wrong.
func stateLost(err error) {
	klog.ErrorS(err, "Saving the state of the node failed")
	klog.Flush()
	os.Exit(daemon.ExitFailure)
}
