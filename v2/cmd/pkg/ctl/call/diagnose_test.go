package call

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestDiagnose_EndedByServer: if the server notices the deadline first, the error does not
// quote gRPC's frame.
func TestDiagnose_EndedByServer(t *testing.T) {
	limited, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	left, leave := context.WithTimeout(t.Context(), time.Hour)
	leave()
	const (
		frame = "stream terminated by RST_STREAM with error code: CANCEL"
		late  = "the server did not answer in time"
	)
	check := func(ctx context.Context, err error, code codes.Code, text string) {
		t.Helper()
		s := status.Convert(diagnose(ctx, err, nil))
		if s.Code() != code || s.Message() != text {
			t.Errorf("got %v, want %s: %s", s, code, text)
		}
	}
	check(limited, status.Error(codes.Canceled, frame), codes.DeadlineExceeded, late) // the server was first
	check(over, status.Error(codes.DeadlineExceeded, frame), codes.DeadlineExceeded, late)
	check(t.Context(), status.Error(codes.Canceled, frame), codes.Canceled, frame) // no deadline
	check(left, status.Error(codes.Canceled, frame), codes.Canceled, frame)        // we canceled
	check(over, status.Error(codes.DeadlineExceeded, "format volume: late"), codes.DeadlineExceeded, "format volume: late")
	check(limited, status.Error(codes.Internal, frame), codes.Internal, frame)
}
