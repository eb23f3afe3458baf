package mounter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// class is what a caller can do about an error. The classes of the library and the codes of the
// daemon are the same.
type class = codes.Code

const (
	classInvalid     = codes.InvalidArgument
	classNotFound    = codes.NotFound
	classExists      = codes.AlreadyExists
	classDenied      = codes.PermissionDenied
	classInUse       = codes.FailedPrecondition
	classUnsupported = codes.Unimplemented
	classUnavailable = codes.Unavailable
	classNoSpace     = codes.ResourceExhausted
)

// standard are the errors of the standard library that mean the same as a class.
var standard = []struct {
	err   error
	class class
}{
	{fs.ErrInvalid, classInvalid},
	{fs.ErrNotExist, classNotFound},
	{fs.ErrExist, classExists},
	{fs.ErrPermission, classDenied},
	{errors.ErrUnsupported, classUnsupported},
	{context.DeadlineExceeded, codes.DeadlineExceeded},
	{context.Canceled, codes.Canceled},
}

// nodeError is an error of the kit or of the daemon.
type nodeError struct {
	class class
	text  string
}

// newError has the form: operation object: what is wrong; what to do.
func newError(c class, op, object, format string, args ...any) error {
	text := op
	if object != "" {
		text += " " + object
	}
	return &nodeError{class: c, text: text + ": " + fmt.Sprintf(format, args...)}
}

func (e *nodeError) Error() string { return e.text }

// Is matches the error of the standard library that means the same.
func (e *nodeError) Is(target error) bool {
	for _, s := range standard {
		if s.err == target {
			return s.class == e.class
		}
	}
	return false
}

// GRPCStatus lets a driver's server return the error as it is.
func (e *nodeError) GRPCStatus() *status.Status { return status.New(e.class, e.text) }

// fromDaemon returns an error of a call to the daemon as the library would return it: with the
// sentence alone.
func fromDaemon(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	return &nodeError{class: s.Code(), text: s.Message()}
}

// classOf returns the class of an error of either mode.
func classOf(err error) class {
	if err == nil {
		return codes.OK
	}
	if known := (*nodeError)(nil); errors.As(err, &known) {
		return known.class
	}
	for _, s := range standard {
		if errors.Is(err, s.err) {
			return s.class
		}
	}
	return codes.Internal
}

// during says at which verb and path an error occurred.
func during(op, object string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", strings.TrimSpace(op+" "+object), err)
}
