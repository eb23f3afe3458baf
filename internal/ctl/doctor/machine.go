package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/machine"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

// settings checks what Windows does with new disks and long paths.
func (d patient) settings(_ context.Context, f *findings) {
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
		f.add(Info, "long paths", `if paths of more than 260 characters are needed: reg.exe add HKLM\SYSTEM\CurrentControlSet\Control\FileSystem /v LongPathsEnabled /t REG_DWORD /d 1 /f, and restart kubelet and drivers`,
			"are off, as Windows has it by default: csi-proxy does without, kubelet and drivers may not")
	default:
		f.add(OK, "long paths", "", "are on")
	}
}

// logLimit is more than all log files take with the daemon's defaults, 6 of 300 MiB.
const logLimit = 2 << 30

// logFile checks that there is a log, and that it does not eat the disk.
func (d patient) logFile(_ context.Context, f *findings) {
	const check = "log file"
	path := d.LogFile
	if path == "" {
		command, err := d.daemon.command()
		switch {
		case d.daemon.err != nil:
			f.add(Info, check, "", "not checked: --log-file does not say where it is")
			return
		case err != nil:
			f.add(Info, check, "", "not checked: %v", err)
			return
		}
		if path = installation.LogFile(command); path == "" {
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
