package replay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

const staged = `C:\var\lib\kubelet\plugins\stage`

// life takes a volume of disk 1 through its life, and a share and a target, with the code of nodes. It
// returns what the calls have answered.
func life(ctx context.Context, t *testing.T, m win.Machine) string {
	t.Helper()
	var answers strings.Builder
	answer := func(what string, response any, err error) {
		t.Helper()
		fmt.Fprintf(&answers, "%s: %+v, %v\n", what, response, err)
	}
	disks := must(disk.New(diskapi.NewOn(m)))
	volumes := must(volume.New(volumeapi.NewOn(m)))
	files := must(filesystem.New(fsapi.NewOn(m), filesystem.WorkingDirs(`C:\var\lib\kubelet`)))

	listed, err := disks.ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
	answer("disks", len(listed.DiskIDs), err)
	_, err = disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: 1})
	answer("partition", nil, err)
	list, err := volumes.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: 1})
	answer("volumes", len(list.VolumeIDs), err)
	if len(list.VolumeIDs) != 1 {
		return answers.String()
	}
	id := list.VolumeIDs[0]
	_, err = volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: id})
	answer("format", nil, err)
	_, err = files.Mkdir(ctx, &filesystem.MkdirRequest{Path: staged})
	answer("mkdir", nil, err)
	_, err = volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: id, TargetPath: staged})
	answer("mount", nil, err)
	for _, name := range []string{`\a`, `\a\b`, `\a\c`, `\d`} {
		_, err = files.Mkdir(ctx, &filesystem.MkdirRequest{Path: `C:\var\lib\kubelet\pods\1` + name})
		answer("mkdir "+name, nil, err)
	}
	_, err = files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: staged, TargetPath: `C:\var\lib\kubelet\pods\1\mount`})
	answer("link", nil, err)
	stats, err := volumes.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeID: id})
	answer("stats", stats, err)
	_, err = volumes.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: id, TargetPath: staged})
	answer("unmount", nil, err)
	_, err = files.Rmdir(ctx, &filesystem.RmdirRequest{Path: `C:\var\lib\kubelet\pods\1`, Force: true})
	answer("rmdir", nil, err)
	return answers.String()
}

// network maps a share, logs in to a target and asks for a service.
func network(ctx context.Context, t *testing.T, m win.Machine) {
	t.Helper()
	files := must(filesystem.New(fsapi.NewOn(m)))
	shares := must(smb.New(smbapi.NewOn(m), files))
	for _, password := range []string{"wrong", "csi-Pa55"} {
		_, err := shares.NewSMBGlobalMapping(ctx, &smb.NewSMBGlobalMappingRequest{RemotePath: `\\files\data`, Username: "csi", Password: password})
		if (err == nil) != (password == "csi-Pa55") {
			t.Errorf("map with %s: %v", password, err)
		}
	}
	if _, err := shares.RemoveSMBGlobalMapping(ctx, &smb.RemoveSMBGlobalMappingRequest{RemotePath: `\\files\data`}); err != nil {
		t.Error(err)
	}
	targets := must(iscsi.New(iscsiapi.NewOn(m)))
	portal := &iscsi.TargetPortal{TargetAddress: "10.0.0.10", TargetPort: 3260}
	if _, err := targets.AddTargetPortal(ctx, &iscsi.AddTargetPortalRequest{TargetPortal: portal}); err != nil {
		t.Error(err)
	}
	found, err := targets.DiscoverTargetPortal(ctx, &iscsi.DiscoverTargetPortalRequest{TargetPortal: portal})
	if err != nil || len(found.IQNs) == 0 {
		t.Fatalf("targets %v, %v", found, err)
	}
	for _, iqn := range found.IQNs {
		request := &iscsi.ConnectTargetRequest{TargetPortal: portal, IQN: iqn}
		if _, err := targets.ConnectTarget(ctx, request); err != nil {
			request.AuthType, request.ChapUsername, request.ChapSecret = iscsi.ONE_WAY_CHAP, "csi", "winsim-secret"
			_, _ = targets.ConnectTarget(ctx, request)
		}
		_, _ = targets.GetTargetDisks(ctx, &iscsi.GetTargetDisksRequest{TargetPortal: portal, IQN: iqn})
		_, _ = targets.DisconnectTarget(ctx, &iscsi.DisconnectTargetRequest{TargetPortal: portal, IQN: iqn})
	}
	services := must(system.New(systemapi.NewOn(m)))
	if _, err := services.StartService(ctx, &system.StartServiceRequest{Name: "vds"}); err != nil {
		t.Error(err)
	}
	if _, err := services.StopService(ctx, &system.StopServiceRequest{Name: "vds"}); err != nil {
		t.Error(err)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// recorded records what use does on a node, and returns the recording.
func recorded(t *testing.T, node *winsim.Node, o record.Options, use func(win.Machine)) []byte {
	t.Helper()
	var out bytes.Buffer
	r := record.New(t.Context(), node, &out, o)
	use(r.Machine())
	r.Close()
	return out.Bytes()
}

func newNode(t *testing.T, preset string) *winsim.Node {
	t.Helper()
	model, ok := winsim.Preset(preset)
	if !ok {
		t.Fatalf("no preset %s", preset)
	}
	return must(winsim.New(model))
}

// TestCompare_Itself: a recording of the emulator has no differences from it.
func TestCompare_Itself(t *testing.T) {
	for _, preset := range []string{"default", "busy", "azure", "ebs-nvme", "gce", "vsphere"} {
		t.Run(preset, func(t *testing.T) {
			text := recorded(t, newNode(t, preset), record.Options{}, func(m win.Machine) {
				life(t.Context(), t, m)
				if preset == "default" {
					network(t.Context(), t, m)
				}
			})
			report, err := replay.Compare(t.Context(), bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			// Callers of calls in parallel leave when one has answered.
			left := func(s replay.Skip) bool { return s.Reason == "its caller had left" }
			if skipped := slices.DeleteFunc(report.Skipped, left); report.Calls < 50 || len(skipped)+len(report.Notes)+len(report.Outside) > 0 {
				t.Errorf("%d calls were compared, %v skipped, notes %q, other programs %v", report.Calls, skipped, report.Notes, report.Outside)
			}
			for _, d := range report.Differences {
				t.Error(d)
			}
		})
	}
}

// TestCompare_Planted: a node that answers one call differently is found out, and nothing else is.
func TestCompare_Planted(t *testing.T) {
	for _, test := range []struct {
		name       string
		plant      func(text string) string
		kind       replay.Kind
		methodName string
	}{
		{"code", func(text string) string {
			return strings.Replace(text, `"method":"FlushVolume"`, `"method":"FlushVolume","error":{"windows":1117}`, 1)
		}, replay.Code, "FlushVolume"},
		{"refused by our decoder", func(text string) string {
			return strings.Replace(text, `"method":"FlushVolume"`, `"method":"FlushVolume","error":{"kind":"internal error","text":"it has 20 bytes, want 48"}`, 1)
		}, replay.Code, "FlushVolume"},
		{"of an unknown kind", func(text string) string {
			return strings.Replace(text, `"method":"FlushVolume"`, `"method":"FlushVolume","error":{"kind":"other"}`, 1)
		}, replay.Code, "FlushVolume"},
		{"value", func(text string) string {
			return strings.Replace(text, `"BytesPerSector":512`, `"BytesPerSector":520`, 1)
		}, replay.Value, "DiskGeometry"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := recorded(t, newNode(t, "default"), record.Options{}, func(m win.Machine) {
				life(t.Context(), t, m)
				_ = m.FlushVolume(t.Context(), winsim.SystemVolume)
				_, _ = m.DiskGeometry(t.Context(), win.PhysicalDrive(1))
			})
			// The description stays as it is.
			lines := strings.SplitAfterN(string(text), "\n", 3)
			planted := test.plant(lines[2])
			if planted == lines[2] {
				t.Fatal("nothing was planted")
			}
			report, err := replay.Compare(t.Context(), strings.NewReader(lines[0]+lines[1]+planted))
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Differences) != 1 || report.Differences[0].Kind != test.kind || report.Differences[0].Method != test.methodName {
				t.Errorf("differences %v, want one %s of %s", report.Differences, test.kind, test.methodName)
			}
		})
	}
}

// TestCompareFile_Cut: a recording that is cut off, as text or as a compressed file, is used up to the cut, by
// both forms of replay, and the report says so once. What is no recording is refused.
func TestCompareFile_Cut(t *testing.T) {
	text := recorded(t, newNode(t, "default"), record.Options{}, func(m win.Machine) { life(t.Context(), t, m) })
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "calls")
	compare := func(content []byte) (*replay.Report, error) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return replay.CompareFile(t.Context(), path)
	}
	whole := must(compare(zipped.Bytes()))
	for name, file := range map[string][]byte{"text": text, "gzip": zipped.Bytes()} {
		most := 0
		const parts = 24 // the first are the description
		for i := parts * 3 / 4; i <= parts; i++ {
			cut := file[:len(file)*i/parts-3]
			report, err := compare(cut)
			if err != nil {
				t.Fatalf("%s, %d bytes of %d: %v", name, len(cut), len(file), err)
			}
			said := slices.DeleteFunc(report.Notes, func(note string) bool { return !strings.HasPrefix(note, "the recording is cut off, ") })
			if len(said) != 1 || len(report.Differences) > 0 || report.Calls < most {
				t.Errorf("%s, %d bytes of %d: %d calls compared, notes %q, differences %v", name, len(cut), len(file), report.Calls, report.Notes, report.Differences)
			}
			most = report.Calls
		}
		if most < whole.Calls-1 || most == 0 {
			t.Errorf("%s without its end: %d calls compared of %d", name, most, whole.Calls)
		}
	}
	half, err := gzip.NewReader(bytes.NewReader(zipped.Bytes()[:zipped.Len()*3/4]))
	if err != nil {
		t.Fatal(err)
	}
	recording := must(record.Read(half))
	if _, err := recording.Player(nil).DiskDevices(t.Context()); err != nil || !recording.Truncated || len(recording.Calls) == 0 {
		t.Errorf("%d calls, cut off %t: %v", len(recording.Calls), recording.Truncated, err)
	}
	var other bytes.Buffer
	w = gzip.NewWriter(&other)
	_, _ = io.WriteString(w, strings.Repeat("not a recording\n", 1000))
	_ = w.Close()
	bad := bytes.Clone(zipped.Bytes())
	bad[len(bad)-6] ^= 1
	for name, content := range map[string][]byte{"another file": other.Bytes()[:other.Len()-4], "checksum": bad, "gzip's header": zipped.Bytes()[:12], "text": []byte("text")} {
		if report, err := compare(content); err == nil {
			t.Errorf("%s: %+v", name, report)
		}
	}
}

// TestCompare_Order: the same elements in another order are a difference of their own kind.
func TestCompare_Order(t *testing.T) {
	text := recorded(t, newNode(t, "default"), record.Options{}, func(m win.Machine) { _, _ = m.DiskDevices(t.Context()) })
	lines := strings.SplitAfter(string(text), "\n")
	devices, _ := newNode(t, "default").DiskDevices(t.Context())
	first, second := fmt.Sprintf("%q", devices[0]), fmt.Sprintf("%q", devices[1])
	lines[2] = strings.NewReplacer(first, second, second, first).Replace(lines[2])
	report, err := replay.Compare(t.Context(), strings.NewReader(strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Differences) != 1 || report.Differences[0].Kind != replay.Order {
		t.Errorf("differences %v", report.Differences)
	}
}

// TestCompare_Fault: a fault that was injected while recording is the one difference.
func TestCompare_Fault(t *testing.T) {
	node := newNode(t, "default")
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	text := recorded(t, node, record.Options{}, func(m win.Machine) {
		if _, err := node.Inject(winsim.Fault{Call: "FlushVolume", Times: 1, Error: 1117}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_ = m.FlushVolume(t.Context(), winsim.SystemVolume)
		}
	})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var failures []string
	replay.Check(fakeT{t, &failures}, path)
	want := path + `: call 1, FlushVolume {"id":"\\\\?\\Volume{0c51a9e0-0000-0000-0000-100000000000}\\"}: code: recorded the device reported an I/O error (Windows error 1117), emulated success`
	if !slices.Equal(failures, []string{want}) {
		t.Errorf("got %q, want %s", failures, want)
	}
}

// fakeT collects failures.
type fakeT struct {
	*testing.T
	failures *[]string
}

func (f fakeT) Errorf(format string, args ...any) {
	*f.failures = append(*f.failures, fmt.Sprintf(format, args...))
}

// TestPlayer: hosts on a recorded machine give the results that they gave on the node.
func TestPlayer(t *testing.T) {
	for _, preset := range []string{"default", "azure", "busy"} {
		t.Run(preset, func(t *testing.T) {
			want := ""
			text := recorded(t, newNode(t, preset), record.Options{}, func(m win.Machine) { want = life(t.Context(), t, m) })
			recording, err := record.Read(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			got := life(t.Context(), t, recording.Player(func(err error) { t.Error(err) }))
			if got != want || !strings.Contains(got, "mount: <nil>, <nil>") {
				t.Errorf("replayed:\n%s\nrecorded:\n%s", got, want)
			}
		})
	}
}
