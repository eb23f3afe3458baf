// Package verify asks a machine the questions of package question, and runs the conformance suite
// on it. The machine is Windows, Wine or an emulated node: a Site.
package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// DiskSize is the size of new disks.
const DiskSize = 1 << 30

// Site is a machine with what is needed to ask it. Its functions do not go through what is tested.
type Site struct {
	About   answer.Machine
	Machine win.Machine
	// Root is an existing directory on NTFS for files and mounted folders.
	Root string
	// TempDir is an existing directory of this computer for tests of the leaves.
	TempDir string

	// NewDisk attaches an empty disk of at least DiskSize bytes that is the caller's alone. It returns a
	// *CannotError if the machine has no more of them.
	NewDisk func(ctx context.Context, sectorSize uint32) (Disk, error)

	WriteFile func(path, content string) error
	ReadFile  func(path string) (string, error)
	// Junction makes a junction, which needs no privilege.
	Junction func(path, target string) error
	// Swap renames a directory and makes a junction to target in its place.
	Swap func(path, target string) error
	// TurnIntoJunction makes an empty directory a junction in place, while it may be open.
	TurnIntoJunction func(path, target string) error
	// MountFolder is SetVolumeMountPointW on an empty directory. It is nil if the machine has no such function.
	MountFolder func(path string, id win.VolumeID) error
	// Hold keeps a file open so that it cannot be removed.
	Hold func(path string) (release func(), err error)

	// Raw returns the bytes that drivers answer for a disk, by the names of control codes. It is nil if
	// the answers are not those of drivers.
	Raw func(ctx context.Context, d win.Device) ([]answer.Fact, error)

	// Content is a fingerprint of where a disk has its partition table and the first volume.
	Content func(number uint32) (string, error)

	// Unrecorded is Machine without the recorder, and Services makes services on it. They come and go, which a
	// replay could not know. Services is nil if the machine has no service manager.
	Unrecorded win.Machine
	Services   Services

	// Probes answer questions about the process and the system, by their ID. Questions of that kind
	// without a probe are not asked.
	Probes map[string]func(*Ask)
	// Leaves are tests of the code that calls Windows, by the names of their suites.
	Leaves []Suite

	// Share is a share to map, and Portal an iSCSI portal; both are optional.
	Share  *Share
	Portal *win.TargetPortal

	// FileBacked says that disks are files: they have no location, and can be detached, grown and copied.
	FileBacked bool
	// NoLinks is why the file system of Root stores no links; it is empty if it does.
	NoLinks string
	// Cannot is why cases cannot run here, by their names.
	Cannot map[string]string
	// LongestPath is set if paths are limited to less than 32,000 characters.
	LongestPath int
}

// Share is a share \\server\share with credentials.
type Share struct {
	Remote, User string
	Password     win.Secret
}

// Suite is a number of cases that need nothing but a T.
type Suite struct {
	Name  string
	Cases []SuiteCase
}

// SuiteCase is one of them.
type SuiteCase struct {
	Name string
	Run  func(trial.T)
}

// Disk is a disk that was made for a question. What a disk cannot do, it answers with a *CannotError.
type Disk interface {
	Number() uint32
	Size() int64
	Attached() bool
	// Attach attaches the detached disk again, maybe under another number.
	Attach(ctx context.Context, readOnly bool) error
	// Detach detaches the disk and waits until it is gone.
	Detach(ctx context.Context) error
	// Grow enlarges the disk, if possible while it is attached. how says whether it was.
	Grow(ctx context.Context, size int64) (how string, err error)
	// Clone attaches a copy of the disk, which is detached meanwhile.
	Clone(ctx context.Context) (Disk, error)
	// Write writes to the disk past everything, in whole sectors.
	Write(ctx context.Context, offset int64, data []byte) error
	// Remove detaches the disk and deletes it.
	Remove(ctx context.Context) error
}

// Services makes services for questions.
type Services interface {
	// Install installs a service under a new name. It returns a *CannotError if it may not.
	Install(ctx context.Context, model ServiceModel) (name string, err error)
	Pause(name string) error
	// Proceed tells a service that starts when told.
	Proceed(name string) error
	// Remove stops a service and deletes it.
	Remove(ctx context.Context, name string) error
}

// ServiceModel says what a service is like.
type ServiceModel struct {
	Program   Program
	DependsOn []string
}

// Program is what a service runs. By default it starts at once, can pause, and does nothing.
type Program int

// The other programs.
const (
	StartsWhenTold Program = iota + 1
	ProgramMissing
	FolderMissing // that of the program
)

// CannotError is why a machine cannot be asked something. It is not a failure.
type CannotError struct{ Reason string }

func (c *CannotError) Error() string { return c.Reason }

// Cannotf makes a *CannotError.
func Cannotf(format string, args ...any) error { return &CannotError{fmt.Sprintf(format, args...)} }

// cannot returns the reason if err is a *CannotError.
func cannot(err error) (reason string, ok bool) {
	if c, ok := errors.AsType[*CannotError](err); ok {
		return c.Reason, true
	}
	return "", false
}
