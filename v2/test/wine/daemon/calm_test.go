//go:build windows && wine

package daemon

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// Where the machine's host gives its processors to others, times say nothing about a program. A measurement is
// made again if more than the tolerated share was taken, until the time limit of the whole test.
const (
	tolerated = 0.1
	calmLimit = 12 * time.Minute
	pause     = time.Second // between attempts: a host is seldom busy for milliseconds only
)

// calm looks for moments in which the machine is left alone.
type calm struct {
	until    time.Time // the time limit
	worst    float64   // the largest share that was taken from a measurement that counts
	repeated int       // the measurements that do not count
}

// processors is what the processors of the machine have done since it started.
type processors struct {
	all, busy, taken time.Duration
}

// look reads the statistics of the Linux below Wine: Windows has no word for time that a host takes.
// The order of the columns is in https://man7.org/linux/man-pages/man5/proc_stat.5.html
func look(t *testing.T) processors {
	t.Helper()
	text, err := os.ReadFile(`\\?\unix\proc\stat`)
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(text), "\n")
	columns := strings.Fields(line)
	if len(columns) < 9 || columns[0] != "cpu" {
		t.Fatalf("the statistics of the processors are %q", line)
	}
	var p processors
	for i, column := range columns[1:9] { // user, nice, system, idle, iowait, irq, softirq, steal
		ticks, err := strconv.ParseInt(column, 10, 64)
		require.NoError(t, err)
		took := time.Duration(ticks) * 10 * time.Millisecond
		p.all += took
		switch i {
		case 3, 4:
		case 7:
			p.taken += took
		default:
			p.busy += took
		}
	}
	return p
}

// attempt makes a measurement until the host leaves the machine alone. After the time limit, the one that counts is
// that which the host disturbed least.
func (c *calm) attempt(measure func() measurement) measurement {
	best := measure()
	for ; best.taken > tolerated && time.Now().Before(c.until); c.repeated++ {
		time.Sleep(pause)
		if m := measure(); m.taken < best.taken {
			best = m
		}
	}
	c.worst = max(c.worst, best.taken)
	return best
}
