package api_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// change is an operation that changes a node, for the sweeps.
type change struct {
	volume  winsim.Volume
	prepare func(*winsim.Node) error
	do      func(volumeapi.HostAPI) error
	check   func(*testing.T, *winsim.Node, volumeapi.HostAPI)
}

var changes = map[string]change{
	"format an empty volume": {
		volume: unformatted(),
		do:     func(h volumeapi.HostAPI) error { return h.FormatVolume(id) },
		check: func(t *testing.T, _ *winsim.Node, host volumeapi.HostAPI) {
			t.Helper()
			wantFormatted(t, host, id, true)
		},
	},
	"format with options": {
		volume: unformatted(),
		do:     func(h volumeapi.HostAPI) error { return formatWith(h, chosen) },
		check:  wantChosen,
	},
	"format a volume with data": {
		volume: formatted(),
		do:     func(h volumeapi.HostAPI) error { return h.FormatVolume(id) },
	},
	"mount": {
		volume: formatted(),
		do:     func(h volumeapi.HostAPI) error { return h.MountVolume(id, target) },
		check:  isMounted,
	},
	"mount at a folder": {
		volume:  formatted(),
		prepare: func(n *winsim.Node) error { return n.Mkdir(target) },
		do:      func(h volumeapi.HostAPI) error { return h.MountVolume(id, target) },
		check:   isMounted,
	},
	"unmount": {
		volume:  formatted(),
		prepare: func(n *winsim.Node) error { return n.MountFolder(target, id) },
		do:      func(h volumeapi.HostAPI) error { return h.UnmountVolume(id, target) },
		check: func(t *testing.T, node *winsim.Node, _ volumeapi.HostAPI) {
			t.Helper()
			wantEmptyFolder(t, node)
		},
	},
	"resize": {
		volume:  formatted(),
		prepare: func(n *winsim.Node) error { return n.GrowDisk(firstDisk, 2*winsim.GiB) },
		do:      func(h volumeapi.HostAPI) error { return h.ResizeVolume(id, 0) },
		check: func(t *testing.T, node *winsim.Node, _ volumeapi.HostAPI) {
			t.Helper()
			wantSize(t, node, of2GiB)
		},
	},
}

func isMounted(t *testing.T, _ *winsim.Node, host volumeapi.HostAPI) {
	t.Helper()
	wantMounted(t, host, target, id)
}

// node is a new node on which the change can be made.
func (c change) node(t *testing.T) (*winsim.Node, volumeapi.HostAPI) {
	t.Helper()
	node := nodeWith(t, c.volume)
	if c.prepare != nil {
		must(t, c.prepare(node))
	}
	return node, volumeapi.NewOn(node)
}

// retry makes the change again, when the trouble is over, and checks the result.
func (c change) retry(t *testing.T, node *winsim.Node, host volumeapi.HostAPI) {
	t.Helper()
	if err := c.do(host); err != nil {
		t.Fatalf("the retry failed: %v", err)
	}
	if c.check != nil {
		c.check(t, node, host)
	}
	if c.volume.Files != nil {
		wantData(t, node, host)
	}
}

// TestSweep_Fails fails every call of every change in turn, once and from there on. Data
// must never be lost, and when the trouble is over a retry must succeed.
func TestSweep_Fails(t *testing.T) {
	for name, c := range changes {
		for _, code := range []winerr.Code{winerr.IODevice, winerr.AccessDenied, winerr.NotReady, winerr.BusyCode, winerr.InvalidParameter, winerr.UnrecognizedVolume} {
			for _, times := range []int{1, 0} { // 0: from there on
				t.Run(fmt.Sprintf("%s/%d times %d", name, times, code), func(t *testing.T) {
					for nth := 1; ; nth++ {
						node, host := c.node(t)
						fault := inject(t, node, winsim.Fault{Nth: nth, Times: times, Error: uint32(code)})
						err := c.do(host)
						if fault.Hits() == 0 {
							if err != nil || nth == 1 {
								t.Fatalf("without a fault: %v", err)
							}
							return
						}
						if err != nil && winerr.CodeOf(err) != code && winerr.KindOf(err) == winerr.Internal {
							t.Errorf("call %d failed with %v, and that was made of it: %v", nth, code, err)
						}
						fault.Remove()
						c.retry(t, node, host)
					}
				})
			}
		}
	}
}

// TestSweep_Hangs lets every call of every change hang in turn, for longer than we wait
// for Windows, which then carries it out. Nothing may stay locked, and a retry must succeed.
func TestSweep_Hangs(t *testing.T) {
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			for nth, done := 1, false; !done; nth++ {
				synctest.Test(t, func(t *testing.T) {
					node, host := c.node(t)
					fault := inject(t, node, winsim.Fault{Nth: nth, Times: 1, Delay: time.Hour})
					begin := time.Now()
					err := c.do(host)
					if done = fault.Hits() == 0; done {
						must(t, err)
						return
					}
					if waited := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || waited != 10*time.Minute {
						t.Errorf("call %d hangs: after %v %v, want to give up after 10 minutes", nth, waited, err)
					}
					if err := c.do(host); err != nil && !errors.Is(err, winerr.Unavailable) {
						t.Errorf("while call %d is stuck: %v, want success or Unavailable", nth, err)
					}
					fault.Remove() // and the call is carried out
					synctest.Wait()
					c.retry(t, node, host)
				})
			}
		})
	}
}

// wantData checks that what was on the volume is still there.
func wantData(t *testing.T, node *winsim.Node, host volumeapi.HostAPI) {
	t.Helper()
	const path = pods + `\proof`
	must(t, host.MountVolume(id, path))
	if got, err := node.ReadFile(path + `\precious`); err != nil || got != "data" {
		t.Errorf("of the data is left: %q, %v", got, err)
	}
}
