package grpcapi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kubernetes-csi/csi-proxy/client/api"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

func TestStatus_EveryKind(t *testing.T) {
	want := map[winerr.Kind]codes.Code{
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
	for _, kind := range winerr.Kinds() {
		code, listed := want[kind]
		if !listed {
			t.Errorf("kind %q has no code", kind)
			continue
		}
		err := winerr.New(kind, "open", "disk 3", "it is %d o'clock", 5)
		for _, err := range []error{err, fmt.Errorf("node x: %w", err)} {
			got := status.Convert(grpcapi.Status(err))
			if got.Code() != code || got.Message() != err.Error() {
				t.Errorf("Status(%v) = %v, want code %v and the error's text", err, got, code)
			}
		}
	}
}

// TestStatus_Ambiguous: the disks are a detail, and not too many for a header.
func TestStatus_Ambiguous(t *testing.T) {
	err := &node.AmbiguousError{Query: node.Query{Bus: "scsi"}}
	for n := range uint32(1000) {
		err.Candidates = append(err.Candidates, node.Disk{Number: &n})
	}
	details := status.Convert(grpcapi.Status(fmt.Errorf("x: %w", err))).Details()
	if disks, ok := details[0].(*extensionv1.AmbiguousDisks); len(details) != 1 || !ok || len(disks.Numbers) != 64 {
		t.Errorf("the details are %v", details)
	}
}

func TestStatus(t *testing.T) {
	given := status.Error(codes.DataLoss, "gone")
	tests := []struct {
		name string
		err  error
		code codes.Code
		text string
	}{
		{"no error", nil, codes.OK, ""},
		{"plain error", errors.New("lightning struck"), codes.Internal, "lightning struck"},
		{"bare code", winerr.AccessDenied, codes.PermissionDenied, winerr.AccessDenied.Error()},
		{"bare kind", winerr.Busy, codes.Aborted, "busy"},
		{"deadline", context.DeadlineExceeded, codes.DeadlineExceeded, "context deadline exceeded"},
		{"cancelled", context.Canceled, codes.Canceled, "context canceled"},
		{"status", given, codes.DataLoss, "gone"},
		{"wrapped status", fmt.Errorf("volume x: %w", given), codes.DataLoss, "volume x: rpc error: code = DataLoss desc = gone"},
		{"bytes that are not text", errors.New("disk \xff\xfe?"), codes.Internal, "disk \uFFFD?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := grpcapi.Status(tt.err)
			s, ok := status.FromError(got)
			if !ok || s.Code() != tt.code || s.Message() != tt.text {
				t.Errorf("Status(%v) = %v, want code %v, text %q", tt.err, got, tt.code, tt.text)
			}
			if !utf8.ValidString(s.Message()) {
				t.Errorf("text %q is not UTF-8", s.Message())
			}
		})
	}
	if got := grpcapi.Status(given); !errors.Is(got, given) {
		t.Errorf("Status(%v) = %v, want it unchanged", given, got)
	}
}

// TestStatus_LongText: the message is a header, and clients refuse long ones.
func TestStatus_LongText(t *testing.T) {
	object := `C:\` + strings.Repeat("é", 30_000)
	err := grpcapi.Status(winerr.New(winerr.NotFound, "open", object, "it is gone"))
	text := status.Convert(err).Message()
	if len(text) > 1536+8 || !utf8.ValidString(text) || !strings.HasPrefix(text, `open C:\é`) || !strings.HasSuffix(text, "it is gone") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// TestStatus_WindowsCode: the number in the text is for people, the detail for drivers.
func TestStatus_WindowsCode(t *testing.T) {
	long := `C:\` + strings.Repeat("é", 30_000)
	for _, tt := range []struct {
		err  error
		want uint32
	}{
		{winerr.AccessDenied, 5},
		{winerr.Wrap("open", long, winerr.SharingViolation), 32},
		{winerr.As(winerr.InUse, "open", "disk 3", winerr.FileNotFound, "wait"), 2},
		{fmt.Errorf("node x: %w", winerr.Wrap("open", "disk 3", winerr.FVELocked)), 0x80310000},
		{winerr.Wrap("format", "volume x", winerr.StorageInUse), 0}, // its numbers mean other things
		{winerr.New(winerr.Denied, "open", "disk 3", "the policy forbids it"), 0},
	} {
		s := status.Convert(grpcapi.Status(tt.err))
		var got uint32
		for _, detail := range s.Details() {
			got = detail.(*api.WindowsError).GetCode()
		}
		if got != tt.want {
			t.Errorf("Status(%v) has code %d, want %d", tt.err, got, tt.want)
		}
		bytes, err := proto.Marshal(s.Proto())
		require.NoError(t, err)
		// As gRPC encodes both: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
		if headers := 3*len(s.Message()) + len(bytes)*4/3; headers > 7<<10 {
			t.Errorf("the headers of %.40q have %d bytes; many clients accept 8 KiB", s.Message(), headers)
		}
	}
}
