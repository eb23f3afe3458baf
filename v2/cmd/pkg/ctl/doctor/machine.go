package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// settings checks the SAN policy and long paths.
func (d examination) settings(_ context.Context, r *results) {
	policy, err := d.SANPolicy()
	switch {
	case errors.Is(err, scm.ErrNotWindows):
		r.skip("SAN policy", "skipped: not on Windows")
	case err != nil:
		r.skip("SAN policy", "not checked: %v", err)
	case policy == win.SANOfflineAll, policy == win.SANOfflineShared:
		r.add(Info, "SAN policy", "", "%s: new disks are offline until a driver, or csi-proxyctl disk online, brings them online", policy)
	default:
		r.add(OK, "SAN policy", "", "%s", policy)
	}
	long, err := d.LongPaths()
	switch {
	case errors.Is(err, scm.ErrNotWindows):
		r.skip("long paths", "skipped: not on Windows")
	case err != nil:
		r.skip("long paths", "not checked: %v", err)
	case !long:
		r.add(Info, "long paths", `for paths of more than 260 characters: reg.exe add HKLM\SYSTEM\CurrentControlSet\Control\FileSystem /v LongPathsEnabled /t REG_DWORD /d 1 /f, then restart kubelet and drivers`,
			"off, the default of Windows; csi-proxy does not need them, kubelet and drivers may")
	default:
		r.add(OK, "long paths", "", "on")
	}
}

// containerdVersion is what the Makefile of containerd gives the linker.
var containerdVersion = regexp.MustCompile(`containerd/version\.Version=v?1\.7\.(\d+)\b`)

// containerd warns of versions with which containers cannot mount disks: 1.7.3 worked, 1.7.4 and 1.7.11 did not. If its version
// cannot be read, there is nothing to say.
// https://github.com/containerd/containerd/issues/10001
func (d examination) containerd(_ context.Context, r *results) {
	manager, err := d.Services()
	if err != nil {
		return
	}
	defer manager.Close()
	service, err := manager.Open("containerd")
	if err != nil {
		return
	}
	defer service.Close()
	config, err := service.Config()
	if err != nil {
		return
	}
	info, err := d.BuildInfo(installation.Program(config.Command))
	if err != nil {
		return
	}
	for _, setting := range info.Settings {
		if m := containerdVersion.FindStringSubmatch(setting.Value); setting.Key == "-ldflags" && m != nil {
			if patch, err := strconv.Atoi(m[1]); err == nil && patch >= 4 && patch <= 11 {
				r.add(Warning, "containerd", "use a newer one, or 1.7.3", `1.7.%d: containers with disks may fail with "failed to resolve path for mount source \\?\Volume{...}" (containerd#10001)`, patch)
			}
		}
	}
}

// logLimit is more than the log files can reach with the daemon's defaults: 6 of 300 MiB.
const logLimit = 2 << 30

func (d examination) logFile(_ context.Context, r *results) {
	const check = "log file"
	path := d.LogFile
	if path == "" {
		command, err := d.daemon.command()
		switch {
		case d.daemon.err != nil:
			r.skip(check, "not checked: no service; use --log-file")
			return
		case err != nil:
			r.skip(check, "not checked: %v", err)
			return
		}
		if path = installation.LogFile(command); path == "" {
			r.add(Warning, check, "add -log_file=FILE -logtostderr=false to its command line", "the service does not write a log")
			return
		}
	}
	size, files := int64(0), 0
	for name := path; ; name = fmt.Sprintf("%s.%d", path, files) {
		info, err := os.Stat(name)
		if err != nil {
			break
		}
		size, files = size+info.Size(), files+1
	}
	switch {
	case files == 0:
		r.add(Warning, check, "check the daemon's -log_file and -logtostderr=false, and event 4 in the event log", "%s does not exist", path)
	case size > logLimit:
		r.add(Warning, check, "lower the daemon's -v, -log_file_max_size or -log_file_max_backups", "%s and its backups use %s", path, output.Size(size))
	default:
		r.add(OK, check, "", "%s and its backups use %s", path, output.Size(size))
	}
}

func (d examination) crash(_ context.Context, r *results) {
	command, _ := d.daemon.command() // without a service, there may be a log file
	for _, file := range installation.CrashFiles(d.LogFile, command) {
		if info, err := os.Stat(file); err == nil && info.Size() > 0 {
			r.add(Warning, "crash", "report it, with the file that csi-proxyctl support-bundle writes; then remove "+file,
				"the daemon crashed at %s, and left %s", info.ModTime().UTC().Format(time.RFC3339), file)
			return
		}
	}
}
