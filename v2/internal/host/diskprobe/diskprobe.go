// Package diskprobe ends the wait for disks that hang. Windows knows no limit for a request to a disk, and how long a
// healthy one takes depends on how much there is to write. So what runs for long is asked whether its disk still reads.
// What such a disk was asked to do Windows may do later; until then nothing else is done to it.
package diskprobe

import (
	"context"
	"errors"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// ReadLimit is how long a disk may take to read one sector.
const ReadLimit = 5 * time.Second

const pauseBetweenReads = 200 * time.Millisecond

// ErrNoAnswer is the failure of work whose disk does not answer.
var ErrNoAnswer error = noAnswerError{}

type noAnswerError struct{}

func (noAnswerError) Error() string { return "the disk does not answer" }

// Kind classifies ErrNoAnswer.
func (noAnswerError) Kind() winerr.Kind { return winerr.Unavailable }

// Refuse fails while a change of a disk or volume is stuck.
func Refuse(ctx context.Context, m win.Machine, op, name string, device win.Device) error {
	stuck, found := m.StuckChange(ctx, string(device))
	if !found {
		return nil
	}
	return winerr.As(winerr.Unavailable, op, name, stuck, "")
}

// Watch runs do. Each time when another pause has passed it reads a sector of each disk. When one does not answer,
// Watch ends the context of do, and fails with ErrNoAnswer if do fails then. A request that Windows has goes on.
func Watch(ctx context.Context, m win.Machine, pause time.Duration, disks func(context.Context) ([]uint32, error), do func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			numbers, _ := disks(ctx) // if they are unknown, there is nothing to see
			for _, number := range numbers {
				if !Answers(ctx, m, win.PhysicalDrive(number)) && ctx.Err() == nil {
					stop(ErrNoAnswer)
					return
				}
			}
		}
	}()
	err := do(ctx)
	stop(nil)
	<-watched
	if err != nil && errors.Is(context.Cause(ctx), ErrNoAnswer) {
		return ErrNoAnswer
	}
	return err
}

// Answers reports whether a disk answers a read within ReadLimit, be it with an error.
func Answers(ctx context.Context, m win.Machine, disk win.Device) bool {
	ctx, cancel := context.WithTimeout(ctx, ReadLimit)
	defer cancel()
	for {
		err := Read(ctx, m, disk)
		if err == nil || winerr.CodeOf(err) != 0 {
			return true
		}
		select { // a read of another caller may be on its way
		case <-ctx.Done():
			return false
		case <-time.After(pauseBetweenReads):
		}
	}
}

// Read reads the first sector of a disk. All else Windows knows also of a disk that fails or hangs.
func Read(ctx context.Context, m win.Machine, disk win.Device) error {
	const largestSector = 4096
	_, err := m.ReadDevice(ctx, disk, 0, largestSector)
	if errors.Is(err, winerr.Unsupported) {
		return nil
	}
	return err
}

// NoMedium reports whether a device with the interface of a disk is one that takes media, such as a card reader or the
// virtual media of a remote console, and has none. It is not a disk then.
func NoMedium(ctx context.Context, m win.Machine, disk win.Device, descriptor win.DeviceDescriptor) bool {
	if !descriptor.Removable {
		return false
	}
	_, err := m.DiskGeometry(ctx, disk)
	if err == nil {
		_, err = m.DriveLayout(ctx, disk)
	}
	return winerr.CodeOf(err) == winerr.NotReady
}
