//go:build vhdx && windows

// Package vhdx runs the conformance suite of pkg/hosttest against the Windows machine it
// is started on, with disks that are files. As an administrator:
//
//	go test -v -tags=vhdx -timeout=60m ./test/vhdx "-vhdx-dir=C:\vhdx-scratch"
//
// It attaches dynamic VHDX files of 1 GiB without drive letters, lets the library
// partition, format, mount, grow and lose them, and detaches and deletes them. It changes
// no other disk: what it does to disks it does only to those that it has attached itself
// and found to be files, new, empty and of the expected size. They go away with the
// process, even if that is killed; then only files and folders are left in the directory.
//
// Build tag and flag are both needed, so that no disk is attached by accident: without
// the tag there is nothing to test here, and without the flag the tests fail.
package vhdx

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

var directoryFlag = flag.String("vhdx-dir", "", "existing or new `directory` on NTFS for virtual disks and mounted folders; needed, since the tests attach disks to this machine")

// What no machine has.
const (
	missingDisk   = 4_000_000
	missingVolume = `\\?\Volume{00000000-0000-4000-8000-000000000001}\`
)

// requireConsent ends a test on a machine whose owner has not asked for it, or that
// cannot run it.
func requireConsent(t *testing.T) {
	t.Helper()
	if *directoryFlag == "" {
		t.Fatal(`these tests attach virtual disks to this machine; to allow that, name a directory for them: -vhdx-dir=C:\vhdx-scratch`)
	}
	if err := filesystem.ValidatePathWindows(*directoryFlag); err != nil {
		t.Fatalf("-vhdx-dir: %v", err)
	}
	if err := findVirtdisk(); err != nil {
		t.Fatalf("this machine cannot attach virtual disks: %v", err)
	}
	if !windows.GetCurrentProcessToken().IsElevated() {
		t.Fatal("only administrators can attach virtual disks; start the tests from an elevated prompt")
	}
	// Administrators have it, but attaching takes it enabled.
	if err := winapi.ManageVolumePrivilege.Enable(); err != nil {
		t.Fatalf("SeManageVolumePrivilege: %v", err)
	}
	version := windows.RtlGetVersion()
	t.Logf("Windows %d.%d, build %d", version.MajorVersion, version.MinorVersion, version.BuildNumber)
}

// withSectors runs a test for each size of sectors that Windows supports.
func withSectors(t *testing.T, run func(t *testing.T, sectorSize uint32)) {
	t.Helper()
	for _, size := range []uint32{512, 4096} {
		t.Run(fmt.Sprintf("%d-byte sectors", size), func(t *testing.T) { run(t, size) })
	}
}

func TestConformance_Disk(t *testing.T) {
	requireConsent(t)
	withSectors(t, testDisk)
}

func testDisk(t *testing.T, sectorSize uint32) {
	t.Helper()
	hosttest.Disk(t, func(t *testing.T) hosttest.DiskNode {
		t.Helper()
		b := newBench(t, sectorSize)
		empty, other, used := b.newDisk(), b.newDisk(), b.newDisk()
		// What a disk of a Linux pod begins with, and Windows takes for nothing.
		sector := make([]byte, sectorSize)
		copy(sector, "XFSB")
		if err := used.write(t.Context(), 0, sector); err != nil {
			t.Fatal(err)
		}
		return hosttest.DiskNode{
			API:       b.disks,
			Empty:     empty.number,
			EmptySize: diskSize,
			Others:    []uint32{other.number},
			Suspect:   map[string]uint32{"XFS": used.number},
			Missing:   missingDisk,
			// No System: if the refusal failed, the machine would be lost.
			Content: func(number uint32) (string, error) {
				d, err := b.disk(number)
				if err != nil {
					return "", err
				}
				return d.content(t.Context())
			},
			Volumes: func(number uint32) ([]string, error) {
				ids, err := settledVolumesOn(t.Context(), number)
				var texts []string
				for _, id := range ids {
					texts = append(texts, string(id))
				}
				return texts, err
			},
			Grow:      b.grow,
			Unlocated: []uint32{empty.number, other.number},
		}
	})
}

func TestConformance_Volume(t *testing.T) {
	requireConsent(t)
	withSectors(t, testVolume)
}

func testVolume(t *testing.T, sectorSize uint32) {
	t.Helper()
	hosttest.Volume(t, func(t *testing.T) hosttest.VolumeNode {
		t.Helper()
		b := newBench(t, sectorSize)
		return hosttest.VolumeNode{
			API:         b.volumes,
			Disks:       b.disks,
			Root:        b.root,
			Empty:       [2]uint32{b.newDisk().number, b.newDisk().number},
			EmptySize:   diskSize,
			MissingDisk: missingDisk,
			Missing:     missingVolume,
			WriteFile:   writeFile,
			ReadFile:    readFile,
			Symlink:     b.symlink,
			Grow:        b.grow,
			Detach: func(number uint32) error {
				d, err := b.disk(number)
				if err != nil {
					return err
				}
				return d.detach(t.Context())
			},
			// No Content: NTFS writes to its volumes when it likes.
		}
	})
}

func TestConformance_Filesystem(t *testing.T) {
	requireConsent(t)
	hosttest.Filesystem(t, func(t *testing.T) hosttest.FilesystemNode {
		t.Helper()
		b := newBench(t, 512)
		var d *virtualDisk // most cases need none
		var id string
		return hosttest.FilesystemNode{
			API:       b.files,
			Root:      b.root,
			WriteFile: writeFile,
			ReadFile:  readFile,
			MountVolume: func(path string) error {
				if d == nil {
					d = b.newDisk()
					id = b.newVolume(d)
				}
				_, err := b.volumes.MountVolume(t.Context(), &volume.MountVolumeRequest{VolumeID: id, TargetPath: path})
				return err
			},
			LoseVolume: func() error { return d.detach(t.Context()) },
		}
	})
}

// bench is what one case has to work with.
type bench struct {
	t          *testing.T
	sectorSize uint32 // of its disks
	scratch    string // for the files of disks
	root       string // for the suite
	own        []*virtualDisk

	disks   disk.Interface
	volumes volume.Interface
	files   filesystem.Interface
}

func newBench(t *testing.T, sectorSize uint32) *bench {
	t.Helper()
	b := &bench{t: t, sectorSize: sectorSize, scratch: scratch(t, *directoryFlag)}
	b.root = filepath.Join(b.scratch, "root")
	if err := os.Mkdir(b.root, 0o700); err != nil {
		t.Fatal(err)
	}
	location, err := machine.Location(t.Context(), win.Following(b.root))
	if err != nil {
		t.Fatal(err)
	}
	id, _ := win.VolumeOf(location)
	if info, err := machine.FileSystem(t.Context(), id); err != nil || info.Name != "NTFS" {
		t.Fatalf("-vhdx-dir=%s is on a volume with %s, %v; mounted folders need NTFS", *directoryFlag, info.Name, err)
	}
	disks, err := disk.New(diskapi.New())
	if err != nil {
		t.Fatal(err)
	}
	b.disks = guard{disks, b}
	if b.volumes, err = volume.New(volumeapi.New()); err != nil {
		t.Fatal(err)
	}
	if b.files, err = filesystem.New(fsapi.New()); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) newDisk() *virtualDisk {
	b.t.Helper()
	d := newVirtualDisk(b.t, b.scratch, b.sectorSize)
	b.own = append(b.own, d)
	return d
}

// disk finds a disk of ours by its number.
func (b *bench) disk(number uint32) (*virtualDisk, error) {
	for _, d := range b.own {
		if d.attached() && d.number == number {
			return d, nil
		}
	}
	return nil, fmt.Errorf("disk %d is not one of the virtual disks of this test: %w", number, fs.ErrPermission)
}

func (b *bench) grow(number uint32, size int64) error {
	d, err := b.disk(number)
	if err != nil {
		return err
	}
	return d.grow(b.t.Context(), b.t, size)
}

// newVolume makes a formatted volume of an empty disk and returns its id.
func (b *bench) newVolume(d *virtualDisk) string {
	b.t.Helper()
	ctx := b.t.Context()
	if _, err := b.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: d.number}); err != nil {
		b.t.Fatal(err)
	}
	ids, err := volumesOn(ctx, d.number)
	if err != nil || len(ids) != 1 {
		b.t.Fatalf("the volumes of disk %d are %q, %v, want one", d.number, ids, err)
	}
	id := string(ids[0])
	if _, err := b.volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: id}); err != nil {
		b.t.Fatal(err)
	}
	return id
}

func (b *bench) symlink(path, target string) error {
	_, err := b.files.CreateSymlink(b.t.Context(), &filesystem.CreateSymlinkRequest{SourcePath: target, TargetPath: path})
	return err
}

func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

func readFile(path string) (string, error) {
	content, err := os.ReadFile(path)
	return string(content), err
}

// guard passes on what changes a disk only for disks of ours, so that no mistake of the
// suite can reach another one.
type guard struct {
	disk.Interface
	b *bench
}

func (g guard) PartitionDisk(ctx context.Context, request *disk.PartitionDiskRequest) (*disk.PartitionDiskResponse, error) {
	if err := g.check(request.DiskNumber); err != nil {
		return nil, err
	}
	return g.Interface.PartitionDisk(ctx, request)
}

func (g guard) SetDiskState(ctx context.Context, request *disk.SetDiskStateRequest) (*disk.SetDiskStateResponse, error) {
	if err := g.check(request.DiskNumber); err != nil {
		return nil, err
	}
	return g.Interface.SetDiskState(ctx, request)
}

func (g guard) check(number uint32) error {
	if number == missingDisk {
		return nil
	}
	_, err := g.b.disk(number)
	return err
}
