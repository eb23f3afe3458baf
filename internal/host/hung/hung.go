// Package hung ends the wait for disks that hang. Windows knows no limit for a request to a disk, and how long a
// healthy one takes depends on how much there is to write. So what runs for long is asked whether its disk still reads.
package hung

import (
	"context"
	"errors"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// ReadLimit is how long a disk may take to read one sector.
const ReadLimit = 5 * time.Second

// Err is the failure of work whose disk does not answer.
var Err error = silence{}

type silence struct{}

func (silence) Error() string { return "the disk does not answer" }

// Kind classifies Err.
func (silence) Kind() winerr.Kind { return winerr.Unavailable }

// Watch runs do. Each time when another pause has passed it reads a sector of each disk. When one cannot be read,
// Watch ends the context of do, and fails with Err if do fails then. A request that Windows has goes on.
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
				if err := read(ctx, m, win.PhysicalDrive(number)); err != nil && ctx.Err() == nil {
					stop(Err)
					return
				}
			}
		}
	}()
	err := do(ctx)
	stop(nil)
	<-watched
	if err != nil && errors.Is(context.Cause(ctx), Err) {
		return Err
	}
	return err
}

func read(ctx context.Context, m win.Machine, disk win.Device) error {
	ctx, cancel := context.WithTimeout(ctx, ReadLimit)
	defer cancel()
	return Read(ctx, m, disk)
}

// Read reads the first sector of a disk. All else Windows knows also of a disk that fails or hangs.
func Read(ctx context.Context, m win.Machine, disk win.Device) error {
	const largestSector = 4096
	err := m.ReadDevice(ctx, disk, 0, make([]byte, largestSector))
	if errors.Is(err, winerr.Unsupported) {
		return nil
	}
	return err
}
