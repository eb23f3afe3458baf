//go:build vhdx && windows

package vhdx

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
)

const (
	mib = 1 << 20
	// diskSize is the size of a new disk. Its file stays small, as it is dynamic.
	diskSize = 1 << 30
)

// machine is Windows, for looking at it past what is tested.
var machine = local.Machine()

// virtualDisk is a disk of ours.
type virtualDisk struct {
	path       string
	size       int64
	sectorSize uint32
	number     uint32
	handle     windows.Handle // 0 while detached; closing it would detach as well
}

// newVirtualDisk makes an empty disk and attaches it. It is gone, and its file with it,
// when the test is over. Nothing is done to the disk before it is proven to be ours.
func newVirtualDisk(t *testing.T, directory string, sectorSize uint32) *virtualDisk {
	t.Helper()
	file, err := os.CreateTemp(directory, "disk-*.vhdx")
	if err != nil {
		t.Fatal(err)
	}
	d := &virtualDisk{path: file.Name(), size: diskSize, sectorSize: sectorSize}
	file.Close()
	t.Cleanup(func() { d.remove(t) })
	// CreateVirtualDisk insists on a new file; the name is ours.
	if err := os.Remove(d.path); err != nil {
		t.Fatal(err)
	}
	if err := createVirtualDisk(d.path, d.size, d.sectorSize); err != nil {
		t.Fatalf("make %s: %v", d.path, err)
	}
	before, err := diskNumbers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(before, d.number) {
		t.Fatalf("%s is said to be disk %d, which was there before", d.path, d.number)
	}
	layout, err := machine.DriveLayout(t.Context(), d.device())
	if err != nil || slices.ContainsFunc(layout.Partitions, func(p win.Partition) bool { return p.Length != 0 }) {
		t.Fatalf("disk %d should be %s and empty, but is %+v, %v", d.number, d.path, layout, err)
	}
	t.Logf("%s is disk %d, %v when it came", d.path, d.number, layout.Style)
	return d
}

func (d *virtualDisk) device() win.Device { return win.PhysicalDrive(d.number) }

func (d *virtualDisk) attached() bool { return d.handle != 0 }

// attach attaches the disk, finds out its number, and proves that it is the one. If it
// cannot, the disk stays detached.
func (d *virtualDisk) attach(ctx context.Context) error {
	handle, err := openVirtualDisk(d.path)
	if err != nil {
		return fmt.Errorf("attach %s: %w", d.path, err)
	}
	number, err := func() (number uint32, err error) {
		if err := attachVirtualDisk(handle); err != nil {
			return 0, err
		}
		path, err := virtualDiskPhysicalPath(handle)
		if err != nil {
			return 0, err
		}
		if _, err := fmt.Sscanf(path, `\\.\PhysicalDrive%d`, &number); err != nil {
			return 0, fmt.Errorf("its name is %s: %w", path, err)
		}
		return number, prove(ctx, number, win.DiskGeometry{Size: d.size, BytesPerSector: d.sectorSize})
	}()
	if err != nil {
		windows.CloseHandle(handle)
		return fmt.Errorf("attach %s: %w", d.path, err)
	}
	d.number, d.handle = number, handle
	return nil
}

// prove fails unless a disk is a file, has the expected size, and has nothing of Windows.
func prove(ctx context.Context, number uint32, want win.DiskGeometry) error {
	device := win.PhysicalDrive(number)
	var at win.DeviceNumber
	err := await(ctx, func() (err error) { // it is attached before it can be opened
		at, err = machine.DeviceNumber(ctx, device)
		return err
	})
	if err != nil {
		return fmt.Errorf("disk %d: %w", number, err)
	}
	descriptor, err := machine.DeviceDescriptor(ctx, device)
	if err != nil {
		return fmt.Errorf("disk %d: %w", number, err)
	}
	geometry, err := machine.DiskGeometry(ctx, device)
	if err != nil {
		return fmt.Errorf("disk %d: %w", number, err)
	}
	switch {
	case at.Type != win.DeviceTypeDisk || at.Number != number:
		return fmt.Errorf("disk %d calls itself %+v", number, at)
	case descriptor.BusType != win.BusTypeFileBackedVirtual:
		return fmt.Errorf("disk %d is no file, but attached to a bus of type %d", number, descriptor.BusType)
	case geometry != want:
		return fmt.Errorf("disk %d has %+v, and should have %+v", number, geometry, want)
	}
	volumes, err := machine.SystemVolumes(ctx)
	if err != nil {
		return fmt.Errorf("the volumes of Windows: %w", err)
	}
	if len(volumes) == 0 {
		return errors.New("the volumes of Windows are unknown")
	}
	for _, volume := range volumes {
		extents, err := machine.VolumeExtents(ctx, volume)
		if err != nil {
			return fmt.Errorf("the disks of volume %s: %w", volume, err)
		}
		if slices.ContainsFunc(extents, func(e win.Extent) bool { return e.Disk == number }) {
			return fmt.Errorf("disk %d carries Windows, in volume %s", number, volume)
		}
	}
	return nil
}

// detach takes the disk away, and returns when its volumes are gone, too.
func (d *virtualDisk) detach(ctx context.Context) error {
	volumes, listErr := volumesOn(ctx, d.number)
	err := detachVirtualDisk(d.handle)
	windows.CloseHandle(d.handle)
	d.handle = 0
	if err := errors.Join(err, listErr); err != nil {
		return fmt.Errorf("detach %s: %w", d.path, err)
	}
	return await(ctx, func() error {
		left, err := machine.VolumeIDs(ctx)
		if err != nil {
			return err
		}
		for _, id := range volumes {
			if slices.Contains(left, id) {
				return fmt.Errorf("disk %d is detached, but its volume %s is still there", d.number, id)
			}
		}
		return nil
	})
}

// grow makes the disk larger, if possible under the eyes of Windows, as the backend of a
// cluster does. Windows is documented to refuse that: then it is detached meanwhile, and
// comes back with its number and volumes, or grow fails.
func (d *virtualDisk) grow(ctx context.Context, t *testing.T, size int64) error {
	t.Helper()
	refusal := expandVirtualDisk(d.handle, size)
	if refusal == nil {
		t.Logf("disk %d has grown to %d bytes while attached", d.number, size)
		d.size = size
		return nil
	}
	t.Logf("disk %d has to be detached in order to grow: %v", d.number, refusal)
	number := d.number
	volumes, err := volumesOn(ctx, number)
	if err != nil {
		return err
	}
	if err := d.detach(ctx); err != nil {
		return err
	}
	if err := expandDetached(d.path, size); err != nil {
		return fmt.Errorf("grow %s: %w", d.path, err)
	}
	d.size = size
	if err := d.attach(ctx); err != nil {
		return err
	}
	if d.number != number {
		return fmt.Errorf("disk %d has grown and is disk %d now, which the suite does not know; try again while no other disks come and go", number, d.number)
	}
	return await(ctx, func() error {
		back, err := volumesOn(ctx, number)
		if err == nil && len(back) < len(volumes) {
			err = fmt.Errorf("disk %d has grown and lost volumes: %q, want %q", number, back, volumes)
		}
		return err
	})
}

func expandDetached(path string, size int64) error {
	handle, err := openVirtualDisk(path)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	return expandVirtualDisk(handle, size)
}

// remove undoes newVirtualDisk, as far as that came.
func (d *virtualDisk) remove(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // which has ended by now
	if d.attached() {
		if err := d.detach(ctx); err != nil {
			t.Error(err)
		}
	}
	// Virus scanners and the driver let go of the file a little later.
	if err := await(ctx, func() error { return ignoreMissing(os.Remove(d.path)) }); err != nil {
		t.Errorf("a file is left behind: %v", err)
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write writes to the disk past everything, for instance what another system left there.
// Offset and length must be multiples of the sector size.
func (d *virtualDisk) write(ctx context.Context, offset int64, data []byte) error {
	err := machine.SetDiskAttributes(ctx, d.device(), win.DiskAttributes{}, win.DiskAttributes{Offline: true, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("make disk %d writable: %w", d.number, err)
	}
	file, err := os.OpenFile(string(d.device()), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteAt(data, offset)
	return err
}

// content changes when something is written to where partition tables and the beginning of
// the first volume are. To read a whole disk, several times per case, takes too long.
func (d *virtualDisk) content(ctx context.Context) (string, error) {
	hash := sha256.New()
	buffer := make([]byte, mib)
	read := func(offset int64) error {
		err := machine.ReadDevice(ctx, d.device(), offset, buffer)
		hash.Write(buffer)
		return err
	}
	const head = 32 * mib
	for offset := int64(0); offset < head; offset += mib {
		if err := read(offset); err != nil {
			return "", fmt.Errorf("read disk %d at %d: %w", d.number, offset, err)
		}
	}
	if err := read(d.size - mib); err != nil {
		return "", fmt.Errorf("read the end of disk %d: %w", d.number, err)
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

// diskNumbers lists the disks of this machine. One that does not answer is left out; it
// cannot be taken for a new one, because prove asks those.
func diskNumbers(ctx context.Context) ([]uint32, error) {
	devices, err := machine.DiskDevices(ctx)
	var numbers []uint32
	for _, device := range devices {
		if n, err := machine.DeviceNumber(ctx, device); err == nil {
			numbers = append(numbers, n.Number)
		}
	}
	return numbers, err
}

// volumesOn lists the volumes of a disk, past what is tested.
func volumesOn(ctx context.Context, number uint32) ([]win.VolumeID, error) {
	ids, err := machine.VolumeIDs(ctx)
	var on []win.VolumeID
	for _, id := range ids {
		extents, err := machine.VolumeExtents(ctx, id)
		if err == nil && slices.ContainsFunc(extents, func(e win.Extent) bool { return e.Disk == number }) {
			on = append(on, id)
		}
	}
	slices.Sort(on)
	return on, err
}

// settledVolumesOn lists the volumes of a disk when no more of them come and go: Windows
// removes those of a disk that went offline in the background.
func settledVolumesOn(ctx context.Context, number uint32) ([]win.VolumeID, error) {
	const rest = 500 * time.Millisecond
	var settled []win.VolumeID
	err := await(ctx, func() error {
		before, err := volumesOn(ctx, number)
		if err != nil {
			return err
		}
		if err := machine.Sleep(ctx, rest); err != nil {
			return err
		}
		settled, err = volumesOn(ctx, number)
		if err == nil && !slices.Equal(before, settled) {
			err = fmt.Errorf("the volumes of disk %d keep changing: %q, %q", number, before, settled)
		}
		return err
	})
	return settled, err
}

// await calls do until it succeeds, and after a while returns its error.
func await(ctx context.Context, do func() error) error {
	const (
		step  = 50 * time.Millisecond
		limit = 30 * time.Second
	)
	for waited := time.Duration(0); ; waited += step {
		err := do()
		if err == nil || waited >= limit {
			return err
		}
		if err := machine.Sleep(ctx, step); err != nil {
			return err
		}
	}
}

// scratch makes a directory that is removed after the test, and after the disks in it.
func scratch(t *testing.T, parent string) string {
	t.Helper()
	if err := os.MkdirAll(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	directory, err := os.MkdirTemp(parent, "csi-proxy-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Mounted folders in it lead nowhere by now, so that only they are removed.
		if err := os.RemoveAll(directory); err != nil {
			t.Errorf("a directory is left behind: %v", err)
		}
	})
	return filepath.Clean(directory)
}
