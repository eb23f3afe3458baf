package winerr

import (
	"errors"
	"fmt"
	"strings"
)

// Error is a failure as the upper layers see it: one sentence that names the
// operation and the object, with the cause behind it.
type Error struct {
	Op     string // what was tried, as a verb phrase: "create directory"
	Object string // on what: a path, a volume id, "disk 3"; may be empty
	Kind   Kind
	Err    error  // the cause: a Code, a context error, or a sentence of ours
	Advice string // what the caller can do, if there is something
}

// Error reads "create directory C:\x: access is denied (Windows error 5); advice".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Object != "" {
		b.WriteString(" ")
		b.WriteString(e.Object)
	}
	b.WriteString(": ")
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	} else {
		b.WriteString(e.Kind.String())
	}
	if e.Advice != "" {
		b.WriteString("; ")
		b.WriteString(e.Advice)
	}
	return b.String()
}

// Is matches the Kind and its counterpart in the standard library.
func (e *Error) Is(target error) bool { return e.Kind.Is(target) }

// FailureClass names the class for package client/failure.
func (e *Error) FailureClass() string { return e.Kind.FailureClass() }

// Unwrap returns the cause. Its class is hidden if it is not ours, because As chose
// another one for a reason: "cannot create: the link there leads to nothing" must not
// match fs.ErrNotExist.
func (e *Error) Unwrap() error {
	if e.Err == nil || KindOf(e.Err) == e.Kind {
		return e.Err
	}
	return cause{e.Err}
}

// cause is an error that can be found and looked at but no longer has a class.
type cause struct{ error }

func (c cause) As(target any) bool { return errors.As(c.error, target) }

func (c cause) Is(target error) bool {
	_, isClass := classOf(target)
	return !isClass && errors.Is(c.error, target)
}

// New makes an error of a decision of ours: no Windows call failed.
func New(kind Kind, op, object, format string, args ...any) *Error {
	return &Error{Op: op, Object: object, Kind: kind, Err: fmt.Errorf(format, args...)}
}

// Wrap adds operation and object to a failure and classifies it by what it
// carries. It returns nil for nil, and an error that contains an *Error unchanged:
// the innermost caller knows most.
func Wrap(op, object string, err error) error {
	if err == nil {
		return nil
	}
	if done := (*Error)(nil); errors.As(err, &done) {
		return err
	}
	return &Error{Op: op, Object: object, Kind: KindOf(err), Err: err}
}

// As is Wrap with the Kind chosen by the caller, for codes whose meaning depends
// on the object, and with advice for the reader.
func As(kind Kind, op, object string, err error, advice string) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Object: object, Kind: kind, Err: err, Advice: advice}
}

// Cause returns what err says without operation and object, to be part of the sentence of
// another error about the same.
func Cause(err error) error {
	if known := (*Error)(nil); errors.As(err, &known) && known.Err != nil {
		return known.Err
	}
	return err
}

// KindOf finds the class of any error: that of the outermost *Error, else of the
// Code, StorageCode or LegacyFormatCode it wraps, else of another error that names its
// class, as those of a driver's fake may, else of what the standard library says it is,
// else Internal.
func KindOf(err error) Kind {
	if known := (*Error)(nil); errors.As(err, &known) {
		return known.Kind
	}
	if coded := (interface {
		error
		Kind() Kind
	})(nil); errors.As(err, &coded) { // a Code, StorageCode or LegacyFormatCode
		return coded.Kind()
	}
	if named := (interface {
		error
		FailureClass() string
	})(nil); errors.As(err, &named) { // a Kind, or a class of package client/failure
		kind, _ := kindNamed(named.FailureClass())
		return kind
	}
	for kind, k := range kinds {
		if k.standard != nil && errors.Is(err, k.standard) {
			return Kind(kind)
		}
	}
	return Internal
}

// CodeOf returns the Windows code inside err, or 0 when there is none.
func CodeOf(err error) Code {
	if code := Code(0); errors.As(err, &code) {
		return code
	}
	return 0
}
