package disk_test

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/grouptest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
)

// fakeHost is a machine with one disk, number 3. It notes the calls that change
// the disk, and fails the calls named in fail.
type fakeHost struct {
	mu          sync.Mutex
	fail        map[string]error
	initialized bool
	partitioned bool
	online      bool
	changes     []string

	// afterInitialize runs at the end of InitializeDisk, if set.
	afterInitialize func()
}

func (f *fakeHost) check(call string, number uint32) error {
	if err := f.fail[call]; err != nil {
		return err
	}
	if number != 3 {
		return winerr.FileNotFound
	}
	return nil
}

func (f *fakeHost) change(call string, number uint32, flag *bool, value bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(call, number); err != nil {
		return err
	}
	f.changes = append(f.changes, call)
	*flag = value
	return nil
}

func (f *fakeHost) read(call string, number uint32, flag *bool) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *flag, f.check(call, number)
}

func (f *fakeHost) ListDiskLocations() (map[uint32]diskapi.DiskLocation, error) {
	return map[uint32]diskapi.DiskLocation{3: {Adapter: "1", Bus: "0", Target: "2", LUNID: "7"}}, f.check("ListDiskLocations", 3)
}

func (f *fakeHost) ListDiskIDs() (map[uint32]diskapi.DiskIDs, error) {
	return map[uint32]diskapi.DiskIDs{3: {Page83: "Google  pvc-1", SerialNumber: "S1"}}, f.check("ListDiskIDs", 3)
}

func (f *fakeHost) IsDiskInitialized(n uint32) (bool, error) {
	return f.read("IsDiskInitialized", n, &f.initialized)
}

func (f *fakeHost) InitializeDisk(n uint32) error {
	if f.afterInitialize != nil {
		defer f.afterInitialize()
	}
	return f.change("InitializeDisk", n, &f.initialized, true)
}

func (f *fakeHost) BasicPartitionsExist(n uint32) (bool, error) {
	return f.read("BasicPartitionsExist", n, &f.partitioned)
}

func (f *fakeHost) CreateBasicPartition(n uint32) error {
	return f.change("CreateBasicPartition", n, &f.partitioned, true)
}

func (f *fakeHost) Rescan() error { return f.check("Rescan", 3) }

func (f *fakeHost) GetDiskStats(n uint32) (int64, error) {
	return 4096, f.check("GetDiskStats", n)
}

func (f *fakeHost) SetDiskState(n uint32, online bool) error {
	return f.change("SetDiskState", n, &f.online, online)
}

func (f *fakeHost) GetDiskState(n uint32) (bool, error) { return f.read("GetDiskState", n, &f.online) }

func newDisk(t *testing.T, host diskapi.HostAPI) *disk.Disk {
	t.Helper()
	d, err := disk.New(host)
	require.NoError(t, err)
	return d
}

func TestNew_NilHost(t *testing.T) {
	if _, err := disk.New(nil); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("New(nil) = %v, want an invalid-argument error", err)
	}
}

func TestDisk_PartitionDisk(t *testing.T) {
	tests := []struct {
		name        string
		initialized bool
		partitioned bool
		want        []string
	}{
		{"empty disk", false, false, []string{"InitializeDisk", "CreateBasicPartition"}},
		{"partition table only", true, false, []string{"CreateBasicPartition"}},
		{"partitioned disk", true, true, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			host := &fakeHost{initialized: tt.initialized, partitioned: tt.partitioned}
			d := newDisk(t, host)
			// The second call is the retry of a driver that lost the answer.
			for range 2 {
				if _, err := d.PartitionDisk(t.Context(), &disk.PartitionDiskRequest{DiskNumber: 3}); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(host.changes, tt.want) {
				t.Errorf("host was changed by %q, want %q", host.changes, tt.want)
			}
		})
	}
}

func TestDisk_PartitionDisk_StepFails(t *testing.T) {
	tests := []struct {
		step string
		want []string // changes made before it
	}{
		{"IsDiskInitialized", nil},
		{"InitializeDisk", nil},
		{"BasicPartitionsExist", []string{"InitializeDisk"}},
		{"CreateBasicPartition", []string{"InitializeDisk"}},
	}
	for _, tt := range tests {
		t.Run(tt.step, func(t *testing.T) {
			host := &fakeHost{fail: map[string]error{tt.step: winerr.AccessDenied}}
			_, err := newDisk(t, host).PartitionDisk(t.Context(), &disk.PartitionDiskRequest{DiskNumber: 3})
			if !errors.Is(err, winerr.Denied) || !errors.Is(err, fs.ErrPermission) {
				t.Errorf("err = %v, want kind %v", err, winerr.Denied)
			}
			if err != nil && strings.Count(err.Error(), "disk 3") != 1 {
				t.Errorf("err = %q, want it to name disk 3 once", err)
			}
			if !slices.Equal(host.changes, tt.want) {
				t.Errorf("host was changed by %q, want %q", host.changes, tt.want)
			}
		})
	}
}

func TestDisk_PartitionDisk_CancelledHalfWay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	host := &fakeHost{afterInitialize: cancel}
	_, err := newDisk(t, host).PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: 3})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want %v", err, context.Canceled)
	}
	if want := []string{"InitializeDisk"}; !slices.Equal(host.changes, want) {
		t.Errorf("host was changed by %q, want %q", host.changes, want)
	}
}

// call is one method with a good request, and the same with none.
type call struct {
	host  string // the call of the host that does the work
	do    func(context.Context, disk.Interface) error
	doNil func(context.Context, disk.Interface) error
}

func method[In, Out any](host string, m func(disk.Interface, context.Context, *In) (*Out, error), in *In) call {
	with := func(in *In) func(context.Context, disk.Interface) error {
		return func(ctx context.Context, d disk.Interface) error {
			_, err := m(d, ctx, in)
			return err
		}
	}
	return call{host, with(in), with(nil)}
}

var calls = map[string]call{
	"GetDiskState":      method("GetDiskState", disk.Interface.GetDiskState, &disk.GetDiskStateRequest{DiskNumber: 3}),
	"GetDiskStats":      method("GetDiskStats", disk.Interface.GetDiskStats, &disk.GetDiskStatsRequest{DiskNumber: 3}),
	"ListDiskIDs":       method("ListDiskIDs", disk.Interface.ListDiskIDs, &disk.ListDiskIDsRequest{}),
	"ListDiskLocations": method("ListDiskLocations", disk.Interface.ListDiskLocations, &disk.ListDiskLocationsRequest{}),
	"PartitionDisk":     method("IsDiskInitialized", disk.Interface.PartitionDisk, &disk.PartitionDiskRequest{DiskNumber: 3}),
	"Rescan":            method("Rescan", disk.Interface.Rescan, &disk.RescanRequest{}),
	"SetDiskState":      method("SetDiskState", disk.Interface.SetDiskState, &disk.SetDiskStateRequest{DiskNumber: 3}),
}

func TestDisk_EveryMethod(t *testing.T) {
	if got, want := len(calls), reflect.TypeFor[disk.Interface]().NumMethod(); got != want {
		t.Fatalf("%d methods are tested, Interface has %d", got, want)
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			if err := call.doNil(t.Context(), newDisk(t, &fakeHost{})); !errors.Is(err, winerr.Invalid) {
				t.Errorf("without a request: %v, want kind %v", err, winerr.Invalid)
			}
			if err := call.do(grouptest.Cancelled(t), newDisk(t, &fakeHost{})); !errors.Is(err, context.Canceled) {
				t.Errorf("with a cancelled context: %v, want %v", err, context.Canceled)
			}
			plain := errors.New("lightning struck")
			for _, cause := range []error{winerr.DeviceNotConnected, context.DeadlineExceeded, plain} {
				host := &fakeHost{fail: map[string]error{call.host: cause}}
				err := call.do(t.Context(), newDisk(t, host))
				if !errors.Is(err, cause) || winerr.KindOf(err) != winerr.KindOf(cause) {
					t.Errorf("host fails with %v: got %v of kind %v, want kind %v", cause, err, winerr.KindOf(err), winerr.KindOf(cause))
				}
			}
		})
	}
}

// bindableHost is a host that takes the context of a request, as ours do.
type bindableHost struct {
	fakeHost
	bound []context.Context
}

func (b *bindableHost) WithContext(ctx context.Context) diskapi.HostAPI {
	b.bound = append(b.bound, ctx)
	return &b.fakeHost
}

func TestDisk_ContextReachesHost(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "the caller's")
	for name, call := range calls {
		host := &bindableHost{}
		if err := call.do(ctx, newDisk(t, host)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(host.bound) != 1 || host.bound[0].Value(key{}) == nil {
			t.Errorf("%s: host was bound to %v, want once to the caller's context", name, host.bound)
		}
	}
}
