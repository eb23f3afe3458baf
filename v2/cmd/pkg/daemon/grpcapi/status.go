package grpcapi

import (
	"errors"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/kubernetes-csi/csi-proxy/client/api"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// Status turns an error into a gRPC status: the code of its class, its text, and as details the Windows
// code if there is one, and disks that cannot be distinguished. It returns nil for nil, and an error that already has a
// status unchanged.
func Status(err error) error {
	if err == nil {
		return nil
	}
	if carrier := (interface{ GRPCStatus() *status.Status })(nil); errors.As(err, &carrier) {
		return err
	}
	answer := status.New(failure.Code(err), messageText(err.Error()))
	var details []protoadapt.MessageV1
	if code, ok := failure.WindowsCode(err); ok {
		details = append(details, &api.WindowsError{Code: code})
	}
	if ambiguous := (*node.AmbiguousError)(nil); errors.As(err, &ambiguous) {
		details = append(details, &extensionv1.AmbiguousDisks{Numbers: ambiguous.Numbers(maxAmbiguous)})
	}
	if detailed, err := answer.WithDetails(details...); err == nil {
		answer = detailed
	}
	return answer.Err()
}

// maxAmbiguous is how many disks a status names, for the reason of maxMessage.
const maxAmbiguous = 64

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
