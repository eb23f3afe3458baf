package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
)

// askLimit is how long one request may take.
const askLimit = 5 * time.Second

// skipped adds an info if no endpoint of a group answers, which the endpoints check reports. It reports whether it did. If
// an endpoint answers, a request that it does not answer is an error: something is not checked, and may be wrong.
func (d examination) skipped(r *results, check, prefix, group string, err error) bool {
	answers := slices.ContainsFunc(d.health, func(h endpoint.Health) bool { return h.Name.Group == group && h.State.Answers() })
	if !errors.As(err, new(*endpoint.UnreachableError)) || answers {
		return false
	}
	r.skip(check, "%snot checked: the %s group does not answer", prefix, group)
	return true
}

func (d examination) workingDirs() []string {
	if len(d.WorkingDirs) > 0 {
		return d.WorkingDirs
	}
	if command, err := d.daemon.command(); err == nil {
		return installation.WorkingDirs(command, d.KubeletPath)
	}
	return []string{d.KubeletPath}
}

// directories checks that the directories exist and that the daemon allows access to them.
func (d examination) directories(ctx context.Context, r *results) {
	const check = "working directories"
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	for _, dir := range d.workingDirs() {
		var response filesystemv2alpha1.PathExistsResponse
		err := d.Client.Do(ctx, "filesystem", "PathExists", &filesystemv2alpha1.PathExistsRequest{Path: dir}, &response)
		switch {
		case d.skipped(r, check, dir+": ", "filesystem", err):
		case status.Code(err) == codes.PermissionDenied:
			r.add(Error, check, "add it to the daemon's -kubelet-path or -working-dir", "%s: the daemon does not allow access to it", dir)
		case err != nil:
			r.add(Error, check, "look at the disk that it is on, and read the daemon's log", "%s: %s", dir, inventory.Reason(err))
		case !response.GetExists():
			r.add(Warning, check, "create it, or correct the kubelet's --root-dir and the daemon's -kubelet-path", "%s does not exist", dir)
		default:
			r.add(OK, check, "", "%s exists", dir)
		}
	}
}

// initiatorService is the iSCSI initiator of Windows.
const initiatorService = "MSiSCSI"

// initiator checks the service that iSCSI needs.
func (d examination) initiator(ctx context.Context, r *results) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var service systemv1alpha1.GetServiceResponse
	err := d.Client.Do(ctx, "system", "GetService", &systemv1alpha1.GetServiceRequest{Name: initiatorService}, &service)
	switch {
	case d.skipped(r, initiatorService, "", "system", err):
	case status.Code(err) == codes.NotFound:
		r.add(Info, initiatorService, "", "not installed: this machine cannot use iSCSI")
	case err != nil:
		r.add(Warning, initiatorService, "read the daemon's log", "%s", inventory.Reason(err))
	case service.GetStatus() == systemv1alpha1.ServiceStatus_RUNNING && service.GetStartType() == systemv1alpha1.StartType_AUTOMATIC:
		r.add(OK, initiatorService, "", "runs and starts with the machine")
	case service.GetStatus() == systemv1alpha1.ServiceStatus_RUNNING:
		r.add(Info, initiatorService, "to keep iSCSI volumes after a restart: sc.exe config MSiSCSI start= auto", "runs but does not start with the machine")
	default:
		r.add(Info, initiatorService, "if drivers use iSCSI: csi-proxyctl system service start MSiSCSI; sc.exe config MSiSCSI start= auto",
			"does not run (%s)", strings.ToLower(service.GetStatus().String()))
	}
}
