package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const stateUsage = "`file` in which the node's state is kept: a simulator that was stopped or killed goes on with it; " +
	"it is made if it is missing, needs the same -model or -preset each time, and cannot be combined with -files (default: each start is a new node)"

// errState is why the simulator ends if the state cannot be kept: answers that it gave would
// not be true after the next start.
var errState = errors.New("-state")

// open makes the node of a model, or the one whose state is in the file.
func (o *options) open(model winsim.Model, fail func(error)) (*winsim.Node, func(), error) {
	switch {
	case o.state != "" && o.files != "":
		return nil, nil, errors.New("-state and -files cannot be combined: what is in the directory of -files is emptied at each start")
	case o.state != "":
		node, closeFile, err := winsim.Open(model, o.state, func(err error) { fail(fmt.Errorf("%w: %w", errState, err)) })
		if _, wrong := errors.AsType[*winsim.ModelError](err); wrong {
			return nil, nil, fmt.Errorf("-model: %w", err)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errState, err)
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

// stateFailure is how serving ended: with err, unless it was stopped because the state could
// not be kept.
func stateFailure(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err == nil && errors.Is(cause, errState) {
		return cause
	}
	return err
}
