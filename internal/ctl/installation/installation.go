// Package installation installs the daemon as a Windows service, and replaces it by another
// version. It decides; package scm does.
package installation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/scm"
)

// DefaultName is the name that the service has on most nodes.
const DefaultName = "csi-proxy"

const (
	displayName = "CSI Proxy"
	description = "Performs privileged storage operations for CSI drivers on this node."

	// restartAfter is time for whoever holds a pipe to go; sc.exe lines in use have it.
	restartAfter = 10 * time.Second
	forgetAfter  = 24 * time.Hour
	// preshutdown is more than the daemon's default -stop-timeout and its margin of 5 s.
	preshutdown = 30 * time.Second

	// pollInterval is the pause between two looks at a service, or at its endpoints.
	pollInterval = 200 * time.Millisecond
	// healthPatience is how long a new program may take to answer, and the way back.
	healthPatience = 30 * time.Second
)

// Installer installs a service of one name.
type Installer struct {
	Manager scm.Manager
	Name    string
	// Check looks at all endpoints of the machine.
	Check func(ctx context.Context) []endpoint.Health
	// After is time.After, except in tests.
	After func(time.Duration) <-chan time.Time
	// Progress is told what happens.
	Progress func(text string)
}

// Options are what Install is asked for. What is empty stays as it is, if the service is
// installed already.
type Options struct {
	Binary string
	Flags  []string // nil: the operator's own, or ours for a new service
}

// Install makes the service what it should be: created or corrected. It may be repeated.
func (i *Installer) Install(options Options) (created bool, err error) {
	service, err := i.Manager.Open(i.Name)
	switch {
	case errors.Is(err, scm.ErrNotInstalled):
		if options.Binary == "" {
			return false, fmt.Errorf("service %s is not installed, and --binary does not say what to install", i.Name)
		}
		flags := options.Flags
		if flags == nil {
			flags = defaultFlags
		}
		service, err = i.Manager.Create(i.Name, i.config(join(options.Binary, asService(quote(flags)))))
		if err != nil {
			return false, err
		}
		created = true
	case err != nil:
		return false, err
	}
	defer service.Close()
	if !created {
		if err := i.correct(service, options); err != nil {
			return false, err
		}
	}
	if err := service.SetRecovery(scm.Recovery{Restart: restartAfter, Reset: forgetAfter, OnErrors: true}); err != nil {
		return created, err
	}
	if err := service.SetPreshutdown(preshutdown); err != nil {
		return created, err
	}
	if err := i.Manager.RegisterEvents(i.Name); err != nil {
		return created, fmt.Errorf("register %s in the event log: %w", i.Name, err)
	}
	return created, nil
}

func (i *Installer) config(command string) scm.Config {
	return scm.Config{Command: command, Start: scm.Delayed, DisplayName: displayName, Description: description}
}

// correct brings an installed service up to date, and keeps the operator's flags.
func (i *Installer) correct(service scm.Service, options Options) error {
	have, err := service.Config()
	if err != nil {
		return err
	}
	binary, flags := split(have.Command)
	if options.Binary != "" {
		binary = options.Binary
	}
	if options.Flags != nil {
		flags = quote(options.Flags)
	}
	want := i.config(join(binary, asService(flags)))
	if have == want {
		return nil
	}
	return service.SetConfig(want)
}

// Uninstall stops and removes the service. It is no error if there is none.
func (i *Installer) Uninstall(ctx context.Context) (removed bool, err error) {
	service, err := i.Manager.Open(i.Name)
	if errors.Is(err, scm.ErrNotInstalled) {
		return false, i.Manager.RemoveEvents(i.Name)
	}
	if err != nil {
		return false, err
	}
	defer service.Close()
	if err := i.stop(ctx, service); err != nil {
		return false, err
	}
	if err := service.Delete(); err != nil {
		return false, err
	}
	return true, i.Manager.RemoveEvents(i.Name)
}

// Start starts the service and waits until it runs. It may be repeated.
func (i *Installer) Start(ctx context.Context) error {
	service, err := i.Manager.Open(i.Name)
	if err != nil {
		return err
	}
	defer service.Close()
	return i.start(ctx, service)
}

// Stop stops the service and waits until it has stopped. It may be repeated.
func (i *Installer) Stop(ctx context.Context) error {
	service, err := i.Manager.Open(i.Name)
	if err != nil {
		return err
	}
	defer service.Close()
	return i.stop(ctx, service)
}

func (i *Installer) start(ctx context.Context, service scm.Service) error {
	i.Progress("starting")
	if err := service.Start(); err != nil {
		return err
	}
	for {
		status, err := service.Status()
		if err != nil {
			return err
		}
		switch status.State {
		case scm.Running:
			return nil
		case scm.Stopped:
			return fmt.Errorf("service %s has stopped again, with exit code %d; its log and the event log say why", i.Name, status.ExitCode)
		default:
		}
		if err := i.pause(ctx, "start"); err != nil {
			return err
		}
	}
}

func (i *Installer) stop(ctx context.Context, service scm.Service) error {
	status, err := service.Status()
	if err != nil {
		return err
	}
	if status.State == scm.Stopped {
		return nil
	}
	i.Progress("stopping")
	if err := service.Stop(); err != nil {
		return err
	}
	for {
		status, err := service.Status()
		if err != nil {
			return err
		}
		if status.State == scm.Stopped {
			return nil
		}
		if err := i.pause(ctx, "stop"); err != nil {
			return err
		}
	}
}

// pause waits between two looks.
func (i *Installer) pause(ctx context.Context, what string) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("service %s does not %s in time: %w", i.Name, what, ctx.Err())
	case <-i.After(pollInterval):
		return nil
	}
}

// State is what Status tells.
type State struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	PID       uint32 `json:"pid"`
	ExitCode  uint32 `json:"exitCode"`
	Start     string `json:"start"`
	Command   string `json:"command"`
	Restarts  bool   `json:"restarts"`
	Endpoints int    `json:"endpoints"`
}

// Status returns what is known of the service, and how many endpoints answer.
func (i *Installer) Status(ctx context.Context) (State, error) {
	service, err := i.Manager.Open(i.Name)
	if err != nil {
		return State{}, err
	}
	defer service.Close()
	status, err := service.Status()
	if err != nil {
		return State{}, err
	}
	config, err := service.Config()
	if err != nil {
		return State{}, err
	}
	recovery, err := service.Recovery()
	if err != nil {
		return State{}, err
	}
	return State{
		Name: i.Name, State: string(status.State), PID: status.PID, ExitCode: status.ExitCode,
		Start: string(config.Start), Command: config.Command, Restarts: recovery.Restart > 0,
		Endpoints: len(answering(i.Check(ctx))),
	}, nil
}

func answering(all []endpoint.Health) map[endpoint.Name]bool {
	names := map[endpoint.Name]bool{}
	for _, h := range all {
		if h.State.Answers() {
			names[h.Name] = true
		}
	}
	return names
}
