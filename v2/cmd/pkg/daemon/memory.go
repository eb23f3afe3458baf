package daemon

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// defaultMemoryLimit is well above what the daemon needs: about 30 MiB. Beyond three fifths of it, the client that
// takes most loses connections.
const defaultMemoryLimit = 160 << 20

// minMemoryLimit is what the daemon needs. With less, it would spend its time looking for garbage.
const minMemoryLimit = 32 << 20

// memoryLimit is a flag: a number of bytes such as 160MiB, or off.
type memoryLimit int64

func (m *memoryLimit) String() string {
	if *m == math.MaxInt64 {
		return "off"
	}
	return fmt.Sprintf("%dMiB", int64(*m)>>20)
}

func (m *memoryLimit) Set(value string) error {
	if value == "off" {
		*m = math.MaxInt64
		return nil
	}
	for suffix, unit := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		number, found := strings.CutSuffix(value, suffix)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n <= 0 || n > math.MaxInt64/unit {
			break
		}
		if n*unit < minMemoryLimit {
			return fmt.Errorf("the daemon needs at least %dMiB", minMemoryLimit>>20)
		}
		*m = memoryLimit(n * unit)
		return nil
	}
	return errors.New("it is neither off nor a number with KiB, MiB or GiB, such as 160MiB")
}

// When the daemon gives memory back that it no longer needs.
const (
	// reclaimEvery is half of the time in which memory comes back: gRPC keeps buffers until the second
	// search for garbage.
	reclaimEvery = 5 * time.Second
	// reclaimMargin is what the daemon can use beyond the least so far.
	reclaimMargin = 1 << 20
)

// reclaim gives unused memory back to the system until ctx ends. Go by itself looks for garbage only if
// the program allocates, or every two minutes, and then returns memory slowly: an attack of a few
// seconds would keep its memory for many minutes.
func reclaim(ctx context.Context) {
	ticker := time.NewTicker(reclaimEvery)
	defer ticker.Stop()
	least := uint64(math.MaxUint64) // so far
	for looks := 0; ; looks++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// What pools keep after an attack comes back at the look after the next one, so the first look is no measure.
		if looks < 2 || usedMemory() > least+reclaimMargin {
			debug.FreeOSMemory()
		}
		if looks > 0 {
			least = min(least, usedMemory())
		}
	}
}

// usedMemory is what the Go runtime has from the system.
func usedMemory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
