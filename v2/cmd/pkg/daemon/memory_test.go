package daemon

import (
	"context"
	"flag"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryLimit(t *testing.T) {
	for value, want := range map[string]int64{
		"": 160 << 20, "32MiB": 32 << 20, "1GiB": 1 << 30, "65536KiB": 64 << 20, "off": math.MaxInt64,
		"0": 0, "160": 0, "MiB": 0, "-1GiB": 0, "31MiB": 0, "1.5GiB": 0, "9999999999999GiB": 0, "160MB": 0,
	} {
		var flags Flags
		set := flag.NewFlagSet("", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		flags.Register(set)
		var args []string
		if value != "" {
			args = []string{"-memory-limit", value}
		}
		if err := set.Parse(args); (err != nil) != (want == 0) {
			t.Errorf("%q: %v", value, err)
		} else if err == nil && int64(flags.MemoryLimit) != want {
			t.Errorf("%q: %d bytes, want %d", value, flags.MemoryLimit, want)
		}
	}
}

// background runs a function until stop is called, which waits for its end.
func background(t *testing.T, run func(context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	return func() { cancel(); <-done }
}

// TestReclaim: memory that is no longer used comes back within a minute.
func TestReclaim(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // as in a process that does not allocate
	synctest.Test(t, func(t *testing.T) {
		stop := background(t, reclaim)
		time.Sleep(time.Minute)
		before := usedMemory()
		attack := make([][]byte, 64)
		for i := range attack {
			attack[i] = make([]byte, 1<<20)
			attack[i][0] = 1
		}
		if during := usedMemory(); during < before+50<<20 {
			t.Errorf("%d bytes are used, %d before", during, before)
		}
		time.Sleep(time.Minute)
		if during := usedMemory(); during < before+50<<20 {
			t.Errorf("%d bytes are used while there are 64 MiB", during)
		}
		runtime.KeepAlive(attack)
		clear(attack)
		time.Sleep(time.Minute)
		if after := usedMemory(); after > before+before/2+reclaimMargin {
			t.Errorf("%d bytes are used, %d before", after, before)
		}
		stop()
	})
}
