package plugin

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/examples/csi-node-plugin/internal/storage"
)

// windowsPath brings a path of a request into the form that CSI Proxy takes. Kubelet on
// Windows sends both kinds of slashes, and leaves the drive out at times.
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

// checkParent fails with FailedPrecondition if the folder does not exist in which a path is.
func checkParent(ctx context.Context, node storage.Node, path string) error {
	parent := path[:strings.LastIndex(path, `\`)]
	exists, err := node.Exists(ctx, parent)
	switch {
	case err != nil:
		return answer("look for the folder of the path", err)
	case !exists:
		return status.Errorf(codes.FailedPrecondition, "the folder %s does not exist; kubelet makes it before it asks for the volume", parent)
	}
	return nil
}
