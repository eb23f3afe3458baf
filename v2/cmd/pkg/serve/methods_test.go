package serve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
)

// forEachMethod calls f for every method of every version of all groups, with a connection to
// its endpoint and its full name.
func forEachMethod(t *testing.T, dir string, f func(conn *grpc.ClientConn, endpoint grpcapi.Endpoint, name string, method protoreflect.MethodDescriptor)) {
	t.Helper()
	for _, endpoint := range grpcapi.Endpoints() {
		conn := dial(t, dir, endpoint)
		descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(endpoint.ServiceName()))
		must(t, err)
		methods := descriptor.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			f(conn, endpoint, fmt.Sprintf("/%s/%s", endpoint.ServiceName(), methods.Get(i).Name()), methods.Get(i))
		}
	}
}

func dial(t *testing.T, dir string, endpoint grpcapi.Endpoint) *grpc.ClientConn {
	t.Helper()
	version, err := apiversion.NewVersion(endpoint.Version)
	must(t, err)
	conn, err := client.Connect(t.Context(), endpoint.Group, version, client.WithPipePath(endpointPath(dir, endpoint.Group, endpoint.Version)))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// plausible fills a request with values that pass the checks of its form, so that the
// call reaches the host.
func plausible(d protoreflect.MessageDescriptor, only ...protoreflect.Name) *dynamicpb.Message {
	m := dynamicpb.NewMessage(d)
	for i := range d.Fields().Len() {
		field := d.Fields().Get(i)
		if len(only) > 0 && !slices.Contains(only, field.Name()) {
			continue
		}
		switch field.Kind() {
		case protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString(plausibleText(string(field.Name()))))
		case protoreflect.MessageKind:
			m.Set(field, protoreflect.ValueOfMessage(plausible(field.Message())))
		case protoreflect.Uint32Kind:
			m.Set(field, protoreflect.ValueOfUint32(1))
		case protoreflect.BoolKind:
			if field.HasPresence() {
				m.Set(field, protoreflect.ValueOfBool(false))
			}
		default:
		}
	}
	return m
}

func plausibleText(field string) string {
	name := strings.ToLower(field)
	switch {
	case strings.Contains(name, "volume_id"), name == "id":
		return dataVolume
	case strings.Contains(name, "disk"):
		return "1"
	case name == "remote_path":
		return `\\files\data`
	case name == "username":
		return "csi"
	case name == "password":
		return "csi-Pa55"
	case strings.Contains(name, "path") || name == "mount":
		return `C:\var\lib\kubelet\pods\none`
	case name == "target_address":
		return "10.0.0.1"
	case name == "iqn":
		return "iqn.2001-04.com.example:storage"
	case strings.Contains(name, "secret"):
		return "a-secret-of-16-b"
	default:
		return "MSiSCSI"
	}
}
