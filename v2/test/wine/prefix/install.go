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
	"strings"
	"syscall"
)

// The environment variables with the directories in which Wine, and a C compiler for
// Windows, are installed or are to be.
const (
	WineVariable  = "CSI_PROXY_WINE"
	MingwVariable = "CSI_PROXY_MINGW"
)

// Tags are those of the Makefile, with which programs for Windows are compiled already.
const Tags = "grpcnotrace,nethttpomithttp2"

// Wine is an installation of Wine.
type Wine struct{ dir string }

// Install returns the installation in the directory that WineVariable names, else in the
// user's cache, and installs Wine there if need be. Others may do so at the same time.
func Install(ctx context.Context) (*Wine, error) {
	dir, err := install(ctx, "install.sh", WineVariable, "wine10")
	return &Wine{dir}, err
}

// InstallCompiler does the same for a C compiler for Windows, and returns its path.
func InstallCompiler(ctx context.Context) (gcc string, err error) {
	dir, err := install(ctx, "install-mingw.sh", MingwVariable, "mingw")
	return filepath.Join(dir, "bin", "x86_64-w64-mingw32-gcc"), err
}

// install runs a script of tools/wine that installs something into a directory, unless it is
// there already. It waits for others that do the same.
func install(ctx context.Context, script, variable, name string) (dir string, err error) {
	if dir = os.Getenv(variable); dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("set %s to a directory: %w", variable, err)
		}
		dir = filepath.Join(cache, "csi-proxy", name)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	unlock, err := lock(dir, true)
	if err != nil {
		return "", err
	}
	defer unlock()
	cmd := exec.CommandContext(ctx, filepath.Join(root, "tools", "wine", script), dir) //nolint:gosec // a script of this repository
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", script, dir, err, output)
	}
	return dir, nil
}

// Root returns the top directory of the repository, as seen from the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "tools", "wine", "install.sh")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory is not in the repository")
		}
		dir = parent
	}
}

func lockFile(dir string) string { return dir + ".lock" }

// lock keeps other processes away from what is or is to become dir, as long as this one
// lives.
func lock(dir string, wait bool) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // programs are for all to see
		return nil, err
	}
	file, err := os.OpenFile(lockFile(dir), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the user chooses where
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	if err := syscall.Flock(int(file.Fd()), how); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return func() { file.Close() }, nil // which unlocks it
}

// template returns the prefix that others are copies of, and makes it if need be.
func (w *Wine) template(ctx context.Context) (string, error) {
	dir := filepath.Join(w.dir, "template")
	unlock, err := lock(dir, true)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	temporary, err := os.MkdirTemp(w.dir, "template-")
	if err != nil {
		return "", err
	}
	p := &Prefix{wine: w, dir: temporary}
	defer p.Close()
	if err := p.prepare(); err != nil {
		return "", err
	}
	if _, err := p.Run(ctx, "wineboot", "-i"); err != nil {
		return "", err
	}
	if err := p.stop(); err != nil {
		return "", err
	}
	if err := p.seal(); err != nil {
		return "", err
	}
	return dir, os.Rename(temporary, dir)
}

// seal removes from a prefix what leads out of it.
func (p *Prefix) seal() error { //nolint:gosec // no other process writes there
	return filepath.WalkDir(p.dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type() != fs.ModeSymlink {
			return err
		}
		target, err := os.Readlink(name)
		switch {
		case err != nil:
			return err
		case !filepath.IsAbs(target): // drive C:
			return nil
		case os.Remove(name) != nil:
			return fmt.Errorf("%s, which leads to %s, cannot be removed", name, target)
		case strings.HasPrefix(name, filepath.Join(p.dir, "drive_c")): // a folder of the user
			return os.Mkdir(name, 0o755)
		default:
			return nil
		}
	})
}
