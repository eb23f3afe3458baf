package plugin_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// The delays of a machine that is neither idle nor overloaded. Questions to a device are answered by drivers
// without a transfer; 1 ms is the shortest that a timer keeps here. Windows makes volumes in the background,
// usually within 20 to 300 ms, and its storage service needs a while to notice them.
const (
	formatTime    = 800 * time.Millisecond
	volumeArrival = 150 * time.Millisecond
	volumeGrowth  = 50 * time.Millisecond
	serviceDelay  = 300 * time.Millisecond
)

// delays are how long calls take, and how long Windows needs after them until what they did shows. Questions
// about files take microseconds, so they are not delayed.
var delays = []struct {
	takes, after time.Duration
	calls        []string
}{
	{takes: time.Millisecond, calls: []string{ // questions to devices, and small changes of files
		"DiskDevices", "DeviceNumber", "DeviceDescriptor", "DeviceIdentifiers", "DeviceLocation", "SCSIAddress", "DiskGeometry", "DiskAttributes",
		"StorageAdapters", "VolumeIDs", "VolumeExtents", "VolumePaths", "VolumeSpace", "FileSystem", "NTFSVolumeData", "SystemVolumes", "OnlineVolume",
		"RootSecurity", "CreateDirectory", "CreateDirectoryLink", "Remove",
	}},
	{takes: 2 * time.Millisecond, calls: []string{"DriveLayout", "ReadDevice"}}, // reads from the disk
	{takes: 5 * time.Millisecond, calls: []string{"UpdateDisk", "UpdateDriveSize", "SetMountPoint", "DeleteMountPoint"}},
	{takes: 20 * time.Millisecond, calls: []string{"SetDiskAttributes", "FlushVolume", "CreateDisk"}},
	{takes: 100 * time.Millisecond, calls: []string{"RescanAdapter", "RefreshStorageCache", "ExtendVolume"}},
	{takes: 20 * time.Millisecond, after: volumeArrival, calls: []string{"SetDriveLayout"}},
	{takes: 20 * time.Millisecond, after: volumeGrowth, calls: []string{"GrowPartition"}},
	{takes: 20 * time.Millisecond, after: formatTime, calls: []string{"Format"}}, // a call of WMI
}

// span is a time in which the machine works.
type span struct{ from, to time.Time }

// machine is an emulated node with blank data disks that takes its time, and notes when it worked.
type machine struct {
	*winsim.Node
	mu    sync.Mutex
	spans []span
	after map[string]span // the last of a call: of an earlier one that was refused nothing shows
}

// newMachine returns a machine with so many data disks. Their serial numbers are those of serial.
func newMachine(tb testing.TB, disks int) *machine {
	tb.Helper()
	model := winsim.Default()
	model.RealTime = true
	model.Storage.FormatTime, model.Storage.VolumeArrival, model.Storage.GrowDelay = formatTime, volumeArrival, volumeGrowth
	model.Storage.ServiceDelay = serviceDelay
	model.Disks = model.Disks[:1]
	for i := range disks {
		model.Disks = append(model.Disks, winsim.Disk{Size: 10 * winsim.GiB, Serial: serial(i), SCSI: &winsim.SCSI{Port: 1, Target: uint8(i), BusNumber: "0"}})
	}
	node, err := winsim.New(model)
	must(tb, err)
	m := &machine{Node: node, after: map[string]span{}}
	for _, delay := range delays {
		for _, call := range delay.calls {
			m.delay(tb, call, delay.takes, delay.after)
		}
	}
	return m
}

func serial(i int) string { return fmt.Sprintf("LIFE%04d", i) }

// delay makes a call take its time. It notes how long it really took: a timer can be late.
func (m *machine) delay(tb testing.TB, call string, takes, after time.Duration) {
	tb.Helper()
	wait := func(*winsim.Node) {
		from := time.Now()
		time.Sleep(takes)
		to := time.Now()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.spans = append(m.spans, span{from, to})
		if after > 0 {
			m.after[call] = span{to, to.Add(after)}
		}
	}
	if _, err := m.Inject(winsim.Fault{Call: call, Do: wait}); err != nil {
		tb.Fatal(err)
	}
}

// forget forgets what the machine did so far.
func (m *machine) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spans = nil
	clear(m.after)
}

// worked is how long the machine worked within a span, at one thing or several. With one volume at a time that
// is the part of its critical path that is not ours.
func (m *machine) worked(within span) (total time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	spans := slices.Clone(m.spans)
	for _, s := range m.after {
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	end := within.from
	for _, s := range spans {
		if s.from.Before(end) {
			s.from = end
		}
		if s.to.After(within.to) {
			s.to = within.to
		}
		if s.to.After(s.from) {
			total += s.to.Sub(s.from)
			end = s.to
		}
	}
	return total
}

// must ends the test if err is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
