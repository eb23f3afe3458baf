package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/machine"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/scm"
)

// open returns the service of the daemon. Whoever gets one calls done.
func (d Doctor) open() (service scm.Service, done func(), err error) {
	manager, err := d.Services()
	if err != nil {
		return nil, nil, err
	}
	service, err = manager.Open(d.ServiceName)
	if err != nil {
		manager.Close()
		return nil, nil, err
	}
	return service, func() { service.Close(); manager.Close() }, nil
}

// service checks that the daemon is installed, runs, and comes back by itself.
func (d Doctor) service(_ context.Context, f *findings) {
	const check = "service"
	const install = "csi-proxyctl service install --name %s"
	remedy := fmt.Sprintf(install, d.ServiceName)
	service, done, err := d.open()
	switch {
	case errors.Is(err, scm.ErrNotWindows):
		f.add(Info, check, "", "not on Windows: skipped")
		return
	case errors.Is(err, scm.ErrNotInstalled):
		f.add(Warning, check, remedy+` --binary C:\k\csi-proxy.exe; if it runs as a container or under another name, say --service-name`,
			"%s is not installed as a service", d.ServiceName)
		return
	case err != nil:
		f.add(Info, check, "", "not checked: %v", err)
		return
	}
	defer done()
	status, statusErr := service.Status()
	config, configErr := service.Config()
	recovery, recoveryErr := service.Recovery()
	if err := errors.Join(statusErr, configErr, recoveryErr); err != nil {
		f.add(Warning, check, "run this from an elevated prompt", "%v", err)
		return
	}
	if status.State == scm.Running {
		f.add(OK, check, "", "%s runs as process %d", d.ServiceName, status.PID)
	} else {
		f.add(Error, check, "csi-proxyctl service start; if it stops again, its log and the event log say why",
			"%s is %s, with exit code %d", d.ServiceName, status.State, status.ExitCode)
	}
	switch config.Start {
	case scm.Automatic, scm.Delayed:
		f.add(OK, check, "", "its start is %s", config.Start)
	default:
		f.add(Warning, check, remedy+", unless an operator of the cluster starts it", "its start is %s: after a restart of the machine it is missing", config.Start)
	}
	switch {
	case recovery.Restart == 0:
		f.add(Warning, check, remedy, "Windows does not start it again after a failure")
	case !recovery.OnErrors:
		f.add(Warning, check, remedy, "Windows starts it again after a crash, but not after an error")
	default:
		f.add(OK, check, "", "Windows starts it again %s after a failure", recovery.Restart)
	}
}

// settings checks what Windows does with new disks and long paths.
func (d Doctor) settings(_ context.Context, f *findings) {
	policy, err := d.SANPolicy()
	switch {
	case errors.Is(err, machine.ErrNotWindows):
		f.add(Info, "SAN policy", "", "not on Windows: skipped")
	case err != nil:
		f.add(Info, "SAN policy", "", "not checked: %v", err)
	case policy == "offline all", policy == "offline shared":
		f.add(Info, "SAN policy", "", "%s: new disks are offline until PartitionDisk or SetDiskState takes them online", policy)
	default:
		f.add(OK, "SAN policy", "", "%s", policy)
	}
	long, err := d.LongPaths()
	switch {
	case errors.Is(err, machine.ErrNotWindows):
		f.add(Info, "long paths", "", "not on Windows: skipped")
	case err != nil:
		f.add(Info, "long paths", "", "not checked: %v", err)
	case !long:
		f.add(Warning, "long paths", `reg.exe add HKLM\SYSTEM\CurrentControlSet\Control\FileSystem /v LongPathsEnabled /t REG_DWORD /d 1 /f, and restart kubelet and drivers`,
			"are off: csi-proxy does without, but kubelet and drivers fail at paths of more than 260 characters")
	default:
		f.add(OK, "long paths", "", "are on")
	}
}

// logLimit is more than all log files take with the daemon's defaults, 6 of 300 MiB.
const logLimit = 2 << 30

// logFile checks that there is a log, and that it does not eat the disk.
func (d Doctor) logFile(_ context.Context, f *findings) {
	const check = "log file"
	path := d.LogFile
	if path == "" {
		service, done, err := d.open()
		if err != nil {
			f.add(Info, check, "", "not checked: --log-file does not say where it is")
			return
		}
		defer done()
		config, err := service.Config()
		if err != nil {
			f.add(Info, check, "", "not checked: %v", err)
			return
		}
		if path = installation.LogFile(config.Command); path == "" {
			f.add(Warning, check, "add -log_file=FILE -logtostderr=false to its command line", "the service writes no log")
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
		f.add(Warning, check, "see the daemon's -log_file and -logtostderr=false; event 4 in the event log says if it cannot be written", "%s does not exist", path)
	case size > logLimit:
		f.add(Warning, check, "lower the daemon's -v, -log_file_max_size or -log_file_max_backups", "%s and older ones take %s", path, output.Size(size))
	default:
		f.add(OK, check, "", "%s and older ones take %s", path, output.Size(size))
	}
}
