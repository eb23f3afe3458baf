package grpcapi

import (
	"context"
	"fmt"
	"time"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/shared"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// fullTime is the least time of a caller that shares descriptions. With less, the inspector hurries, and so
// may leave out what others have time for.
const fullTime = 8 * time.Second

// gather is how long a description waits for other callers. A small node is described in a few milliseconds.
const gather = 2 * time.Millisecond

// maxWait is how long a description waits for one that has begun before. That may wait for what hangs, and a person
// waits for both.
const maxWait = 500 * time.Millisecond

// descriptions lets callers that ask at the same time share a description.
type descriptions struct {
	inspector Inspector
	annotate  func(*extensionv1.Node)              // may be nil
	underWay  *shared.Answers[string, description] // by their parts
}

// description is one that is under way.
type description struct{ response *extensionv1.Node }

func newDescriptions(inspector Inspector, annotate func(*extensionv1.Node)) *descriptions {
	return &descriptions{inspector: inspector, annotate: annotate, underWay: shared.New[string, description](gather, maxWait)}
}

// describe returns a description that begins after the call.
func (s *descriptions) describe(ctx context.Context, parts ...node.Part) (*extensionv1.Node, error) {
	underWay, limit := s.underWay, time.Time{}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < fullTime {
		underWay, limit = shared.New[string, description](0, 0), deadline
	}
	d := underWay.Join(ctx, fmt.Sprint(parts), func(ctx context.Context, d *description) error {
		if !limit.IsZero() {
			limited, cancel := context.WithDeadline(ctx, limit)
			defer cancel()
			ctx = limited
		}
		found, err := s.inspector.Describe(ctx, parts...)
		if err == nil {
			d.response = WireNode(found)
		}
		if err == nil && s.annotate != nil {
			s.annotate(d.response)
		}
		return err
	})
	defer d.Leave()
	if err := d.Wait(ctx); err != nil {
		if ended := ctx.Err(); ended != nil {
			err = winerr.Wrap("describe node", "", ended)
		}
		return nil, err
	}
	return d.Value.response, nil
}
