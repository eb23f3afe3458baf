// Package logfile is a log file of limited size. A full file becomes csi-proxy.log.1, the former .1
// becomes .2, and so on; the oldest is removed. klog instead empties its file, and ends the process
// when the disk is full.
//
// A program that serves storage must not depend on its log. So failures are temporary: messages go
// to a fallback, and the file is opened again later.
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

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/protected"
)

// pause is the time between a failure and the next attempt, so that not every message tries a dead
// disk.
const pause = time.Second

// emptied replaces the messages that were lost because the file could not be renamed.
const emptied = "(emptied, because it could not be renamed)\n"

// Config says where a log is written and how large it may grow.
type Config struct {
	Path string
	// MaxBytes is the size at which the file is replaced; 0 means never.
	MaxBytes uint64
	// Backups is the number of files to keep besides the current one; 0 means that a full file is
	// emptied.
	Backups int
	// Fallback gets the messages while the file fails.
	Fallback io.Writer
	// Failed is called once when the file begins to fail, and again only after it has recovered.
	// It must not write to the File. It may be nil.
	Failed func(error)
}

// File is a log file. All methods may be called concurrently.
type File struct {
	cfg Config

	mu      sync.Mutex
	file    *os.File // nil while it fails or is closed
	size    uint64
	endless bool // a device such as NUL, which must not be renamed
	closed  bool
	failure error     // the last error while it fails
	missing int       // messages that went to the fallback meanwhile
	retry   time.Time // the earliest next attempt
}

// CrashFiles returns where the daemon's last crash is, and the one before, beside its log; or, for a service without a
// log, beside its program.
func CrashFiles(beside string) [2]string { return [2]string{beside + ".crash", beside + ".crash.1"} }

// Open opens the log and creates its directory. It appends to an existing file. It never fails: a
// file that cannot be opened is opened again later.
func Open(cfg Config) *File {
	f := &File{cfg: cfg}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.open(os.O_APPEND); err != nil {
		_ = f.fail(err) // Write tries again
	}
	return f
}

// Write appends one message, never split between two files. It succeeds if the fallback takes the
// message.
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

// Close closes the file. Later messages are lost.
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

// fail records a failure and sets the time of the next attempt.
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

// reopen opens the file after a failure, and writes into it how many messages are missing. It begins
// a new line, because the last message may be incomplete.
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
	if err := protected.MkdirAll(filepath.Dir(f.cfg.Path)); err != nil {
		return err
	}
	file, err := protected.OpenFile(f.cfg.Path, os.O_WRONLY|os.O_CREATE|mode, 0o644) // operators read logs
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

// exchange makes the current file a backup and starts a new one.
//
// Windows does not rename a file that a process has open without FILE_SHARE_DELETE, and Go and many
// log shippers open files that way. So exchange closes our file first. If another process still
// prevents the rename, the file grows up to twice its size and is then emptied, which readers do not
// prevent.
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

// shift makes the current file the first backup, and removes surplus backups.
//
// A file that another process holds open cannot be renamed, and the next message tries again. No
// attempt may lose a backup. So the current file moves first, to a temporary name, and back if
// moving the backups fails. The backups move up only to the first gap, which a failed attempt
// leaves behind.
func (f *File) shift() error {
	f.removeOld()
	if f.cfg.Backups == 0 {
		return nil
	}
	// A process that was killed here has left its temporary file.
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

// moveUp makes the file with the temporary name the first backup.
func (f *File) moveUp() error {
	for i := f.gap(); i > 0; i-- {
		if err := os.Rename(f.backup(i-1), f.backup(i)); err != nil {
			return err
		}
	}
	return nil
}

// removeOld removes backups beyond our number, which an earlier start kept. It is best effort.
func (f *File) removeOld() {
	entries, _ := os.ReadDir(filepath.Dir(f.cfg.Path))
	for _, entry := range entries {
		suffix, ours := strings.CutPrefix(entry.Name(), filepath.Base(f.cfg.Path)+".")
		if i, err := strconv.Atoi(suffix); ours && err == nil && i > f.cfg.Backups && f.backup(i) == f.cfg.Path+"."+suffix {
			_ = os.Remove(f.backup(i))
		}
	}
}

// gap returns the first backup that does not exist, or the last one.
func (f *File) gap() int {
	for i := 1; i < f.cfg.Backups; i++ {
		if _, err := os.Lstat(f.backup(i)); errors.Is(err, fs.ErrNotExist) {
			return i
		}
	}
	return f.cfg.Backups
}

// backup returns the name of a backup; 0 is the temporary name.
func (f *File) backup(i int) string { return fmt.Sprintf("%s.%d", f.cfg.Path, i) }
