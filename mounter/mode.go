package mounter

import (
	"context"
	"fmt"
	"net"
	"os"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter/remote"
)

// Mode is how a Mounter reaches the node.
type Mode int

// The modes.
const (
	// Detect chooses Library in a HostProcess container, and otherwise Daemon.
	Detect Mode = iota
	// Library does the work in this process. The process must run in a HostProcess container, or on
	// the node itself as an administrator.
	Library
	// Daemon asks CSI Proxy, over its pipes.
	Daemon
)

func (m Mode) String() string {
	switch m {
	case Detect:
		return "detect"
	case Library:
		return "library"
	case Daemon:
		return "daemon"
	default:
		return fmt.Sprintf("mode %d", int(m))
	}
}

// hostProcessEnv is set in HostProcess containers only.
// https://kubernetes.io/docs/tasks/configure-pod-container/create-hostprocess-pod/#volume-mounts
const hostProcessEnv = "CONTAINER_SANDBOX_MOUNT_POINT"

const defaultWorkingDir = `C:\var\lib\kubelet`

// Option changes what New returns. New fails if options contradict each other.
type Option func(*settings)

type settings struct {
	hosts       *Hosts
	workingDirs []string
	remote      []remote.Option
	given       []given
	err         error // of the first option that is wrong
}

type given struct {
	name    string
	mode    Mode // in which it has a meaning
	chooses bool // the mode
}

func (s *settings) give(name string, mode Mode, chooses bool) {
	s.given = append(s.given, given{name, mode, chooses})
}

func (s *settings) refuse(format string, args ...any) {
	if s.err == nil {
		s.err = newError(failure.Invalid, "check options", "", format, args...)
	}
}

// WithMode chooses the mode.
func WithMode(mode Mode) Option {
	return func(s *settings) {
		if mode < Detect || mode > Daemon {
			s.refuse("%s is not a mode; use Detect, Library or Daemon", mode)
		}
		s.give("WithMode", mode, mode != Detect)
	}
}

// WithHosts makes a Mounter in the mode Library work on the given hosts instead of this machine, and
// chooses that mode. Package mountertest has those of an emulated node. All hosts are required.
func WithHosts(hosts Hosts) Option {
	return func(s *settings) {
		if missing := hosts.missing(); missing != "" {
			s.refuse("Hosts.%s of WithHosts is nil", missing)
		}
		s.give("WithHosts", Library, true)
		s.hosts = &hosts
	}
}

// WithPipePaths makes a Mounter in the mode Daemon use other endpoints than those of client.PipePath, and
// chooses that mode. Path returns the pipe, or the Unix socket, of an API group in a version, such
// as "disk" and "v1".
func WithPipePaths(path func(group, version string) string) Option {
	return func(s *settings) {
		if path == nil {
			s.refuse("the function of WithPipePaths is nil")
		}
		s.give("WithPipePaths", Daemon, true)
		s.remote = append(s.remote, remote.WithPipePaths(path))
	}
}

// WithDialer makes a Mounter in the mode Daemon connect with f, to a daemon in the same process, and chooses that mode. It
// is for tests.
func WithDialer(f func(ctx context.Context, group, version string) (net.Conn, error)) Option {
	return func(s *settings) {
		if f == nil {
			s.refuse("the function of WithDialer is nil")
		}
		s.give("WithDialer", Daemon, true)
		s.remote = append(s.remote, remote.WithDialer(f))
	}
}

// WithWorkingDirs are the directories that a Mounter in the mode Library may change; the default is
// C:\var\lib\kubelet. They can have any spelling that Path takes. The daemon has a flag for its own: if
// another option chooses the mode Daemon, New fails. If New detects it, this option has no effect.
func WithWorkingDirs(dirs ...string) Option {
	return func(s *settings) {
		s.give("WithWorkingDirs", Library, false)
		s.workingDirs = nil
		for _, dir := range dirs {
			clean, err := Path(dir)
			if err != nil {
				s.refuse("WithWorkingDirs: %v", err)
			}
			s.workingDirs = append(s.workingDirs, clean)
		}
		if len(dirs) == 0 {
			s.refuse("WithWorkingDirs has no directory")
		}
	}
}

// WithWait makes New wait for the daemon until its context ends. If another option chooses the mode
// Library, New fails. If New detects it, this option has no effect.
func WithWait() Option {
	return func(s *settings) {
		s.give("WithWait", Daemon, false)
		s.remote = append(s.remote, remote.WithWait())
	}
}

// apply returns the mode that the options choose, or Detect.
func (s *settings) apply(options []Option) (Mode, error) {
	for i, option := range options {
		if option == nil {
			s.refuse("option %d is nil", i+1)
			continue
		}
		option(s)
	}
	var by given // what chose the mode
	names := map[string]int{}
	for _, g := range s.given {
		if names[g.name]++; names[g.name] > 1 && g.name != "WithMode" && g.name != "WithWait" {
			s.refuse("%s is given twice", g.name)
		}
		switch {
		case !g.chooses:
		case by.mode != Detect && by.mode != g.mode:
			s.refuse("%s chooses the mode %s, and %s the mode %s", by.name, by.mode, g.name, g.mode)
		default:
			by = g
		}
	}
	for _, g := range s.given {
		if by.mode != Detect && g.mode != Detect && g.mode != by.mode {
			s.refuse("%s has a meaning only in the mode %s, but %s chooses %s", g.name, g.mode, by.name, by.mode)
		}
	}
	return by.mode, s.err
}

// connect returns the node in the mode that was chosen, or is detected.
func (s *settings) connect(ctx context.Context, mode Mode) (*node, Mode, error) {
	tried := ""
	if mode == Detect {
		mode = Daemon
		tried = fmt.Sprintf("; library mode was not chosen, because %s is not set, as it is in a HostProcess container", hostProcessEnv)
		if os.Getenv(hostProcessEnv) != "" {
			mode = Library
		}
	}
	if mode == Library {
		n, err := newLibrary(s)
		if err != nil {
			return nil, mode, fmt.Errorf("open mounter in library mode: %w", err)
		}
		if s.hosts == nil {
			warnOfDaemon(ctx)
		}
		return n, mode, nil
	}
	n, err := newDaemon(ctx, s)
	if err != nil {
		return nil, mode, fmt.Errorf("open mounter in daemon mode: %w%s", err, tried)
	}
	return n, mode, nil
}

// warnOfDaemon logs that a daemon answers on this node, with which the library shares no queues: both could change a disk or
// share at once.
func warnOfDaemon(ctx context.Context) {
	if d, err := remote.New(ctx); err == nil {
		_ = d.Close()
		klog.FromContext(ctx).Info("CSI Proxy runs on this node, too: drivers of one disk or share must all use it, or none; WithMode(Daemon) uses it")
	}
}
