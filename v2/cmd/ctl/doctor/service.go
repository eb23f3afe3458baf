package doctor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
)

// serviceState is what the service manager reports about the daemon.
type serviceState struct {
	err error // why nothing is known

	status      scm.Status
	statusErr   error
	config      scm.Config
	configErr   error
	recovery    scm.Recovery
	recoveryErr error
}

func (d Doctor) serviceState() serviceState {
	manager, err := d.Services()
	if err != nil {
		return serviceState{err: err}
	}
	defer manager.Close()
	service, err := manager.Open(d.ServiceName)
	if err != nil {
		return serviceState{err: err}
	}
	defer service.Close()
	var state serviceState
	state.status, state.statusErr = service.Status()
	state.config, state.configErr = service.Config()
	state.recovery, state.recoveryErr = service.Recovery()
	return state
}

// command returns the command line of the service.
func (s serviceState) command() (string, error) {
	return s.config.Command, errors.Join(s.err, s.configErr)
}

// service checks that the daemon is installed, runs, and restarts by itself.
func (d examination) service(_ context.Context, f *findings) {
	const check = "service"
	remedy := "csi-proxyctl service install --name " + d.ServiceName
	switch err := d.daemon.err; {
	case err == nil:
		d.state(check, f)
		if wrapper := installation.Wrapper(d.daemon.config.Command); wrapper != "" { // which starts with the kubelet, and restarts it
			f.add(Info, check, "", "%s runs under %s", d.ServiceName, wrapper)
			return
		}
		d.start(check, f)
		d.recovery(check, remedy, f)
	case errors.Is(err, scm.ErrNotWindows):
		f.skip(check, "skipped: not on Windows")
	case errors.Is(err, scm.ErrNotInstalled) && d.process() != 0:
		f.add(Info, check, "", "%s is not installed as a service; process %d serves, perhaps in a HostProcess container or a console", d.ServiceName, d.process())
	case errors.Is(err, scm.ErrNotInstalled):
		f.add(Warning, check, remedy+` --binary "C:\Program Files\csi-proxy\csi-proxy.exe"; if the service has another name, use --service-name`,
			"%s is not installed as a service, and no other process serves", d.ServiceName)
	default:
		f.skip(check, "not checked: %v", err)
	}
}

// process returns a process that serves endpoints, or 0.
func (d examination) process() int {
	for _, h := range d.health {
		if h.State.Answers() && h.PID > 0 {
			return h.PID
		}
	}
	return 0
}

func (d examination) state(check string, f *findings) {
	status := d.daemon.status
	switch {
	case f.failed(check, d.daemon.statusErr):
	case status.State == scm.Running:
		f.add(OK, check, "", "%s runs as process %d", d.ServiceName, status.PID)
	default:
		f.add(Error, check, "csi-proxyctl service start; if it stops again, read its log and the event log",
			"%s is %s with exit code %d", d.ServiceName, status.State, status.ExitCode)
	}
}

// permissions checks that only administrators can change what the daemon runs, writes and trusts: the program, the
// folders of its files, and the folders above the working directories.
func (d examination) permissions(_ context.Context, f *findings) {
	const check = "permissions"
	if _, err := d.Access(""); errors.Is(err, scm.ErrNotWindows) {
		f.skip(check, "skipped: not on Windows")
		return
	}
	command, _ := d.daemon.command()
	bad := 0
	report := func(level Level, what string, err error) {
		exposure := new(installation.ExposedError)
		switch {
		case errors.As(err, &exposure):
			bad++
			f.add(level, check, exposure.Remedy, "%s: %v", what, err)
		case err != nil:
			f.skip(check, "%s: not checked: %v", what, err)
		}
	}
	for _, file := range []struct {
		what, path string
		level      Level
	}{
		{"program", installation.Program(command), Error},
		{"log", cmp.Or(d.LogFile, installation.LogFile(command)), Warning},
		{"recording", installation.RecordedCalls(command), Warning},
	} {
		if file.path != "" {
			report(file.level, file.what, installation.Protected(file.path, d.Access))
		}
	}
	for _, dir := range d.workingDirs() {
		report(Warning, "working directory "+dir, installation.FolderProtected(dir, d.Access))
	}
	d.instances(f)
	if bad == 0 {
		f.add(OK, check, "", "only administrators can change the program and the folders of the daemon")
	}
}

// instances explains a descriptor of the operator's that lets others than the daemon serve its pipes. What only Windows
// can parse is not explained.
// https://learn.microsoft.com/windows/win32/ipc/named-pipe-security-and-access-rights
func (d examination) instances(f *findings) {
	const createInstance = 0x4
	command, _ := d.daemon.command()
	descriptor := installation.PipeSecurityDescriptor(command)
	_, rest, _ := strings.Cut(descriptor, "D:")
	list, err := sddl.Parse("D:" + rest)
	if err != nil {
		return
	}
	for _, entry := range list {
		level := Warning
		if entry.SID == sddl.Administrators {
			level = Info
		}
		if entry.Rights()&createInstance != 0 && entry.SID != sddl.LocalSystem {
			f.add(level, "permissions", "grant it 0x12019b instead, which is to read and write, unless it is the account of the daemon",
				"-pipe-security-descriptor lets %s make instances of the pipes (FILE_CREATE_PIPE_INSTANCE), so that it can serve them and receive passwords", entry.SID)
		}
	}
}

func (d examination) start(check string, f *findings) {
	start := d.daemon.config.Start
	switch {
	case f.failed(check, d.daemon.configErr):
	case start == scm.Automatic, start == scm.Delayed:
		f.add(OK, check, "", "start type is %s", start)
	default:
		f.add(Warning, check, "sc.exe config "+d.ServiceName+" start= auto, unless an operator of the cluster starts it", "start type is %s: it does not start with the machine", start)
	}
}

func (d examination) recovery(check, remedy string, f *findings) {
	recovery, err := d.daemon.recovery, d.daemon.recoveryErr
	switch {
	case errors.Is(err, scm.ErrUnsupported):
		f.skip(check, "not checked: %v", err)
	case f.failed(check, err):
	case recovery.Restart == 0:
		f.add(Warning, check, remedy, "Windows does not restart it after a failure")
	case !recovery.OnErrors:
		f.add(Warning, check, remedy, "Windows restarts it after a crash, but not after an error")
	default:
		f.add(OK, check, "", "Windows restarts it %s after a failure", recovery.Restart)
	}
}

// failed adds a finding for an error of the service manager, and reports whether there was one.
func (f *findings) failed(check string, err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, fs.ErrPermission):
		f.add(Warning, check, "run this from an elevated prompt", "%v", err)
	default:
		f.add(Warning, check, "check that the service manager works: sc.exe query", "%v", err)
	}
	return true
}
