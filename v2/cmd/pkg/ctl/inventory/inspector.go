package inventory

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
)

const inspectorGroup = "system"

// maxInspectorTimeout is more than the inspector's own limit, and that of a look it waits for.
const maxInspectorTimeout = 10 * time.Second

// inspectorTimeout returns three quarters of the remaining time, so that the API can still be
// asked if the inspector does not answer.
func inspectorTimeout(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return maxInspectorTimeout
	}
	return min(maxInspectorTimeout, time.Until(deadline)/4*3)
}

const noInspector = "the server has no inspector, or does not serve the groups disk and volume"

// inspect asks the inspector. If it does not answer, missing says why, and the caller asks the
// API.
func (s Source) inspect(ctx context.Context, request *extensionv1.DescribeNodeRequest) (response *extensionv1.Node, missing string, err error) {
	limited, cancel := context.WithTimeout(ctx, inspectorTimeout(ctx))
	defer cancel()
	response = &extensionv1.Node{}
	err = s.Client.Private(limited, inspectorGroup, extensionv1.Inspector_DescribeNode_FullMethodName, request, response)
	unreachable := (*endpoint.UnreachableError)(nil)
	switch {
	case err == nil:
		return response, "", nil
	case ctx.Err() != nil, errors.As(err, &unreachable) && unreachable.Ended:
		return nil, "", err
	case limited.Err() != nil, status.Code(err) == codes.DeadlineExceeded, status.Code(err) == codes.Canceled: // the server may notice first
		return nil, "the inspector did not answer in time", nil
	case unreachable != nil:
		return nil, "the group " + inspectorGroup + " does not answer", nil
	case status.Code(err) == codes.Unimplemented:
		return nil, noInspector, nil
	default:
		return nil, "the inspector failed: " + Reason(err), nil
	}
}
