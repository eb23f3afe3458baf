package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/scm"
)

// Upgrade replaces the service's program by another file: copy it beside the old one, stop,
// wait until all endpoints are free, swap, start, wait until every endpoint that answered
// before answers again. If it does not come to that, the old program is put back and
// started, and the error says why.
//
// A service that was stopped stays stopped, and its new program is not tried.
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
	running := status.State != scm.Stopped
	if running {
		if err := i.independent(service); err != nil {
			return err
		}
	}
	binary, _ := split(config.Command)
	swap := swap{binary: binary}
	i.Progress("copying " + file)
	if err := swap.prepare(file); err != nil {
		return err
	}
	defer swap.tidy()
	before := answering(i.Check(ctx))
	if err = i.stop(ctx, service, patient); err == nil {
		err = i.exchange(ctx, service, &swap, before, running)
	}
	if err == nil {
		return nil
	}
	// The old program must come back even if the time is over, or somebody has interrupted.
	i.Progress("going back to the old program")
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), backPatience)
	defer cancel()
	if backErr := i.goBack(back, service, &swap, running); backErr != nil {
		return fmt.Errorf("the upgrade has failed (%w), and so has the way back: %w", err, backErr)
	}
	if running {
		if illErr := i.healthy(back, before); illErr != nil {
			return fmt.Errorf("the upgrade has failed (%w), and the old program, which is back, is not healthy: %w", err, illErr)
		}
	}
	return fmt.Errorf("the upgrade has failed, and the old program is back: %w", err)
}

// backPatience is enough for the way back with a program that hangs.
const backPatience = hangPatience + 2*healthPatience

// exchange is the part of an upgrade that can be undone.
func (i *Installer) exchange(ctx context.Context, service scm.Service, swap *swap, before map[endpoint.Name]bool, start bool) error {
	if err := i.free(ctx); err != nil {
		return err
	}
	i.Progress("replacing " + swap.binary)
	if err := swap.do(ctx, i.After); err != nil || !start {
		return err
	}
	if err := i.start(ctx, service); err != nil {
		return err
	}
	return i.healthy(ctx, before)
}

// goBack puts the old program back, and starts it if it ran.
func (i *Installer) goBack(ctx context.Context, service scm.Service, swap *swap, start bool) error {
	status, err := service.Status()
	if err != nil {
		return err
	}
	if swap.swapped || status.State == scm.StopPending {
		if err := i.stop(ctx, service, forceful); err != nil {
			return err
		}
	}
	if err := swap.undo(ctx, i.After); err != nil || !start {
		return err
	}
	return i.start(ctx, service)
}

// free waits until nobody has an endpoint any more. Sockets that nobody listens on are free.
func (i *Installer) free(ctx context.Context) error {
	i.Progress("waiting until the pipes are free")
	for {
		taken := ""
		for _, h := range i.Check(ctx) {
			if h.State != endpoint.Missing && h.State != endpoint.Dead {
				taken = h.Name.String()
				if h.PID > 0 {
					taken = fmt.Sprintf("%s (process %d)", h.Name, h.PID)
				}
				break
			}
		}
		if taken == "" {
			return nil
		}
		if err := i.pause(ctx, "release "+taken); err != nil {
			return err
		}
	}
}

// healthy waits until everything that answered before answers again.
func (i *Installer) healthy(ctx context.Context, before map[endpoint.Name]bool) error {
	i.Progress("waiting until it is healthy")
	ctx, cancel := context.WithTimeout(ctx, healthPatience) // looks at what hangs take long
	defer cancel()
	for looks := 0; ; looks++ {
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
		if looks == int(healthPatience/pollInterval) {
			return fmt.Errorf("service %s does not %s within %s", i.Name, what, healthPatience)
		}
		if err := i.pause(ctx, what); err != nil {
			return err
		}
	}
}

// swap exchanges two files of a program. Windows lets nobody overwrite a program that runs,
// but lets everybody rename it.
type swap struct {
	binary  string
	swapped bool
}

func (s *swap) next() string { return s.binary + ".new" }
func (s *swap) old() string  { return s.binary + ".old" }

// prepare puts the new program beside the old one, so that what takes long, and what may
// fail for want of space, is done before anything stops.
func (s *swap) prepare(file string) error {
	source, err := os.Open(file)
	if err != nil {
		return err
	}
	defer source.Close()
	if info, err := source.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return errors.Join(err, fmt.Errorf("%s is no program", file))
	}
	target, err := os.OpenFile(s.next(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755) //nolint:gosec // a program
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// tidy removes the new program if it was not needed. If it has not ended, the next upgrade does.
func (s *swap) tidy() { _ = os.Remove(s.next()) }

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
	// The new program may not have ended yet, so it is not removed: see above. tidy does it.
	if err := rename(ctx, after, s.binary, s.next()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return rename(ctx, after, s.old(), s.binary)
}

// rename tries again for a while: scanners of viruses like to hold new files.
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
