package main

import (
	"context"
	"errors"
	"flag"
	"runtime"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/metrics"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/service"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// options are the flags that only the daemon has.
type options struct {
	securityDescriptor string
	mitigations        bool
	strictHandles      bool
}

func (o *options) register(set *flag.FlagSet) {
	set.StringVar(&o.securityDescriptor, "pipe-security-descriptor", pipe.DefaultSecurityDescriptor,
		"who may connect to the named pipes, in `SDDL`")
	set.BoolVar(&o.mitigations, "mitigations", true,
		"restrict the process before it serves; set it to false if a restriction ends it or a call lacks a privilege")
	set.BoolVar(&o.strictHandles, "strict-handle-checks", false,
		"one more restriction: end the process if it, or a library in it, uses a closed handle; off until it has run on more versions of Windows")
}

// refuse fails on other systems than Windows.
func refuse() error {
	if runtime.GOOS != "windows" {
		return errors.New("it runs on Windows only; use csi-proxy-sim to serve an emulated node on this system")
	}
	return nil
}

// facts are logged at start-up. The SAN policy says whether new disks come online by themselves.
func facts() []any {
	policy, err := local.SANPolicy()
	if err != nil {
		return []any{"sanPolicy", "unknown", "sanPolicyError", err}
	}
	return []any{"sanPolicy", policy}
}

func (o *options) serve(ctx context.Context, flags *daemon.Flags, notify service.Notify) error {
	if err := pipe.ValidateSecurityDescriptor(o.securityDescriptor); err != nil {
		return daemon.UsageError{Err: err}
	}
	if o.strictHandles && !o.mitigations {
		return daemon.UsageError{Err: errors.New("-strict-handle-checks is one of the mitigations; remove -mitigations=false")}
	}
	if o.mitigations {
		daemon.Mitigate(ctx, o.strictHandles)
	}
	hosts := daemon.LocalHosts()
	countLoss := func() {}
	ofVolumes := []volumeapi.Option{volumeapi.OnLoss(func(text string) { countLoss(); notify.Warn(text) })}
	if flags.FormatOver {
		ofVolumes = append(ofVolumes, volumeapi.FormatOverExisting())
	}
	hosts.Volume = volumeapi.New(ofVolumes...)
	cfg := flags.Config(notify)
	cfg.Hosts, cfg.Pipe.SecurityDescriptor = hosts, o.securityDescriptor
	if flags.MetricsAddress == "" {
		return daemon.Serve(ctx, cfg)
	}
	m := metrics.New(metrics.Config{
		Storage: flags.StorageMetrics, Version: version.String(), Abandoned: local.Machine().Abandoned, Stuck: local.Machine().Stuck,
	})
	local.Machine().Observe(m.WindowsCall)
	countLoss = m.VolumeLoss
	cfg.Observe(m, flags.StorageMetrics)
	return m.Run(ctx, flags.MetricsAddress, func(ctx context.Context) error { return daemon.Serve(ctx, cfg) })
}
