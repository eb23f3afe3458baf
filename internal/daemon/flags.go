package daemon

import (
	"flag"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/server"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
)

// Flags are the serving flags that csi-proxy and csi-proxy-sim share.
type Flags struct {
	KubeletPath     string
	WorkingDirs     []string
	AllowedServices []string
	APIGroups       []string
	StopTimeout     time.Duration
	FormatOver      bool
	MetricsAddress  string
	Privacy         bool
	Version         bool
}

// Register adds the flags to a set, with their defaults.
func (f *Flags) Register(fs *flag.FlagSet) {
	fs.StringVar(&f.KubeletPath, "kubelet-path", `C:\var\lib\kubelet`,
		"`directory` of the kubelet; requests may touch what lies below it")
	fs.Func("working-dir", "another `directory` that requests may touch (repeatable)", func(value string) error {
		f.WorkingDirs = append(f.WorkingDirs, value)
		return nil
	})
	f.AllowedServices = servicelist.Default()
	fs.Func("allowed-services", fmt.Sprintf("`list` of the services that requests may start and stop, separated by commas; %s is all but those the node depends on, an empty list none (default %s)",
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
	fs.Func("api-groups", "`list` of the API groups to serve, separated by commas: disk (all its versions), disk/v1, ... (default all)", func(value string) error {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part == "" {
				return fmt.Errorf("%q has an empty entry", value)
			}
			f.APIGroups = append(f.APIGroups, part)
		}
		return nil
	})
	fs.DurationVar(&f.StopTimeout, "stop-timeout", server.DefaultStopTimeout,
		"how long calls in flight may take to finish on stop")
	fs.BoolVar(&f.FormatOver, "format-existing", false,
		"let FormatVolume format volumes that have a file system already, which destroys it")
	fs.StringVar(&f.MetricsAddress, "metrics-bind-address", "",
		"`host:port` on which to serve /metrics, /healthz and /readyz; 127.0.0.1:9761 or another address of this machine only is recommended, since there is no password (default off)")
	fs.BoolVar(&f.Privacy, "require-privacy", true,
		"map shares only of SMB servers that encrypt; old servers need it to be false")
	fs.BoolVar(&f.Version, "version", false, "print the version and exit")
}

// AllowedDirs are all directories that requests may touch.
func (f *Flags) AllowedDirs() []string { return append([]string{f.KubeletPath}, f.WorkingDirs...) }

// Check refuses values that the flag package cannot refuse by itself.
func (f *Flags) Check() error {
	if f.StopTimeout <= 0 {
		return fmt.Errorf("-stop-timeout: %v is not a positive duration", f.StopTimeout)
	}
	if _, port, err := net.SplitHostPort(f.MetricsAddress); f.MetricsAddress != "" && (err != nil || port == "") {
		return fmt.Errorf("-metrics-bind-address: %q is not an address like 127.0.0.1:9761", f.MetricsAddress)
	}
	return nil
}
