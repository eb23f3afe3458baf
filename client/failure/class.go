// Package failure classifies the errors of CSI Proxy by what a driver can do about them.
// It works on errors of the daemon's API, which are gRPC statuses, and on errors of the
// library in the same way; see the example.
//
// A class is also the target of errors.Is: errors.Is(err, failure.Busy). Errors of the library
// and of the typed clients match it, and the error of the standard library that means the same,
// such as [fs.ErrNotExist]. For the status of any other gRPC client, call [FromStatus] first.
//
// The library does not import this package. It knows errors of the library by their methods
// FailureClass and WindowsCode. A driver's own error types may have them, too.
//
// Within v1 it grows compatibly; a driver must expect classes that it does not know.
package failure

import (
	"context"
	"errors"
	"io/fs"

	"google.golang.org/grpc/codes"
)

// Class says what a caller can do about a failure.
type Class uint8

// The classes, with the gRPC code that the daemon sends and that a CSI driver answers.
const (
	// None is the class of no error. OK.
	None Class = iota
	// Internal is a failure without a better class. Internal.
	Internal
	// Invalid means that the request is wrong, and will be wrong again. InvalidArgument.
	Invalid
	// NotFound means that the named object does not exist. NotFound.
	NotFound
	// Exists means that something else is where the object should go. AlreadyExists.
	Exists
	// Denied means that Windows or the policy does not allow it. PermissionDenied.
	Denied
	// Busy means that another user of the object is in the way; the same call may
	// succeed later. Aborted.
	Busy
	// InUse means that a state must change first; a retry alone does not help.
	// FailedPrecondition.
	InUse
	// Unsupported means that this machine or this build cannot do it. Unimplemented.
	Unsupported
	// Unavailable means that a server, a device or the daemon is not there now.
	// Unavailable.
	Unavailable
	// NoSpace means that a disk, quota or table is full. ResourceExhausted.
	NoSpace
	// Deadline means that the time ran out first: the caller's, or the time that Windows
	// waits. DeadlineExceeded.
	Deadline
	// Cancelled means that the caller gave up. Canceled.
	Cancelled
)

// classes holds, per Class, its name in the method FailureClass, its gRPC code, and the error
// of the standard library that means the same.
//
// Busy and InUse differ in what the caller should do, as gRPC's guide says: Aborted means "try
// again", FailedPrecondition "do not try again until the state has changed".
//
// https://grpc.io/docs/guides/status-codes/
var classes = [...]row{
	None:        {"no error", codes.OK, nil},
	Internal:    {"internal error", codes.Internal, nil},
	Invalid:     {"invalid argument", codes.InvalidArgument, fs.ErrInvalid},
	NotFound:    {"not found", codes.NotFound, fs.ErrNotExist},
	Exists:      {"already exists", codes.AlreadyExists, fs.ErrExist},
	Denied:      {"not allowed", codes.PermissionDenied, fs.ErrPermission},
	Busy:        {"busy", codes.Aborted, nil},
	InUse:       {"in use", codes.FailedPrecondition, nil},
	Unsupported: {"not supported", codes.Unimplemented, errors.ErrUnsupported},
	Unavailable: {"unavailable", codes.Unavailable, nil},
	NoSpace:     {"no space", codes.ResourceExhausted, nil},
	Deadline:    {"deadline exceeded", codes.DeadlineExceeded, context.DeadlineExceeded},
	Cancelled:   {"cancelled", codes.Canceled, context.Canceled},
}

type row struct {
	name     string
	code     codes.Code
	standard error
}

// Classes returns every class of an error, for tables that must cover all of them. None is not
// among them.
func Classes() []Class {
	all := make([]Class, 0, len(classes)-1)
	for class := Internal; int(class) < len(classes); class++ {
		all = append(all, class)
	}
	return all
}

func (c Class) String() string { return c.known().name }

// Error makes a Class an error, so that it can be the target of errors.Is, and what a fake
// returns.
func (c Class) Error() string { return c.known().name }

// FailureClass returns the name of the class. Every error with a class has this method.
func (c Class) FailureClass() string { return c.known().name }

// ClassName returns the name of the class. Only classes themselves have this method, so that
// errors.Is compares with a class, and not with any error that has one.
func (c Class) ClassName() string { return c.known().name }

// Code returns the gRPC code of the class, which is also the code of a CSI driver's answer.
func (c Class) Code() codes.Code { return c.known().code }

// Is reports whether target is another name of the class: the error of the standard library
// that means the same, or a class with the same name.
func (c Class) Is(target error) bool {
	if named, ok := target.(interface{ ClassName() string }); ok {
		return named.ClassName() == c.known().name
	}
	standard := c.known().standard
	return standard != nil && target == standard
}

// known returns the row of the class. A number that is not a class is an internal error: it
// must not become success.
func (c Class) known() *row {
	if int(c) >= len(classes) {
		c = Internal
	}
	return &classes[c]
}
