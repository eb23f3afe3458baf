package serve_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/controlv1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/serve"
)

// FuzzControl sends any message to any method of the control service. Each call ends with a
// definite answer that does not blame the server, and the system disk stays what it was.
func FuzzControl(f *testing.F) {
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(controlv1.Control_ServiceDesc.ServiceName))
	if err != nil {
		f.Fatal(err)
	}
	methods := descriptor.(protoreflect.ServiceDescriptor).Methods()
	disk, err := proto.Marshal(&controlv1.AttachDiskRequest{SizeBytes: 1 << 30, Content: controlv1.Content_CONTENT_NTFS, FilePath: `\dir\file`, FileText: "x"})
	if err != nil {
		f.Fatal(err)
	}
	for i := range methods.Len() {
		f.Add(uint8(i), false, disk)
		f.Add(uint8(i), true, []byte{0, 1, 2, 3})
	}
	f.Fuzz(func(t *testing.T, index uint8, fields bool, data []byte) {
		method := methods.Get(int(index) % methods.Len())
		message := data
		if fields {
			var err error
			if message, err = proto.Marshal(filled(method.Input(), &bites{data})); err != nil {
				return // text that is not UTF-8, which only the other way sends
			}
		}
		ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), klog.Logger{}), time.Minute) // no logs
		defer cancel()
		node := newNode(t)
		before, err := node.DiskInfo(0)
		must(t, err)
		dir, stop := runUntil(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"system"}}, Control: serve.DefaultControl})
		conn, err := client.Connect(ctx, "sim", apiversion.NewVersionOrPanic("v1"), client.WithPipePath(endpointPath(dir, "sim", "v1")))
		must(t, err)
		var answer []byte
		err = conn.Invoke(ctx, fmt.Sprintf("/%s/%s", descriptor.FullName(), method.Name()), message, &answer, grpc.ForceCodec(bytesCodec{}))
		switch status.Code(err) {
		case codes.Unknown, codes.Internal, codes.DeadlineExceeded, codes.Unimplemented:
			t.Errorf("%s of %q: %v", method.Name(), message, err)
		default:
		}
		_ = conn.Close()
		stop()
		if after, err := node.DiskInfo(0); err != nil || method.Name() != "GrowDisk" && !cmp.Equal(before, after) {
			t.Errorf("%s of %q changed the system disk: %+v, %v", method.Name(), message, after, err)
		}
	})
}
