package inventory

import (
	"context"
	"errors"

	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

const staleAdvice = "bring its disk online, or remove it with csi-proxyctl fs rmdir PATH"

// path finds the volume of a path: the one that a mounted folder or link leads to, or else
// the one that holds the path.
func (s Source) path(ctx context.Context, path string) Path {
	found := Path{Path: path, Problems: []Problem{}}
	warn := func(kind problem.Kind, text, advice string) {
		found.Problems = append(found.Problems, problem.New(kind, problem.Object{Type: problem.Path, ID: path}, text, advice))
	}
	var exists filesystemv2alpha1.PathExistsResponse
	if err := s.Client.Do(ctx, "filesystem", "PathExists", &filesystemv2alpha1.PathExistsRequest{Path: path}, &exists); err != nil {
		warn(problem.Unsuitable, Reason(err), "")
		return found
	}
	var mounted volumev2alpha1.GetVolumeIDFromTargetPathResponse
	err := s.Client.Do(ctx, "volume", "GetVolumeIDFromTargetPath", &volumev2alpha1.GetVolumeIDFromTargetPathRequest{TargetPath: path}, &mounted)
	if err == nil {
		found.VolumeID, found.Leads = mounted.GetVolumeId(), true
		if !s.alive(ctx, path) {
			warn(problem.StaleMount, "stale: its volume is offline or gone", staleAdvice)
		}
		return found
	}
	switch code, _ := failure.WindowsCode(err); {
	case errors.As(err, new(*endpoint.UnreachableError)):
		warn(problem.Unsuitable, Reason(err), "")
		return found
	case code == 433: // ERROR_NO_SUCH_DEVICE
		warn(problem.StaleMount, "stale: its volume is gone", staleAdvice)
		return found
	case !exists.GetExists():
		warn(problem.Unsuitable, "not found", "check the path")
		return found
	case code == 2 || code == 3: // ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND: a link whose target does not exist
		warn(problem.StaleMount, "stale: "+Reason(err), staleAdvice)
		return found
	}
	var closest volumev2alpha1.GetClosestVolumeIDFromTargetPathResponse
	request := &volumev2alpha1.GetClosestVolumeIDFromTargetPathRequest{TargetPath: path}
	if err := s.Client.Do(ctx, "volume", "GetClosestVolumeIDFromTargetPath", request, &closest); err != nil && !errors.As(err, new(*endpoint.UnreachableError)) {
		warn(problem.Unsuitable, Reason(err), "")
	}
	found.VolumeID = closest.GetVolumeId()
	return found
}

// alive reports whether the target of a link or mounted folder exists. After an error it
// returns true.
func (s Source) alive(ctx context.Context, path string) bool {
	var link filesystemv2alpha1.IsSymlinkResponse
	err := s.Client.Do(ctx, "filesystem", "IsSymlink", &filesystemv2alpha1.IsSymlinkRequest{Path: path}, &link)
	return err != nil || link.GetIsSymlink()
}
