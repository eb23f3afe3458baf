package server_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// logger keeps everything in memory, at the level of the line per request.
func logger(t *testing.T) klog.Logger {
	t.Helper()
	return ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(2), ktesting.BufferLogs(true)))
}

func logged(l klog.Logger) string {
	return l.GetSink().(ktesting.Underlier).GetBuffer().String()
}

func TestRun_LogsOneLinePerRequest(t *testing.T) {
	r := start(t, func(_ context.Context, path string) (bool, error) {
		if path == "panic" {
			panic("on purpose")
		}
		return true, nil
	})
	client := filesystemv1.NewFilesystemClient(r.conn("v1"))
	for _, path := range []string{"C:\\one", "panic", "two\nlines"} {
		_, _ = client.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: path})
	}
	r.mustStop()
	log := logged(r.logger)
	var requests []string
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "INFO Request") {
			requests = append(requests, line)
		}
	}
	pid := fmt.Sprintf("pid=%d", os.Getpid())
	for i, want := range [][]string{
		{`method="/v1.Filesystem/PathExists"`, `path="C:\\one"`, `code="OK"`, "duration=", pid},
		{`path="panic"`, `code="Internal"`, "error="},
		{"path=\"two\uFFFDlines\"", `code="OK"`},
	} {
		for _, part := range want {
			if i >= len(requests) || !strings.Contains(requests[i], part) {
				t.Errorf("request %d is not logged with %s:\n%s", i, part, log)
			}
		}
	}
	if len(requests) != 3 || !strings.Contains(log, "on purpose") || !strings.Contains(log, "log_test.go") {
		t.Errorf("want three requests and the stack of the panic:\n%s", log)
	}
}

// TestRun_LogsUndecodableRequests: what gRPC cannot decode is an invalid argument like any
// other, with a line of its own.
func TestRun_LogsUndecodableRequests(t *testing.T) {
	r := start(t, func(context.Context, string) (bool, error) { return true, nil })
	for _, request := range []string{"\x0a\x02\xff\xfe", "\x0a\xff", "\x07", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		var response []byte
		err := r.conn("v1").Invoke(t.Context(), "/v1.Filesystem/PathExists", []byte(request), &response, grpc.ForceCodec(rawCodec{}))
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: %v, want InvalidArgument", request, err)
		}
	}
	// A field that is not known is not a mistake: the client may be newer than we are.
	var response []byte
	require.NoError(t, r.conn("v1").Invoke(t.Context(), "/v1.Filesystem/PathExists", []byte("\xa0\x06\x01"), &response, grpc.ForceCodec(rawCodec{})), "a request with an unknown field:")
	r.mustStop()
	if n := strings.Count(logged(r.logger), `code="InvalidArgument"`); n != 4 {
		t.Errorf("%d requests are logged, want 4:\n%s", n, logged(r.logger))
	}
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string                    { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (rawCodec) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }

// TestSecretFields_AreComplete walks every message of the API: to add a field with
// a secret must say so.
func TestSecretFields_AreComplete(t *testing.T) {
	looksSecret := regexp.MustCompile(`(?i)pass|secret|token|credential|key|auth`)
	harmless := map[protoreflect.FullName]bool{
		"v1alpha1.ConnectTargetRequest.auth_type": true, // an enum
		"v1alpha2.ConnectTargetRequest.auth_type": true,
	}
	found := 0
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(file.Path(), "github.com/kubernetes-csi/csi-proxy/") {
			return true
		}
		for i := range file.Messages().Len() {
			fields := file.Messages().Get(i).Fields()
			for j := range fields.Len() {
				field := fields.Get(j)
				if !looksSecret.MatchString(string(field.Name())) || harmless[field.FullName()] {
					continue
				}
				found++
				if !server.IsSecret(field.Name()) {
					t.Errorf("%s looks secret and would be logged", field.FullName())
				}
			}
		}
		return true
	})
	if want := 4 + 1 + 2 + 1; found != want { // smb passwords, that of the extension, CHAP secrets, the mutual one
		t.Errorf("%d secret fields were found, want %d", found, want)
	}
}

func TestLoggable(t *testing.T) {
	const secret = "pass word\"$`"
	for _, c := range []struct {
		request any
		want    string
	}{
		{&filesystemv1.RmdirRequest{Path: `C:\x`, Force: true}, `[path C:\x force true]`},
		{&filesystemv1.RmdirRequest{}, `[]`},
		{&smbv1.NewSmbGlobalMappingRequest{RemotePath: `\\s\x`, Username: "u", Password: secret}, `[remote_path \\s\x username u password ***]`},
		{&iscsiv1alpha2.SetMutualChapSecretRequest{MutualChapSecret: secret}, `[MutualChapSecret ***]`},
		{
			&iscsiv1alpha2.ConnectTargetRequest{
				TargetPortal: &iscsiv1alpha2.TargetPortal{TargetAddress: "10.0.0.1", TargetPort: 3260},
				AuthType:     iscsiv1alpha2.AuthenticationType_ONE_WAY_CHAP, ChapSecret: secret,
			},
			`[target_portal.target_address 10.0.0.1 target_portal.target_port 3260 auth_type 1 chap_secret ***]`,
		},
		{&filesystemv1.PathExistsRequest{Path: strings.Repeat("é", 1000)}, `[path ` + strings.Repeat("é", 256) + `...]`},
		{"not a message", `[]`},
		{nil, `[]`},
	} {
		if got := fmt.Sprint(server.Loggable(c.request)); got != c.want {
			t.Errorf("%v: got %s, want %s", c.request, got, c.want)
		}
	}
}
