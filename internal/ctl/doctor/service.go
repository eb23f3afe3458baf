package doctor

import (
	"context"
	"errors"
	"io/fs"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/scm"
)

// installed is what the service manager tells of the daemon. It is asked once, and several
// checks use it.
type installed struct {
	err error // why nothing is known

	status      scm.Status
	statusErr   error
	config      scm.Config
	configErr   error
	recovery    scm.Recovery
	recoveryErr error
}

func (d Doctor) installed() installed {
	manager, err := d.Services()
	if err != nil {
		return installed{err: err}
	}
	defer manager.Close()
	service, err := manager.Open(d.ServiceName)
	if err != nil {
		return installed{err: err}
	}
	defer service.Close()
	var found installed
	found.status, found.statusErr = service.Status()
	found.config, found.configErr = service.Config()
	found.recovery, found.recoveryErr = service.Recovery()
	return found
}

// command is the command line of the service, if it is known.
func (i installed) command() (string, error) {
	return i.config.Command, errors.Join(i.err, i.configErr)
}

// service checks that the daemon is installed, runs, and comes back by itself.
func (d patient) service(_ context.Context, f *findings) {
	const check = "service"
	remedy := "csi-proxyctl service install --name " + d.ServiceName
	switch err := d.daemon.err; {
	case err == nil:
		d.state(check, f)
		d.start(check, remedy, f)
		d.recovery(check, remedy, f)
	case errors.Is(err, scm.ErrNotWindows):
		f.add(Info, check, "", "not on Windows: skipped")
	case errors.Is(err, scm.ErrNotInstalled) && d.process() != 0:
		f.add(Info, check, "", "%s is not installed as a service: process %d serves, as in a HostProcess container or a console", d.ServiceName, d.process())
	case errors.Is(err, scm.ErrNotInstalled):
		f.add(Warning, check, remedy+` --binary C:\k\csi-proxy.exe; if it has another name, say --service-name`,
			"%s is not installed as a service, and nobody serves in its place", d.ServiceName)
	default:
		f.add(Info, check, "", "not checked: %v", err)
	}
}

// process is one that serves endpoints, or 0.
func (d patient) process() int {
	for _, h := range d.health {
		if h.State.Answers() && h.PID > 0 {
			return h.PID
		}
	}
	return 0
}

func (d patient) state(check string, f *findings) {
	status := d.daemon.status
	switch {
	case !f.asked(check, d.daemon.statusErr):
	case status.State == scm.Running:
		f.add(OK, check, "", "%s runs as process %d", d.ServiceName, status.PID)
	default:
		f.add(Error, check, "csi-proxyctl service start; if it stops again, its log and the event log say why",
			"%s is %s, with exit code %d", d.ServiceName, status.State, status.ExitCode)
	}
}

func (d patient) start(check, remedy string, f *findings) {
	start := d.daemon.config.Start
	switch {
	case !f.asked(check, d.daemon.configErr):
	case start == scm.Automatic, start == scm.Delayed:
		f.add(OK, check, "", "its start is %s", start)
	default:
		f.add(Warning, check, remedy+", unless an operator of the cluster starts it", "its start is %s: after a restart of the machine it is missing", start)
	}
}

func (d patient) recovery(check, remedy string, f *findings) {
	recovery, err := d.daemon.recovery, d.daemon.recoveryErr
	switch {
	case errors.Is(err, scm.ErrUnsupported):
		f.add(Info, check, "", "not checked: %v", err)
	case !f.asked(check, err):
	case recovery.Restart == 0:
		f.add(Warning, check, remedy, "Windows does not start it again after a failure")
	case !recovery.OnErrors:
		f.add(Warning, check, remedy, "Windows starts it again after a crash, but not after an error")
	default:
		f.add(OK, check, "", "Windows starts it again %s after a failure", recovery.Restart)
	}
}

// asked reports whether something could be asked, and tells why it could not.
func (f *findings) asked(check string, err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, fs.ErrPermission):
		f.add(Warning, check, "run this from an elevated prompt", "%v", err)
	default:
		f.add(Warning, check, "see whether the service manager itself is well: sc.exe query", "%v", err)
	}
	return false
}
