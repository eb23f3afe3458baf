package main

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const stateUsage = "`file` in which the node's state is kept: a simulator that was stopped or killed goes on with it; " +
	"it is made if it is missing, needs the same -model or -preset each time, and cannot be combined with -files (default: each start is a new node)"

// open makes the node of a model, or the one whose state is in the file.
func (o *options) open(model winsim.Model) (*winsim.Node, func(), error) {
	switch {
	case o.state != "" && o.files != "":
		return nil, nil, errors.New("-state and -files cannot be combined: what is in the directory of -files is emptied at each start")
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

// stateLost ends the simulator at once: an answer to what was just done, or to what others are
// about to do, would not be true after the next start.
func stateLost(err error) {
	klog.ErrorS(err, "The state of the node cannot be kept any more")
	klog.Flush()
	os.Exit(daemon.ExitFailure)
}
