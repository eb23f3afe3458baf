package failure_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/api"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// wantClasses is written down again, so that a slip is seen: drivers depend on each line.
var wantClasses = map[failure.Class]struct {
	code     codes.Code
	standard error
}{
	failure.Internal:    {codes.Internal, nil},
	failure.Invalid:     {codes.InvalidArgument, fs.ErrInvalid},
	failure.NotFound:    {codes.NotFound, fs.ErrNotExist},
	failure.Exists:      {codes.AlreadyExists, fs.ErrExist},
	failure.Denied:      {codes.PermissionDenied, fs.ErrPermission},
	failure.Busy:        {codes.Aborted, nil},
	failure.InUse:       {codes.FailedPrecondition, nil},
	failure.Unsupported: {codes.Unimplemented, errors.ErrUnsupported},
	failure.Unavailable: {codes.Unavailable, nil},
	failure.NoSpace:     {codes.ResourceExhausted, nil},
	failure.Deadline:    {codes.DeadlineExceeded, context.DeadlineExceeded},
	failure.Cancelled:   {codes.Canceled, context.Canceled},
}

func TestClass_FromStatus(t *testing.T) {
	if got := len(failure.Classes()); got != len(wantClasses) {
		t.Errorf("%d classes, want %d", got, len(wantClasses))
	}
	for class, want := range wantClasses {
		raw := status.Error(want.code, "mount volume: it is Tuesday")
		for _, err := range []error{
			class, raw, failure.FromStatus(raw),
			fmt.Errorf("stage: %w", class), fmt.Errorf("stage: %w", raw), fmt.Errorf("stage: %w", failure.FromStatus(raw)),
		} {
			if got := failure.ClassOf(err); got != class {
				t.Errorf("ClassOf(%v) is %v, want %v", err, got, class)
			}
			if got := failure.Code(err); got != want.code {
				t.Errorf("Code(%v) is %v, want %v", err, got, want.code)
			}
		}
		err := fmt.Errorf("stage: %w", failure.FromStatus(raw))
		for other, o := range wantClasses {
			if got := errors.Is(err, other); got != (other == class) {
				t.Errorf("errors.Is(%v, %v) is %t", err, other, got)
			}
			if o.standard != nil && errors.Is(err, o.standard) != (other == class) {
				t.Errorf("errors.Is(%v, %v) is %t", err, o.standard, other != class)
			}
		}
		if want.standard != nil && failure.ClassOf(fmt.Errorf("stat: %w", want.standard)) != class {
			t.Errorf("%v is not %v", want.standard, class)
		}
	}
}

// TestFromStatus_RemainsAStatus: drivers read codes and texts as they did.
func TestFromStatus_RemainsAStatus(t *testing.T) {
	raw := status.Error(codes.Aborted, "the disk is busy")
	err := failure.FromStatus(raw)
	if got, ok := status.FromError(err); !ok || got.Code() != codes.Aborted || got.Message() != "the disk is busy" {
		t.Errorf("the status is %v, %t", got, ok)
	}
	if err.Error() != raw.Error() || !errors.Is(err, raw) {
		t.Errorf("%q became %q", raw, err)
	}
	if failure.FromStatus(err) != err { //nolint:errorlint // the same value is the point
		t.Error("a second FromStatus wraps again")
	}
	if plain := errors.New("no status"); failure.FromStatus(plain) != plain || failure.FromStatus(nil) != nil { //nolint:errorlint // as above
		t.Error("an error that is not a status changed")
	}
}

func TestClassOf_Others(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want failure.Class
	}{
		{nil, failure.None},
		{errors.New("lightning struck"), failure.Internal},
		{status.Error(codes.Unknown, ""), failure.Internal},
		{status.Error(codes.DataLoss, ""), failure.Internal},
		{status.Error(codes.Unauthenticated, ""), failure.Denied},
		{status.Error(codes.OutOfRange, ""), failure.Invalid},
		{named("busy"), failure.Busy},
		{named("on fire"), failure.Internal},
		{named("no error"), failure.Internal},
		{failure.Class(200), failure.Internal},
	} {
		if got := failure.ClassOf(tt.err); got != tt.want {
			t.Errorf("ClassOf(%v) is %v, want %v", tt.err, got, tt.want)
		}
	}
	if got := failure.Code(nil); got != codes.OK {
		t.Errorf("Code(nil) is %v", got)
	}
	if errors.Is(failure.Busy, named("busy")) {
		t.Error("a class matches an error that only has the class")
	}
}

// named is an error of another module that names its class.
type named string

func (n named) Error() string        { return "it is " + string(n) }
func (n named) FailureClass() string { return string(n) }

func TestWindowsCode(t *testing.T) {
	plain := status.New(codes.PermissionDenied, "access is denied (Windows error 5)")
	detailed, err := plain.WithDetails(&api.CmdletError{}, &api.WindowsError{Code: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{detailed.Err(), failure.FromStatus(detailed.Err()), fmt.Errorf("stage: %w", detailed.Err())} {
		if code, ok := failure.WindowsCode(err); code != 5 || !ok {
			t.Errorf("WindowsCode(%v) is %d, %t", err, code, ok)
		}
	}
	for _, err := range []error{nil, errors.New("x"), plain.Err(), failure.FromStatus(plain.Err()), failure.Busy} {
		if code, ok := failure.WindowsCode(err); code != 0 || ok {
			t.Errorf("WindowsCode(%v) is %d, %t", err, code, ok)
		}
	}
}

func TestMessage(t *testing.T) {
	raw := status.Error(codes.NotFound, "disk 3 does not exist")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{raw, "disk 3 does not exist"},
		{failure.FromStatus(raw), "disk 3 does not exist"},
		{fmt.Errorf("stage x: %w", raw), "stage x: disk 3 does not exist"},
		{errors.New("plain"), "plain"},
	} {
		if got := failure.Message(tt.err); got != tt.want {
			t.Errorf("Message(%v) is %q, want %q", tt.err, got, tt.want)
		}
	}
}
