package grpcapi

import (
	"context"
	"fmt"
	"sync"
	"time"

	inspectv1 "github.com/kubernetes-csi/csi-proxy/client/extension/inspect/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/guard"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// fullTime is the least time of a caller that shares descriptions. With less, the inspector hurries, and so
// may leave out what others have time for.
const fullTime = 40 * time.Second

// descriptions lets callers that ask at the same time share a description: that of a large node takes tens of
// thousands of calls to Windows.
//
// A description that has begun can lack what a caller changed just before it asked. So no caller gets it that
// came later: they wait for it, but not for long, and then share the next one.
type descriptions struct {
	inspector Inspector

	mu    sync.Mutex
	next  map[string]*description // that has not begun, by its parts
	begun map[string]*description // that has begun last
}

// description is one that is under way.
type description struct {
	parts   string // those it has, if it is shared
	waits   node.Waits
	cancel  context.CancelFunc
	callers int

	done     chan struct{} // closed when the rest is there
	response *inspectv1.DescribeNodeResponse
	err      error
}

func newDescriptions(inspector Inspector) *descriptions {
	return &descriptions{inspector: inspector, next: map[string]*description{}, begun: map[string]*description{}}
}

// describe returns a description that begins after the call.
func (s *descriptions) describe(ctx context.Context, parts ...node.Part) (*inspectv1.DescribeNodeResponse, error) {
	d := s.join(ctx, parts)
	defer s.leave(d)
	defer tellWaits(ctx, &d.waits)()
	select {
	case <-d.done:
		return d.response, d.err
	case <-ctx.Done():
		return nil, winerr.Wrap("describe node", "", ctx.Err())
	}
}

// join returns the next description, and starts it for the first caller.
func (s *descriptions) join(ctx context.Context, parts []node.Part) *description {
	d := &description{callers: 1, done: make(chan struct{})}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < fullTime {
		ctx, d.cancel = context.WithCancel(ctx)
		go s.make(ctx, d, nil, parts)
		return d
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d.parts = fmt.Sprint(parts)
	if next := s.next[d.parts]; next != nil {
		next.callers++
		return next
	}
	s.next[d.parts] = d
	ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go s.make(ctx, d, s.begun[d.parts], parts)
	return d
}

// leave ends a description that no caller waits for.
func (s *descriptions) leave(d *description) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.callers--; d.callers > 0 {
		return
	}
	d.cancel()
	if s.next[d.parts] == d {
		delete(s.next, d.parts)
	}
}

// make makes a description when the one before is ready, or seems to take long.
func (s *descriptions) make(ctx context.Context, d, before *description, parts []node.Part) {
	defer close(d.done)
	if before != nil {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-before.done:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if d.parts != "" {
		s.begin(d)
		defer s.end(d)
	}
	d.err = guard.Run(ctx, func(ctx context.Context) error {
		found, err := s.inspector.Describe(node.WithWaits(ctx, &d.waits), parts...)
		if err == nil {
			d.response = WireNode(found)
		}
		return err
	})
}

// begin makes callers from now on wait for the next description.
func (s *descriptions) begin(d *description) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next[d.parts] == d {
		delete(s.next, d.parts)
	}
	s.begun[d.parts] = d
}

func (s *descriptions) end(d *description) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun[d.parts] == d {
		delete(s.begun, d.parts)
	}
}
