package daemon

import (
	"flag"
	"fmt"
	"io"
	"strconv"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/logfile"
)

const (
	// maxLogSize is the default of -log_file_max_size, in MiB, and maxLogBackups the default of
	// -log_file_max_backups. Together the files are as large as klog's single file gets by
	// default, 1800 MiB.
	maxLogSize    = 300
	maxLogBackups = 5

	// The upper limits of both. A larger value is a typing error, or would overflow.
	mostLogSize    = 1 << 20 // a TiB
	mostLogBackups = 1000
)

// logs says where the log goes. It has klog's published flags, but writes the file itself.
type logs struct {
	set     *flag.FlagSet
	backups uint
	file    *logfile.File // nil while klog writes to standard error or to its own files
}

// register adds klog's flags under their published names, and ours.
func (l *logs) register(set *flag.FlagSet) {
	l.set = set
	klogFlags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(klogFlags)
	klogFlags.VisitAll(func(f *flag.Flag) {
		if f.Name == "log_file_max_size" {
			_ = f.Value.Set(strconv.Itoa(maxLogSize)) // a valid number
			f.Usage = "size in `MiB` at which the log file is renamed and a new one started; 0 means never (no effect when -logtostderr=true)"
		}
		set.Var(f.Value, f.Name, f.Usage)
	})
	set.UintVar(&l.backups, "log_file_max_backups", maxLogBackups,
		"`number` of renamed log files to keep; the oldest are removed (no effect when -logtostderr=true)")
}

// check refuses values that are too large.
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

// salvage reads the flags of the log file from a wrong command line, so that the error reaches the
// log.
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
		_ = l.set.Set(name, value) // if it is wrong too, there is no log
	}
}

func (l *logs) value(name string) string { return l.set.Lookup(name).Value.String() }

// toStderr reports whether the log goes to standard error only.
func (l *logs) toStderr() bool { return l.value("logtostderr") == "true" }

// open opens the log file, if the flags name one. If the file fails, open warns, and the messages
// go to stderr.
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
		Failed:   func(err error) { warn("Cannot write the log file, will retry: " + err.Error()) },
	})
	klog.SetOutput(l.file)
}

func (l *logs) close() {
	klog.Flush()
	if l.file != nil {
		_ = l.file.Close() // everything is written
	}
}
