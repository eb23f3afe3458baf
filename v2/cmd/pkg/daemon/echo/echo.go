// Package echo has a server that only answers. Benchmarks compare the daemon with it.
package echo

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Method is the only method of the server that [NewServer] returns.
const Method = "/bench.Echo/Call"

// NewServer returns a bare gRPC server, with grpc-go's defaults, that decodes messages of the type
// of request and returns answer.
func NewServer(request, answer proto.Message) *grpc.Server {
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Echo",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Call",
			Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				return answer, decode(request.ProtoReflect().New().Interface())
			},
		}},
	}, nil)
	return s
}
