// Package call makes calls to the gRPC API that are given as text, so that the same list
// of calls can be sent to different nodes and the answers compared.
package call

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/kubernetes-csi/csi-proxy/client"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	_ "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	_ "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
)

// Caller makes calls. The zero value is ready.
type Caller struct {
	volume string // the last id that was answered, in JSON
}

var volumeIDs = regexp.MustCompile(`"\\\\\\\\\?\\\\Volume\{[^"]*"`)

// Do makes a call to the endpoint where clients find it, once there is one: a method such
// as v1.Disk/ListDiskIDs, a space, and the request in JSON, which may be missing. $volume
// in it is the last id of a volume in an earlier answer. It returns the answer in JSON, or
// the error.
func (c *Caller) Do(ctx context.Context, text string) string {
	answer, err := do(ctx, strings.ReplaceAll(text, "$volume", c.volume))
	if err != nil {
		s := status.Convert(err)
		return fmt.Sprintf("%s: %s", s.Code(), s.Message())
	}
	if ids := volumeIDs.FindAllString(answer, -1); len(ids) > 0 {
		c.volume = ids[len(ids)-1]
	}
	return answer
}

func do(ctx context.Context, text string) (string, error) {
	name, body, _ := strings.Cut(text, " ")
	method, err := find(name)
	if err != nil {
		return "", err
	}
	request, response := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	if body != "" {
		if err := protojson.Unmarshal([]byte(body), request); err != nil {
			return "", err
		}
	}
	group, release := strings.ToLower(string(method.Parent().Name())), string(method.ParentFile().Package())
	if strings.HasPrefix(release, "csiproxy.extension.") { // of volumes
		group, release = "volume", "v2alpha1"
	}
	version, err := apiversion.NewVersion(release)
	if err != nil {
		return "", err
	}
	conn, err := client.Connect(ctx, group, version, client.WithWait())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.Invoke(ctx, "/"+name, request, response, grpc.WaitForReady(true)); err != nil {
		return "", err
	}
	answer, err := protojson.Marshal(response)
	if err != nil {
		return "", err
	}
	var compact bytes.Buffer // protojson varies its spaces, on purpose
	err = json.Compact(&compact, answer)
	return compact.String(), err
}

func find(name string) (protoreflect.MethodDescriptor, error) {
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.Replace(name, "/", ".", 1)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	method, ok := descriptor.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is not a method", name)
	}
	return method, nil
}
