package serve_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"k8s.io/klog/v2"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// bytesCodec sends and receives messages as they are on the wire, as no generated client would.
type bytesCodec struct{}

func (bytesCodec) Name() string                    { return "proto" }
func (bytesCodec) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (bytesCodec) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }

// fuzzedMethod is a method of a version of a group.
type fuzzedMethod struct {
	endpoint grpcapi.Endpoint
	method   protoreflect.MethodDescriptor
}

func allMethods(f *testing.F) (all []fuzzedMethod) {
	f.Helper()
	for _, endpoint := range grpcapi.Endpoints() {
		descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(endpoint.ServiceName()))
		if err != nil {
			f.Fatal(err)
		}
		methods := descriptor.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			all = append(all, fuzzedMethod{endpoint, methods.Get(i)})
		}
	}
	return all
}

// FuzzMethods sends any message to any method of any version, on a node of its own: bytes as
// they are, or fields that are made of them. Each call ends in time, with a definite error that
// does not blame the server. Nothing outside of the working directory is touched, the system's disk is
// what it was, and nothing stays open.
func FuzzMethods(f *testing.F) {
	methods := allMethods(f)
	if len(methods) != 139 {
		f.Fatalf("there are %d methods, want 139", len(methods))
	}
	for i, m := range methods {
		request, err := proto.Marshal(plausible(m.method.Input()))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), false, request)
		f.Add(uint8(i), true, []byte{0, 1, 2, 3})
	}
	f.Add(uint8(0), false, []byte("\xff\xff\xff\xff"))
	f.Add(uint8(0), true, []byte("\x80C:\\var\\lib\\kubelet\\..\\..\\..\\Windows"))
	f.Fuzz(func(t *testing.T, index uint8, fields bool, data []byte) {
		m := methods[int(index)%len(methods)]
		message := data
		if fields {
			var err error
			message, err = proto.Marshal(filled(m.method.Input(), &bites{data}))
			if err != nil {
				return // text that is not UTF-8, which only the other way sends
			}
		}
		attack(t, m, message)
	})
}

// attack sends a message to a method of a new node.
func attack(t *testing.T, m fuzzedMethod, message []byte) {
	t.Helper()
	node := newNode(t)
	before, err := node.DiskInfo(0)
	must(t, err)
	node.Observe(func(touch winsim.Touch) {
		if strayed(touch) {
			t.Errorf("%s touched %s", touch.Call, touch.Path)
		}
	})
	ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), klog.Logger{}), time.Minute) // no logs
	defer cancel()
	conn, stop := serveOne(ctx, t, node, m.endpoint)
	name := fmt.Sprintf("/%s/%s", m.endpoint.ServiceName(), m.method.Name())
	var answer []byte
	err = conn.Invoke(ctx, name, message, &answer, grpc.ForceCodec(bytesCodec{}))
	switch status.Code(err) {
	case codes.Unknown, codes.Internal, codes.DeadlineExceeded, codes.Unimplemented:
		t.Errorf("%s of %q: %v", name, message, err)
	case codes.OK:
		if err := proto.Unmarshal(answer, dynamicpb.NewMessage(m.method.Output())); err != nil {
			t.Errorf("%s of %q: the answer is no %s: %v", name, message, m.method.Output().Name(), err)
		}
	default:
	}
	stop()
	if after, err := node.DiskInfo(0); err != nil || !cmp.Equal(before, after) {
		t.Errorf("%s of %q changed the system's disk: %+v, %v", name, message, after, err)
	}
	if open := node.OpenDirectories(); open != 0 {
		t.Errorf("%s of %q left %d directories open", name, message, open)
	}
}

// strayed finds touches of what a request may not reach: on drive C: all but the working
// directory, and of the directories on the way to it more than a look. Volumes without a letter
// and shares are only reached through it.
func strayed(touch winsim.Touch) bool {
	const allowed = `C:\var\lib\kubelet`
	if !strings.HasPrefix(touch.Path, `C:`) {
		return false
	}
	path := strings.TrimSuffix(touch.Path, `\`)
	onTheWay := winpath.Contains(path, allowed) || path == `C:`
	return !winpath.Contains(allowed, path) && (touch.Changed || !onTheWay)
}

// serveOne serves one endpoint of a node, and connects to it.
func serveOne(ctx context.Context, t *testing.T, node *winsim.Node, endpoint grpcapi.Endpoint) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fuzz") // short, unlike t.TempDir
	must(t, err)
	version, err := apiversion.NewVersion(endpoint.Version)
	must(t, err)
	serving, cancel := context.WithCancel(ctx)
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- serve.Run(serving, node, serve.Config{
			Config: daemon.Config{
				SocketDir:   dir,
				APIGroups:   []string{endpoint.Name()},
				StopTimeout: time.Minute,
				Ready:       func() { close(ready) },
			},
		})
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	if conn, err = client.Connect(ctx, endpoint.Group, version, client.WithPipePath(endpointPath(dir, endpoint.Group, endpoint.Version))); err != nil {
		t.Fatal(err)
	}
	return conn, func() {
		_ = conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	}
}

// bites are bytes of which values are made, as long as they last.
type bites struct{ rest []byte }

func (b *bites) next() byte {
	if len(b.rest) == 0 {
		return 0
	}
	first := b.rest[0]
	b.rest = b.rest[1:]
	return first
}

func (b *bites) number() uint64 {
	var number [8]byte
	b.rest = b.rest[copy(number[:], b.rest):]
	return binary.LittleEndian.Uint64(number[:])
}

// text is one of those that mean something, or what the bytes say, up to a zero.
func (b *bites) text(field protoreflect.Name) string {
	meaningful := []string{
		plausibleText(string(field)), "", `C:\var\lib\kubelet`, `C:\var\lib\kubelet\pods`, `C:\Windows\System32`, `\\files\data`, `\\.\PhysicalDrive0`,
		winsim.SystemVolume, "0", "1", "4294967297", `C:\var\lib\kubelet\..`, `C:\var\lib\kubelet\x:y`, `C:\var\lib\kubelet\pods\a`, "disk", "csi",
	}
	choice := b.next()
	if int(choice) < len(meaningful) {
		return meaningful[choice]
	}
	text, rest, _ := strings.Cut(string(b.rest), "\x00")
	b.rest = []byte(rest)
	if choice%2 == 1 {
		return `C:\var\lib\kubelet\` + text
	}
	return text
}

// filled is a message with fields made of bytes.
func filled(d protoreflect.MessageDescriptor, from *bites) *dynamicpb.Message {
	m := dynamicpb.NewMessage(d)
	for i := range d.Fields().Len() {
		field := d.Fields().Get(i)
		switch field.Kind() {
		case protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString(from.text(field.Name())))
		case protoreflect.MessageKind:
			if from.next() != 1 {
				m.Set(field, protoreflect.ValueOfMessage(filled(field.Message(), from)))
			}
		case protoreflect.BoolKind:
			m.Set(field, protoreflect.ValueOfBool(from.next()%2 == 1))
		case protoreflect.EnumKind:
			m.Set(field, protoreflect.ValueOfEnum(protoreflect.EnumNumber(int8(from.next()))))
		case protoreflect.Uint32Kind:
			m.Set(field, protoreflect.ValueOfUint32(uint32(from.number())))
		case protoreflect.Int64Kind:
			m.Set(field, protoreflect.ValueOfInt64(int64(from.number())))
		default:
			panic(fmt.Sprintf("requests have fields of kind %s now: make one of bytes", field.Kind()))
		}
	}
	return m
}
