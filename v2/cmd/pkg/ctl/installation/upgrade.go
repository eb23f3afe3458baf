package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
)

// Upgrade replaces the service's program: copy the new file beside the old one, stop, wait
// until all endpoints are free, swap, start, and wait until every endpoint that answered
// before answers again. If any of this fails, Upgrade puts the old program back, starts it, and
// returns the cause. The new file may be where others can change it: only the copy, whose access list is checked, runs.
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
	swap := swap{binary: binary, change: i.Change, after: i.After}
	programs := []string{binary}
	if swap.isHalf() {
		programs = append(programs, swap.old())
	}
	for _, program := range programs {
		if err := i.trust(program); err != nil {
			return err
		}
	}
	if err := i.identify(file); err != nil {
		return err
	}
	if swap.isHalf() {
		i.Progress(binary + " is missing or empty, as after an upgrade that a power cut ended; putting back " + swap.old())
		if err := swap.rename(ctx, swap.old(), binary); err != nil {
			return err
		}
	}
	running := status.State != scm.Stopped
	if running {
		if err := i.checkDependents(service); err != nil {
			return err
		}
	}
	i.Progress("copying " + file)
	if err := swap.prepare(file); err != nil {
		return err
	}
	defer swap.removeNew()
	if err := i.protect(swap.next(), restrict(above(swap.next()))); err != nil { // it is like its folder
		return err
	}
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
	if err := swap.do(ctx); err != nil {
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
	if err := swap.undo(ctx); err != nil {
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

// swap exchanges two program files. At every moment there is a program that starts, also if the power is cut: copies are on
// the disk before they get a name that counts, which takes one renaming.
type swap struct {
	binary  string
	swapped bool
	change  func(do func() error) error
	after   func(time.Duration) <-chan time.Time
}

func (s *swap) next() string { return s.binary + ".new" }
func (s *swap) old() string  { return s.binary + ".old" }

func (s *swap) isHalf() bool { return HalfUpgraded(s.binary) != "" }

// HalfUpgraded returns where the old program is if a power cut has left no other that starts.
func HalfUpgraded(binary string) (old string) {
	starts := func(path string) bool {
		file, err := os.Open(path)
		if err != nil {
			return !errors.Is(err, fs.ErrNotExist)
		}
		defer file.Close()
		first := []byte{0}
		_, _ = file.Read(first)
		return first[0] != 0 // what was not written before the power went is zero
	}
	if binary == "" || starts(binary) || !starts(binary+".old") {
		return ""
	}
	return binary + ".old"
}

// prepare copies the new program beside the old one before anything stops, because copying
// takes time and may run out of space.
func (s *swap) prepare(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return fmt.Errorf("%s is not a program", file)
	}
	return s.copy(file, s.next())
}

// copy copies a program, and writes it to the disk.
func (s *swap) copy(from, to string) error {
	// A file that is there already may be a link, or belong to someone who keeps it open to write to it later.
	err := s.changed(func() error { return os.Remove(to) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.changed(func() error {
		source, err := os.Open(from)
		if err != nil {
			return err
		}
		defer source.Close()
		target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // a program
		if err != nil {
			return err
		}
		_, err = io.Copy(target, source)
		return errors.Join(err, target.Sync(), target.Close())
	})
}

func (s *swap) changed(do func() error) error {
	if s.change != nil {
		return s.change(do)
	}
	return do()
}

// removeNew removes a new program that is not in use. If it is still running, the next upgrade
// removes it.
func (s *swap) removeNew() { _ = s.changed(func() error { return os.Remove(s.next()) }) }

func (s *swap) do(ctx context.Context) error {
	if err := s.copy(s.binary, s.old()); err != nil {
		return err
	}
	err := s.rename(ctx, s.next(), s.binary)
	s.swapped = err == nil
	return err
}

func (s *swap) undo(ctx context.Context) error {
	if !s.swapped {
		return nil
	}
	return s.rename(ctx, s.old(), s.binary)
}

// rename replaces a program that does not run. It retries for a while, because virus scanners open new files, and Windows
// needs a moment to end a process.
func (s *swap) rename(ctx context.Context, from, to string) error {
	for attempt := 0; ; attempt++ {
		err := s.changed(func() error { return os.Rename(from, to) })
		if err == nil {
			if dir, openErr := os.Open(filepath.Dir(to)); openErr == nil {
				_ = errors.Join(dir.Sync(), dir.Close()) // which Windows refuses: its journal keeps the order
			}
			return nil
		}
		if attempt == 10 || errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-s.after(pollInterval):
		}
	}
}
