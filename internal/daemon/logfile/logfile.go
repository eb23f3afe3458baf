// Package logfile is a log file of limited size. When it is full it becomes csi-proxy.log.1,
// what was .1 becomes .2, and so on; the oldest is removed. klog's own file is emptied
// instead, and takes the process down when the disk is full.
//
// A program that serves storage must not depend on its log. So nothing here fails for good:
// what cannot be written goes to a fallback, and the file is tried again.
package logfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pause is how long a file that failed is left alone, so that a crowd of messages does not
// knock at a dead disk with each.
const pause = time.Second

// emptied stands in place of what was lost because the file could not be renamed.
const emptied = "(emptied, since it could not be renamed)\n"

// Config says where a log is written and how large it may grow.
type Config struct {
	Path string
	// MaxBytes is the size at which the file is exchanged; 0 means never.
	MaxBytes uint64
	// Backups is how many files are kept besides the current one; 0 means that a file that
	// is full is emptied.
	Backups int
	// Fallback gets what the file does not take.
	Fallback io.Writer
	// Failed is called when the file begins to fail, and not again until it has recovered.
	// It must not write to the File. It may be nil.
	Failed func(error)
}

// File is a log file. All methods may be called concurrently.
type File struct {
	cfg Config

	mu      sync.Mutex
	file    *os.File // nil while it fails, or when it is closed
	size    uint64
	endless bool // it is a device, such as NUL, and must not be renamed
	closed  bool
	failure error     // since when it fails, why
	missing int       // messages that went to the fallback since then
	retry   time.Time // not before
}

// Open opens the log, and creates its directory. What is in the file stays. It never fails:
// a log that cannot be opened is one that fails at the moment.
func Open(cfg Config) *File {
	f := &File{cfg: cfg}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.open(os.O_APPEND); err != nil {
		_ = f.fail(err) // it is tried again
	}
	return f
}

// Write appends one message. It is never divided between two files. The message counts as
// written if the fallback has taken it.
func (f *File) Write(message []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, fs.ErrClosed
	}
	if err := f.write(message); err != nil {
		f.missing++
		return f.cfg.Fallback.Write(message)
	}
	return len(message), nil
}

// Close closes the file. Messages that come later are lost.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return f.closeFile()
}

func (f *File) write(message []byte) error {
	if f.file == nil {
		if err := f.reopen(); err != nil {
			return err
		}
	}
	if f.full(len(message)) {
		if err := f.exchange(); err != nil {
			return f.fail(err)
		}
	}
	n, err := f.file.Write(message)
	f.size += uint64(n)
	if err != nil {
		return f.fail(err)
	}
	return nil
}

func (f *File) full(more int) bool {
	return f.cfg.MaxBytes > 0 && !f.endless && f.size > 0 && f.size+uint64(more) > f.cfg.MaxBytes
}

// fail notes that the file does not work, and leaves it alone for a moment.
func (f *File) fail(err error) error {
	_ = f.closeFile() // it has failed already
	f.retry = time.Now().Add(pause)
	first := f.failure == nil
	f.failure = err
	if first && f.cfg.Failed != nil {
		f.cfg.Failed(err)
	}
	return err
}

// reopen opens a file that has failed, and says in it how much is missing. It begins a new
// line, because half of a message may stand there.
func (f *File) reopen() error {
	if time.Now().Before(f.retry) {
		return f.failure
	}
	err := f.open(os.O_APPEND)
	if err == nil {
		note := fmt.Sprintf("\n%d messages are missing here: %v\n", f.missing, f.failure)
		var n int
		n, err = f.file.WriteString(note)
		f.size += uint64(n)
	}
	if err != nil {
		return f.fail(err)
	}
	f.failure, f.missing = nil, 0
	return nil
}

// open opens the file to append to it, or with O_TRUNC empties it.
func (f *File) open(mode int) error {
	if err := os.MkdirAll(filepath.Dir(f.cfg.Path), 0o755); err != nil { //nolint:gosec // operators read logs
		return err
	}
	file, err := os.OpenFile(f.cfg.Path, os.O_WRONLY|os.O_CREATE|mode, 0o644) //nolint:gosec // operators read logs
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return err
	}
	f.file, f.size, f.endless = file, uint64(info.Size()), !info.Mode().IsRegular()
	return nil
}

func (f *File) closeFile() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// exchange makes the current file a backup and begins a new one.
//
// Windows renames no file that somebody has open without sharing its deletion, and that is
// how Go, and many a log shipper, opens files. So ours is closed first. If others are in the
// way the file grows on, up to twice its size; then it is emptied, which a reader does not prevent.
// https://learn.microsoft.com/windows/win32/fileio/creating-and-opening-files
func (f *File) exchange() error {
	if err := f.closeFile(); err != nil {
		return err
	}
	inTheWay := f.shift()
	if f.cfg.Backups > 0 && (inTheWay == nil || f.size < 2*f.cfg.MaxBytes) {
		return f.open(os.O_APPEND)
	}
	if err := f.open(os.O_APPEND | os.O_TRUNC); err != nil || inTheWay == nil {
		return err
	}
	n, err := f.file.WriteString(emptied)
	f.size += uint64(n)
	return err
}

// shift makes the current file the first backup, and removes those that are too many.
//
// A file that somebody holds open cannot be renamed, and then it is tried again with the next
// message. So that no attempt pushes another backup over the edge, the current file goes first,
// to a name in between, and back if it cannot go on; and backups move up only as far as there
// is a gap, which an attempt leaves where it has got stuck.
func (f *File) shift() error {
	f.removeOld()
	if f.cfg.Backups == 0 {
		return nil
	}
	// A process that was killed in here has left one on its way.
	if _, err := os.Lstat(f.backup(0)); err == nil {
		if err := f.moveUp(); err != nil {
			return err
		}
	}
	if err := os.Rename(f.cfg.Path, f.backup(0)); err != nil {
		return err
	}
	if err := f.moveUp(); err != nil {
		return errors.Join(err, os.Rename(f.backup(0), f.cfg.Path))
	}
	return nil
}

// moveUp makes the file on its way the first backup.
func (f *File) moveUp() error {
	for i := f.gap(); i > 0; i-- {
		if err := os.Rename(f.backup(i-1), f.backup(i)); err != nil {
			return err
		}
	}
	return nil
}

// removeOld removes the backups that an earlier start has kept beyond ours. It is best effort.
func (f *File) removeOld() {
	entries, _ := os.ReadDir(filepath.Dir(f.cfg.Path))
	for _, entry := range entries {
		suffix, ours := strings.CutPrefix(entry.Name(), filepath.Base(f.cfg.Path)+".")
		if i, err := strconv.Atoi(suffix); ours && err == nil && i > f.cfg.Backups && f.backup(i) == f.cfg.Path+"."+suffix {
			_ = os.Remove(f.backup(i))
		}
	}
}

// gap is the first backup that does not exist, or else the last.
func (f *File) gap() int {
	for i := 1; i < f.cfg.Backups; i++ {
		if _, err := os.Lstat(f.backup(i)); errors.Is(err, fs.ErrNotExist) {
			return i
		}
	}
	return f.cfg.Backups
}

// backup is the name of a backup. 0 is a file on its way to become one.
func (f *File) backup(i int) string { return fmt.Sprintf("%s.%d", f.cfg.Path, i) }
