package record

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// File is a Recorder that writes a file. A full file gets the suffix .1, and another one begins with a
// header and a description of its own. Together they never exceed MaxBytes.
type File struct {
	*Recorder

	path string
	file *os.File
}

// Open begins a recording in a file. The file of an earlier recording gets the suffix .1. It refuses a limit
// that the description nearly reaches: each file would fill up at once.
func Open(ctx context.Context, m win.Machine, path string, o Options) (*File, error) {
	f := &File{Recorder: newRecorder(m, o), path: path}
	most := f.limit
	f.limit = math.MaxInt64                                        // the description fits first, and is measured then
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // the file itself is private
		return nil, fmt.Errorf("create the directory of the recording: %w", err)
	}
	out, err := f.exchangeFile()
	if err != nil {
		return nil, fmt.Errorf("create the recording: %w", err)
	}
	f.out, f.next = out, f.exchangeFile
	f.begin(ctx, false)
	if f.size > most/4 {
		_ = f.Close()
		_ = os.Remove(path)
		return nil, fmt.Errorf("the description of the machine has %d bytes, more than a quarter of the limit of %d bytes, so there is little room for calls; raise the limit", f.size, most)
	}
	f.limit = most / 2 // for each of two files
	return f, nil
}

// exchangeFile renames the current file and creates another. If the file cannot be renamed, because a
// program reads it, it is emptied.
func (f *File) exchangeFile() (io.Writer, error) {
	if f.file != nil {
		_ = f.file.Close() // every line has been written
		f.file = nil
	}
	if info, err := os.Lstat(f.path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", f.path)
	}
	_ = os.Rename(f.path, f.path+".1") // there may be none
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	f.file = file
	return file, nil
}

// Close ends the recording and closes the file.
func (f *File) Close() error {
	f.Recorder.Close()
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
