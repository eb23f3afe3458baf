package plugin

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
