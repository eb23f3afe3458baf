package plugin

import (
	"context"
	"errors"
	"io/fs"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// codeOf classifies an error of either mode: the daemon sends a status, the library returns
// errors that match those of the standard library.
func codeOf(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	for _, class := range []struct {
		error
		codes.Code
	}{
		{fs.ErrInvalid, codes.InvalidArgument},
		{fs.ErrNotExist, codes.NotFound},
		{fs.ErrExist, codes.AlreadyExists},
		{fs.ErrPermission, codes.PermissionDenied},
		{errors.ErrUnsupported, codes.Unimplemented},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{context.Canceled, codes.Canceled},
	} {
		if errors.Is(err, class.error) {
			return class.Code
		}
	}
	return codes.Internal
}

// answer gives an error its code, and says what was being done. The sentence of CSI Proxy
// stays: it names the object, the Windows error and the remedy.
func answer(doing string, err error) error {
	if err == nil {
		return nil
	}
	return status.Errorf(codeOf(err), "%s: %s", doing, messageOf(err))
}

// messageOf is what an error says, without the decoration of gRPC.
func messageOf(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}
