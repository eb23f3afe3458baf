package disk_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
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
	diskapi.HostAPI // nil: nothing else is called
	fail            map[string]error
	initialized     bool
	partitioned     bool
	changes         []string

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

func (f *fakeHost) change(call string, number uint32, flag *bool) error {
	if err := f.check(call, number); err != nil {
		return err
	}
	f.changes = append(f.changes, call)
	*flag = true
	return nil
}

func (f *fakeHost) ListDiskIDs() (map[uint32]diskapi.DiskIDs, error) {
	return map[uint32]diskapi.DiskIDs{3: {Page83: "Google  pvc-1", SerialNumber: "S1"}}, nil
}

func (f *fakeHost) IsDiskInitialized(n uint32) (bool, error) {
	return f.initialized, f.check("IsDiskInitialized", n)
}

func (f *fakeHost) InitializeDisk(n uint32) error {
	if f.afterInitialize != nil {
		defer f.afterInitialize()
	}
	return f.change("InitializeDisk", n, &f.initialized)
}

func (f *fakeHost) BasicPartitionsExist(n uint32) (bool, error) {
	return f.partitioned, f.check("BasicPartitionsExist", n)
}

func (f *fakeHost) CreateBasicPartition(n uint32) error {
	return f.change("CreateBasicPartition", n, &f.partitioned)
}

func (f *fakeHost) GetDiskReadOnly(n uint32) (bool, error) {
	return slices.Contains(f.changes, "SetDiskReadOnly"), f.check("GetDiskReadOnly", n)
}

func (f *fakeHost) SetDiskReadOnly(n uint32, isReadOnly bool) error {
	return f.change("SetDiskReadOnly", n, &isReadOnly)
}

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

// TestDisk_ReadOnly: a host as published can do it, unless the request says which disk it means.
func TestDisk_ReadOnly(t *testing.T) {
	d := newDisk(t, &fakeHost{})
	_, err := d.SetDiskReadOnly(t.Context(), &disk.SetDiskReadOnlyRequest{DiskNumber: 3, IsReadOnly: true, MustBe: disk.MustBe{Serial: "S1"}})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("with MustBe: %v, want %v", err, errors.ErrUnsupported)
	}
	for _, want := range []bool{false, true} {
		got, err := d.GetDiskReadOnly(t.Context(), &disk.GetDiskReadOnlyRequest{DiskNumber: 3})
		if err != nil || got.IsReadOnly != want {
			t.Errorf("read-only: %v, %v, want %v", got, err, want)
		}
		_, err = d.SetDiskReadOnly(t.Context(), &disk.SetDiskReadOnlyRequest{DiskNumber: 3, IsReadOnly: true})
		require.NoError(t, err)
	}
}

func TestDisk_EveryMethod(t *testing.T) {
	grouptest.EveryMethod[disk.Extended](t, newDisk(t, &fakeHost{}))
}
