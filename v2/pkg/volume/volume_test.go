package volume_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/grouptest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

type fakeHost struct {
	volumeapi.HostAPI // nil: nothing else is called
	*grouptest.Recorder
}

func (f fakeHost) MountVolume(id, path string) error { return f.Note("mount", id, path) }

func (f fakeHost) FormatVolume(id string) error { return f.Note("format", id) }

func (f fakeHost) ResizeVolume(id string, size int64) error { return f.Note("resize", id, size) }

func newFake() fakeHost { return fakeHost{Recorder: &grouptest.Recorder{}} }

func newVolume(t *testing.T, host volumeapi.HostAPI) *volume.Volume {
	t.Helper()
	v, err := volume.New(host)
	require.NoError(t, err)
	return v
}

func TestNew_NilHost(t *testing.T) {
	if _, err := volume.New(nil); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("New(nil) = %v, want an invalid-argument error", err)
	}
}

func TestWorkingDirs_Refuses(t *testing.T) {
	for name, option := range map[string]volume.Option{
		"none":         volume.WorkingDirs(),
		"relative":     volume.WorkingDirs(`kubelet`),
		"foreign host": volume.WorkingDirs(`C:\var\lib\kubelet`),
	} {
		if _, err := volume.New(newFake(), option); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

func TestVolume_EveryMethod(t *testing.T) {
	grouptest.EveryMethod[volume.Extended](t, newVolume(t, fakeHost{}))
}

// TestVolume_CleansPaths shows what hosts can rely on.
func TestVolume_CleansPaths(t *testing.T) {
	host := newFake()
	v := newVolume(t, host)
	if _, err := v.MountVolume(t.Context(), &volume.MountVolumeRequest{VolumeID: "V1", TargetPath: `c:\x\`}); err != nil {
		t.Error(err)
	}
	if want := []string{`mount V1 C:\x`}; !slices.Equal(host.Calls, want) {
		t.Errorf("host saw %q, want %q", host.Calls, want)
	}
}

// TestVolume_WithoutDrive: a path without a drive is on that of Windows, for the policy, too. A host that a driver has written
// knows none.
func TestVolume_WithoutDrive(t *testing.T) {
	node := stagedNode(t)
	host := node.Volume()
	for _, limits := range [][]volume.Option{nil, {volume.WorkingDirs(`C:\var\lib\kubelet`)}} {
		v, err := volume.New(host, limits...)
		require.NoError(t, err)
		for _, path := range []string{staged[2:], strings.ReplaceAll(staged[2:], `\`, "/") + "/", `/var\lib` + staged[len(`C:\var\lib`):]} {
			found, err := v.GetVolumeIDFromTargetPath(t.Context(), &volume.GetVolumeIDFromTargetPathRequest{TargetPath: path})
			require.NoError(t, err)
			closest, err := v.GetClosestVolumeIDFromTargetPath(t.Context(), &volume.GetClosestVolumeIDFromTargetPathRequest{TargetPath: path})
			require.NoError(t, err)
			if found.VolumeID != closest.VolumeID {
				t.Errorf("%s: %s and %s", path, found.VolumeID, closest.VolumeID)
			}
			for range 2 {
				_, err = v.UnmountVolume(t.Context(), &volume.UnmountVolumeRequest{VolumeID: found.VolumeID, TargetPath: path})
				require.NoError(t, err)
			}
			_, err = v.MountVolume(t.Context(), &volume.MountVolumeRequest{VolumeID: found.VolumeID, TargetPath: path})
			require.NoError(t, err)
		}
		for _, bad := range []string{`\\server\share`, `/\x`, `\??\` + staged, `\` + staged, `\x\..\y`, "/.", `\NUL`} {
			if _, err := v.GetVolumeIDFromTargetPath(t.Context(), &volume.GetVolumeIDFromTargetPathRequest{TargetPath: bad}); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%s: %v, want it refused", bad, err)
			}
		}
		_, err = v.GetVolumeIDFromTargetPath(t.Context(), &volume.GetVolumeIDFromTargetPathRequest{TargetPath: `\Windows`})
		if want := map[bool]error{true: fs.ErrNotExist, false: fs.ErrPermission}[limits == nil]; !errors.Is(err, want) {
			t.Errorf(`\Windows: %v, want %v`, err, want)
		}
	}
	for _, call := range []string{"SystemVolumes", "VolumePaths"} {
		fault, err := node.Inject(winsim.Fault{Call: call, Error: 1117})
		require.NoError(t, err)
		if _, err := newVolume(t, host).GetVolumeIDFromTargetPath(t.Context(), &volume.GetVolumeIDFromTargetPathRequest{TargetPath: `\x`}); err == nil || !strings.Contains(err.Error(), "drive of Windows") {
			t.Errorf("%s fails: %v", call, err)
		}
		fault.Remove()
	}
	if _, err := newVolume(t, newFake()).MountVolume(t.Context(), &volume.MountVolumeRequest{VolumeID: "V1", TargetPath: `\x`}); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a host without drives: %v", err)
	}
}

// TestVolume_AcceptDiskNumbers: only ResizeVolume takes a disk number, and only if asked to.
func TestVolume_AcceptDiskNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		options []volume.Option
		on      []string // the disk
		want    []string // the host sees
		kind    error
	}{
		"off":          {nil, []string{"V1"}, []string{"resize 7 5"}, nil},
		"one volume":   {[]volume.Option{volume.AcceptDiskNumbers()}, []string{"V1"}, []string{"list 7 0", "resize V1 5"}, nil},
		"no volume":    {[]volume.Option{volume.AcceptDiskNumbers()}, nil, []string{"list 7 0"}, fs.ErrNotExist},
		"many volumes": {[]volume.Option{volume.AcceptDiskNumbers()}, []string{"V1", "V2"}, []string{"list 7 0"}, fs.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			host := &listingHost{newFake(), c.on}
			v, err := volume.New(host, c.options...)
			require.NoError(t, err)
			_, err = v.ResizeVolume(t.Context(), &volume.ResizeVolumeRequest{VolumeID: "7", SizeBytes: 5})
			if !errors.Is(err, c.kind) || !slices.Equal(host.Calls, c.want) {
				t.Errorf("got %v, want %v; the host saw %q, want %q", err, c.kind, host.Calls, c.want)
			}
		})
	}
}

// TestResizeVolume_DiskNumber never grows a volume while the disk may have another.
func TestResizeVolume_DiskNumber(t *testing.T) {
	const first, second = `\\?\Volume{11111111-0000-4000-8000-000000000000}\`, `\\?\Volume{22222222-0000-4000-8000-000000000000}\`
	basic := func(id string) winsim.Partition {
		return winsim.Partition{Size: 100 * winsim.MiB, Volume: &winsim.Volume{ID: id}}
	}
	hides := func(code uint32) []winsim.Fault {
		return []winsim.Fault{{Call: "DeviceNumber", Object: "*11111111*", Error: code}, {Call: "VolumeExtents", Object: "*11111111*", Error: code}}
	}
	for name, c := range map[string]struct {
		partitions []winsim.Partition
		faults     []winsim.Fault
		grows      bool
	}{
		"one":                  {partitions: []winsim.Partition{{Type: "msr"}, basic(second)}, grows: true},
		"two":                  {partitions: []winsim.Partition{basic(first), basic(second)}},
		"two, one gone (2)":    {partitions: []winsim.Partition{basic(first), basic(second)}, faults: hides(2)},
		"two, one fails (1)":   {partitions: []winsim.Partition{basic(first), basic(second)}, faults: hides(1)},
		"two, one fails (21)":  {partitions: []winsim.Partition{basic(first), basic(second)}, faults: hides(21)},
		"two, one fails (31)":  {partitions: []winsim.Partition{basic(first), basic(second)}, faults: hides(31)},
		"two, one fails (87)":  {partitions: []winsim.Partition{basic(first), basic(second)}, faults: hides(87)},
		"two, one dies (1117)": {partitions: []winsim.Partition{basic(first), basic(second)}, faults: hides(1117)},
		"two, no table": {
			partitions: []winsim.Partition{basic(first), basic(second)},
			faults:     append(hides(2), winsim.Fault{Call: "DriveLayout", Times: 1, Error: 50}),
		},
		"recovery": {partitions: []winsim.Partition{{Type: "recovery", Size: 100 * winsim.MiB, Volume: &winsim.Volume{ID: second}}}},
	} {
		t.Run(name, func(t *testing.T) {
			model := winsim.Default()
			model.Disks = append(model.Disks[:1:1], winsim.Disk{Number: 7, Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: c.partitions})
			node, err := winsim.New(model)
			require.NoError(t, err)
			before, err := node.DiskFingerprint(7)
			require.NoError(t, err)
			for _, fault := range c.faults {
				if _, err := node.Inject(fault); err != nil {
					t.Fatal(err)
				}
			}
			v, err := volume.New(node.Volume(), volume.AcceptDiskNumbers())
			require.NoError(t, err)
			_, err = v.ResizeVolume(t.Context(), &volume.ResizeVolumeRequest{VolumeID: "7"})
			after, fingerprintErr := node.DiskFingerprint(7)
			if (err == nil) != c.grows || (before != after) != c.grows || fingerprintErr != nil {
				t.Errorf("got %v, %v; changed: %v; want growth: %v", err, fingerprintErr, before != after, c.grows)
			}
		})
	}
}

// listingHost is a fakeHost whose disks have the given volumes.
type listingHost struct {
	fakeHost
	volumes []string
}

func (h *listingHost) ListVolumesOnDisk(disk, partition uint32) ([]string, error) {
	return h.volumes, h.Note("list", disk, partition)
}

// formatter is a host that takes options.
type formatter struct {
	volumeapi.Extended // nil: nothing else is called
	fake               fakeHost
}

func (f formatter) WithContext(context.Context) volumeapi.HostAPI { return f }

func (f formatter) FormatVolume(id string) error { return f.fake.FormatVolume(id) }

func (f formatter) FormatVolumeWithOptions(id string, options volumeapi.FormatOptions) error {
	return f.fake.Note("format", id, options.AllocationUnitSize, options.Label, options.RootAccess)
}

// TestFormatVolume_Options: fields of the request come before defaults; a host that cannot take
// them is asked only without any.
func TestFormatVolume_Options(t *testing.T) {
	defaults := volume.FormatDefaults(volumeapi.FormatOptions{AllocationUnitSize: 4096, Label: "default"})
	for name, c := range map[string]struct {
		options []volume.Option
		request volume.FormatVolumeRequest
		want    string
		plain   bool // a host without options can do it, too
	}{
		"nothing":         {request: volume.FormatVolumeRequest{VolumeID: "V1"}, want: "format V1", plain: true},
		"a label":         {request: volume.FormatVolumeRequest{VolumeID: "V1", Label: "x"}, want: "format V1 0 x"},
		"defaults":        {options: []volume.Option{defaults}, request: volume.FormatVolumeRequest{VolumeID: "V1"}, want: "format V1 4096 default"},
		"more than those": {options: []volume.Option{defaults}, request: volume.FormatVolumeRequest{VolumeID: "V1", AllocationUnitSize: 512, RootAccess: "users-modify"}, want: "format V1 512 default users-modify"},
	} {
		t.Run(name, func(t *testing.T) {
			able := formatter{fake: newFake()}
			v, err := volume.New(able, c.options...)
			require.NoError(t, err)
			if _, err := v.FormatVolume(t.Context(), &c.request); err != nil || !slices.Equal(able.fake.Calls, []string{c.want}) {
				t.Errorf("%q, %v, want %q", able.fake.Calls, err, c.want)
			}
			plain := newFake()
			v, err = volume.New(plain, c.options...)
			require.NoError(t, err)
			if _, err := v.FormatVolume(t.Context(), &c.request); c.plain != (err == nil) || (err != nil && !errors.Is(err, errors.ErrUnsupported)) || len(plain.Calls) != len(able.fake.Calls) && c.plain {
				t.Errorf("without options: %q, %v", plain.Calls, err)
			}
		})
	}
	if _, err := volume.New(newFake(), volume.FormatDefaults(volumeapi.FormatOptions{Label: "a/b"})); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a wrong default: %v", err)
	}
}
