package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
)

// inspectTimeout is more than the inspector's own limit, and that of a look it waits for.
const inspectTimeout = 10 * time.Second

// inspect asks the inspector, which the original does not have.
func (s Source) inspect(ctx context.Context, request *extensionv1.DescribeNodeRequest) (*extensionv1.Node, error) {
	limited, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	response := &extensionv1.Node{}
	err := s.Client.Private(limited, "system", extensionv1.Inspector_DescribeNode_FullMethodName, request, response)
	switch {
	case err != nil && ctx.Err() == nil && limited.Err() != nil && !errors.Is(err, context.Canceled):
		return nil, fmt.Errorf("describe node: the server did not answer within %s; run 'csi-proxyctl doctor', and read the daemon's log", inspectTimeout)
	case status.Code(err) == codes.Unimplemented:
		return nil, status.Error(codes.Unimplemented, "describe node: this needs the csi-proxy of this project with the groups system, disk and volume; 'csi-proxyctl doctor' and the commands that make one call work with every csi-proxy")
	}
	return response, err
}
