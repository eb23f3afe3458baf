// Package winerr is the vocabulary of failure shared by every layer below the
// gRPC edge: what went wrong (Kind), the Windows code that said so (Code), and
// one error type that adds the operation and the object (Error).
//
// The seam to the machine returns bare Codes. Host logic wraps them once, where
// it knows the operation and the object. The edge turns the Kind into a gRPC
// status code; nothing in between does.
//
// An *Error has exactly one Kind, which may differ from that of its cause. Kinds
// are errors themselves, so callers ask
//
//	errors.Is(err, winerr.NotFound)
//
// Drivers that use the library cannot import this package. For them every Kind
// with a counterpart in the standard library matches it as well:
// errors.Is(err, fs.ErrNotExist), fs.ErrExist, fs.ErrPermission, fs.ErrInvalid,
// errors.ErrUnsupported, context.DeadlineExceeded, context.Canceled. And every Kind
// matches the class of package client/failure with the same name. That package is in
// another module, which the library must not need, so each knows the other by methods:
// an error with a class has FailureClass, a class itself ClassName, and an error with a
// Windows code WindowsCode.
package winerr

import (
	"context"
	"errors"
	"io/fs"
)

// Kind classifies a failure by what the caller can do about it.
type Kind uint8

// The kinds. The zero value is Internal, so that an unclassified failure is
// never blamed on the caller.
const (
	// Internal is a failure without a better class.
	Internal Kind = iota
	// Invalid means the request itself is wrong and will be wrong again.
	Invalid
	// NotFound means the object that was named does not exist.
	NotFound
	// Exists means something else already stands where the object should go.
	Exists
	// Denied means Windows or our policy does not allow it.
	Denied
	// Busy means another user of the object is in the way for the moment; the
	// same call may succeed when repeated.
	Busy
	// InUse means the object's state forbids the call until that state
	// changes; repeating the call alone will not help.
	InUse
	// Unsupported means this machine or this build cannot do it at all.
	Unsupported
	// Unavailable means something the call depends on is not there now: a
	// server, a device that is not ready.
	Unavailable
	// NoSpace means a disk, quota or table is full.
	NoSpace
	// Deadline means the caller's time ran out first.
	Deadline
	// Cancelled means the caller gave up.
	Cancelled
)

// kinds holds, per Kind, its name and the error of the standard library that
// means the same.
var kinds = [...]struct {
	name     string
	standard error
}{
	Internal:    {"internal error", nil},
	Invalid:     {"invalid argument", fs.ErrInvalid},
	NotFound:    {"not found", fs.ErrNotExist},
	Exists:      {"already exists", fs.ErrExist},
	Denied:      {"not allowed", fs.ErrPermission},
	Busy:        {"busy", nil},
	InUse:       {"in use", nil},
	Unsupported: {"not supported", errors.ErrUnsupported},
	Unavailable: {"unavailable", nil},
	NoSpace:     {"no space", nil},
	Deadline:    {"deadline exceeded", context.DeadlineExceeded},
	Cancelled:   {"cancelled", context.Canceled},
}

// Kinds returns every Kind, for tables that must cover all of them.
func Kinds() []Kind {
	all := make([]Kind, len(kinds))
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

func (k Kind) String() string { return kinds[k].name }

// Error makes a Kind usable as the target of errors.Is.
func (k Kind) Error() string { return kinds[k].name }

// FailureClass names the class of an error for package client/failure.
func (k Kind) FailureClass() string { return kinds[k].name }

// ClassName is what FailureClass returns. Only classes themselves have it, so that
// errors.Is compares with a class and not with any error that has one.
func (k Kind) ClassName() string { return kinds[k].name }

// Is reports whether target names this kind, in our words or in the standard
// library's.
func (k Kind) Is(target error) bool {
	other, ok := classOf(target)
	return ok && k == other
}

// classOf returns the kind that target is another name of, if it is one: a Kind, a
// class of package client/failure, or the standard library's counterpart. It does not look
// at what target wraps.
func classOf(target error) (kind Kind, ok bool) {
	if kind, ok := target.(Kind); ok {
		return kind, true
	}
	if class, ok := target.(interface{ ClassName() string }); ok {
		return kindNamed(class.ClassName())
	}
	for kind, k := range kinds {
		if k.standard != nil && target == k.standard {
			return Kind(kind), true
		}
	}
	return Internal, false
}

func kindNamed(name string) (kind Kind, ok bool) {
	for kind, k := range kinds {
		if k.name == name {
			return Kind(kind), true
		}
	}
	return Internal, false
}
