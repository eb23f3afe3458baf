//go:build linux

package prefix

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Prefix is a Windows of its own. It is safe for concurrent use.
type Prefix struct {
	wine  *Wine
	dir   string
	owned func()       // ends our ownership of the directory
	logs  atomic.Int64 // how many there are
	close sync.Once
	err   error // of Close
}

// New makes a prefix and starts Wine's server, so that the first program starts as fast as
// the others. It removes what others have left behind who were killed. Close it.
func (w *Wine) New(ctx context.Context) (_ *Prefix, err error) {
	template, err := w.template(ctx)
	if err != nil {
		return nil, fmt.Errorf("make the template of all prefixes: %w", err)
	}
	w.removeAbandoned()
	p, err := w.own()
	if err != nil {
		return nil, err
	}
	open.Store(p, true)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := copyTree(p.dir, template); err != nil {
		return nil, err
	}
	if err := p.prepare(); err != nil {
		return nil, err
	}
	// The server stays this long after the last program has ended. It is longer than any
	// pause in a test, but limited: this process may be killed before it can stop it.
	const linger = "-p60"
	cmd := exec.CommandContext(ctx, p.wine.program("wineserver"), linger) //nolint:gosec // ours
	cmd.Env = p.environment()
	output, err := os.Create(p.log(serverLog))
	if err != nil {
		return nil, err
	}
	defer output.Close() // the server has it, too
	cmd.Stderr = output
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("wineserver %s: %w", linger, err)
	}
	return p, nil
}

const serverLog = "server.log"

// Prefixes are beside the template, with which they share files.
const prefixPattern = "prefix-*"

// own makes the directory of a prefix, which is ours as long as we live.
func (w *Wine) own() (*Prefix, error) {
	dir, err := os.MkdirTemp(w.dir, prefixPattern)
	if err != nil {
		return nil, err
	}
	release, err := lock(dir, true)
	if err != nil {
		return nil, err
	}
	return &Prefix{wine: w, dir: dir, owned: release}, nil
}

// removeAbandoned removes prefixes without an owner. It is best effort.
func (w *Wine) removeAbandoned() {
	dirs, _ := filepath.Glob(filepath.Join(w.dir, prefixPattern))
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || time.Since(info.ModTime()) < 10*time.Second {
			continue // or another process is about to own it
		}
		if release, err := lock(dir, false); err == nil {
			_ = (&Prefix{wine: w, dir: dir, owned: release}).Close()
		}
	}
}

func (w *Wine) program(name string) string { return filepath.Join(w.dir, "bin", name) }

// prepare makes the directories of our own, the user's home and one for logs, and the one
// that programs start in.
func (p *Prefix) prepare() error {
	for _, name := range []string{p.home(), p.log(""), p.Path(`C:\`)} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			return err
		}
	}
	return nil
}

func (p *Prefix) home() string           { return filepath.Join(p.dir, "home") }
func (p *Prefix) log(name string) string { return filepath.Join(p.dir, "log", name) }

func (p *Prefix) environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + p.home(),
		"USER=tester",
		"LC_ALL=C.UTF-8", // or names could have no letters but those of ASCII
		"WINEPREFIX=" + p.dir,
		"WINEDEBUG=-all",
		// Menus, .NET and a browser, for none of which there is use.
		"WINEDLLOVERRIDES=winemenubuilder.exe,mscoree,mshtml=",
	}
}

// Path returns where a file of drive C:, given by its full path, is on this machine.
func (p *Prefix) Path(windows string) string {
	relative := strings.TrimPrefix(windows, `C:\`)
	return filepath.Join(p.dir, "drive_c", strings.ReplaceAll(relative, `\`, "/"))
}

// Copy copies files of this machine to the root of drive C:.
func (p *Prefix) Copy(files ...string) error {
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(p.Path(`C:\`+filepath.Base(name)), content, 0o700); err != nil { //nolint:gosec // programs
			return err
		}
	}
	return nil
}

// Volume makes a directory of drive C: the root of a volume, Volume{guid}. It needs a Wine that stores links
// and looks there for the files of volumes.
func (p *Prefix) Volume(name, dir string) error {
	err := os.Symlink(p.Path(dir), filepath.Join(p.dir, "dosdevices", strings.ToLower(name)))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// StoresLinks reports whether this Wine has reparse points, as versions from 11 on do: it makes a junction.
func (p *Prefix) StoresLinks(ctx context.Context) (bool, error) {
	const probe = `C:\csi-proxy-probe`
	// What mklink returns is not the answer: some versions report success and make nothing. So cmd ends with 0 in any
	// case, and an error means that Wine does not work.
	if _, err := p.Run(ctx, "cmd", "/c", "mklink", "/J", probe, `C:\windows`, "&", "exit", "0"); err != nil {
		return false, fmt.Errorf("try to make a junction: %w", err)
	}
	// On this machine, the name of a link ends with a question mark.
	if _, err := os.Lstat(p.Path(probe) + "?"); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	_, err := p.Run(ctx, "cmd", "/c", "rmdir", probe)
	return true, err
}

// Share makes an empty directory appear as the share of a server, whether or not anybody has
// connected to it.
func (p *Prefix) Share(server, share string) error {
	return os.MkdirAll(filepath.Join(p.dir, "dosdevices", "unc", strings.ToLower(server), strings.ToLower(share)), 0o700)
}

// Shares makes the directories of this machine below dir, <server>/<share>, appear as shares.
func (p *Prefix) Shares(dir string) error {
	return os.Symlink(dir, filepath.Join(p.dir, "dosdevices", "unc"))
}

// Close ends all programs and services, and removes the prefix. The second time it does
// nothing and answers the same.
func (p *Prefix) Close() error {
	p.close.Do(func() {
		defer open.Delete(p)
		p.err = p.stop()
		p.err = errors.Join(p.err, os.RemoveAll(p.dir))
		if p.owned != nil {
			p.err = errors.Join(p.err, os.Remove(lockFile(p.dir)))
			p.owned()
		}
	})
	return p.err
}

// stop ends everything that runs in the prefix, and waits for that. Nothing may cancel it.
func (p *Prefix) stop() error {
	cmd := exec.Command(p.wine.program("wineserver"), "-k", "-w") //nolint:gosec,noctx // ours, and see above
	cmd.Env = p.environment()
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil // it did not run
	}
	// Debian's Wine keeps the server's socket in a directory of its own in /tmp, and the
	// name of that in a file.
	marker := filepath.Join(p.dir, "wineserver")
	if name, readErr := os.ReadFile(marker); readErr == nil && serverDirectory.Match(name) {
		err = errors.Join(err, os.RemoveAll(filepath.Join("/tmp", string(name))), os.Remove(marker)) //nolint:gosec // see the pattern
	}
	return err
}

var serverDirectory = regexp.MustCompile(`^wine-[0-9A-Za-z]+$`)

// copyTree copies a prefix on the same file system. Programs and libraries, of which there
// are 750 MB and read only, are shared.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return copyEntry(filepath.Join(to, strings.TrimPrefix(name, from)), name, entry.Type())
	})
}

func copyEntry(to, from string, kind fs.FileMode) error {
	switch {
	case kind.IsDir():
		return os.MkdirAll(to, 0o700)
	case kind == fs.ModeSymlink:
		target, err := os.Readlink(from)
		return errors.Join(err, os.Symlink(target, to))
	case isCode(from):
		return os.Link(from, to)
	default:
		content, err := os.ReadFile(from)
		return errors.Join(err, os.WriteFile(to, content, 0o600)) //nolint:gosec // the user chooses where
	}
}

func isCode(name string) bool {
	return slices.Contains([]string{".acm", ".cpl", ".dll", ".drv", ".exe", ".nls", ".ocx", ".sys"}, filepath.Ext(name))
}
