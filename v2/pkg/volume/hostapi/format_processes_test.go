package api_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// inProcesses runs a test with a node in virtual time, and two processes on it.
func inProcesses(t *testing.T, test func(t *testing.T, node *winsim.Node, first, second win.Machine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		model := modelWith(gpt(winsim.GiB, unformatted()))
		model.RealTime = true
		model.Storage.FormatTime = 5 * time.Second
		node := newNode(t, model)
		test(t, node, node.Process(nil), node.Process(nil))
	})
}

// use mounts a volume and writes a file, as a driver and a pod do once a format has succeeded.
func use(t *testing.T, node *winsim.Node) {
	t.Helper()
	must(t, node.MountFolder(mount, id))
	must(t, node.WriteFile(mount+`\precious`, "data"))
}

func wantUsed(t *testing.T, node *winsim.Node) {
	t.Helper()
	if text, err := node.ReadFile(mount + `\precious`); err != nil || text != "data" {
		t.Errorf("the file of the first process is lost: %q, %v", text, err)
	}
}

// TestFormatVolume_TwoProcesses lets a process format and use the volume while another one that has seen it empty is just
// about to format it, by either method.
func TestFormatVolume_TwoProcesses(t *testing.T) {
	for _, method := range []string{"Format", "FormatLegacy"} {
		t.Run(method, func(t *testing.T) {
			inProcesses(t, func(t *testing.T, node *winsim.Node, first, second win.Machine) {
				t.Helper()
				if method == "FormatLegacy" {
					inject(t, node, winsim.Fault{Call: "Format", Error: uint32(winerr.StorageNotSupported)})
				}
				var others sync.WaitGroup
				formats := func() {
					host := volumeapi.NewOn(first)
					err := host.FormatVolume(id)
					if errors.Is(err, winerr.Unavailable) { // its caller tries again
						err = host.FormatVolume(id)
					}
					if err != nil {
						t.Errorf("the first process: %v", err)
						return
					}
					use(t, node)
				}
				inject(t, node, winsim.Fault{Call: method, Times: 1, Delay: 7 * time.Second, Do: func(*winsim.Node) { others.Go(formats) }})
				if err := volumeapi.NewOn(second).FormatVolume(id); err != nil {
					t.Errorf("the second process: %v", err)
				}
				others.Wait()
				wantUsed(t, node)
			})
		})
	}
}

// TestFormatVolume_LongInAnotherProcess: a caller does not wait for ever, and a question waits too: what a format has
// written so far looks like foreign data.
func TestFormatVolume_LongInAnotherProcess(t *testing.T) {
	inProcesses(t, func(t *testing.T, node *winsim.Node, first, second win.Machine) {
		t.Helper()
		must(t, node.WriteDisk(firstDisk, partitionOffset(t, node), []byte("half of a file system"+string(make([]byte, 491)))))
		inject(t, node, winsim.Fault{Call: "Format", Times: 1, Delay: 15 * time.Second})
		done := make(chan error, 1)
		go func() { done <- volumeapi.NewOn(first, volumeapi.FormatOverExisting()).FormatVolume(id) }()
		synctest.Wait()
		host := volumeapi.NewOn(second)
		_, err := host.IsVolumeFormatted(id)
		wantKind(t, "IsVolumeFormatted", err, winerr.Unavailable, "another process formats it")
		wantFormatted(t, host, id, true)
		must(t, <-done)
	})
}

func partitionOffset(t *testing.T, node *winsim.Node) int64 {
	t.Helper()
	extents, err := node.VolumeExtents(t.Context(), win.VolumeID(id))
	must(t, err)
	return extents[0].Offset
}

// TestFormatVolume_ProcessDies: what a process has asked for before its end is carried out by Windows long after the next
// process has seen that the volume is empty.
func TestFormatVolume_ProcessDies(t *testing.T) {
	inProcesses(t, func(t *testing.T, node *winsim.Node, first, second win.Machine) {
		t.Helper()
		inject(t, node, winsim.Fault{Call: "Format", Times: 1, Delay: 90 * time.Second})
		go func() { _ = volumeapi.NewOn(first).FormatVolume(id) }()
		synctest.Wait()
		first.(interface{ End() }).End()

		host := volumeapi.NewOn(second)
		wantFormatted(t, host, id, false)
		begin := time.Now()
		for twice := range 2 {
			wantKind(t, "at once", host.FormatVolume(id), winerr.Unavailable, "try again in 2 minutes")
			if waited := time.Since(begin); waited != time.Duration(twice)*10*time.Second {
				t.Errorf("it took %v", waited)
			}
		}
		time.Sleep(2 * time.Minute)
		must(t, host.FormatVolume(id))
		wantCalls(t, node, "Format", 1) // the first process' only
		use(t, node)
		must(t, host.FormatVolume(id))
		wantUsed(t, node)
	})
}

// TestFormatVolume_NoAnswer: the lock stays while Windows may still carry out a format that this process has given up.
func TestFormatVolume_NoAnswer(t *testing.T) {
	inProcesses(t, func(t *testing.T, node *winsim.Node, first, second win.Machine) {
		t.Helper()
		inject(t, node, winsim.Fault{Call: "Format", Times: 1, Delay: 11 * time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		wantKind(t, "the first process", bind(ctx, volumeapi.NewOn(first)).FormatVolume(id), winerr.Deadline, id)
		wantKind(t, "the second process", volumeapi.NewOn(second).FormatVolume(id), winerr.Unavailable, "another process")
		time.Sleep(2 * time.Minute)
		must(t, volumeapi.NewOn(second).FormatVolume(id))
		wantCalls(t, node, "Format", 1)
	})
}

// TestFormatVolume_Force: a volume that a program has open is not formatted, unless the operator insists.
func TestFormatVolume_Force(t *testing.T) {
	for _, insists := range []bool{false, true} {
		node := nodeWith(t, unformatted())
		var options []volumeapi.Option
		if insists {
			options = append(options, volumeapi.FormatOverExisting())
		}
		inject(t, node, winsim.Fault{Call: "Format", Times: 1, Do: func(n *winsim.Node) { // past all that this process checks
			must(t, n.Process(nil).FormatLegacy(t.Context(), win.VolumeID(id), win.FormatOptions{}))
			use(t, n)
			_, err := n.Hold(mount + `\precious`)
			must(t, err)
		}})
		must(t, volumeapi.NewOn(node, options...).FormatVolume(id))
		if node.Exists(mount+`\precious`) == insists {
			t.Errorf("insists = %v, and the file is there: %v", insists, !insists)
		}
	}
}
