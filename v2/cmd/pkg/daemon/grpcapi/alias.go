package grpcapi

import (
	"context"
	"slices"

	"google.golang.org/grpc"
)

// alias describes the old service as one that the handler of a newer one answers. It
// has the old one's name, metadata and methods; methods that only the newer one has
// stay unimplemented.
//
// Old requests must mean the same when read as newer ones, and newer responses when
// read as old ones. The tests of this package prove that from the descriptors. They
// also prove that the newer service has every method of the old one.
func alias(newer, old *grpc.ServiceDesc) *grpc.ServiceDesc {
	desc := &grpc.ServiceDesc{
		ServiceName: old.ServiceName,
		HandlerType: newer.HandlerType,
		Metadata:    old.Metadata,
	}
	for _, method := range old.Methods {
		i := slices.IndexFunc(newer.Methods, func(m grpc.MethodDesc) bool { return m.MethodName == method.MethodName })
		if i < 0 {
			continue
		}
		desc.Methods = append(desc.Methods, grpc.MethodDesc{
			MethodName: method.MethodName,
			Handler:    calledAs("/"+old.ServiceName+"/"+method.MethodName, newer.Methods[i].Handler),
		})
	}
	return desc
}

// calledAs makes interceptors see the method that the client called. Generated handlers
// pass their own name, which would put the wrong version into logs and metrics.
func calledAs(fullMethod string, handler grpc.MethodHandler) grpc.MethodHandler {
	return func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		if interceptor == nil {
			return handler(srv, ctx, dec, nil)
		}
		return handler(srv, ctx, dec, func(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			called := *info
			called.FullMethod = fullMethod
			return interceptor(ctx, request, &called, next)
		})
	}
}
