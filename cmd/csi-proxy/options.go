package main

import (
	"context"
	"errors"
	"flag"
	"runtime"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/pipe"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// options are the flags that only the daemon has.
type options struct {
	securityDescriptor string
}

func (o *options) register(set *flag.FlagSet) {
	set.StringVar(&o.securityDescriptor, "pipe-security-descriptor", pipe.DefaultSecurityDescriptor,
		"who may connect to the named pipes, in `SDDL`")
}

func (o *options) serve(ctx context.Context, flags *daemon.Flags) error {
	if runtime.GOOS != "windows" {
		return errors.New("the nodes it serves are Windows machines; csi-proxy-sim serves an emulated one on this system")
	}
	if err := pipe.ValidateSecurityDescriptor(o.securityDescriptor); err != nil {
		return daemon.UsageError{Err: err}
	}
	hosts := daemon.LocalHosts()
	if flags.FormatOver {
		hosts.Volume = volumeapi.New(volumeapi.FormatOverExisting())
	}
	return daemon.Serve(ctx, daemon.Config{
		Hosts:           hosts,
		WorkingDirs:     flags.AllowedDirs(),
		AllowedServices: flags.AllowedServices,
		NoPrivacy:       !flags.Privacy,
		APIGroups:       flags.APIGroups,
		Pipe:            pipe.Config{SecurityDescriptor: o.securityDescriptor},
		StopTimeout:     flags.StopTimeout,
	})
}
