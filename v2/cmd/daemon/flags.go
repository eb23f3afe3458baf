package daemon

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/storage/warning"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// mostRecorded is the upper limit of -record-calls-max-size in MiB. Who writes more means bytes.
const mostRecorded = 4096

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
	FullVolumes     warning.Limits
	Privacy         bool
	RefuseOtherUser bool
	Heal            HealMode
	Version         bool
	RecordCalls     string // a file; empty means that nothing is recorded
	RecordMaxBytes  int64

	recordSize uint
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
	f.registerRecord(fs)
	fs.StringVar(&f.MetricsAddress, "metrics-bind-address", "",
		"`host:port` of /metrics, /healthz and /readyz; there is no password, so use a loopback address such as 127.0.0.1:9761 (default off)")
	fs.BoolVar(&f.StorageMetrics, "metrics-storage", true,
		"look at disks, volumes and shares every minute, or every 30 s while metrics are read: for the metrics, the event log, and to know since when problems exist")
	f.FullVolumes = warning.DefaultLimits
	fs.Var(&f.FullVolumes, "full-volume", "call a volume full if more than this `percent,size` is used, and less than this is free")
	fs.BoolVar(&f.Privacy, "require-privacy", true,
		"map only shares of SMB servers that encrypt; set it to false for old servers")
	fs.BoolVar(&f.RefuseOtherUser, "smb-refuse-other-user", false,
		"refuse a share for one user while volumes of another use it")
	f.Heal = HealReport
	fs.Var(&f.Heal, "heal-stale-mounts", "what to do at start about links at which kubelet staged a volume or share that is gone: `mode` off, report or remove")
	fs.BoolVar(&f.Version, "version", false, "print the version and exit")
}

// registerFormat adds the flags for the volumes that requests format.
func (f *Flags) registerFormat(fs *flag.FlagSet) {
	add := func(name, usage string, parse func(string) (volumeapi.FormatOptions, error), set func(volumeapi.FormatOptions)) {
		fs.Func(name, usage, func(value string) error {
			option, err := parse(value)
			if err == nil {
				err = winerr.Cause(option.Check())
			}
			if err == nil {
				set(option)
			}
			return err
		})
	}
	add("format-allocation-unit-size", "cluster size of new volumes in `bytes`: a power of two from 512 to 2097152 (default: Windows decides)",
		func(value string) (volumeapi.FormatOptions, error) {
			size, err := strconv.ParseUint(value, 10, 32)
			if err != nil {
				err = errors.New("it is not a number of bytes")
			}
			return volumeapi.FormatOptions{AllocationUnitSize: uint32(size)}, err
		}, func(o volumeapi.FormatOptions) { f.Format.AllocationUnitSize = o.AllocationUnitSize })
	add("format-file-system", "`file system` of new volumes: NTFS, or ReFS if this edition of Windows can make it (default NTFS)",
		func(value string) (volumeapi.FormatOptions, error) {
			return volumeapi.FormatOptions{FileSystem: value}, nil
		},
		func(o volumeapi.FormatOptions) { f.Format.FileSystem = o.FileSystem })
	add("format-label", "`label` of new volumes, at most 32 characters (default none)",
		func(value string) (volumeapi.FormatOptions, error) { return volumeapi.FormatOptions{Label: value}, nil },
		func(o volumeapi.FormatOptions) { f.Format.Label = o.Label })
	add("format-root-access", "`access` to the root of new volumes: "+volumeapi.UsersModify+", so that ContainerUser can write there, or an access list in SDDL (default: Windows decides)",
		func(value string) (volumeapi.FormatOptions, error) {
			return volumeapi.FormatOptions{RootAccess: value}, nil
		},
		func(o volumeapi.FormatOptions) { f.Format.RootAccess = o.RootAccess })
}

// registerRecord adds the flags of recorded calls.
func (f *Flags) registerRecord(fs *flag.FlagSet) {
	fs.StringVar(&f.RecordCalls, "record-calls", "",
		"write every call to Windows and its answer into this `file`, for developers, without secrets but with names; that of an earlier run is continued (default off)")
	fs.UintVar(&f.recordSize, "record-calls-max-size", record.DefaultMaxBytes>>20,
		"size in `MiB` at which no more calls are recorded")
}

// AllowedDirs returns the directories that requests can use.
func (f *Flags) AllowedDirs() []string { return append([]string{f.KubeletPath}, f.WorkingDirs...) }

// canNameFile reports whether Windows can have a file with this path. No path is fine, too.
func canNameFile(path string) bool {
	return !strings.ContainsAny(strings.TrimPrefix(path, `\\?\`), "\x00<>\"|?*") && strings.TrimRight(path, `/\`) == path
}

// Check checks what the flag package cannot.
func (f *Flags) Check() error {
	if f.StopTimeout <= 0 {
		return fmt.Errorf("-stop-timeout: %v is not a positive duration", f.StopTimeout)
	}
	if _, port, err := net.SplitHostPort(f.MetricsAddress); f.MetricsAddress != "" && (err != nil || port == "") {
		return fmt.Errorf("-metrics-bind-address: %q is not an address like 127.0.0.1:9761", f.MetricsAddress)
	}
	if f.recordSize < 1 || f.recordSize > mostRecorded {
		return fmt.Errorf("-record-calls-max-size: %d is not a size from 1 to %d MiB", f.recordSize, mostRecorded)
	}
	f.RecordMaxBytes = int64(f.recordSize) << 20
	if !canNameFile(f.RecordCalls) {
		return fmt.Errorf("-record-calls: %q cannot be the path of a file", f.RecordCalls)
	}
	if f.RecordCalls == "" && f.RecordMaxBytes != record.DefaultMaxBytes {
		return errors.New("-record-calls-max-size: no calls are recorded; also set -record-calls")
	}
	return nil
}
