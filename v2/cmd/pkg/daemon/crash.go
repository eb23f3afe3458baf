package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/logfile"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/protected"
)

// catchCrash makes Go's runtime write into a file why it ends the process, if the process is a service or has a log
// file: a service has no other place. It warns of the trace that an earlier run has left, and of a failure; the
// program goes on.
func (e *execution) catchCrash(ctx context.Context, warn func(string)) (stop func()) {
	beside := e.logs.value("log_file")
	if e.service && beside == "" {
		beside, _ = os.Executable()
	}
	if e.logs.file == nil && !e.service || beside == "" || strings.EqualFold(beside, os.DevNull) {
		return func() {}
	}
	file, earlier, err := openCrashFile(logfile.CrashFiles(beside))
	if err == nil {
		stop, err = e.writeCrash(file)
	}
	if err != nil {
		if stop != nil {
			stop()
		}
		warn("A crash would leave no trace: " + err.Error())
		return func() {}
	}
	if earlier != "" {
		klog.FromContext(ctx).Info("An earlier run crashed", "trace", earlier)
		warn("An earlier run crashed. Its trace is in " + earlier + ".")
	}
	return stop
}

// writeCrash lets the runtime write to a file. That of a service is its standard error, where the runtime also writes
// exceptions of other code than Go's, which debug.SetCrashOutput does not.
// stop removes the file if nothing was written.
func (e *execution) writeCrash(file *os.File) (stop func(), err error) {
	undo := func() { _ = debug.SetCrashOutput(nil, debug.CrashOptions{}) }
	if e.service {
		undo, err = setStandardError(file)
	} else {
		err = debug.SetCrashOutput(file, debug.CrashOptions{})
	}
	return func() {
		undo()
		info, err := file.Stat()
		_ = file.Close()
		if err == nil && info.Size() == 0 {
			_ = os.Remove(file.Name())
		}
	}, err
}

// maxTraces is how large the traces of runs may become in a file that cannot be renamed.
const maxTraces = 1 << 20

// openCrashFile opens the first of two files. If an earlier run has left its trace there, that becomes the second, and
// is returned. So there are never more than two traces, unless the first cannot be renamed and gets the next one too.
func openCrashFile(files [2]string) (file *os.File, earlier string, err error) {
	if err := protected.MkdirAll(filepath.Dir(files[0])); err != nil {
		return nil, "", fmt.Errorf("create the directory of the crash file: %w", err)
	}
	mode := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	info, err := os.Lstat(files[0])
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, "", err
	case info.Size() > 0 && info.Mode().IsRegular():
		if earlier = files[1]; os.Rename(files[0], files[1]) != nil { // perhaps another program reads it
			if earlier = files[0]; info.Size() > maxTraces {
				mode |= os.O_TRUNC
			}
		}
	}
	file, err = protected.OpenFile(files[0], mode, 0o600)
	return file, earlier, err
}
