package grpcapi

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// kindCodes maps the kinds of the library's errors to gRPC codes.
//
// Busy and InUse differ in what the caller should do, as gRPC's guide says: Aborted
// means "try again", FailedPrecondition "do not try again until the state has changed".
//
// https://grpc.io/docs/guides/status-codes/
var kindCodes = map[winerr.Kind]codes.Code{
	winerr.Internal:    codes.Internal,
	winerr.Invalid:     codes.InvalidArgument,
	winerr.NotFound:    codes.NotFound,
	winerr.Exists:      codes.AlreadyExists,
	winerr.Denied:      codes.PermissionDenied,
	winerr.Busy:        codes.Aborted,
	winerr.InUse:       codes.FailedPrecondition,
	winerr.Unsupported: codes.Unimplemented,
	winerr.Unavailable: codes.Unavailable,
	winerr.NoSpace:     codes.ResourceExhausted,
	winerr.Deadline:    codes.DeadlineExceeded,
	winerr.Cancelled:   codes.Canceled,
}

// Status turns an error into a gRPC status: the code of its kind and its text. It returns
// nil for nil, and an error that already has a status unchanged.
func Status(err error) error {
	if err == nil {
		return nil
	}
	if carrier := (interface{ GRPCStatus() *status.Status })(nil); errors.As(err, &carrier) {
		return err
	}
	code, known := kindCodes[winerr.KindOf(err)]
	if !known {
		code = codes.Internal // the zero value, OK, would be success
	}
	return status.Error(code, messageText(err.Error()))
}

// maxMessage limits a status message. It is sent in a header, and clients in other
// languages refuse headers of more than 8 KiB; a path alone can be longer.
const maxMessage = 2 << 10

func messageText(text string) string {
	text = lineText(wireText(text))
	if len(text) > maxMessage {
		const gap = " ... "
		const end = (maxMessage - len(gap)) / 2
		text = text[:end] + gap + text[len(text)-end:]
	}
	return wireText(text)
}
