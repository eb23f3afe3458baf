package windows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// servicePrefix begins the names of services of our own.
const servicePrefix = "csi-proxy-verify-"

// TestServices asks how services of our own start and stop.
func TestServices(t *testing.T) {
	g := newGroup(t)
	// StopService of a starting service that accepts no stop yet returns ERROR_INVALID_SERVICE_CONTROL (1052), as the
	// table of ControlService says, or ERROR_SERVICE_CANNOT_ACCEPT_CTRL (1061), as its list of codes says. After
	// either, we wait until the service runs, and stop it then.
	g.ask("Q-service-starting", func(a *answer) {
		s := g.newService(a, serviceModel{program: startsOnRequest})
		a.must(s.start())
		a.fact("stop it while it starts", s.stop())
		status, err := g.machine.ServiceStatus(a.Context(), s.name)
		a.must(err)
		a.fact("it still starts", status.State == win.ServiceStartPending)
		a.must(g.services.proceed(s.name))
		a.must(s.await(win.ServiceRunning))
		a.fact("stop it when it runs", s.stop())
		a.must(s.await(win.ServiceStopped))
	})
	// StartService of a paused service returns ERROR_SERVICE_ALREADY_RUNNING (1056).
	g.ask("Q-service-paused", func(a *answer) {
		s := g.newService(a, serviceModel{})
		a.must(s.start())
		a.must(s.await(win.ServiceRunning))
		a.must(g.services.pause(s.name))
		a.must(s.await(win.ServicePaused))
		a.fact("start it while it is paused", s.start())
		a.fact("stop it while it is paused", s.stop())
		a.must(s.await(win.ServiceStopped))
	})
	// The start of a service whose program is missing fails with ERROR_FILE_NOT_FOUND (2) or ERROR_PATH_NOT_FOUND (3),
	// not with ERROR_SERVICE_DOES_NOT_EXIST (1060).
	g.ask("Q-service-file", func(a *answer) {
		program := g.newService(a, serviceModel{program: programMissing})
		a.fact("start it without its program", program.start())
		folder := g.newService(a, serviceModel{program: folderMissing})
		a.fact("start it without the folder of its program", folder.start())
	})
	// EnumDependentServices lists indirect dependents in an order in which they can be stopped, so that StopService
	// with force stops them. If not: three rounds, then Aborted.
	g.ask("Q-dependents", func(a *answer) { askDependents(a, g) })
}

// askDependents stops services in the order in which Windows lists them as the dependents of another.
func askDependents(a *answer, g *group) {
	first := g.newService(a, serviceModel{})
	second := g.newService(a, serviceModel{dependsOn: []string{first.name}})
	third := g.newService(a, serviceModel{dependsOn: []string{second.name}})
	fourth := g.newService(a, serviceModel{dependsOn: []string{first.name, third.name}})
	all := []service{first, second, third, fourth}
	for _, s := range all {
		a.must(s.start())
		a.must(s.await(win.ServiceRunning))
	}
	listed, err := g.machine.ActiveDependents(a.Context(), first.name)
	a.must(err)
	var (
		ordinals []string
		refused  error
	)
	early := first.stop()
	a.fact("stop the first while the others run", early)
	if early == nil { // Windows refuses, Wine does not
		a.must(first.await(win.ServiceStopped))
	}
	for _, name := range listed {
		i := slices.IndexFunc(all, func(s service) bool { return strings.EqualFold(s.name, name) })
		if i < 0 {
			a.Fatalf("%s depends on a service of this question", name)
		}
		ordinals = append(ordinals, []string{"first", "second", "third", "fourth"}[i])
		if refused == nil {
			refused = all[i].end()
		}
	}
	a.fact("its dependents", strings.Join(ordinals, ", "))
	a.fact("stop them in this order", refused)
	a.fact("then stop the first", first.end())
}

// service is a service of our own, during a question.
type service struct {
	name string
	ask  *answer
	on   win.Machine
}

// newService installs a service that is removed after the question.
func (g *group) newService(a *answer, model serviceModel) service {
	a.Helper()
	name, err := g.services.install(a.T, model)
	a.must(err)
	return service{name, a, g.machine}
}

func (s service) start() error { return s.on.StartService(s.ask.Context(), s.name) }
func (s service) stop() error  { return s.on.StopService(s.ask.Context(), s.name) }

// end stops the service and waits.
func (s service) end() error {
	if err := s.stop(); err != nil && winerr.CodeOf(err) != winerr.ServiceNotActive {
		return err
	}
	return s.await(win.ServiceStopped)
}

// await waits for a state.
func (s service) await(want win.ServiceState) error {
	backoff := win.Backoff{First: 10 * time.Millisecond, Longest: 200 * time.Millisecond, Limit: time.Minute}
	status := win.ServiceStatus{}
	done, err := win.Poll(s.ask.Context(), s.on, backoff, func(time.Duration) (bool, error) {
		var err error
		status, err = s.on.ServiceStatus(s.ask.Context(), s.name)
		return status.State == want, err
	})
	if err == nil && !done {
		err = fmt.Errorf("service %s is in state %d with exit code %d, not in state %d", s.name, status.State, status.ExitCode, want)
	}
	return err
}
