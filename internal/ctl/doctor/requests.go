package doctor

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/inventory"
)

// unasked reports an error of which the check of the endpoints has told already.
func unasked(err error) bool {
	return errors.As(err, new(*endpoint.UnreachableError)) || call.Absent(err)
}

// directories checks that the directories exist, and that the daemon lets requests touch them.
func (d Doctor) directories(ctx context.Context, f *findings) {
	const check = "working directories"
	for _, dir := range d.WorkingDirs {
		var response filesystemv2alpha1.PathExistsResponse
		err := d.Client.Do(ctx, "filesystem", "PathExists", &filesystemv2alpha1.PathExistsRequest{Path: dir}, &response)
		switch {
		case unasked(err):
			f.add(Info, check, "", "%s: not checked, the filesystem group does not answer", dir)
		case status.Code(err) == codes.PermissionDenied:
			f.add(Error, check, "add it to the daemon's -kubelet-path or -working-dir", "%s: the daemon does not let requests touch it", dir)
		case err != nil:
			f.add(Error, check, "see the daemon's log", "%s: %s", dir, inventory.Reason(err))
		case !response.GetExists():
			f.add(Warning, check, "create it, or correct the kubelet's --root-dir and the daemon's -kubelet-path", "%s does not exist", dir)
		default:
			f.add(OK, check, "", "%s exists", dir)
		}
	}
}

// initiatorService is the iSCSI initiator of Windows.
const initiatorService = "MSiSCSI"

// initiator checks the service without which nothing works with iSCSI.
func (d Doctor) initiator(ctx context.Context, f *findings) {
	var service systemv1alpha1.GetServiceResponse
	err := d.Client.Do(ctx, "system", "GetService", &systemv1alpha1.GetServiceRequest{Name: initiatorService}, &service)
	switch {
	case unasked(err):
		f.add(Info, initiatorService, "", "not checked, the system group does not answer")
	case status.Code(err) == codes.NotFound:
		f.add(Info, initiatorService, "", "there is no such service: this machine has no iSCSI")
	case err != nil:
		f.add(Warning, initiatorService, "see the daemon's log", "%s", inventory.Reason(err))
	case service.GetStatus() == systemv1alpha1.ServiceStatus_RUNNING && service.GetStartType() == systemv1alpha1.StartType_AUTOMATIC:
		f.add(OK, initiatorService, "", "runs, and starts with the machine")
	case service.GetStatus() == systemv1alpha1.ServiceStatus_RUNNING:
		f.add(Info, initiatorService, "for iSCSI volumes after a restart: sc.exe config MSiSCSI start= auto", "runs, but does not start with the machine")
	default:
		f.add(Info, initiatorService, "if drivers use iSCSI: csi-proxyctl system service start MSiSCSI; sc.exe config MSiSCSI start= auto",
			"does not run (%s)", strings.ToLower(service.GetStatus().String()))
	}
}
