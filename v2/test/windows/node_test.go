package windows_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// this is the machine that is asked.
var this *node

// diskSize is the size of new disks.
const diskSize = 1 << 30

// groupLimit ends the calls of a group of questions: a machine may hang.
const groupLimit = 10 * time.Minute

// node is a machine with what is needed to ask it. Its functions do not go through what is tested.
type node struct {
	about   string      // what it is, without names
	machine win.Machine // changes only disks that are ours
	root    string      // an existing directory on NTFS for files and mounted folders

	// newDisk attaches an empty disk of at least diskSize bytes that is the caller's alone. It returns a cannotError
	// if the machine has no more of them.
	newDisk func(ctx context.Context, sectorSize uint32) (scratchDisk, error)

	writeFile func(path, content string) error
	readFile  func(path string) (string, error)
	// junction makes a junction, which needs no privilege.
	junction func(path, target string) error
	// swap renames a directory and makes a junction to target in its place.
	swap func(path, target string) error
	// turnIntoJunction makes an empty directory a junction in place, while it may be open.
	turnIntoJunction func(path, target string) error
	// mountFolder is SetVolumeMountPointW on an empty directory; nil without it.
	mountFolder func(path string, id win.VolumeID) error
	// hold keeps a file open so that it cannot be removed.
	hold func(path string) (release func(), err error)
	// raw returns the bytes that drivers answer for a disk; nil if the answers are not those of drivers.
	raw func(d win.Device) ([]fact, error)
	// controlDevice sends control codes without data, on one handle. formatUnforced is MSFT_Volume.Format without Force.
	controlDevice  func(d win.Device, codes ...uint32) []error
	formatUnforced func(ctx context.Context, id win.VolumeID) error
	// content is a fingerprint of where a disk has its partition table and the first volume.
	content func(number uint32) (string, error)

	services serviceMaker
	share    *share // to map; nil without one
	mappings int    // also of share1, share2, ...
	portal   *win.TargetPortal

	fileBacked  bool              // disks are files: they have no location, and can be detached, grown and copied
	noLinks     string            // why the file system of root stores no links
	cannot      map[string]string // why cases of the conformance suite cannot run here, by their names
	longestPath int               // set if paths are limited to less than 32,000 characters

	named  []uint32        // disks that the operator has named, and no question has
	own    []scratchDisk   // disks that may be written
	mapped map[string]bool // mappings that may be removed: this run has made them
	names  int

	disks   disk.Interface
	volumes volume.Interface
	files   filesystem.Interface
}

// fact is a name and a value.
type fact struct{ name, value string }

// open makes the library work on the machine, which changes only disks that are ours from now on.
func (n *node) open(m win.Machine) (err error) {
	n.machine = n.guard(m)
	if n.disks, err = disk.New(diskapi.NewOn(n.machine)); err != nil {
		return err
	}
	if n.volumes, err = volume.New(volumeapi.NewOn(n.machine)); err != nil {
		return err
	}
	n.files, err = filesystem.New(fsapi.NewOn(n.machine))
	return err
}

// scratchDisk is a disk that was made for a question. What a disk cannot do, it answers with a cannotError.
type scratchDisk interface {
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
	Clone(ctx context.Context) (scratchDisk, error)
	// Write writes to the disk past everything, in whole sectors.
	Write(ctx context.Context, offset int64, data []byte) error
	// Remove detaches the disk and deletes it.
	Remove(ctx context.Context) error
}

// serviceMaker makes services for questions.
type serviceMaker interface {
	// install installs a service under a new name, until the end of the test. It returns a cannotError if it may not.
	install(t *testing.T, model serviceModel) (name string, err error)
	pause(name string) error
	// proceed signals a service that starts on command.
	proceed(name string) error
}

// serviceModel says what a service is like.
type serviceModel struct {
	program   program
	dependsOn []string
}

// program is what a service runs. By default it starts at once, can pause, and does nothing.
type program int

const (
	startsOnRequest program = iota + 1
	programMissing
	folderMissing // that of the program
)

// group is a test whose questions share what they need, such as a disk.
type group struct {
	*testing.T
	*node

	dir string // a new directory
	ctx context.Context
}

func newGroup(t *testing.T) *group {
	t.Helper()
	ctx := limited(t, groupLimit)
	g := &group{T: t, node: this, ctx: ctx}
	g.dir = g.newDir(t)
	return g
}

// Context ends when the test does, or hangs.
func (g *group) Context() context.Context { return g.ctx }

func (g *group) must(err error) {
	g.Helper()
	must(g.T, err)
}

// limited returns a context for the calls of a test, unless the run was interrupted.
func limited(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	skipIfInterrupted(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	stop := context.AfterFunc(interrupted, cancel)
	t.Cleanup(func() { stop(); cancel() })
	return ctx
}

func skipIfInterrupted(t *testing.T) {
	t.Helper()
	if interrupted.Err() != nil {
		t.Skip("the run was interrupted")
	}
}

// needVirtual skips the group if disks cannot be detached, grown and copied.
func (g *group) needVirtual() {
	g.Helper()
	if !g.fileBacked {
		g.Skip("only virtual disks can be detached, grown and copied")
	}
}

// newDir makes a directory that is removed after the test, with what is in it.
func (n *node) newDir(t *testing.T) string {
	t.Helper()
	n.names++
	name := fmt.Sprintf("test-%d", n.names)
	ctx := t.Context()
	root, err := n.machine.OpenDirectory(ctx, win.Following(n.root))
	must(t, err)
	defer root.Close()
	must(t, root.CreateDirectory(ctx, name))
	path := n.root + `\` + name
	t.Cleanup(func() {
		if _, err := n.files.Rmdir(context.WithoutCancel(ctx), &filesystem.RmdirRequest{Path: path, Force: true}); err != nil {
			t.Errorf("a directory is left behind: %v", err)
		}
	})
	return path
}

// scratch attaches an empty disk that is removed after the test.
func (n *node) scratch(t *testing.T, sectorSize uint32) scratchDisk {
	t.Helper()
	d, err := n.newDisk(t.Context(), sectorSize)
	must(t, err)
	n.keepDisk(t, d)
	return d
}

// keepDisk makes a disk one of ours, until it is removed after the test.
func (n *node) keepDisk(t *testing.T, d scratchDisk) {
	t.Helper()
	n.own = append(n.own, d)
	t.Cleanup(func() {
		if err := d.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("a disk is left behind: %v", err)
		}
		n.own = slices.DeleteFunc(n.own, func(other scratchDisk) bool { return other == d })
	})
}

// disk returns a disk of ours by its number.
func (n *node) disk(number uint32) (scratchDisk, error) {
	for _, d := range n.own {
		if d.Attached() && d.Number() == number {
			return d, nil
		}
	}
	return nil, fmt.Errorf("disk %d is not one that this run may change: %w", number, winerr.AccessDenied)
}

// missingDisk and missingVolume are what no machine has.
const (
	missingDisk   = 4_000_000
	missingVolume = `\\?\Volume{00000000-0000-4000-8000-000000000001}\`
)
