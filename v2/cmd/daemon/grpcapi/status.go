package grpcapi

import (
	"errors"

	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/api"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// Status turns an error into a gRPC status: the code of its class, its text, and the Windows
// code as a detail if there is one. It returns nil for nil, and an error that already has a
// status unchanged.
func Status(err error) error {
	if err == nil {
		return nil
	}
	if carrier := (interface{ GRPCStatus() *status.Status })(nil); errors.As(err, &carrier) {
		return err
	}
	answer := status.New(failure.Code(err), messageText(err.Error()))
	if code, ok := failure.WindowsCode(err); ok {
		if detailed, err := answer.WithDetails(&api.WindowsError{Code: code}); err == nil {
			answer = detailed
		}
	}
	return answer.Err()
}

// maxMessage limits a status message. It is sent in a header, where a byte that is not ASCII
// takes three, and again in the header of the details. Clients in other languages refuse
// headers of more than 8 KiB; a path alone can be longer.
const maxMessage = 3 << 9

func messageText(text string) string {
	text = lineText(wireText(text))
	if len(text) > maxMessage {
		const gap = " ... "
		const end = (maxMessage - len(gap)) / 2
		text = text[:end] + gap + text[len(text)-end:]
	}
	return wireText(text)
}
