// Package claim makes a directory of the machine the property of one process, which may
// then do in it what it likes, and nowhere else.
//
// A directory that somebody else filled is never taken: it must be empty, or bear the mark
// of an earlier claim.
package claim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Mark is the name of the directory that tells claimed directories from others. What is in
// it is for the process that has the claim.
const Mark = ".csi-proxy-sim"

const lockName = "lock"

// Dir is a claimed directory. All work in it goes through Root, which leads nowhere else,
// whatever links somebody plants.
type Dir struct {
	Root *os.Root
	Path string // absolute, without links

	lock *os.File
}

// New makes path a directory that is empty but for the mark, belongs to this process until
// Close, and can be entered by this user only.
func New(path string) (_ *Dir, err error) {
	if path, err = make0700(path); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{Root: root, Path: path}
	if err := d.take(); err != nil {
		_ = root.Close()
		if d.lock != nil {
			_ = d.lock.Close()
		}
		return nil, err
	}
	return d, nil
}

// make0700 makes the directory if it is missing, and returns where it is.
func make0700(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

func (d *Dir) take() error {
	names, err := d.names(".")
	if err != nil {
		return err
	}
	info, err := d.Root.Lstat(Mark)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s: %s is not a directory", d.Path, Mark)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil && len(names) > 0:
		return fmt.Errorf("%s is not empty and does not belong to csi-proxy-sim (no %s in it); choose another directory or empty this one", d.Path, Mark)
	case err != nil:
		if err := d.Root.Mkdir(Mark, 0o700); err != nil {
			return err
		}
	}
	if err := d.Root.Chmod(".", 0o700); err != nil {
		return err
	}
	if d.lock, err = d.openLock(); err != nil {
		return fmt.Errorf("lock %s: %w; another csi-proxy-sim may be using it", d.Path, err)
	}
	return d.clear()
}

// clear removes what an earlier process left.
func (d *Dir) clear() error {
	for dir, keep := range map[string]string{".": Mark, Mark: lockName} {
		names, err := d.names(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if name == keep {
				continue
			}
			if err := d.Root.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Dir) names(dir string) ([]string, error) {
	opened, err := d.Root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	return opened.Readdirnames(-1)
}

// Close gives the directory up, and leaves what is in it, for people to look at.
func (d *Dir) Close() {
	_ = d.lock.Close()
	_ = d.Root.Close()
}
