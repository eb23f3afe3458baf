// Package call makes API calls to a node. Callers use the messages of the newest version of each group. The node may
// serve an older one with the same messages.
package call

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/kubernetes-csi/csi-proxy/client/groups"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve/control"
)

// Client makes calls to one node. It is safe for concurrent use. The caller of New closes it.
type Client struct {
	node endpoint.Node
	now  func() time.Time

	mu      sync.Mutex
	groups  map[string]*groups.Conn
	pending []*Pending
}

// New returns a client of a node.
func New(node endpoint.Node, now func() time.Time) *Client {
	return &Client{node: node, now: now, groups: map[string]*groups.Conn{}}
}

// Close ends all connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.groups {
		_ = conn.Close() // fails only when closed before
	}
}

// UnfinishedError says that the caller canceled a call that changes something. The server may
// still complete it.
type UnfinishedError struct{ Err error }

func (e *UnfinishedError) Error() string { return e.Err.Error() }

func (e *UnfinishedError) Unwrap() error { return e.Err }

// Do makes a call of a group.
//
// Errors are gRPC statuses, an *UnfinishedError, or an *endpoint.UnreachableError, also if the server ends during the call.
func (c *Client) Do(ctx context.Context, group, method string, request, response proto.Message) error {
	return c.Private(ctx, group, fmt.Sprintf("/%s/%s", serviceOf(group).FullName(), method), request, response)
}

// Private makes a call of a service that is not published, but is on the endpoints of a group. Path is its full name, such
// as /csiproxy.extension.v1.DiskReadOnly/SetDiskReadOnly. A server without the service answers Unimplemented. Errors are
// those of Do.
func (c *Client) Private(ctx context.Context, group, path string, request, response proto.Message) error {
	c.mu.Lock()
	conn := c.groups[group]
	if conn == nil {
		conn = c.open(group)
		c.groups[group] = conn
	}
	c.mu.Unlock()
	return c.invoke(ctx, conn, path, request, response, func() error {
		again := c.open(group)
		return errors.Join(again.Connect(ctx), again.Close())
	})
}

func (c *Client) open(group string) *groups.Conn {
	return groups.New(group, func(ctx context.Context, version string) (*grpc.ClientConn, error) {
		return c.node.Dial(ctx, endpoint.Name{Group: group, Version: version})
	})
}

// Change makes a change of the emulated node of csi-proxy-sim, in YAML, and returns what it has made. Errors are those
// of Do.
func (c *Client) Change(ctx context.Context, yaml string) (string, error) {
	return c.control(ctx, control.Apply, wrapperspb.String(yaml))
}

// Emulated describes the emulated node of csi-proxy-sim, in YAML. Errors are those of Do.
func (c *Client) Emulated(ctx context.Context) (string, error) {
	return c.control(ctx, control.Describe, &emptypb.Empty{})
}

func (c *Client) control(ctx context.Context, path string, request proto.Message) (string, error) {
	conn, err := c.node.Dial(ctx, endpoint.Control)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	var answer wrapperspb.StringValue
	err = c.invoke(ctx, conn, path, request, &answer, func() error {
		again, err := c.node.Dial(ctx, endpoint.Control)
		if err == nil {
			err = again.Close()
		}
		return err
	})
	return answer.GetValue(), err
}

// invoke makes a call. Redial finds out whether there is still a server.
func (c *Client) invoke(ctx context.Context, conn grpc.ClientConnInterface, method string, in, out proto.Message, redial func() error) error {
	defer c.begin(describe(method, in))()
	err := conn.Invoke(ctx, method, in, out)
	if _, ok := status.FromError(err); !ok || err == nil { // not of the server
		return err
	}
	err = nameLate(diagnose(ctx, withCommands(err), redial), method, in)
	if errors.Is(ctx.Err(), context.Canceled) && changes(path.Base(method)) && !dryRun(in) {
		return &UnfinishedError{err}
	}
	return err
}

func changes(method string) bool {
	return !slices.ContainsFunc([]string{"Get", "List", "Is", "PathExists", "Describe", "Discover", "Check"}, func(prefix string) bool {
		return strings.HasPrefix(method, prefix)
	})
}

// dryRun reports whether a request only asks what would change.
func dryRun(request proto.Message) bool {
	message := request.ProtoReflect()
	field := message.Descriptor().Fields().ByName("dry_run")
	return field != nil && message.Get(field).Bool()
}

// lateText is our text for a server that ends a call at the deadline.
const lateText = "the server did not answer in time"

// diagnose connects again to find out whether Unavailable means that the server is gone. A
// server also answers Unavailable for a disk or a file server.
func diagnose(ctx context.Context, err error, redial func() error) error {
	if endedByServer(ctx, err) {
		return status.Error(codes.DeadlineExceeded, lateText)
	}
	if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
		return err
	}
	switch dialErr := redial(); {
	case dialErr == nil:
		return err
	case endpoint.Gone(dialErr):
		return &endpoint.UnreachableError{Err: fmt.Errorf("the server ended during the call, which may have taken effect: %w", dialErr), Ended: true}
	default: // for example a full queue of connections
		return &endpoint.UnreachableError{Err: fmt.Errorf("the server does not accept connections: it hangs, or another process owns the pipe: %w", dialErr), Ended: true}
	}
}

// endedByServer reports whether the server noticed the deadline before we did and reset the
// stream. gRPC then reports a frame, and maybe Canceled.
func endedByServer(ctx context.Context, err error) bool {
	s, ok := status.FromError(err)
	if _, limited := ctx.Deadline(); !ok || !limited || errors.Is(ctx.Err(), context.Canceled) {
		return false
	}
	return (s.Code() == codes.Canceled || s.Code() == codes.DeadlineExceeded) && strings.Contains(s.Message(), "RST_STREAM")
}

// Messages returns an empty request and response of a call.
func Messages(group, method string) (request, response proto.Message) {
	found := serviceOf(group).Methods().ByName(protoreflect.Name(method))
	empty := func(message protoreflect.MessageDescriptor) proto.Message {
		kind, _ := protoregistry.GlobalTypes.FindMessageByName(message.FullName()) // generated code registers it
		return kind.New().Interface()
	}
	return empty(found.Input()), empty(found.Output())
}

// serviceOf returns the service of a group in its newest version, which commands link.
func serviceOf(group string) protoreflect.ServiceDescriptor {
	name := endpoint.Name{Group: group, Version: endpoint.Newest(group)}
	file, _ := protoregistry.GlobalFiles.FindFileByPath("github.com/kubernetes-csi/csi-proxy/client/api/" + name.String() + "/api.proto")
	return file.Services().Get(0)
}
