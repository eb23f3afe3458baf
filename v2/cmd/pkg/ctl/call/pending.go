package call

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
)

// Pending is a call that has no answer yet.
type Pending struct {
	What  string // object and method, such as "disk 2 (GetDiskStats)"
	Since time.Time
}

// Pending returns the call that waits for its answer longest.
func (c *Client) Pending() (Pending, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		return Pending{}, false
	}
	return *c.pending[0], true
}

// begin adds a call to those that wait. The caller calls end with its answer.
func (c *Client) begin(what string) (end func()) {
	call := &Pending{What: what, Since: c.now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, call)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pending = slices.DeleteFunc(c.pending, func(p *Pending) bool { return p == call })
	}
}

// nameLate names the object in the error of a call that took too long, whether the server or we noticed
// it first. A server that says more keeps its words.
func nameLate(err error, method string, request proto.Message) error {
	s, ok := status.FromError(err)
	if !ok || s.Code() != codes.DeadlineExceeded || !strings.HasSuffix(s.Message(), context.DeadlineExceeded.Error()) && s.Message() != lateText {
		return err
	}
	return status.Errorf(codes.DeadlineExceeded, "%s: %s did not answer in time", path.Base(method), object(request))
}

func describe(method string, request proto.Message) string {
	if method == extensionv1.Inspector_DescribeNode_FullMethodName {
		return "disks and volumes"
	}
	return fmt.Sprintf("%s (%s)", object(request), path.Base(method))
}

func object(request proto.Message) string {
	message := request.ProtoReflect()
	text := func(names ...protoreflect.Name) string {
		for _, name := range names {
			f := message.Descriptor().Fields().ByName(name)
			if f == nil || f.IsList() || f.IsMap() || f.Message() != nil {
				continue
			}
			if value := message.Get(f).String(); value != "" {
				return printable.Text(value)
			}
		}
		return ""
	}
	if number := text("disk_number", "number"); number != "" {
		return "disk " + number
	}
	if id := text("volume_id"); id != "" {
		return "volume " + strings.TrimSuffix(strings.TrimPrefix(id, `\\?\Volume{`), `}\`)
	}
	if share := text("remote_path"); share != "" {
		return "share " + share
	}
	if target := text("iqn"); target != "" {
		return "target " + target
	}
	if portal := message.Descriptor().Fields().ByName("target_portal"); portal != nil && portal.Message() != nil {
		address := message.Get(portal).Message()
		return "portal " + printable.Text(address.Get(address.Descriptor().Fields().ByName("target_address")).String())
	}
	if path := text("target_path", "path"); path != "" {
		return path
	}
	if service := text("name"); service != "" {
		return "service " + service
	}
	return "the server"
}
