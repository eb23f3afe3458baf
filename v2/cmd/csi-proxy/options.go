package main

import (
	"context"
	"errors"
	"flag"
	"runtime"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/metrics"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/service"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
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

// startRecording records the calls of the hosts that are made from now on, if there is a path.
func startRecording(ctx context.Context, path string, maxBytes int64) (stop func()) {
	if path == "" {
		return func() {}
	}
	recorded, end := record.Attach(ctx, local.Machine(), record.Config{Path: path, MaxBytes: maxBytes, Windows: local.Build()})
	local.Use(recorded)
	return func() {
		local.Use(nil)
		end()
	}
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
	defer startRecording(ctx, flags.RecordCalls, flags.RecordMaxBytes)() // before any host is made
	hosts := daemon.LocalHosts()
	countLoss := func() {}
	ofVolumes := []volumeapi.Option{volumeapi.OnLoss(func(text string) { countLoss(); notify.Warn(text) })}
	if flags.FormatOver {
		ofVolumes = append(ofVolumes, volumeapi.FormatOverExisting())
	}
	hosts.Volume = volumeapi.New(ofVolumes...)
	cfg := daemon.Config{
		Hosts:             hosts,
		WorkingDirs:       flags.AllowedDirs(),
		UnsafeWorkingDirs: flags.UnsafeDirs,
		AllowedServices:   flags.AllowedServices,
		NoPrivacy:         !flags.Privacy,
		Format:            flags.Format,
		RefuseOtherUser:   flags.RefuseOtherUser,
		Heal:              flags.Heal,
		FullVolumes:       flags.FullVolumes,
		APIGroups:         flags.APIGroups,
		Pipe:              pipe.Config{SecurityDescriptor: o.securityDescriptor},
		StopTimeout:       flags.StopTimeout,
		Progress:          notify.Progress,
		Ready:             notify.Ready,
	}
	if flags.StorageMetrics {
		cfg.StorageEvent = notify.Storage
	}
	if flags.MetricsAddress == "" {
		return daemon.Serve(ctx, cfg)
	}
	m := metrics.New(metrics.Config{
		Storage: flags.StorageMetrics, Version: version.String(), Abandoned: local.Abandoned, Stuck: local.Stuck,
		SMBMappings: func(ctx context.Context) (int, error) {
			mappings, err := local.Machine().SMBMappings(ctx)
			return len(mappings), err
		},
	})
	local.Observe(m.WindowsCall)
	cfg.Observer, cfg.StaleMounts, countLoss = m, m, m.VolumeLoss
	if flags.StorageMetrics {
		cfg.Storage = m
	}
	cfg.Ready = func() { m.Ready(); notify.Ready() }
	return m.Run(ctx, flags.MetricsAddress, func(ctx context.Context) error { return daemon.Serve(ctx, cfg) })
}
