package record

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// maxOld is the highest number of an old file.
const maxOld = 99

// File is a Recorder that writes a file. A full file gets the suffix .1, and another one begins with a header and
// a description of its own. Older ones have higher numbers. The current file has at most half of MaxBytes, and
// the old ones together have the rest: the oldest are removed.
//
// Each run has a file of its own, because it has its own numbers, start and key of the hashes.
type File struct {
	*Recorder

	path string
	file *os.File
	room int64 // for old files
}

// Open begins a recording in a file, after it has given numbers to the files of earlier ones. It refuses a limit
// that the description nearly reaches: each file would fill up at once. And it refuses to replace a file that is no
// recording. Then all files stay as they are.
func Open(ctx context.Context, m win.Machine, path string, o Options) (*File, error) {
	f := &File{Recorder: newRecorder(m, o), path: path}
	most := f.limit
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // the file itself is private
		return nil, fmt.Errorf("create the directory of the recording: %w", err)
	}
	if _, err := f.sizes(); err != nil { // before the machine is asked, which takes longer
		return nil, fmt.Errorf("create the recording: %w", err)
	}
	var first bytes.Buffer
	f.out, f.limit = &first, math.MaxInt64
	f.begin(ctx, false)
	if f.size > most/4 {
		return nil, fmt.Errorf("the description of the machine has %d bytes, more than a quarter of the limit of %d bytes, so there is little room for calls; raise the limit", f.size, most)
	}
	f.limit = most / 2
	f.room = most - f.limit
	if err := f.start(first.Bytes()); err != nil {
		return nil, fmt.Errorf("create the recording: %w", err)
	}
	f.out, f.next = f.file, f.exchangeFile
	return f, nil
}

// start creates the first file of a recording.
func (f *File) start(text []byte) error {
	sizes, err := f.sizes()
	if err != nil {
		return err
	}
	if err := f.rotate(sizes); err != nil {
		return err
	}
	if err := f.create(); err != nil {
		return err
	}
	if _, err := f.file.Write(text); err != nil {
		_ = f.file.Close()
		_ = os.Remove(f.path)
		return err
	}
	return nil
}

// exchangeFile gives the current file a number and creates another. If that is not possible, because a program
// reads a file, the current one is emptied.
func (f *File) exchangeFile() (io.Writer, error) {
	sizes, err := f.sizes()
	if err != nil {
		return nil, err
	}
	if f.file != nil {
		_ = f.file.Close() // every line has been written
		f.file = nil
	}
	_ = f.rotate(sizes)
	if err := f.create(); err != nil {
		return nil, err
	}
	return f.file, nil
}

func (f *File) create() (err error) {
	f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	return err
}

// name is the name of an old file. The current file has number 0.
func (f *File) name(number int) string {
	if number == 0 {
		return f.path
	}
	return fmt.Sprintf("%s.%d", f.path, number)
}

// sizes returns the sizes of the files by number. It fails if one of them is no recording.
func (f *File) sizes() (map[int]int64, error) {
	sizes := map[int]int64{}
	for number := range maxOld + 1 {
		name := f.name(number)
		info, err := os.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s is not a file", name)
		}
		begun, err := hasHeader(name)
		if err != nil {
			return nil, err
		}
		if begun || number > 0 {
			sizes[number] = info.Size()
		}
	}
	return sizes, nil
}

// firstBytes begin every recording.
const firstBytes = `{"recording":{"format":"` + format + `",`

// hasHeader reports whether a file begins with a header, and fails if it has anything else in it. A part of a
// header, as a full disk leaves it, is nothing to keep.
func hasHeader(name string) (bool, error) {
	file, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	const most = 64 << 10 // of a header
	text, err := bufio.NewReader(io.LimitReader(file, most)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if !strings.HasPrefix(text, firstBytes) && !strings.HasPrefix(firstBytes, text) {
		return false, fmt.Errorf("%s has other content than recorded calls, and is not replaced; choose another file", name)
	}
	return err == nil, nil
}

// rotate gives the current file, if there is one, the number 1, and older ones the next number. First it removes
// the oldest, until there is room. No file replaces another.
func (f *File) rotate(sizes map[int]int64) error {
	room := f.room
	for number := range maxOld + 1 {
		size, found := sizes[number]
		if room -= size; found && (room < 0 || number == maxOld) {
			if err := os.Remove(f.name(number)); err != nil {
				return err
			}
			delete(sizes, number)
		}
	}
	if _, found := sizes[0]; !found {
		return nil
	}
	free := 1
	for _, taken := sizes[free]; taken; _, taken = sizes[free] {
		free++
	}
	for ; free > 0; free-- {
		if err := os.Rename(f.name(free-1), f.name(free)); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the recording and closes the file.
func (f *File) Close() error {
	f.Recorder.Close()
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
