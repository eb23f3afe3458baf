// Package call makes API calls to a node. Callers use the messages of the newest version of
// each group; package call translates to the requested version, or to the newest one that the
// node serves.
package call

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve/control"
)

// Client makes calls to one node. It is safe for concurrent use. The caller of New closes it.
type Client struct {
	node    endpoint.Node
	version string   // empty: the newest that the node serves
	groups  []string // to which version applies; empty: all groups that have it

	now func() time.Time

	mu      sync.Mutex
	conns   map[endpoint.Name]*grpc.ClientConn
	served  map[string]string // group -> newest version that the node serves
	pending []*Pending
}

// New returns a client of a node. The version applies to the groups given, and calls fail if
// the group does not have it. Without groups it applies to all that have it. Other groups use
// the newest version that the node serves.
func New(node endpoint.Node, version string, groups ...string) *Client {
	return &Client{node: node, version: version, groups: groups, now: time.Now, conns: map[endpoint.Name]*grpc.ClientConn{}, served: map[string]string{}}
}

// WithClock replaces the clock, for tests.
func (c *Client) WithClock(now func() time.Time) *Client {
	c.now = now
	return c
}

// Close ends all connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close() // fails only when closed before
	}
	clear(c.conns)
}

// VersionError says that the version in use does not have a call.
type VersionError struct {
	text string
	// Asked says that the user asked for this version; else the node has no newer one.
	Asked bool
}

func (e *VersionError) Error() string { return e.text }

// Absent reports whether an error is a *VersionError.
func Absent(err error) bool {
	return errors.As(err, new(*VersionError))
}

// UnfinishedError says that the caller canceled a call that changes something. The server may
// still complete it.
type UnfinishedError struct{ Err error }

func (e *UnfinishedError) Error() string { return e.Err.Error() }

func (e *UnfinishedError) Unwrap() error { return e.Err }

// Do makes a call. Request, response and method name are those of the newest version.
//
// Errors are gRPC statuses, a *VersionError, an *UnfinishedError, or an
// *endpoint.UnreachableError, also if the server ends during the call.
func (c *Client) Do(ctx context.Context, group, method string, request, response proto.Message) error {
	name, target, err := c.find(ctx, group, method)
	if err != nil {
		return err
	}
	in, out := request, response
	if name.Version != endpoint.Newest(group) {
		in, out = target.input.New().Interface(), target.output.New().Interface()
		if err := toOlder(name, request.ProtoReflect(), in.ProtoReflect()); err != nil {
			return c.explainVersion(group, err)
		}
	}
	if err := c.invoke(ctx, name, target.path, changes(method), in, out); err != nil {
		return err
	}
	if name.Version != endpoint.Newest(group) {
		return toNewest(out.ProtoReflect(), response.ProtoReflect())
	}
	return nil
}

// Change makes a change of the emulated node of csi-proxy-sim, in YAML, and returns what it has made. Errors are those
// of Do.
func (c *Client) Change(ctx context.Context, yaml string) (string, error) {
	var changed wrapperspb.StringValue
	err := c.invoke(ctx, endpoint.Control, control.Apply, true, wrapperspb.String(yaml), &changed)
	return changed.GetValue(), err
}

// Emulated describes the emulated node of csi-proxy-sim, in YAML. Errors are those of Do.
func (c *Client) Emulated(ctx context.Context) (string, error) {
	var node wrapperspb.StringValue
	err := c.invoke(ctx, endpoint.Control, control.Describe, false, &emptypb.Empty{}, &node)
	return node.GetValue(), err
}

// Private makes a call of a service that is not published, but is on the endpoints of a group.
// path is its full name, such as /csiproxy.extension.v1.DiskReadOnly/SetDiskReadOnly. A server
// without the service answers Unimplemented. Errors are those of Do.
func (c *Client) Private(ctx context.Context, group, path string, request, response proto.Message) error {
	name, err := c.locate(ctx, group)
	if err == nil {
		err = c.explainVersion(group, checkVersion(name))
	}
	if err != nil {
		return err
	}
	return c.invoke(ctx, name, path, changes(path[strings.LastIndexByte(path, '/')+1:]) && !dryRun(request), request, response)
}

func (c *Client) invoke(ctx context.Context, name endpoint.Name, path string, changes bool, in, out proto.Message) error {
	defer c.Begin(ctx, describe(path, in))()
	conn, err := c.connect(ctx, name)
	if err != nil {
		return err
	}
	if err := conn.Invoke(ctx, path, in, out); err != nil {
		err = nameLate(c.diagnose(ctx, name, withCommands(err)), path, in)
		if errors.Is(ctx.Err(), context.Canceled) && changes {
			return &UnfinishedError{err}
		}
		return err
	}
	return nil
}

func (c *Client) find(ctx context.Context, group, method string) (endpoint.Name, target, error) {
	name, err := c.locate(ctx, group)
	if err != nil {
		return name, target{}, err
	}
	found, err := resolve(name, method)
	return name, found, c.explainVersion(group, err)
}

func (c *Client) locate(ctx context.Context, group string) (endpoint.Name, error) {
	if version := c.asked(group); version != "" {
		return endpoint.Name{Group: group, Version: version}, nil
	}
	return c.newest(ctx, group)
}

// explainVersion adds to a *VersionError why this version is in use.
func (c *Client) explainVersion(group string, err error) error {
	if absent := (*VersionError)(nil); errors.As(err, &absent) {
		if absent.Asked = c.asked(group) != ""; !absent.Asked {
			absent.text += "; this node serves no newer version"
		}
	}
	return err
}

// asked returns the version that the user asked for, or "".
func (c *Client) asked(group string) string {
	if slices.Contains(c.groups, group) || len(c.groups) == 0 && slices.Contains(endpoint.Versions(group), c.version) {
		return c.version
	}
	return ""
}

// newest finds the newest version of a group that the node serves. If it serves none, newest
// returns the error of the newest version.
func (c *Client) newest(ctx context.Context, group string) (endpoint.Name, error) {
	c.mu.Lock()
	name := endpoint.Name{Group: group, Version: c.served[group]}
	c.mu.Unlock()
	if name.Version != "" {
		return name, nil
	}
	var first error
	for _, version := range slices.Backward(endpoint.Versions(group)) {
		name.Version = version
		_, err := c.connect(ctx, name)
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.served[group] = version
			return name, nil
		}
		if first == nil {
			first = err
		}
		if !errors.Is(err, fs.ErrNotExist) { // it exists, but we cannot connect
			break
		}
	}
	return name, first
}

// connect returns the connection to an endpoint. Later calls reuse it.
func (c *Client) connect(ctx context.Context, name endpoint.Name) (*grpc.ClientConn, error) {
	c.mu.Lock()
	conn := c.conns[name]
	c.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	conn, err := c.node.Dial(ctx, name)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first := c.conns[name]; first != nil { // another goroutine was faster
		_ = conn.Close()
		return first, nil
	}
	c.conns[name] = conn
	return conn, nil
}

func changes(method string) bool {
	return !slices.ContainsFunc([]string{"Get", "List", "Is", "PathExists", "Discover", "Check"}, func(prefix string) bool {
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
func (c *Client) diagnose(ctx context.Context, name endpoint.Name, err error) error {
	if endedByServer(ctx, err) {
		return status.Error(codes.DeadlineExceeded, lateText)
	}
	if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
		return err
	}
	conn, dialErr := c.node.Dial(ctx, name)
	switch {
	case dialErr == nil:
		_ = conn.Close()
		return err
	case endpoint.Gone(dialErr):
		return &endpoint.UnreachableError{Err: fmt.Errorf("the server ended during the call, which may have taken effect: %w", dialErr)}
	default: // for example a full queue of connections
		return &endpoint.UnreachableError{Err: fmt.Errorf("the server does not accept connections: it hangs, or another process owns the pipe: %w", dialErr)}
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

type target struct {
	path          string // for gRPC
	input, output protoreflect.MessageType
}

func resolve(name endpoint.Name, method string) (target, error) {
	if err := checkVersion(name); err != nil {
		return target{}, err
	}
	descriptor := lookUp(name, method)
	if descriptor == nil {
		versions := endpoint.Versions(name.Group)
		have := slices.DeleteFunc(versions, func(v string) bool { return lookUp(endpoint.Name{Group: name.Group, Version: v}, method) == nil })
		return target{}, &VersionError{text: fmt.Sprintf("%s has no %s; use one of %s", name, method, strings.Join(have, ", "))}
	}
	input, inErr := protoregistry.GlobalTypes.FindMessageByName(descriptor.Input().FullName())
	output, outErr := protoregistry.GlobalTypes.FindMessageByName(descriptor.Output().FullName())
	path := fmt.Sprintf("/%s/%s", descriptor.Parent().FullName(), descriptor.Name())
	return target{path, input, output}, errors.Join(inErr, outErr)
}

// Messages returns an empty request and response of a call.
func Messages(group, method string) (request, response proto.Message) {
	name := endpoint.Name{Group: group, Version: endpoint.Newest(group)}
	found := serviceOf(name).Methods().ByName(protoreflect.Name(method))
	empty := func(message protoreflect.MessageDescriptor) proto.Message {
		kind, _ := protoregistry.GlobalTypes.FindMessageByName(message.FullName()) // generated code registers it
		return kind.New().Interface()
	}
	return empty(found.Input()), empty(found.Output())
}

func checkVersion(name endpoint.Name) error {
	versions := endpoint.Versions(name.Group)
	if !slices.Contains(versions, name.Version) {
		return &VersionError{text: fmt.Sprintf("group %s has no version %q; use one of %s", name.Group, name.Version, strings.Join(versions, ", "))}
	}
	return nil
}

// lookUp returns a method of a version, or nil.
func lookUp(name endpoint.Name, method string) protoreflect.MethodDescriptor {
	service := serviceOf(name)
	if service == nil {
		return nil
	}
	for _, known := range append([]string{method}, formerMethods[method]...) {
		if m := service.Methods().ByName(protoreflect.Name(known)); m != nil {
			return m
		}
	}
	return nil
}

// serviceOf returns the service of a version, or nil.
func serviceOf(name endpoint.Name) protoreflect.ServiceDescriptor {
	file, err := protoregistry.GlobalFiles.FindFileByPath("github.com/kubernetes-csi/csi-proxy/client/api/" + name.String() + "/api.proto")
	if err != nil {
		return nil
	}
	return file.Services().Get(0)
}
