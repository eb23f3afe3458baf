package serve_test

import (
	"encoding/hex"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
)

// bytesCodec sends and receives messages as they are on the wire, so that these tests
// depend on no generated code, as a client in another language does not.
type bytesCodec struct{}

func (bytesCodec) Name() string                    { return "proto" }
func (bytesCodec) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (bytesCodec) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }

// str is a length-delimited field, flag a true one.
func str(number int, s string) []byte {
	return append([]byte{byte(number<<3 | 2), byte(len(s))}, s...)
}
func flagged(number int) []byte { return []byte{byte(number << 3), 1} }

// TestWire_Filesystem speaks protobuf by hand to the newest and the oldest version.
func TestWire_Filesystem(t *testing.T) {
	dir := run(t, newNode(t))
	const pods, pod, link = `C:\var\lib\kubelet\pods`, `C:\var\lib\kubelet\pods\1`, `C:\var\lib\kubelet\pods\link`
	for _, step := range []struct {
		endpoint, method string
		request          []byte
		want             string // the response in hex
		code             codes.Code
	}{
		{"v1", "/v1.Filesystem/PathExists", str(1, pods), "0801", codes.OK},
		{"v1", "/v1.Filesystem/PathExists", str(1, pod), "", codes.OK},
		{"v1", "/v1.Filesystem/Mkdir", str(1, pod), "", codes.OK},
		{"v1", "/v1.Filesystem/CreateSymlink", append(str(1, pod), str(2, link)...), "", codes.OK},
		{"v1", "/v1.Filesystem/IsSymlink", str(1, link), "0801", codes.OK},
		{"v1", "/v1.Filesystem/Rmdir", append(str(1, link), flagged(2)...), "", codes.OK},
		{"v1", "/v1.Filesystem/RmdirContents", str(1, pod), "", codes.Unimplemented}, // of v2alpha1 only
		{"v2alpha1", "/v2alpha1.Filesystem/RmdirContents", str(1, pod), "", codes.OK},
		{"v1beta2", "/v1beta2.Filesystem/IsSymlink", str(1, pod), "", codes.OK},
		{"v1beta1", "/v1beta1.Filesystem/PathExists", append(str(1, pod), flagged(2)...), "1001", codes.OK},
		{"v1alpha1", "/v1alpha1.Filesystem/LinkPath", append(str(1, pod), str(2, link)...), "", codes.OK},
		{"v1alpha1", "/v1alpha1.Filesystem/LinkPath", append(str(1, pods), str(2, link)...), "", codes.AlreadyExists},
		{"v1alpha1", "/v1alpha1.Filesystem/IsMountPoint", str(1, link), "1001", codes.OK},
		{"v1alpha1", "/v1alpha1.Filesystem/Rmdir", append(str(1, pod), flagged(3)...), "", codes.OK},
		{"v1alpha1", "/v1alpha1.Filesystem/IsMountPoint", str(1, link), "", codes.OK}, // its target is gone
		{"v1alpha1", "/v1alpha1.Filesystem/IsMountPoint", str(1, pod), "", codes.NotFound},
		{"v1alpha1", "/v1.Filesystem/PathExists", str(1, pods), "", codes.Unimplemented}, // another endpoint's service
		{"v1", "/v1.Filesystem/Mkdir", str(1, `C:\Windows\x`), "", codes.PermissionDenied},
		{"v1", "/v1.Filesystem/Mkdir", str(1, "relative"), "", codes.InvalidArgument},
		{"v1", "/v1.Filesystem/Mkdir", nil, "", codes.InvalidArgument},
		{"v1", "/v1.Filesystem/Mkdir", []byte{0x0a, 0xff}, "", codes.InvalidArgument},                 // not protobuf
		{"v1", "/v1.Filesystem/Mkdir", str(1, "C:\\\xff\xfe"), "", codes.InvalidArgument},             // not UTF-8
		{"v1alpha1", "/v1alpha1.Filesystem/Mkdir", str(1, "C:\\\xff\xfe"), "", codes.InvalidArgument}, // an alias
	} {
		t.Run(fmt.Sprintf("%s %s", step.method, step.code), func(t *testing.T) {
			conn := dial(t, dir, grpcapi.Endpoint{Group: "filesystem", Version: step.endpoint})
			var response []byte
			err := conn.Invoke(t.Context(), step.method, step.request, &response, grpc.ForceCodec(bytesCodec{}))
			if status.Code(err) != step.code {
				t.Fatalf("got %v, want code %s", err, step.code)
			}
			if got := hex.EncodeToString(response); got != step.want {
				t.Errorf("response %s, want %s", got, step.want)
			}
		})
	}
}
