// Package echo has servers that only answer. Benchmarks compare the daemon with them.
package echo

import (
	"context"
	"io"
	"net"

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

const messageSize = 64

// ServeRaw returns each message of 64 bytes to its sender, until the listener is closed.
func ServeRaw(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			var message [messageSize]byte
			for {
				if _, err := io.ReadFull(conn, message[:]); err != nil {
					return
				}
				if _, err := conn.Write(message[:]); err != nil {
					return
				}
			}
		}()
	}
}

// CallRaw sends a message to ServeRaw and waits for its return.
func CallRaw(conn net.Conn) error {
	var message [messageSize]byte
	if _, err := conn.Write(message[:]); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, message[:])
	return err
}
