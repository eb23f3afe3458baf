package mounter

import (
	"context"
	"io"
	"slices"
	"strconv"

	"k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// SafeFormatAndMount is for drivers that call FormatAndMount of mount-utils' SafeFormatAndMount. That one runs
// PowerShell, which initializes and formats the disk, and mounts the first of its volumes. This one calls Stage.
//
// Do not make a mount.SafeFormatAndMount of a Mounter yourself: without an Exec its FormatAndMount panics, and with one
// it runs PowerShell. For functions that take a *mount.SafeFormatAndMount there is the embedded one. It has an Exec that
// runs nothing, so its own FormatAndMount fails and changes nothing.
type SafeFormatAndMount struct {
	*mount.SafeFormatAndMount
	mounter *Mounter
}

// NewSafeFormatAndMount returns a SafeFormatAndMount that works with m.
func NewSafeFormatAndMount(m *Mounter) *SafeFormatAndMount {
	return &SafeFormatAndMount{SafeFormatAndMount: &mount.SafeFormatAndMount{Interface: m, Exec: noPrograms{}}, mounter: m}
}

// FormatAndMount stages the disk whose number is the source, with the options as MountFlags. A file system of Linux means the
// node's default.
func (s *SafeFormatAndMount) FormatAndMount(source, target, fstype string, options []string) error {
	return s.FormatAndMountSensitive(source, target, fstype, options, nil)
}

// FormatAndMountSensitive is FormatAndMount; of the sensitive options, too, only ro has a meaning.
func (s *SafeFormatAndMount) FormatAndMountSensitive(source, target, fstype string, options, sensitiveOptions []string) error {
	return s.FormatAndMountSensitiveWithFormatOptions(source, target, fstype, options, sensitiveOptions, nil)
}

// FormatAndMountSensitiveWithFormatOptions is FormatAndMountSensitive. As that of mount-utils it refuses format options:
// Stage has some.
func (s *SafeFormatAndMount) FormatAndMountSensitiveWithFormatOptions(source, target, fstype string, options, sensitiveOptions, formatOptions []string) error {
	number, err := strconv.ParseUint(source, 10, 32)
	switch {
	case err != nil:
		return during(opStage, target, newError(failure.Invalid, opCheck, "", "the source %.100q is not the number of a disk", source))
	case len(formatOptions) > 0:
		return during(opStage, target, newError(failure.Invalid, opCheck, "", "options of a formatting program have no meaning on Windows; use Stage with FormatOptions"))
	}
	_, err = s.mounter.Stage(s.mounter.ctx, StageRequest{
		Path: target, Source: DiskNumber(uint32(number)), FSType: fstype, MountFlags: options, ReadOnly: slices.Contains(sensitiveOptions, "ro"),
	})
	return err
}

// noPrograms is an exec.Interface, and its commands, that run nothing.
type noPrograms struct{}

var errRefused = newError(failure.Unsupported, "run a program", "", "on Windows nodes nothing is formatted by programs; call FormatAndMount of mounter.SafeFormatAndMount, or Stage")

func (noPrograms) Command(string, ...string) exec.Cmd { return noPrograms{} }

func (noPrograms) CommandContext(context.Context, string, ...string) exec.Cmd { return noPrograms{} }

func (noPrograms) LookPath(string) (string, error) { return "", errRefused }

func (noPrograms) Run() error                         { return errRefused }
func (noPrograms) CombinedOutput() ([]byte, error)    { return nil, errRefused }
func (noPrograms) Output() ([]byte, error)            { return nil, errRefused }
func (noPrograms) StdoutPipe() (io.ReadCloser, error) { return nil, errRefused }
func (noPrograms) StderrPipe() (io.ReadCloser, error) { return nil, errRefused }
func (noPrograms) Start() error                       { return errRefused }
func (noPrograms) Wait() error                        { return errRefused }
func (noPrograms) Stop()                              {}
func (noPrograms) SetDir(string)                      {}
func (noPrograms) SetStdin(io.Reader)                 {}
func (noPrograms) SetStdout(io.Writer)                {}
func (noPrograms) SetStderr(io.Writer)                {}
func (noPrograms) SetEnv([]string)                    {}
