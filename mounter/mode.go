package mounter

import (
	"context"
	"fmt"
	"os"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
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

// defaultWorkingDir is that of the daemon.
const defaultWorkingDir = `C:\var\lib\kubelet`

// Option changes what New returns.
type Option func(*settings)

type settings struct {
	mode        Mode
	hosts       *Hosts
	workingDirs []string
	pipePath    func(group, version string) string
	wait        bool
}

func newSettings() settings {
	return settings{workingDirs: []string{defaultWorkingDir}}
}

// In chooses the mode.
func In(mode Mode) Option { return func(s *settings) { s.mode = mode } }

// On makes a Mounter in the mode Library work on the given hosts instead of this machine, and
// chooses that mode. Package mountertest has those of an emulated node.
func On(hosts Hosts) Option {
	return func(s *settings) { s.mode, s.hosts = Library, &hosts }
}

// Pipes makes a Mounter in the mode Daemon use other endpoints than those of client.PipePath, and
// chooses that mode. Path returns the pipe, or the Unix socket, of an API group in a version, such
// as "disk" and "v1".
func Pipes(path func(group, version string) string) Option {
	return func(s *settings) { s.mode, s.pipePath = Daemon, path }
}

// WorkingDirs are the directories that a Mounter in the mode Library may change; the default is
// C:\var\lib\kubelet. The daemon has a flag for its own.
func WorkingDirs(dirs ...string) Option {
	return func(s *settings) { s.workingDirs = dirs }
}

// Wait makes New wait for the daemon until its context ends.
func Wait() Option { return func(s *settings) { s.wait = true } }

// connect returns the node in the mode that was chosen or detected.
func (s *settings) connect(ctx context.Context) (node, Mode, error) {
	mode, tried := s.mode, ""
	if mode == Detect {
		mode = Daemon
		tried = fmt.Sprintf("; library mode was not chosen, because %s is not set, as it is in a HostProcess container", hostProcessEnv)
		if os.Getenv(hostProcessEnv) != "" {
			mode = Library
		}
	}
	switch mode {
	case Library:
		n, err := newLibrary(s)
		if err != nil {
			return nil, mode, fmt.Errorf("open mounter in library mode: %w", err)
		}
		return n, mode, nil
	case Daemon:
		n, err := newDaemon(ctx, s)
		if err != nil {
			return nil, mode, fmt.Errorf("open mounter in daemon mode: %w%s", err, tried)
		}
		return n, mode, nil
	default:
		return nil, mode, newError(failure.Invalid, "open mounter", "", "%s is not a mode; use Detect, Library or Daemon", mode)
	}
}
