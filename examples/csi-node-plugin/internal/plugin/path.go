package plugin

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/examples/csi-node-plugin/internal/storage"
)

// windowsPath converts a path of a request into the form that CSI Proxy accepts. Kubelet on
// Windows sends both kinds of slashes, and sometimes omits the drive.
func windowsPath(path string) (string, error) {
	path = strings.ReplaceAll(path, "/", `\`)
	if strings.HasPrefix(path, `\`) && !strings.HasPrefix(path, `\\`) {
		path = "C:" + path
	}
	if len(path) < 3 || path[1:3] != `:\` {
		return "", status.Errorf(codes.InvalidArgument, "%q is not an absolute path on a drive of the node", path)
	}
	return path, nil
}

// checkParent fails with FailedPrecondition if the parent of a path does not exist.
func checkParent(ctx context.Context, node storage.Node, path string) error {
	parent := path[:strings.LastIndex(path, `\`)]
	exists, err := node.Exists(ctx, parent)
	switch {
	case err != nil:
		return answer("look for the folder of the path", err)
	case !exists:
		return status.Errorf(codes.FailedPrecondition, "folder %s does not exist; kubelet creates it before it calls the driver", parent)
	}
	return nil
}
