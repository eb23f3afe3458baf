package windows_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// newDisk attaches an empty disk: a virtual one, or one that the operator has named.
func (m *thisMachine) newDisk(ctx context.Context, sectorSize uint32) (scratchDisk, error) {
	if len(m.disks) > 0 {
		return m.nextNamed(ctx, sectorSize)
	}
	m.mu.Lock()
	m.number++
	path := m.path(fmt.Sprintf(`disks\disk-%d.vhdx`, m.number))
	m.mu.Unlock()
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
	machine := local.Machine()
	err = await(ctx, func() (err error) { // it is attached before it can be opened and is listed
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
	return device, checkNotSystem(ctx, number)
}

// interfaceOf returns the interface path of the disk with a number.
func interfaceOf(ctx context.Context, number uint32) (win.Device, error) {
	devices, err := local.Machine().DiskDevices(ctx)
	if err != nil {
		return "", err
	}
	for _, device := range devices {
		at, err := local.Machine().DeviceNumber(ctx, device)
		if err == nil && at.Type == win.DeviceTypeDisk && at.Number == number {
			return device, nil
		}
	}
	return "", fmt.Errorf("no disk has the number %d", number)
}

// checkNotSystem fails if a disk carries Windows, or if that is unknown.
func checkNotSystem(ctx context.Context, number uint32) error {
	volumes, err := local.Machine().SystemVolumes(ctx)
	if err != nil {
		return fmt.Errorf("the volumes of Windows: %w", err)
	}
	if len(volumes) == 0 {
		return errors.New("the volumes of Windows are unknown")
	}
	for _, volume := range volumes {
		extents, err := local.Machine().VolumeExtents(ctx, volume)
		if err != nil {
			return fmt.Errorf("the disks of volume %s: %w", volume, err)
		}
		if slices.ContainsFunc(extents, func(e win.Extent) bool { return e.Disk == number }) {
			return fmt.Errorf("disk %d carries Windows, in volume %s", number, volume)
		}
	}
	return nil
}

// checkTable fails if a disk has partitions.
func checkTable(ctx context.Context, number uint32) error {
	layout, err := local.Machine().DriveLayout(ctx, win.PhysicalDrive(number))
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
	machine, device := local.Machine(), win.PhysicalDrive(number)
	geometry, err := machine.DiskGeometry(ctx, device)
	switch {
	case err != nil:
		return fmt.Errorf("disk %d: %w", number, err)
	case geometry.Size < diskSize:
		return fmt.Errorf("disk %d has %d bytes; it must have at least %d", number, geometry.Size, diskSize)
	}
	if err := checkNotSystem(ctx, number); err != nil {
		return err
	}
	if err := checkTable(ctx, number); err != nil {
		return err
	}
	switch volumes, err := volumesOn(ctx, number); {
	case err != nil:
		return fmt.Errorf("the volumes of disk %d: %w", number, err)
	case len(volumes) > 0:
		return fmt.Errorf("disk %d has the volumes %q; it must be empty", number, volumes)
	}
	const ends = 1 << 20
	zeros, buffer := make([]byte, ends), make([]byte, ends)
	for _, offset := range []int64{0, geometry.Size - ends} {
		if err := machine.ReadDevice(ctx, device, offset, buffer); err != nil {
			return fmt.Errorf("read disk %d at %d: %w", number, offset, err)
		}
		if !bytes.Equal(buffer, zeros) {
			return fmt.Errorf("disk %d has data near %d; it must be empty", number, offset)
		}
	}
	return nil
}

func volumesOn(ctx context.Context, number uint32) ([]win.VolumeID, error) {
	ids, err := local.Machine().VolumeIDs(ctx)
	var on []win.VolumeID
	for _, id := range ids {
		extents, err := local.Machine().VolumeExtents(ctx, id)
		if err == nil && slices.ContainsFunc(extents, func(e win.Extent) bool { return e.Disk == number }) {
			on = append(on, id)
		}
	}
	return on, err
}

// Detach detaches the disk, and returns when its device and its volumes are gone. Another disk may
// have its number then, so the path of its device counts.
func (d *virtualDisk) Detach(ctx context.Context) error {
	volumes, listErr := volumesOn(ctx, d.number)
	err := d.file.detach()
	d.file.close()
	d.file = nil
	if err := errors.Join(err, listErr); err != nil {
		return fmt.Errorf("detach %s: %w", d.path, err)
	}
	return await(ctx, func() error {
		devices, err := local.Machine().DiskDevices(ctx)
		if err != nil {
			return err
		}
		if slices.Contains(devices, d.device) {
			return fmt.Errorf("%s is detached, but its device %s is still there", d.path, d.device)
		}
		left, err := local.Machine().VolumeIDs(ctx)
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
	if err := await(ctx, func() error { return copyFile(d.path, clone.path) }); err != nil {
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

// writeDisk writes to a disk of ours past everything. Offset and length must be multiples of the
// sector size.
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

// makeWritable brings a disk online and makes it writable.
func makeWritable(ctx context.Context, number uint32) error {
	err := local.Machine().SetDiskAttributes(ctx, win.PhysicalDrive(number), win.DiskAttributes{}, win.DiskAttributes{Offline: true, ReadOnly: true})
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
	return errors.Join(err, await(ctx, func() error { return ignoreMissing(os.Remove(d.path)) }))
}

// namedDisk is a disk that the operator has named.
type namedDisk struct {
	machine *thisMachine
	number  uint32
	size    int64
	entry   entry
}

// nextNamed returns the next disk that the operator has named.
func (m *thisMachine) nextNamed(ctx context.Context, sectorSize uint32) (scratchDisk, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, number := range m.pool {
		geometry, err := local.Machine().DiskGeometry(ctx, win.PhysicalDrive(number))
		if err != nil {
			return nil, err
		}
		if geometry.BytesPerSector != sectorSize {
			continue
		}
		detail, err := identity(ctx, number)
		if err != nil {
			return nil, err
		}
		d := &namedDisk{m, number, geometry.Size, entry{Kind: diskKind, Name: strconv.FormatUint(uint64(number), 10), Detail: detail}}
		if err := m.journal.add(d.entry); err != nil {
			return nil, err
		}
		m.pool = slices.Delete(m.pool, i, i+1)
		return d, nil
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

// Remove makes the disk empty again, so that it can be used for the next question. If that fails, the disk is used
// up, and stays in the journal.
func (d *namedDisk) Remove(ctx context.Context) error {
	if err := wipe(ctx, d.number); err != nil {
		return err
	}
	d.machine.journal.remove(d.entry)
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	d.machine.pool = append(d.machine.pool, d.number)
	return nil
}

// identity distinguishes a disk from others: from one that is attached at its place later by what it reports, and from
// another of its kind by its place.
func identity(ctx context.Context, number uint32) (string, error) {
	machine := local.Machine()
	device, err := interfaceOf(ctx, number)
	if err != nil {
		return "", err
	}
	descriptor, err := machine.DeviceDescriptor(ctx, device)
	if err != nil {
		return "", fmt.Errorf("disk %d: %w", number, err)
	}
	geometry, err := machine.DiskGeometry(ctx, device)
	if err != nil {
		return "", fmt.Errorf("disk %d: %w", number, err)
	}
	identifiers, _ := machine.DeviceIdentifiers(ctx, device) // not every disk has them
	hash := sha256.Sum256(fmt.Appendf(nil, "%s %+v %+v %+v", device, descriptor, geometry, identifiers))
	return fmt.Sprintf("%x", hash[:8]), nil
}

// wipeLeft wipes a disk on which a killed run has left something, if the operator names it again. It was empty before
// that run. If someone uses it since, it is not touched.
func (o options) wipeLeft(ctx context.Context, j *journal, e entry, say io.Writer) (removed bool, err error) {
	for _, number := range o.disks {
		if detail, err := identity(ctx, number); err != nil || detail != e.Detail {
			continue
		}
		if checkEmpty(ctx, number) == nil {
			return true, nil
		}
		volumes, err := volumesOn(ctx, number)
		if err != nil {
			return false, err
		}
		for _, id := range volumes {
			paths, err := local.Machine().VolumePaths(ctx, id)
			if err != nil {
				return false, err
			}
			if i := slices.IndexFunc(paths, func(path string) bool { return !winpath.Contains(o.dir, path) }); i >= 0 {
				return false, fmt.Errorf("its volume is mounted at %s; clear it yourself: Clear-Disk -Number %d -RemoveData", paths[i], number)
			}
		}
		return true, wipe(ctx, number)
	}
	fmt.Fprintf(say, "A run has left something on disk %s. To clear it, name it with -disk. If it is gone or cleared, delete %s\n", e.Name, filepath.Join(j.dir, journalName))
	return false, nil
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

// wipe writes zeros where tables are, waits until the volumes are gone, and writes zeros where partitions began.
func wipe(ctx context.Context, number uint32) error {
	if err := checkNotSystem(ctx, number); err != nil {
		return err
	}
	machine, device := local.Machine(), win.PhysicalDrive(number)
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
	err = await(ctx, func() error { // until then Windows keeps others from writing to them
		volumes, err := volumesOn(ctx, number)
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
		offsets = append(offsets, min(p.Offset, geometry.Size-chunk))
	}
	for _, offset := range offsets {
		if err := writeDisk(ctx, number, offset, make([]byte, chunk)); err != nil {
			return err
		}
	}
	return checkEmpty(ctx, number)
}

func diskNumbers(ctx context.Context) ([]uint32, error) {
	devices, err := local.Machine().DiskDevices(ctx)
	var numbers []uint32
	for _, device := range devices {
		if at, err := local.Machine().DeviceNumber(ctx, device); err == nil {
			numbers = append(numbers, at.Number)
		}
	}
	return numbers, err
}

// await calls do until it succeeds, and after 30 seconds returns its error.
func await(ctx context.Context, do func() error) (err error) {
	backoff := win.Backoff{First: 20 * time.Millisecond, Longest: 200 * time.Millisecond, Limit: 30 * time.Second}
	_, pollErr := win.Poll(ctx, local.Machine(), backoff, func(time.Duration) (bool, error) {
		err = do()
		return err == nil, nil
	})
	if pollErr != nil {
		return pollErr
	}
	return err
}
