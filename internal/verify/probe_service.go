package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// askServices asks how services of our own start and stop.
func askServices(b *bench) {
	if b.Services == nil {
		return
	}
	b.ask("Q-service-starting", func(a *Ask) {
		s := b.newService(a, ServiceModel{Program: StartsWhenTold})
		a.Must(s.start())
		a.Fact("stop it while it starts", s.stop())
		status, err := b.Unrecorded.ServiceStatus(a.Context(), s.name)
		a.Must(err)
		a.Fact("it still starts", status.State == win.ServiceStartPending)
		a.Must(b.Services.Proceed(s.name))
		a.Must(s.await(win.ServiceRunning))
		a.Fact("stop it when it runs", s.stop())
		a.Must(s.await(win.ServiceStopped))
	})
	b.ask("Q-service-paused", func(a *Ask) {
		s := b.newService(a, ServiceModel{})
		a.Must(s.start())
		a.Must(s.await(win.ServiceRunning))
		a.Must(b.Services.Pause(s.name))
		a.Must(s.await(win.ServicePaused))
		a.Fact("start it while it is paused", s.start())
		a.Fact("stop it while it is paused", s.stop())
		a.Must(s.await(win.ServiceStopped))
	})
	b.ask("Q-service-file", func(a *Ask) {
		program := b.newService(a, ServiceModel{Program: ProgramMissing})
		a.Fact("start it without its program", program.start())
		folder := b.newService(a, ServiceModel{Program: FolderMissing})
		a.Fact("start it without the folder of its program", folder.start())
	})
	b.ask("Q-dependents", func(a *Ask) { askDependents(a, b) })
}

// askDependents stops services in the order in which Windows lists them as the dependents of another.
func askDependents(a *Ask, b *bench) {
	first := b.newService(a, ServiceModel{})
	second := b.newService(a, ServiceModel{DependsOn: []string{first.name}})
	third := b.newService(a, ServiceModel{DependsOn: []string{second.name}})
	fourth := b.newService(a, ServiceModel{DependsOn: []string{first.name, third.name}})
	all := []service{first, second, third, fourth}
	for _, s := range all {
		a.Must(s.start())
		a.Must(s.await(win.ServiceRunning))
	}
	listed, err := b.Unrecorded.ActiveDependents(a.Context(), first.name)
	a.Must(err)
	var (
		ordinals []string
		refused  error
	)
	early := first.stop()
	a.Fact("stop the first while the others run", early)
	if early == nil { // Windows refuses, Wine does not
		a.Must(first.await(win.ServiceStopped))
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
	a.Fact("its dependents", strings.Join(ordinals, ", "))
	a.Fact("stop them in this order", refused)
	a.Fact("then stop the first", first.end())
}

// service is a service of our own, during a question.
type service struct {
	name string
	ask  *Ask
	on   win.Machine
}

// newService installs a service that is removed after the question.
func (b *bench) newService(a *Ask, model ServiceModel) service {
	a.Helper()
	ctx := a.Context()
	name, err := b.Services.Install(ctx, model)
	a.Must(err)
	a.Cleanup(func() {
		if err := b.Services.Remove(context.WithoutCancel(ctx), name); err != nil {
			a.Errorf("service %s is left behind: %v", name, err)
		}
	})
	return service{name, a, b.Unrecorded}
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
	patience := win.Backoff{First: 10 * time.Millisecond, Longest: 200 * time.Millisecond, Limit: time.Minute}
	status := win.ServiceStatus{}
	done, err := win.Poll(s.ask.Context(), s.on, patience, func(time.Duration) (bool, error) {
		var err error
		status, err = s.on.ServiceStatus(s.ask.Context(), s.name)
		return status.State == want, err
	})
	if err == nil && !done {
		err = fmt.Errorf("service %s is in state %d with exit code %d, not in state %d", s.name, status.State, status.ExitCode, want)
	}
	return err
}
