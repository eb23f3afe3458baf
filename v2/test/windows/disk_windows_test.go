package windows_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// newVirtual makes and attaches a virtual disk.
func (n *node) newVirtual(ctx context.Context, sectorSize uint32) (scratchDisk, error) {
	n.names++
	path := n.path(fmt.Sprintf(`disks\disk-%d.vhdx`, n.names))
	d := &virtualDisk{path: path, size: diskSize, sectorSize: sectorSize}
	if err := createVHDX(path, diskSize, sectorSize); err != nil {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	before, err := diskNumbers(ctx)
	if err == nil {
		err = d.Attach(ctx, false)
	}
	if err == nil && slices.Contains(before, d.number) {
		err = fmt.Errorf("%s is said to be disk %d, which was there before", path, d.number)
	}
	if err == nil {
		err = checkTable(ctx, d.number)
	}
	if err != nil {
		return nil, errors.Join(err, d.Remove(context.WithoutCancel(ctx)))
	}
	return d, nil
}

// virtualDisk is a file that is a disk.
type virtualDisk struct {
	path       string
	size       int64
	sectorSize uint32
	number     uint32
	device     win.Device // its interface path while it is attached
	file       *vhdx      // nil while it is detached
}

func (d *virtualDisk) Number() uint32 { return d.number }
func (d *virtualDisk) Size() int64    { return d.size }
func (d *virtualDisk) Attached() bool { return d.file != nil }

// Attach attaches the disk, and proves that it is the one. If it cannot, the disk stays detached.
func (d *virtualDisk) Attach(ctx context.Context, readOnly bool) error {
	file, err := openVHDX(d.path)
	if err != nil {
		return fmt.Errorf("attach %s: %w", d.path, err)
	}
	number, device, err := func() (number uint32, device win.Device, err error) {
		if err := file.attach(readOnly); err != nil {
			return 0, "", err
		}
		if number, err = file.number(); err != nil {
			return 0, "", err
		}
		device, err = prove(ctx, number, win.DiskGeometry{Size: d.size, BytesPerSector: d.sectorSize})
		return number, device, err
	}()
	if err != nil {
		file.close()
		return fmt.Errorf("attach %s: %w", d.path, err)
	}
	d.number, d.device, d.file = number, device, &file
	return nil
}

// prove fails unless a disk is a file, has the expected size, and has nothing of Windows. It returns
// the interface path of the disk.
func prove(ctx context.Context, number uint32, want win.DiskGeometry) (device win.Device, err error) {
	err = await(ctx, machine, func() (err error) { // it is attached before it can be opened and is listed
		device, err = interfaceOf(ctx, number)
		return err
	})
	if err != nil {
		return "", err
	}
	descriptor, err := machine.DeviceDescriptor(ctx, device)
	if err != nil {
		return "", fmt.Errorf("disk %d: %w", number, err)
	}
	geometry, err := machine.DiskGeometry(ctx, device)
	switch {
	case err != nil:
		return "", fmt.Errorf("disk %d: %w", number, err)
	case descriptor.BusType != win.BusTypeFileBackedVirtual:
		return "", fmt.Errorf("disk %d is not a file, but attached to a bus of type %d", number, descriptor.BusType)
	case geometry != want:
		return "", fmt.Errorf("disk %d has %+v, and should have %+v", number, geometry, want)
	}
	return device, checkNotSystem(ctx, machine, number)
}

// interfaceOf returns the interface path of the disk with a number.
func interfaceOf(ctx context.Context, number uint32) (win.Device, error) {
	devices, err := machine.DiskDevices(ctx)
	if err != nil {
		return "", err
	}
	for _, device := range devices {
		at, err := machine.DeviceNumber(ctx, device)
		if err == nil && at.Type == win.DeviceTypeDisk && at.Number == number {
			return device, nil
		}
	}
	return "", fmt.Errorf("no disk has the number %d", number)
}

// checkTable fails if a disk has partitions.
func checkTable(ctx context.Context, number uint32) error {
	layout, err := machine.DriveLayout(ctx, win.PhysicalDrive(number))
	if err != nil {
		return fmt.Errorf("the partition table of disk %d: %w", number, err)
	}
	if !isEmpty(layout) {
		return fmt.Errorf("disk %d has a partition table of style %v with %d entries; it must be empty", number, layout.Style, len(layout.Partitions))
	}
	return nil
}

// checkEmpty fails unless a disk that the operator has named may be used: it is not the disk of
// Windows, has no partitions and no volumes, and nothing is written at its beginning and end.
func checkEmpty(ctx context.Context, number uint32) error {
	device := win.PhysicalDrive(number)
	geometry, err := machine.DiskGeometry(ctx, device)
	switch {
	case err != nil:
		return fmt.Errorf("disk %d: %w", number, err)
	case geometry.Size < diskSize:
		return fmt.Errorf("disk %d has %d bytes; it must have at least %d", number, geometry.Size, diskSize)
	}
	if err := checkNotSystem(ctx, machine, number); err != nil {
		return err
	}
	if err := checkTable(ctx, number); err != nil {
		return err
	}
	switch volumes, err := volumesOn(ctx, machine, number); {
	case err != nil:
		return fmt.Errorf("the volumes of disk %d: %w", number, err)
	case len(volumes) > 0:
		return fmt.Errorf("disk %d has the volumes %q; it must be empty", number, volumes)
	}
	const ends = 1 << 20
	zeros := make([]byte, ends)
	for _, offset := range []int64{0, geometry.Size - ends} {
		buffer, err := machine.ReadDevice(ctx, device, offset, ends)
		if err != nil {
			return fmt.Errorf("read disk %d at %d: %w", number, offset, err)
		}
		if !bytes.Equal(buffer, zeros) {
			return fmt.Errorf("disk %d has data near %d; it must be empty", number, offset)
		}
	}
	return nil
}

// Detach detaches the disk, and returns when its device and its volumes are gone. Another disk may
// have its number then, so the path of its device counts.
func (d *virtualDisk) Detach(ctx context.Context) error {
	volumes, listErr := volumesOn(ctx, machine, d.number)
	err := d.file.detach()
	d.file.close()
	d.file = nil
	if err := errors.Join(err, listErr); err != nil {
		return fmt.Errorf("detach %s: %w", d.path, err)
	}
	return await(ctx, machine, func() error {
		devices, err := machine.DiskDevices(ctx)
		if err != nil {
			return err
		}
		if slices.Contains(devices, d.device) {
			return fmt.Errorf("%s is detached, but its device %s is still there", d.path, d.device)
		}
		left, err := machine.VolumeIDs(ctx)
		if err != nil {
			return err
		}
		for _, id := range volumes {
			if slices.Contains(left, id) {
				return fmt.Errorf("%s is detached, but its volume %s is still there", d.path, id)
			}
		}
		return nil
	})
}

// Grow makes the disk larger, if possible while it is attached, as the backend of a cluster does.
// Windows is documented to refuse that: then it is detached meanwhile.
func (d *virtualDisk) Grow(ctx context.Context, size int64) (how string, err error) {
	refusal := d.file.expand(size)
	if refusal == nil {
		d.size = size
		return "while it is attached", nil
	}
	if err := d.Detach(ctx); err != nil {
		return "", err
	}
	file, err := openVHDX(d.path)
	if err != nil {
		return "", err
	}
	err = file.expand(size)
	file.close()
	if err != nil {
		return "", fmt.Errorf("grow %s: %w", d.path, err)
	}
	d.size = size
	return fmt.Sprintf("only while it is detached: %v", refusal), d.Attach(ctx, false)
}

// Clone copies the file while the disk is detached, and attaches both, the original first.
func (d *virtualDisk) Clone(ctx context.Context) (scratchDisk, error) {
	if err := d.Detach(ctx); err != nil {
		return nil, err
	}
	clone := &virtualDisk{path: d.path + ".copy.vhdx", size: d.size, sectorSize: d.sectorSize}
	if err := await(ctx, machine, func() error { return copyFile(d.path, clone.path) }); err != nil {
		return nil, err
	}
	if err := d.Attach(ctx, false); err != nil {
		return nil, err
	}
	if err := clone.Attach(ctx, false); err != nil {
		return nil, errors.Join(err, clone.Remove(context.WithoutCancel(ctx)))
	}
	return clone, nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

func (d *virtualDisk) Write(ctx context.Context, offset int64, data []byte) error {
	return writeDisk(ctx, d.number, offset, data)
}

// writeDisk writes to a disk of ours past everything but the guard. Offset and length must be multiples of the sector
// size.
func writeDisk(ctx context.Context, number uint32, offset int64, data []byte) error {
	if err := makeWritable(ctx, number); err != nil {
		return err
	}
	file, err := os.OpenFile(string(win.PhysicalDrive(number)), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	// Not WriteAt, which first asks where the file stands. Wine's devices do not know that.
	at := windows.Overlapped{Offset: uint32(offset & math.MaxUint32), OffsetHigh: uint32(offset >> 32 & math.MaxUint32)}
	var n uint32
	if err := windows.WriteFile(windows.Handle(file.Fd()), data, &n, &at); err != nil {
		return fmt.Errorf("write to disk %d at %d: %w", number, offset, winapi.Error(err))
	}
	return nil
}

// makeWritable brings a disk online and makes it writable, if the guard lets it.
func makeWritable(ctx context.Context, number uint32) error {
	err := this.machine.SetDiskAttributes(ctx, win.PhysicalDrive(number), win.DiskAttributes{}, win.DiskAttributes{Offline: true, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("make disk %d writable: %w", number, err)
	}
	return nil
}

// Remove detaches the disk and deletes its file.
func (d *virtualDisk) Remove(ctx context.Context) error {
	var err error
	if d.Attached() {
		err = d.Detach(ctx)
	}
	// Virus scanners and the driver let go of the file a little later.
	return errors.Join(err, await(ctx, machine, func() error { return os.Remove(d.path) }))
}

// namedDisk is a disk that the operator has named.
type namedDisk struct {
	node   *node
	number uint32
	size   int64
}

// nextNamed returns the next disk that the operator has named.
func (n *node) nextNamed(ctx context.Context, sectorSize uint32) (scratchDisk, error) {
	for i, number := range n.named {
		geometry, err := machine.DiskGeometry(ctx, win.PhysicalDrive(number))
		if err != nil {
			return nil, err
		}
		if geometry.BytesPerSector != sectorSize {
			continue
		}
		n.named = slices.Delete(n.named, i, i+1)
		return &namedDisk{n, number, geometry.Size}, nil
	}
	return nil, cannotf("no empty disk with %d-byte sectors is left; name more with -disk", sectorSize)
}

var errNamed = cannotf("only virtual disks can be detached, grown and copied")

func (d *namedDisk) Number() uint32                              { return d.number }
func (d *namedDisk) Size() int64                                 { return d.size }
func (d *namedDisk) Attached() bool                              { return true }
func (d *namedDisk) Attach(context.Context, bool) error          { return errNamed }
func (d *namedDisk) Detach(context.Context) error                { return errNamed }
func (d *namedDisk) Grow(context.Context, int64) (string, error) { return "", errNamed }
func (d *namedDisk) Clone(context.Context) (scratchDisk, error)  { return nil, errNamed }

func (d *namedDisk) Write(ctx context.Context, offset int64, data []byte) error {
	return writeDisk(ctx, d.number, offset, data)
}

// Remove makes the disk empty again, so that it can be used for the next question. If that fails, the disk is used up.
func (d *namedDisk) Remove(ctx context.Context) error {
	if err := wipe(ctx, d.number); err != nil {
		return err
	}
	d.node.named = append(d.node.named, d.number)
	return nil
}

// isEmpty reports whether a table has no partitions.
func isEmpty(layout win.DriveLayout) bool {
	for _, p := range layout.Partitions {
		if p.Length != 0 {
			return false
		}
	}
	return layout.Style == win.StyleRaw
}

// wipe writes zeros where tables are, waits until the volumes are gone, and writes zeros where partitions began and ended:
// NTFS has its second boot sector at the end, and FormatVolume refuses a volume that has one.
func wipe(ctx context.Context, number uint32) error {
	device := win.PhysicalDrive(number)
	if err := makeWritable(ctx, number); err != nil {
		return err
	}
	geometry, err := machine.DiskGeometry(ctx, device)
	if err != nil {
		return err
	}
	layout, err := machine.DriveLayout(ctx, device)
	if err != nil {
		return fmt.Errorf("the partition table of disk %d: %w", number, err)
	}
	const ends = 64 << 10 // a table has less, and the first partition begins later
	for _, offset := range []int64{0, geometry.Size - ends} {
		if err := writeDisk(ctx, number, offset, make([]byte, ends)); err != nil {
			return err
		}
	}
	if err := machine.UpdateDisk(ctx, device); err != nil {
		return err
	}
	err = await(ctx, machine, func() error { // until then Windows keeps others from writing to them
		volumes, err := volumesOn(ctx, machine, number)
		if err == nil && len(volumes) > 0 {
			err = fmt.Errorf("disk %d still has the volumes %q", number, volumes)
		}
		return err
	})
	if err != nil {
		return err
	}
	const chunk = 1 << 20 // more than the signatures of a file system take
	offsets := []int64{0, geometry.Size - chunk}
	for _, p := range layout.Partitions {
		offsets = append(offsets, min(p.Offset, geometry.Size-chunk), max(0, p.Offset+p.Length-chunk))
	}
	for _, offset := range offsets {
		if err := writeDisk(ctx, number, offset, make([]byte, chunk)); err != nil {
			return err
		}
	}
	return checkEmpty(ctx, number)
}

func diskNumbers(ctx context.Context) ([]uint32, error) {
	devices, err := machine.DiskDevices(ctx)
	var numbers []uint32
	for _, device := range devices {
		if at, err := machine.DeviceNumber(ctx, device); err == nil {
			numbers = append(numbers, at.Number)
		}
	}
	return numbers, err
}
