package serve_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/sweep"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/winpathtest"
)

// pathFields are the fields of requests that hold a path on the node.
var pathFields = map[protoreflect.Name]bool{"path": true, "source_path": true, "target_path": true, "mount": true, "local_path": true}

// keepsWorkingDir are the methods that never touch a working directory itself.
var keepsWorkingDir = map[protoreflect.Name]bool{
	"Rmdir": true, "RmdirContents": true, "MountVolume": true, "UnmountVolume": true, "DismountVolume": true, "LinkPath": true, "CreateSymlink": true,
	"NewSmbGlobalMapping": true,
}

// TestHostilePaths sends every path of the collection in every field that takes one, of
// every method in every version.
func TestHostilePaths(t *testing.T) {
	node := newNode(t)
	before := node.Tree(`C:\Windows`)
	fields, try := 0, sweep.OneIn(t, 20)
	forEachMethod(t, run(t, node), func(conn *grpc.ClientConn, endpoint grpcapi.Endpoint, _ string, method protoreflect.MethodDescriptor) {
		for i := range method.Input().Fields().Len() {
			field := method.Input().Fields().Get(i)
			if !pathFields[field.Name()] {
				continue
			}
			fields++
			for _, c := range winpathtest.Corpus() {
				if !try() || field.Name() == "local_path" && c.Path == "" { // then no link is wanted
					continue
				}
				checkVerdict(t, conn, endpoint.ServiceName(), method, field, c)
				must(t, errors.Join(node.RemoveAll(winpathtest.WorkingDir), node.Mkdir(winpathtest.WorkingDir)))
			}
		}
	})
	if fields != 53 {
		t.Errorf("%d fields hold a path, want 53", fields)
	}
	if after := node.Tree(`C:\Windows`); after != before {
		t.Errorf("something outside has changed:\n%s", after)
	}
}

func checkVerdict(t *testing.T, conn *grpc.ClientConn, service string, method protoreflect.MethodDescriptor, field protoreflect.FieldDescriptor, c winpathtest.Case) {
	t.Helper()
	name := fmt.Sprintf("/%s/%s", service, method.Name())
	var response []byte
	answer := conn.Invoke(t.Context(), name, withPath(t, method, field, c.Path), &response, grpc.ForceCodec(bytesCodec{}))
	code := status.Code(answer)
	keeps := keepsWorkingDir[method.Name()]
	ok := false
	clean, err := winpath.Clean(c.Path)
	if winpath.IsRooted(c.Path) && strings.HasSuffix(service, ".Volume") { // it is on the drive of Windows
		clean, err = winpath.Clean("C:" + strings.ReplaceAll(c.Path, "/", `\`))
		c.Verdict = map[bool]winpathtest.Verdict{true: winpathtest.Inside, false: winpathtest.Outside}[winpath.Contains(winpathtest.WorkingDir, clean)]
	}
	switch {
	case err != nil:
		ok = code == codes.InvalidArgument
	case c.Verdict == winpathtest.Outside, keeps && winpath.Contains(clean, winpathtest.WorkingDir):
		ok = code == codes.PermissionDenied
	default:
		ok = code != codes.InvalidArgument && code != codes.PermissionDenied && code != codes.Internal && code != codes.Unknown
	}
	if !ok {
		t.Errorf("line %d (%s), %s in %s of %s: %v, want the verdict %s", c.Line, c.Group, shortened(c.Path), field.Name(), name, answer, c.Verdict)
	}
}

func shortened(path string) string { return path[:min(100, len(path))] }

// withPath is a request as it is on the wire, with a path that need not be UTF-8.
func withPath(t *testing.T, method protoreflect.MethodDescriptor, field protoreflect.FieldDescriptor, path string) []byte {
	t.Helper()
	request := plausible(method.Input())
	if utf8.ValidString(path) {
		request.Set(field, protoreflect.ValueOfString(path))
	} else {
		request.Clear(field)
	}
	raw, err := proto.Marshal(request)
	must(t, err)
	if !utf8.ValidString(path) {
		raw = protowire.AppendTag(raw, field.Number(), protowire.BytesType)
		raw = protowire.AppendString(raw, path)
	}
	return raw
}
