// Package installation installs the daemon as a Windows service, and replaces it by another
// version. It decides; package scm does.
package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	// healthPatience is how long a program may take to answer after its start.
	healthPatience = 30 * time.Second
	// hangPatience is how long a program that is not wanted may take to start or stop before
	// its process is ended: as long as Windows gives it when the machine shuts down.
	hangPatience = preshutdown
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

// Outcome is what Install has done.
type Outcome struct {
	Created bool
	// Outdated says that the service runs with the command line that it had before.
	Outdated bool
}

// Install makes the service what it should be: created or corrected. It may be repeated.
// Settings that this Windows does not have are told, and left out.
func (i *Installer) Install(options Options) (Outcome, error) {
	if options.Binary != "" {
		if err := program(options.Binary); err != nil {
			return Outcome{}, err
		}
	}
	var outcome Outcome
	service, err := i.Manager.Open(i.Name)
	switch {
	case errors.Is(err, scm.ErrNotInstalled):
		service, err = i.create(options)
		outcome.Created = true
	case err == nil:
		outcome.Outdated, err = i.correct(service, options)
	}
	if service != nil {
		defer service.Close()
	}
	if err != nil {
		return Outcome{}, err
	}
	if err := i.tolerate("left out", service.SetRecovery(scm.Recovery{Restart: restartAfter, Reset: forgetAfter, OnErrors: true})); err != nil {
		return outcome, err
	}
	if err := i.tolerate("left out", service.SetPreshutdown(preshutdown)); err != nil {
		return outcome, err
	}
	if err := i.Manager.RegisterEvents(i.Name); err != nil {
		return outcome, fmt.Errorf("register %s in the event log: %w", i.Name, err)
	}
	return outcome, nil
}

// program returns an error if a file cannot be the program of a service. The service manager
// takes any text, and looks for the file when it starts it, from its own directory.
func program(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s is no full path, which the service manager needs", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", path)
	}
	return nil
}

// tolerate tells what has become of a setting that is not supported, and goes on.
func (i *Installer) tolerate(what string, err error) error {
	if errors.Is(err, scm.ErrUnsupported) {
		i.Progress(what + ": " + strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil
	}
	return err
}

func (i *Installer) create(options Options) (scm.Service, error) {
	if options.Binary == "" {
		return nil, fmt.Errorf("service %s is not installed, and --binary does not say what to install", i.Name)
	}
	flags := options.Flags
	if flags == nil {
		flags = defaultFlags
	}
	service, err := i.Manager.Create(i.Name, i.config(join(options.Binary, asService(quote(flags)))))
	return service, i.tolerate("left out", err)
}

func (i *Installer) config(command string) scm.Config {
	return scm.Config{Command: command, Start: scm.Delayed, DisplayName: displayName, Description: description}
}

// correct brings an installed service up to date, and keeps the operator's flags.
func (i *Installer) correct(service scm.Service, options Options) (outdated bool, err error) {
	have, err := service.Config()
	if err != nil {
		return false, err
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
		return false, nil
	}
	if err := i.tolerate("left out", service.SetConfig(want)); err != nil {
		return false, err
	}
	status, err := service.Status()
	return have.Command != want.Command && status.State != scm.Stopped, err
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
	if err := i.stop(ctx, service, patient); err != nil {
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
	return i.stop(ctx, service, patient)
}

// start waits for whatever is under way before it asks: Windows takes a service that stops
// for one that runs.
func (i *Installer) start(ctx context.Context, service scm.Service) error {
	for asked := false; ; {
		status, err := service.Status()
		if err != nil {
			return err
		}
		switch {
		case status.State == scm.Running:
			return nil
		case status.State == scm.Stopped && asked:
			return fmt.Errorf("service %s has stopped again, with exit code %d; its log and the event log say why", i.Name, status.ExitCode)
		case status.State == scm.Stopped:
			i.Progress("starting")
			if err := service.Start(); err != nil {
				return err
			}
			asked = true
			continue
		case status.State == scm.StartPending:
			asked = true // by us, or by somebody else
		}
		if err := i.pause(ctx, "start"); err != nil {
			return err
		}
	}
}

// manner is how a service is stopped.
type manner bool

const (
	patient  manner = false // waits for as long as there is time
	forceful manner = true  // ends the process of one that hangs
)

// stop waits for a start that is under way: Windows does not let a service be stopped during
// that, nor twice.
func (i *Installer) stop(ctx context.Context, service scm.Service, how manner) error {
	for looks, asked := 0, false; ; looks++ {
		status, err := service.Status()
		switch {
		case err != nil:
			return err
		case status.State == scm.Stopped:
			return nil
		case how == forceful && looks == int(hangPatience/pollInterval):
			i.Progress("ending its process, which hangs")
			if err := service.Kill(); err != nil {
				return err
			}
		case !status.State.Pending() && !asked:
			if err := i.independent(service); err != nil {
				return err
			}
			i.Progress("stopping")
			err := service.Stop()
			if err != nil && !errors.Is(err, scm.ErrBusy) { // which passes
				return err
			}
			asked = err == nil
		}
		if err := i.pause(ctx, "stop"); err != nil {
			return err
		}
	}
}

// independent returns an error if other services need this one. Windows does not stop it
// then, and to stop them is not for us to decide.
func (i *Installer) independent(service scm.Service) error {
	names, err := service.Dependents()
	if err != nil || len(names) == 0 {
		return err
	}
	return fmt.Errorf("service %s cannot stop while services run that depend on it (%s): stop them first, as with 'sc.exe stop %s', and start them again afterwards",
		i.Name, strings.Join(names, ", "), names[0])
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
	if err := i.tolerate("not known", err); err != nil {
		return State{}, err
	}
	health := i.Check(ctx)
	if ctx.Err() != nil { // what does not answer then says nothing
		return State{}, ctx.Err()
	}
	return State{
		Name: i.Name, State: string(status.State), PID: status.PID, ExitCode: status.ExitCode,
		Start: string(config.Start), Command: config.Command, Restarts: recovery.Restart > 0,
		Endpoints: len(answering(health)),
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
