// Package claim reserves a directory for one process, which can then change anything in it and
// nothing outside.
//
// It never takes a directory with foreign content: the directory must be empty or have the mark
// of an earlier claim.
package claim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Mark is the name of the directory that marks claimed directories. Its content belongs to the
// process with the claim.
const Mark = ".csi-proxy-sim"

const lockName = "lock"

// Dir is a claimed directory. Access it only through Root, which never follows links out of it.
type Dir struct {
	Root *os.Root
	Path string // absolute, without links

	lock *os.File
}

// New claims path for this process until Close. The directory is empty except for the mark, and
// only this user can access it.
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

// make0700 creates a missing directory and returns its absolute path.
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
	if d.lock, err = lock(filepath.Join(d.Path, Mark, lockName)); err != nil {
		return fmt.Errorf("lock %s: %w; another csi-proxy-sim may be using it", d.Path, err)
	}
	return d.clear()
}

// clear removes the content that an earlier process left.
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

// Close releases the directory and keeps its content, for inspection.
func (d *Dir) Close() {
	_ = d.lock.Close()
	_ = d.Root.Close()
}
