// Package control is the gRPC service with which csi-proxyctl sim changes the emulated node of csi-proxy-sim while it
// runs. It has two methods, whose messages are texts in YAML. It is not published: it changes with csi-proxy-sim. The
// daemon never serves it.
package control

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The group and version in the name of its endpoint.
const (
	Group   = "sim"
	Version = "v1"
)

// The full names of its methods.
const (
	service  = "csiproxy.sim.v1.Control"
	Apply    = "/" + service + "/Apply"
	Describe = "/" + service + "/Describe"
)

// Server answers the calls.
type Server interface {
	// Apply takes a serve.Change and returns a serve.Changed.
	Apply(context.Context, *wrapperspb.StringValue) (*wrapperspb.StringValue, error)
	// Describe returns the node as winsim.Node.Describe does, without secrets, with the hash of each disk's content.
	Describe(context.Context, *emptypb.Empty) (*wrapperspb.StringValue, error)
}

// Desc describes the service to gRPC. Without generated code, two methods are all there is to keep in step.
var Desc = grpc.ServiceDesc{
	ServiceName: service,
	HandlerType: (*Server)(nil),
	Methods: []grpc.MethodDesc{
		{MethodName: "Apply", Handler: handler(Apply, Server.Apply)},
		{MethodName: "Describe", Handler: handler(Describe, Server.Describe)},
	},
}

func handler[In any](name string, call func(Server, context.Context, *In) (*wrapperspb.StringValue, error)) grpc.MethodHandler {
	return func(server any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		in := new(In)
		if err := decode(in); err != nil {
			return nil, err
		}
		do := func(ctx context.Context, in any) (any, error) { return call(server.(Server), ctx, in.(*In)) }
		if interceptor == nil {
			return do(ctx, in)
		}
		return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: server, FullMethod: name}, do)
	}
}
