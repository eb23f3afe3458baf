package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/scm"
)

// Upgrade replaces the service's program: copy the new file beside the old one, stop, wait
// until all endpoints are free, swap, start, and wait until every endpoint that answered
// before answers again. If any of this fails, Upgrade puts the old program back, starts it, and
// returns the cause.
//
// A stopped service stays stopped, and Upgrade does not test its new program.
func (i *Installer) Upgrade(ctx context.Context, file string) error {
	service, err := i.Manager.Open(i.Name)
	if err != nil {
		return err
	}
	defer service.Close()
	config, err := service.Config()
	if err != nil {
		return err
	}
	status, err := service.Status()
	if err != nil {
		return err
	}
	binary, _ := split(config.Command)
	for _, program := range []string{binary, file} {
		if err := i.trust(program); err != nil {
			return err
		}
	}
	running := status.State != scm.Stopped
	if running {
		if err := i.checkDependents(service); err != nil {
			return err
		}
	}
	swap := swap{binary: binary}
	i.Progress("copying " + file)
	if err := swap.prepare(file); err != nil {
		return err
	}
	defer swap.removeNew()
	before := answering(i.Check(ctx))
	if err = i.stop(ctx, service, neverKill); err == nil {
		err = i.exchange(ctx, service, &swap, before, running)
	}
	if err == nil {
		return nil
	}
	// Roll back even after a timeout or an interrupt.
	i.Progress("rolling back to the old program")
	rollback, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if rollbackErr := i.rollBack(rollback, service, &swap, running); rollbackErr != nil {
		return fmt.Errorf("the upgrade failed (%w), and the rollback failed too: %w", err, rollbackErr)
	}
	if running {
		if healthErr := i.healthy(rollback, before); healthErr != nil {
			return fmt.Errorf("the upgrade failed (%w) and was rolled back, but the old program is not healthy: %w", err, healthErr)
		}
	}
	return fmt.Errorf("the upgrade failed and was rolled back: %w", err)
}

// rollbackTimeout is enough to roll back a program that hangs.
const rollbackTimeout = killAfter + 2*healthTimeout

// exchange is the part of an upgrade that rollBack undoes.
func (i *Installer) exchange(ctx context.Context, service scm.Service, swap *swap, before map[endpoint.Name]bool, start bool) error {
	if err := i.free(ctx); err != nil {
		return err
	}
	i.Progress("replacing " + swap.binary)
	if err := swap.do(ctx, i.After); err != nil {
		return err
	}
	if !start {
		return nil
	}
	if err := i.start(ctx, service); err != nil {
		return err
	}
	return i.healthy(ctx, before)
}

// rollBack puts the old program back, and starts it if it was running.
func (i *Installer) rollBack(ctx context.Context, service scm.Service, swap *swap, start bool) error {
	status, err := service.Status()
	if err != nil {
		return err
	}
	if swap.swapped || status.State == scm.StopPending {
		if err := i.stop(ctx, service, killIfHung); err != nil {
			return err
		}
	}
	if err := swap.undo(ctx, i.After); err != nil {
		return err
	}
	if !start {
		return nil
	}
	return i.start(ctx, service)
}

// free waits until no process owns an endpoint. A socket without a server is free.
func (i *Installer) free(ctx context.Context) error {
	i.Progress("waiting until the pipes are free")
	for {
		owned := ""
		for _, h := range i.Check(ctx) {
			if h.State != endpoint.Missing && h.State != endpoint.Dead {
				owned = h.Name.String()
				if h.PID > 0 {
					owned = fmt.Sprintf("%s (process %d)", h.Name, h.PID)
				}
				break
			}
		}
		if owned == "" {
			return nil
		}
		if err := i.pause(ctx, "release "+owned); err != nil {
			return err
		}
	}
}

// healthy waits until every endpoint that answered before answers again.
func (i *Installer) healthy(ctx context.Context, before map[endpoint.Name]bool) error {
	i.Progress("waiting until it is healthy")
	ctx, cancel := context.WithTimeout(ctx, healthTimeout) // a check of a hung endpoint takes long
	defer cancel()
	for polls := 0; ; polls++ {
		now := answering(i.Check(ctx))
		var missing []endpoint.Name
		for _, name := range endpoint.All() {
			if before[name] && !now[name] {
				missing = append(missing, name)
			}
		}
		if len(missing) == 0 && len(now) > 0 {
			return nil
		}
		what := "serve anything"
		if len(missing) > 0 {
			what = "serve " + missing[0].String()
		}
		if polls == int(healthTimeout/pollInterval) {
			return fmt.Errorf("service %s did not %s within %s", i.Name, what, healthTimeout)
		}
		if err := i.pause(ctx, what); err != nil {
			return err
		}
	}
}

// swap exchanges two program files. Windows does not allow overwriting a running program, but
// allows renaming it.
type swap struct {
	binary  string
	swapped bool
}

func (s *swap) next() string { return s.binary + ".new" }
func (s *swap) old() string  { return s.binary + ".old" }

// prepare copies the new program beside the old one before anything stops, because copying
// takes time and may run out of space.
func (s *swap) prepare(file string) error {
	source, err := os.Open(file)
	if err != nil {
		return err
	}
	defer source.Close()
	if info, err := source.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return errors.Join(err, fmt.Errorf("%s is not a program", file))
	}
	// A file that is there already may be a link, or belong to someone who keeps it open to write to it later.
	if err := os.Remove(s.next()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	target, err := os.OpenFile(s.next(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // a program
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// removeNew removes a new program that is not in use. If it is still running, the next upgrade
// removes it.
func (s *swap) removeNew() { _ = os.Remove(s.next()) }

func (s *swap) do(ctx context.Context, after func(time.Duration) <-chan time.Time) error {
	if err := os.Remove(s.old()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := rename(ctx, after, s.binary, s.old()); err != nil {
		return err
	}
	s.swapped = true
	return rename(ctx, after, s.next(), s.binary)
}

func (s *swap) undo(ctx context.Context, after func(time.Duration) <-chan time.Time) error {
	if !s.swapped {
		return nil
	}
	// Rename, because the new program may still run. removeNew removes it.
	if err := rename(ctx, after, s.binary, s.next()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return rename(ctx, after, s.old(), s.binary)
}

// rename retries for a while, because virus scanners open new files.
func rename(ctx context.Context, after func(time.Duration) <-chan time.Time, from, to string) error {
	for attempt := 0; ; attempt++ {
		err := os.Rename(from, to)
		if err == nil || attempt == 10 || errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-after(pollInterval):
		}
	}
}
