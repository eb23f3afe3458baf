package daemon

import (
	"flag"
	"fmt"
	"io"
	"strconv"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/logfile"
)

const (
	// maxLogSize is the default of -log_file_max_size, in MiB, and maxLogBackups that of
	// -log_file_max_backups. All files together are as large as klog's one file can get, by
	// its default of 1800 MiB: nodes have the room, and it is not emptied at the limit.
	maxLogSize    = 300
	maxLogBackups = 5

	// The most of both that anybody can mean. More is a slip of the hand, or would overflow.
	mostLogSize    = 1 << 20 // a TiB
	mostLogBackups = 1000
)

// logs is where the log goes: klog with its published flags, but for the file.
type logs struct {
	set     *flag.FlagSet
	backups uint
	file    *logfile.File // nil as long as klog writes to standard error, or to its own files
}

// register adds klog's flags under their published names, and ours.
func (l *logs) register(set *flag.FlagSet) {
	l.set = set
	klogFlags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(klogFlags)
	klogFlags.VisitAll(func(f *flag.Flag) {
		if f.Name == "log_file_max_size" {
			_ = f.Value.Set(strconv.Itoa(maxLogSize)) // a number, which it takes
			f.Usage = "size in `MiB` at which the log file is renamed and a new one begun; 0 means never (no effect when -logtostderr=true)"
		}
		set.Var(f.Value, f.Name, f.Usage)
	})
	set.UintVar(&l.backups, "log_file_max_backups", maxLogBackups,
		"`number` of renamed log files to keep; the oldest are removed (no effect when -logtostderr=true)")
}

// check finds what no log file can be.
func (l *logs) check() error {
	if l.backups > mostLogBackups {
		return fmt.Errorf("-log_file_max_backups=%d: at most %d", l.backups, mostLogBackups)
	}
	if size := l.maxSize(); size > mostLogSize {
		return fmt.Errorf("-log_file_max_size=%d: at most %d MiB", size, mostLogSize)
	}
	return nil
}

func (l *logs) maxSize() uint64 {
	size, _ := strconv.ParseUint(l.value("log_file_max_size"), 10, 64) // klog has parsed it
	return size
}

// salvage takes the flags that say where the log is from a command line that is wrong, so
// that the log can tell.
func (l *logs) salvage(args []string) {
	for i, arg := range args {
		name, value, hasValue := cutFlag(arg)
		switch {
		case name != "log_file" && name != "logtostderr":
			continue
		case !hasValue && name == "logtostderr":
			value = "true"
		case !hasValue && i+1 < len(args):
			value = args[i+1]
		}
		_ = l.set.Set(name, value) // if it is wrong, too, there is no log
	}
}

func (l *logs) value(name string) string { return l.set.Lookup(name).Value.String() }

// toStderr reports whether there is no log but on standard error.
func (l *logs) toStderr() bool { return l.value("logtostderr") == "true" }

// open opens the file that the flags name, if they name one. A file that does not work is a
// warning: what it does not take goes to stderr.
func (l *logs) open(stderr io.Writer, warn func(string)) {
	path := l.value("log_file")
	if path == "" || l.toStderr() {
		return
	}
	l.file = logfile.Open(logfile.Config{
		Path:     path,
		MaxBytes: min(l.maxSize(), mostLogSize) << 20,
		Backups:  int(min(l.backups, mostLogBackups)),
		Fallback: stderr,
		Failed:   func(err error) { warn("The log file cannot be written, and is tried again: " + err.Error()) },
	})
	klog.SetOutput(l.file)
}

func (l *logs) close() {
	klog.Flush()
	if l.file != nil {
		_ = l.file.Close() // it has been written
	}
}
