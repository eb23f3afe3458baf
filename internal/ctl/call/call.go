// Package call makes calls to a node in the words of the newest version of each API group,
// and speaks whichever version was asked for. Callers know one version only.
package call

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
)

// Client makes calls to one node, from any number of goroutines. Whoever makes it closes it.
type Client struct {
	node    endpoint.Node
	version string // empty: the newest of each group

	mu    sync.Mutex
	conns map[endpoint.Name]*grpc.ClientConn
}

// New returns a client of a node. With a version all calls are made in that one, and fail
// where their group does not have it.
func New(node endpoint.Node, version string) *Client {
	return &Client{node: node, version: version, conns: map[endpoint.Name]*grpc.ClientConn{}}
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

// VersionError says that a call does not exist in the version that was asked for.
type VersionError struct{ text string }

func (e *VersionError) Error() string { return e.text }

// Absent reports whether an error is that of a call which the version does not have.
func Absent(err error) bool {
	return errors.As(err, new(*VersionError))
}

// Do makes a call. Request and response are those of the newest version, and so is the
// name of the method.
//
// Errors are gRPC's, but for two: *VersionError, and *endpoint.UnreachableError, also for
// a server that ended during the call.
func (c *Client) Do(ctx context.Context, group, method string, request, response proto.Message) error {
	name := endpoint.Name{Group: group, Version: c.version}
	if name.Version == "" {
		name.Version = endpoint.Newest(group)
	}
	target, err := resolve(name, method)
	if err != nil {
		return err
	}
	in, out := request, response
	if name.Version != endpoint.Newest(group) {
		in, out = target.input.New().Interface(), target.output.New().Interface()
		if err := toOlder(name, request.ProtoReflect(), in.ProtoReflect()); err != nil {
			return err
		}
	}
	conn, err := c.connect(ctx, name)
	if err != nil {
		return err
	}
	if err := conn.Invoke(ctx, target.path, in, out); err != nil {
		return c.diagnose(ctx, name, err)
	}
	if name.Version != endpoint.Newest(group) {
		return toNewest(out.ProtoReflect(), response.ProtoReflect())
	}
	return nil
}

// connect returns the connection to an endpoint, which later calls use again.
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
	if first := c.conns[name]; first != nil { // another goroutine was quicker
		_ = conn.Close()
		return first, nil
	}
	c.conns[name] = conn
	return conn, nil
}

// diagnose tells a server that is gone from one that answers Unavailable because a disk or
// another server is: it looks at the endpoint again.
func (c *Client) diagnose(ctx context.Context, name endpoint.Name, err error) error {
	if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
		return err
	}
	conn, dialErr := c.node.Dial(ctx, name)
	if dialErr != nil {
		return &endpoint.UnreachableError{Err: fmt.Errorf("the server ended during the call, which may or may not have been carried out; now: %w", dialErr)}
	}
	_ = conn.Close()
	return err
}

// target is one method of one version.
type target struct {
	path          string // as gRPC wants it
	input, output protoreflect.MessageType
}

// resolve finds a method, under the name that the version has for it.
func resolve(name endpoint.Name, method string) (target, error) {
	versions := endpoint.Versions(name.Group)
	if !slices.Contains(versions, name.Version) {
		return target{}, &VersionError{fmt.Sprintf("group %s has no version %q; there are %s", name.Group, name.Version, strings.Join(versions, ", "))}
	}
	descriptor := find(name, method)
	if descriptor == nil {
		have := slices.DeleteFunc(versions, func(v string) bool { return find(endpoint.Name{Group: name.Group, Version: v}, method) == nil })
		return target{}, &VersionError{fmt.Sprintf("%s has no %s; it is in %s", name, method, strings.Join(have, ", "))}
	}
	input, inErr := protoregistry.GlobalTypes.FindMessageByName(descriptor.Input().FullName())
	output, outErr := protoregistry.GlobalTypes.FindMessageByName(descriptor.Output().FullName())
	path := fmt.Sprintf("/%s/%s", descriptor.Parent().FullName(), descriptor.Name())
	return target{path, input, output}, errors.Join(inErr, outErr)
}

// find returns the method of a version, or nil.
func find(name endpoint.Name, method string) protoreflect.MethodDescriptor {
	service := services()[name]
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

// services are the descriptors of all versions.
var services = sync.OnceValue(func() map[endpoint.Name]protoreflect.ServiceDescriptor {
	found := map[endpoint.Name]protoreflect.ServiceDescriptor{}
	for _, file := range files {
		all := file.Services()
		for i := range all.Len() {
			service := all.Get(i)
			group := strings.ToLower(string(service.Name()))
			found[endpoint.Name{Group: group, Version: string(file.Package())}] = service
		}
	}
	return found
})
