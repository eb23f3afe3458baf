package doctor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
)

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

func (s serviceState) command() (string, error) {
	return s.config.Command, errors.Join(s.err, s.configErr)
}

// service checks that the daemon is installed, runs, and restarts by itself.
func (d examination) service(_ context.Context, r *results) {
	const check = "service"
	remedy := "csi-proxyctl service install --name " + d.ServiceName
	switch err := d.daemon.err; {
	case err == nil:
		d.state(check, r)
		if wrapper := installation.Wrapper(d.daemon.config.Command); wrapper != "" { // which starts with the kubelet, and restarts it
			r.add(Info, check, "", "%s runs under %s", d.ServiceName, wrapper)
			return
		}
		d.start(check, r)
		d.recovery(check, remedy, r)
	case errors.Is(err, scm.ErrNotWindows):
		r.skip(check, "skipped: not on Windows")
	case errors.Is(err, scm.ErrNotInstalled) && d.process() != 0:
		r.add(Info, check, "", "%s is not installed as a service; process %d serves, perhaps in a HostProcess container or a console", d.ServiceName, d.process())
	case errors.Is(err, scm.ErrNotInstalled):
		r.add(Warning, check, remedy+` --binary "C:\Program Files\csi-proxy\csi-proxy.exe"; if the service has another name, use --service-name`,
			"%s is not installed as a service, and no other process serves", d.ServiceName)
	default:
		r.skip(check, "not checked: %v", err)
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

func (d examination) state(check string, r *results) {
	status, old := d.daemon.status, installation.HalfUpgraded(installation.Program(d.daemon.config.Command))
	switch {
	case r.failed(check, d.daemon.statusErr):
	case old != "":
		r.add(Error, check, "csi-proxyctl service upgrade --binary FILE, which puts it back first; then csi-proxyctl service start",
			"the program of %s is missing or empty, as after an upgrade that a power cut ended; the old one is %s", d.ServiceName, old)
	case status.State == scm.Running:
		r.add(OK, check, "", "%s runs as process %d", d.ServiceName, status.PID)
	default:
		r.add(Error, check, "csi-proxyctl service start; if it stops again, read its log and the event log",
			"%s is %s with exit code %d", d.ServiceName, status.State, status.ExitCode)
	}
}

// permissions checks that only administrators can change what the daemon runs, writes and trusts: the program, the
// folders of its files, and the folders above the working directories.
func (d examination) permissions(_ context.Context, r *results) {
	const check = "permissions"
	if _, err := d.Access(""); errors.Is(err, scm.ErrNotWindows) {
		r.skip(check, "skipped: not on Windows")
		return
	}
	command, _ := d.daemon.command()
	bad := 0
	report := func(level Level, what string, err error) {
		exposure := new(installation.ExposureError)
		switch {
		case errors.As(err, &exposure):
			bad++
			r.add(level, check, exposure.Remedy, "%s: %v", what, err)
		case err != nil:
			r.skip(check, "%s: not checked: %v", what, err)
		}
	}
	for _, file := range []struct {
		what, path string
		level      Level
	}{
		{"program", installation.Program(command), Error},
		{"log", cmp.Or(d.LogFile, installation.LogFile(command)), Warning},
	} {
		if file.path != "" {
			report(file.level, file.what, installation.Protected(file.path, d.Access))
		}
	}
	for _, dir := range d.workingDirs() {
		report(Warning, "working directory "+dir, installation.FolderProtected(dir, d.Access))
	}
	d.instances(r)
	if bad == 0 {
		r.add(OK, check, "", "only administrators can change the program and the folders of the daemon")
	}
}

// instances explains a descriptor of the operator's that lets others than the daemon serve its pipes. What only Windows
// can parse is not explained.
// https://learn.microsoft.com/windows/win32/ipc/named-pipe-security-and-access-rights
func (d examination) instances(r *results) {
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
			r.add(level, "permissions", "grant it 0x12019b instead, which is to read and write, unless it is the account of the daemon",
				"-pipe-security-descriptor lets %s make instances of the pipes (FILE_CREATE_PIPE_INSTANCE), so that it can serve them and receive passwords", entry.SID)
		}
	}
}

func (d examination) start(check string, r *results) {
	start := d.daemon.config.Start
	switch {
	case r.failed(check, d.daemon.configErr):
	case start == scm.Automatic, start == scm.Delayed:
		r.add(OK, check, "", "start type is %s", start)
	default:
		r.add(Warning, check, "sc.exe config "+d.ServiceName+" start= auto, unless an operator of the cluster starts it", "start type is %s: it does not start with the machine", start)
	}
}

func (d examination) recovery(check, remedy string, r *results) {
	recovery, err := d.daemon.recovery, d.daemon.recoveryErr
	switch {
	case errors.Is(err, scm.ErrUnsupported):
		r.skip(check, "not checked: %v", err)
	case r.failed(check, err):
	case recovery.Restart == 0:
		r.add(Warning, check, remedy, "Windows does not restart it after a failure")
	case !recovery.OnErrors:
		r.add(Warning, check, remedy, "Windows restarts it after a crash, but not after an error")
	default:
		r.add(OK, check, "", "Windows restarts it %s after a failure", recovery.Restart)
	}
}

// failed adds a result for an error of the service manager, and reports whether there was one.
func (r *results) failed(check string, err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, fs.ErrPermission):
		r.add(Warning, check, "run this from an elevated prompt", "%v", err)
	default:
		r.add(Warning, check, "check that the service manager works: sc.exe query", "%v", err)
	}
	return true
}
