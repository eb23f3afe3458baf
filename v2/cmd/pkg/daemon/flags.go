package daemon

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/service"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Flags are the serving flags that csi-proxy and csi-proxy-sim share.
type Flags struct {
	KubeletPath     string
	WorkingDirs     []string
	UnsafeDirs      bool
	AllowedServices []string
	APIGroups       []string
	StopTimeout     time.Duration
	MemoryLimit     memoryLimit
	FormatOver      bool
	Format          volumeapi.FormatOptions
	MetricsAddress  string
	StorageMetrics  bool
	FullVolumes     problem.Limits
	AskShares       bool
	Privacy         bool
	RefuseOtherUser bool
	Heal            HealMode
	Version         bool
}

// Register adds the flags to a set, with their defaults.
func (f *Flags) Register(fs *flag.FlagSet) {
	fs.StringVar(&f.KubeletPath, "kubelet-path", `C:\var\lib\kubelet`,
		"kubelet's `directory`, which requests can use")
	fs.Func("working-dir", "another `directory` that requests can use (repeatable)", func(value string) error {
		f.WorkingDirs = append(f.WorkingDirs, value)
		return nil
	})
	fs.BoolVar(&f.UnsafeDirs, "allow-unsafe-working-dirs", false,
		"let requests use roots of drives and folders of Windows, programs and users, if -kubelet-path or -working-dir name them")
	f.AllowedServices = servicelist.Default()
	fs.Func("allowed-services", fmt.Sprintf("comma-separated `list` of services that requests can start and stop; %s allows all but those that the node depends on (default %s)",
		servicelist.All, strings.Join(f.AllowedServices, ",")), func(value string) error {
		f.AllowedServices = nil
		if value == "" {
			return nil
		}
		for name := range strings.SplitSeq(value, ",") {
			f.AllowedServices = append(f.AllowedServices, strings.TrimSpace(name))
		}
		_, err := servicelist.New(f.AllowedServices)
		return err
	})
	fs.Func("api-groups", "comma-separated `list` of groups to serve: disk,volume/v1 (default all)", func(value string) error {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part == "" {
				return fmt.Errorf("%q has an empty entry", value)
			}
			f.APIGroups = append(f.APIGroups, part)
		}
		return nil
	})
	fs.DurationVar(&f.StopTimeout, "stop-timeout", server.DefaultStopTimeout,
		"`time` for calls in flight to finish on stop")
	f.MemoryLimit = defaultMemoryLimit
	fs.Var(&f.MemoryLimit, "memory-limit",
		"stay below this `size` if possible, such as 256MiB, or off")
	fs.BoolVar(&f.FormatOver, "format-existing", false,
		"let FormatVolume format volumes that already have a file system, which destroys it")
	f.registerFormat(fs)
	fs.StringVar(&f.MetricsAddress, "metrics-bind-address", "",
		"`host:port` of /metrics, /healthz and /readyz; there is no password, so use a loopback address such as 127.0.0.1:9761 (default off)")
	fs.BoolVar(&f.StorageMetrics, "metrics-storage", true,
		"look at disks, volumes and shares every minute, or every 30 s while metrics are read: for the metrics, the event log, and to know since when problems exist")
	fs.BoolVar(&f.AskShares, "ask-shares", true,
		"with -metrics-storage, open one share of each file server that pods use every minute, to find out whether the server answers; after it refused an account only when the mapping has changed, so that no account is locked")
	f.FullVolumes = problem.DefaultLimits
	fs.Var(&f.FullVolumes, "full-volume", "call a volume full if more than this `percent,size` is used, and less than this is free")
	fs.BoolVar(&f.Privacy, "require-privacy", true,
		"map only shares of SMB servers that encrypt; set it to false for old servers")
	fs.BoolVar(&f.RefuseOtherUser, "smb-refuse-other-user", false,
		"refuse a share for one user while volumes of another use it")
	f.Heal = HealAfterRestart
	fs.Var(&f.Heal, "heal-stale-mounts", "what to do at start about links at which a volume or share is staged that is gone: `mode` off, report, after-restart or remove")
	fs.BoolVar(&f.Version, "version", false, "print the version and exit")
}

func (f *Flags) registerFormat(fs *flag.FlagSet) {
	add := func(name, usage string, set func(o *volumeapi.FormatOptions, value string) error) {
		fs.Func(name, usage, func(value string) error {
			var option volumeapi.FormatOptions
			if err := set(&option, value); err != nil {
				return err
			}
			if err := option.Check(); err != nil {
				return winerr.Cause(err)
			}
			return set(&f.Format, value)
		})
	}
	text := func(name, usage string, field func(o *volumeapi.FormatOptions) *string) {
		add(name, usage, func(o *volumeapi.FormatOptions, value string) error {
			*field(o) = value
			return nil
		})
	}
	add("format-allocation-unit-size", "cluster size of new volumes in `bytes`: a power of two from 512 to 2097152 (default: Windows decides)",
		func(o *volumeapi.FormatOptions, value string) error {
			size, err := strconv.ParseUint(value, 10, 32)
			if err != nil {
				return errors.New("it is not a number of bytes")
			}
			o.AllocationUnitSize = uint32(size)
			return nil
		})
	text("format-file-system", "`file system` of new volumes: NTFS, or ReFS if this edition of Windows can make it (default NTFS)",
		func(o *volumeapi.FormatOptions) *string { return &o.FileSystem })
	text("format-label", "`label` of new volumes, at most 32 characters (default none)",
		func(o *volumeapi.FormatOptions) *string { return &o.Label })
	text("format-root-access", "`access` to the root of new volumes: "+volumeapi.UsersModify+", so that ContainerUser can write there, or an access list in SDDL (default: Windows decides)",
		func(o *volumeapi.FormatOptions) *string { return &o.RootAccess })
}

// Config returns what the flags say, for a program that reports to notify.
func (f *Flags) Config(notify service.Notify) Config {
	cfg := Config{
		WorkingDirs:       f.AllowedDirs(),
		UnsafeWorkingDirs: f.UnsafeDirs,
		AllowedServices:   f.AllowedServices,
		NoPrivacy:         !f.Privacy,
		Format:            f.Format,
		RefuseOtherUser:   f.RefuseOtherUser,
		Heal:              f.Heal,
		FullVolumes:       f.FullVolumes,
		LeaveShares:       !f.AskShares,
		APIGroups:         f.APIGroups,
		StopTimeout:       f.StopTimeout,
		Progress:          notify.Progress,
		Ready:             notify.Ready,
	}
	if f.StorageMetrics {
		cfg.StorageEvent = notify.Storage
	}
	return cfg
}

// AllowedDirs returns the directories that requests can use.
func (f *Flags) AllowedDirs() []string { return append([]string{f.KubeletPath}, f.WorkingDirs...) }

// Check checks what the flag package cannot.
func (f *Flags) Check() error {
	if f.StopTimeout <= 0 {
		return fmt.Errorf("-stop-timeout: %v is not a positive duration", f.StopTimeout)
	}
	if _, port, err := net.SplitHostPort(f.MetricsAddress); f.MetricsAddress != "" && (err != nil || port == "") {
		return fmt.Errorf("-metrics-bind-address: %q is not an address like 127.0.0.1:9761", f.MetricsAddress)
	}
	return nil
}
