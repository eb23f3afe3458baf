package serve_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
)

// hostileTexts are values that no text field can want.
var hostileTexts = map[string]string{
	"NUL":           "a\x00b",
	"control":       "a\nb\x1b[2J",
	"1.5 MiB":       strings.Repeat("x", 1536<<10),
	"64 KiB":        strings.Repeat("x", 64<<10),
	"only NULs":     strings.Repeat("\x00", 100),
	"not UTF-16":    "\uFFFF\uFFFE",
	"a format verb": "%s%n%d%!",
}

// TestHostileFields sends every method of every version its request with one field that is
// missing, empty or nonsense. No answer may blame us: Internal, Unknown, or none at all.
func TestHostileFields(t *testing.T) {
	sent := 0
	forEachMethod(t, run(t, newNode(t)), func(conn *grpc.ClientConn, _ grpcapi.Endpoint, name string, method protoreflect.MethodDescriptor) {
		for what, c := range hostile(method.Input()) {
			err := conn.Invoke(t.Context(), name, c.request, dynamicpb.NewMessage(method.Output()))
			sent++
			if !c.expects(status.Code(err)) {
				t.Errorf("%s with %s: %.300v", name, what, err)
			}
		}
	})
	if sent < 139 {
		t.Errorf("only %d requests were sent", sent)
	}
}

type hostileRequest struct {
	request *dynamicpb.Message
	invalid bool // it must be refused as such
	large   bool // it is more than the server reads
}

// expects reports whether a code is an answer to the request that does not blame the server.
func (r hostileRequest) expects(code codes.Code) bool {
	switch {
	case r.large:
		return code == codes.ResourceExhausted
	case r.invalid:
		return code == codes.InvalidArgument
	}
	return code != codes.Internal && code != codes.Unknown && code != codes.DeadlineExceeded && code != codes.Unimplemented
}

// hostile are requests of a type, each with one field that is wrong. Fields are only these, if there are any.
func hostile(d protoreflect.MessageDescriptor, only ...protoreflect.Name) map[string]hostileRequest {
	requests := map[string]hostileRequest{"nothing": {request: dynamicpb.NewMessage(d)}}
	for i := range d.Fields().Len() {
		field := d.Fields().Get(i)
		with := func(what string, invalid bool, value protoreflect.Value) {
			request := plausible(d, only...)
			request.Set(field, value)
			requests[fmt.Sprintf("%s in %s", what, field.Name())] = hostileRequest{request: request, invalid: invalid, large: what == "10 MB"}
		}
		if len(only) > 0 && !slices.Contains(only, field.Name()) {
			continue
		}
		without := plausible(d, only...)
		without.Clear(field)
		requests[fmt.Sprintf("no %s", field.Name())] = hostileRequest{request: without, invalid: field.Kind() == protoreflect.MessageKind}
		switch field.Kind() {
		case protoreflect.StringKind:
			for what, text := range hostileTexts {
				with(what, what == "NUL" || what == "only NULs", protoreflect.ValueOfString(text))
			}
		case protoreflect.MessageKind:
			for what, inner := range hostile(field.Message()) {
				with(what, false, protoreflect.ValueOfMessage(inner.request))
			}
		case protoreflect.Uint32Kind:
			with("the largest number", false, protoreflect.ValueOfUint32(math.MaxUint32))
		case protoreflect.Int64Kind:
			with("the largest number", false, protoreflect.ValueOfInt64(math.MaxInt64))
			with("the smallest number", false, protoreflect.ValueOfInt64(math.MinInt64))
		case protoreflect.EnumKind:
			with("an unknown value", false, protoreflect.ValueOfEnum(77))
		default:
		}
	}
	return requests
}
