package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	kubelet = `C:\var\lib\kubelet`
	data    = `\\?\Volume{da7a0000-0000-0000-0000-000000000000}\`
)

// zoo is a node with one of each: disks of all styles and states, volumes in all states.
func zoo() winsim.Model {
	model := winsim.Default()
	model.Disks = append(model.Disks[:1],
		winsim.Disk{Size: 10 * winsim.GiB, Serial: "DATA", Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{
			{Type: "msr", Size: 16 * winsim.MiB},
			{Volume: &winsim.Volume{ID: data, Used: winsim.GiB}},
		}},
		winsim.Disk{Size: winsim.GiB, ReadOnly: true, Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{
			{Volume: &winsim.Volume{ID: "00000000-0000-0000-0000-000000000002", FileSystem: winsim.FAT32}},
		}},
		winsim.Disk{Size: winsim.GiB, Offline: true, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{}}},
		winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{
			{Size: 100 * winsim.MiB, Volume: &winsim.Volume{ID: "00000000-0000-0000-0000-000000000041", State: winsim.Locked}},
			{Size: 100 * winsim.MiB, Volume: &winsim.Volume{ID: "00000000-0000-0000-0000-000000000042", FileSystem: winsim.FileSystemNone}},
			{Size: 100 * winsim.MiB, Volume: &winsim.Volume{ID: "00000000-0000-0000-0000-000000000043", State: winsim.NotReady}},
			{Size: 100 * winsim.MiB, Attributes: 1 << 60, Volume: &winsim.Volume{ID: "00000000-0000-0000-0000-000000000044"}},
			{Size: 100 * winsim.MiB, Type: "linux"},
		}},
		winsim.Disk{Size: winsim.GiB}, // blank
	)
	model.Volumes = []winsim.Volume{
		{ID: "00000000-0000-0000-0000-0000000000cd", Letter: "E", CDROM: true, FileSystem: winsim.CDFS},
		{ID: "00000000-0000-0000-0000-0000000000aa", Size: winsim.GiB},
	}
	return model
}

// prepare ends the test if a preparation failed.
func prepare(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func inject(t *testing.T, node *winsim.Node, fault winsim.Fault) {
	t.Helper()
	injection, err := node.Inject(fault)
	prepare(t, err)
	t.Cleanup(injection.Remove)
}

func newNode(t *testing.T, model winsim.Model) *winsim.Node {
	t.Helper()
	node, err := winsim.New(model)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := node.OpenDirectories(); n != 0 {
			t.Errorf("%d directories are left open", n)
		}
	})
	t.Cleanup(node.Reboot) // ends what hangs
	return node
}

// inspector searches in kubelet's directory.
func inspector(t *testing.T, m win.Machine, dirs ...string) *wholenode.Node {
	t.Helper()
	if len(dirs) == 0 {
		dirs = []string{kubelet}
	}
	return newOn(t, m, wholenode.UnsafeWorkingDirs(dirs...))
}

func newOn(t *testing.T, m win.Machine, options ...wholenode.Option) *wholenode.Node {
	t.Helper()
	inspector, err := wholenode.NewOn(m, options...)
	if err != nil {
		t.Fatal(err)
	}
	return inspector
}

func describe(t *testing.T, i *wholenode.Node) wholenode.Description {
	t.Helper()
	node, err := i.Describe(t.Context(), wholenode.Links, wholenode.Shares)
	if err != nil {
		t.Fatal(err)
	}
	return *node
}

// text is a node in lines, with "?" for what is not known.
func text(n wholenode.Description) string {
	var b strings.Builder
	for _, d := range n.Disks {
		fmt.Fprintf(&b, "disk %s %s online %s read-only %s system %v %s serial %q", show(d.Number), show(d.Size), show(d.Online), show(d.ReadOnly), d.System, d.Style, d.Serial)
		if d.Location != nil {
			fmt.Fprintf(&b, " at %s:%s", d.Location.Adapter, d.Location.LUNID)
		}
		b.WriteString(problemText(d.Problems))
		for _, p := range d.Partitions {
			fmt.Fprintf(&b, "  %d %s at %d with %d read-only %v %s\n", p.Number, p.Type, p.Offset, p.Size, p.ReadOnly, short(p.VolumeID))
		}
	}
	for _, v := range n.Volumes {
		fmt.Fprintf(&b, "volume %s state %s %s %s of %s read-only %s on %v/%d %q%s", short(v.ID), v.State, v.FileSystem, show(v.Used), show(v.Total), show(v.ReadOnly), v.Disks, v.Partition, v.MountPaths, problemText(v.Problems))
	}
	for _, l := range n.Links {
		fmt.Fprintf(&b, "link %s to %s: %s\n", l.Path, short(l.VolumeID+l.Share), strings.TrimSuffix(l.Stale+problemOf(l)+" "+l.Target, " "))
	}
	for _, p := range n.Problems {
		fmt.Fprintf(&b, "problem %s\n", p)
	}
	return b.String()
}

func problemOf(l wholenode.Link) string {
	if l.Problem == nil {
		return ""
	}
	return "! " + l.Problem.Text
}

func show[T any](p *T) string {
	if p == nil {
		return "?"
	}
	return fmt.Sprint(*p)
}

// short is the end of a volume's id, which is enough here.
func short(id string) string {
	if id == "" {
		return "-"
	}
	return strings.TrimSuffix(strings.TrimPrefix(id, `\\?\Volume{`), `}\`)
}

func problemText(problems []wholenode.Problem) (text string) {
	for _, p := range problems {
		text += " ! " + p.Text
	}
	return text + "\n"
}

func TestDescribe(t *testing.T) {
	const want = `disk 0 68719476736 online true read-only false system true GPT serial "SYSTEM" at 0:0
  1 efi at 1048576 with 104857600 read-only false d0000000-0000-4000-8000-000000000001
  2 reserved at 105906176 with 16777216 read-only false -
  3 data at 122683392 with 68595744768 read-only false 0c51a9e0-0000-0000-0000-100000000000
disk 1 10737418240 online true read-only false system false GPT serial "DATA"
  1 reserved at 17408 with 16777216 read-only false -
  2 data at 17825792 with 10718543872 read-only false da7a0000-0000-0000-0000-000000000000
disk 2 1073741824 online true read-only true system false MBR serial ""
  1 data at 1048576 with 1072693248 read-only false 00000000-0000-0000-0000-000000000002
disk 3 1073741824 online false read-only false system false GPT serial ""
  1 data at 1048576 with 1071644672 read-only false -
disk 4 1073741824 online true read-only false system false GPT serial ""
  1 data at 1048576 with 104857600 read-only false 00000000-0000-0000-0000-000000000041
  2 data at 105906176 with 104857600 read-only false 00000000-0000-0000-0000-000000000042
  3 data at 210763776 with 104857600 read-only false 00000000-0000-0000-0000-000000000043
  4 data at 315621376 with 104857600 read-only true 00000000-0000-0000-0000-000000000044
  5 0fc63daf-8483-4772-8e79-3d69d8477de4 at 420478976 with 104857600 read-only false -
disk 5 1073741824 online true read-only false system false RAW serial ""
volume 00000000-0000-0000-0000-0000000000aa state formatted NTFS 16777216 of 1073737728 read-only ? on []/0 []
volume 00000000-0000-0000-0000-0000000000cd state formatted CDFS 16777216 of 10737414144 read-only ? on []/0 ["E:\\"]
volume d0000000-0000-4000-8000-000000000001 state formatted FAT32 13107200 of 104853504 read-only false on [0]/1 []
volume 0c51a9e0-0000-0000-0000-100000000000 state formatted NTFS 21491617792 of 68595740672 read-only false on [0]/3 ["C:\\"]
volume da7a0000-0000-0000-0000-000000000000 state formatted NTFS 1090519040 of 10718539776 read-only false on [1]/2 []
volume 00000000-0000-0000-0000-000000000002 state formatted FAT32 16777216 of 1072689152 read-only true on [2]/1 []
volume 00000000-0000-0000-0000-000000000041 state locked  ? of ? read-only false on [4]/1 []
volume 00000000-0000-0000-0000-000000000042 state RAW  ? of ? read-only false on [4]/2 []
volume 00000000-0000-0000-0000-000000000043 state offline  ? of ? read-only false on [4]/3 []
volume 00000000-0000-0000-0000-000000000044 state formatted NTFS 13107200 of 104853504 read-only true on [4]/4 []
`
	got := text(describe(t, inspector(t, newNode(t, zoo()))))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDescribe_NoMedium: a reader without a medium is not a disk, and its volume is not a volume.
func TestDescribe_NoMedium(t *testing.T) {
	want := text(describe(t, inspector(t, newNode(t, zoo()))))
	model := zoo()
	model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, NoMedium: true, Layout: winsim.LayoutSuperfloppy, Partitions: []winsim.Partition{{Volume: &winsim.Volume{}}}})
	if diff := cmp.Diff(want, text(describe(t, inspector(t, newNode(t, model))))); diff != "" {
		t.Error(diff)
	}
}

// reads are the calls that an inspection may make: none changes or wakes anything.
var reads = []string{
	"DeviceDescriptor", "DeviceIdentifiers", "DeviceLocation", "DeviceNumber", "DiskAttributes",
	"DiskDevices", "DiskGeometry", "DiskHealth", "DriveLayout", "FileInfo", "FileSystem", "ListDirectory",
	"Location", "NTFSVolumeData", "OpenDirectory", "ReadDevice", "ReparsePoint", "RootSecurity", "SANPolicy", "SCSIAddress", "SMBMappings",
	"SystemVolumes", "VolumeDirty", "VolumeExtents", "VolumeHealth", "VolumeIDs", "VolumePaths", "VolumeSpace",
}

// linked adds links of each kind to a node.
func linked(t *testing.T, node *winsim.Node) {
	t.Helper()
	for _, err := range []error{
		node.MountFolder(kubelet+`\plugins\kubernetes.io\csi\d\1\globalmount`, data),
		node.Symlink(kubelet+`\pods\1\volumes\kubernetes.io~csi\pv\mount`, kubelet+`\plugins\kubernetes.io\csi\d\1\globalmount`),
		node.Symlink(kubelet+`\pods\1\volumes\kubernetes.io~csi\sub\mount`, kubelet+`\plugins\kubernetes.io\csi\d\1\globalmount\none`),
		node.Symlink(kubelet+`\pods\1\volumes\kubernetes.io~csi\gone\mount`, kubelet+`\plugins\none`),
		node.Symlink(kubelet+`\pods\1\volumes\kubernetes.io~csi\fine\mount`, kubelet+`\plugins`),
		node.Symlink(kubelet+`\pods\1\volumes\kubernetes.io~csi\out\mount`, `C:\Windows`),
		node.Symlink(kubelet+`\pods\1\volumes\kubernetes.io~csi\share\mount`, `\\files\data`),
		node.Symlink(kubelet+`\pods\1\volumes\kubernetes.io~csi\loop\mount`, kubelet+`\pods\1\volumes\kubernetes.io~csi\loop\mount`),
		node.Symlink(kubelet+`\pods\1\volumes\kubernetes.io~empty-dir\x\link`, kubelet+`\plugins\none`),
		node.WriteFile(kubelet+`\pods\1\volumes\kubernetes.io~csi\pv\vol_data.json`, "{}"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDescribe_OnlyReads(t *testing.T) {
	node := newNode(t, zoo())
	linked(t, node)
	node.ResetCalls()
	describe(t, inspector(t, node))
	var made []string
	for call := range node.Calls() {
		made = append(made, call)
	}
	slices.Sort(made)
	if diff := cmp.Diff(reads, made); diff != "" {
		t.Error(diff)
	}
}

// TestDescribe_Faults fails each call in turn, for all objects: there is an answer, it says
// what it lacks, and has everything that other calls tell.
func TestDescribe_Faults(t *testing.T) {
	node := newNode(t, zoo())
	linked(t, node)
	i := inspector(t, node)
	healthy := describe(t, i)
	// Calls whose failure costs nothing that others do not report as well.
	spared := map[string]bool{"DeviceLocation": true}
	for _, call := range reads {
		for _, code := range []uint32{1117, 5, 170} {
			fault, err := node.Inject(winsim.Fault{Call: call, Error: code})
			if err != nil {
				t.Fatal(err)
			}
			got := describe(t, i)
			if fault.Hits() == 0 {
				t.Errorf("%s is not called", call)
			}
			fault.Remove()
			all := slices.Clone(got.Problems)
			for _, d := range got.Disks {
				all = append(all, d.Problems...)
			}
			for _, v := range got.Volumes {
				all = append(all, v.Problems...)
			}
			for _, l := range got.Links {
				if l.Problem != nil && l.Problem.Text != "it leads in a circle" {
					all = append(all, *l.Problem)
				}
			}
			// The offline volume's own answer, when nothing else says where it lies.
			all = slices.DeleteFunc(all, func(p wholenode.Problem) bool { return p.Object == "disk" && p.WindowsCode == 21 })
			if len(all) == 0 && !spared[call] {
				t.Errorf("%s fails with %d, and the answer does not say so:\n%s", call, code, text(got))
			}
			for _, problem := range all {
				if !strings.Contains(problem.Text, fmt.Sprintf("(Windows error %d)", code)) || problem.WindowsCode != code {
					t.Errorf("%s fails with %d, and that is said of it: %s", call, code, problem)
				}
			}
			if call != "DiskDevices" && len(got.Disks) != len(healthy.Disks) {
				t.Errorf("%s fails: %d disks, want %d", call, len(got.Disks), len(healthy.Disks))
			}
			if call != "VolumeIDs" && len(got.Volumes) != len(healthy.Volumes) {
				t.Errorf("%s fails: %d volumes, want %d", call, len(got.Volumes), len(healthy.Volumes))
			}
			if call == "VolumeIDs" { // unknown which are gone
				for _, l := range got.Links {
					if strings.Contains(l.Stale, "volume") && l.VolumeID != "" {
						t.Errorf("%s is taken for stale: %s", l.Path, l.Stale)
					}
				}
			}
		}
	}
	if diff := cmp.Diff(healthy, describe(t, i)); diff != "" {
		t.Errorf("without faults: %s", diff)
	}
}

// TestDescribe_DyingDisk: it is described, with the problem, and hides nothing, even if Windows does not know its number.
func TestDescribe_DyingDisk(t *testing.T) {
	model := winsim.Default()
	model.Disks[2].Dying = true
	got := describe(t, inspector(t, newNode(t, model)))
	if len(got.Disks) != 4 {
		t.Fatal(text(got))
	}
	sick := got.Disks[2]
	if show(sick.Number) != "2" || sick.Size == nil || sick.Serial == "" || len(sick.Problems) != 1 || sick.Problems[0] != (wholenode.Problem{Kind: wholenode.Failure, WindowsCode: 1117, Object: wholenode.Content, Text: "it cannot be read: " + ioError}) {
		t.Errorf("disk %s: %q", show(sick.Number), sick.Problems)
	}
	node := newNode(t, model)
	inject(t, node, winsim.Fault{Object: `\\.\PhysicalDrive2`, Error: 1117})
	sick = describe(t, inspector(t, node)).Disks[3]
	if sick.Number != nil || sick.Path == "" || len(sick.Problems) != 1 || sick.Problems[0] != (wholenode.Problem{Kind: wholenode.Failure, WindowsCode: 1117, Text: ioError}) {
		t.Errorf("disk %s, silent: %q", show(sick.Number), sick.Problems)
	}
}

const ioError = "the device reported an I/O error (Windows error 1117)"

// TestDescribe_Hangs: disks that never answer cost their own answers, and the caller still gets the rest, after four
// seconds at most.
func TestDescribe_Hangs(t *testing.T) {
	for _, within := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		t.Run(within.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := newNode(t, winsim.Default())
				t.Cleanup(synctest.Wait) // until what hangs has ended
				prepare(t, node.Symlink(kubelet+`\plugins\link`, kubelet+`\none`))
				for _, fault := range []winsim.Fault{
					{Object: `\\?\scsi*000002*`, Delay: time.Hour},
					{Call: "FileSystem", Object: `*0c51a9e0*`, Delay: time.Hour},
				} {
					inject(t, node, fault)
				}
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				begin := time.Now()
				got, err := inspector(t, node).Describe(ctx, wholenode.Links)
				if took := time.Since(begin); err != nil || took > min(within, 4*time.Second) {
					t.Fatal(took, err)
				}
				healthy := 0
				for _, d := range got.Disks {
					if len(d.Problems) == 0 {
						healthy++
					} else if d.Problems[0].Kind != wholenode.Silence {
						t.Error(d.Problems)
					}
				}
				if len(got.Disks) != 4 || healthy != 3 || !got.Disks[0].System || len(got.Volumes) != 2 || len(got.Links) != 1 {
					t.Error(text(*got))
				}
				if len(got.Problems) > 0 || got.Disks[0].Location == nil {
					t.Errorf("problems %q", got.Problems)
				}
			})
		})
	}
}

// TestDescribe_Failed: a caller can tell an empty list from one that a fault has cut.
func TestDescribe_Failed(t *testing.T) {
	for call, want := range map[string][3]bool{ // volumes, links, shares
		"":              {},
		"VolumeIDs":     {true, false, false},
		"ListDirectory": {false, true, false},
		"OpenDirectory": {false, true, false},
		"Location":      {false, true, false},
		"ReparsePoint":  {false, true, false},
		"SMBMappings":   {false, false, true},
	} {
		node := newNode(t, zoo())
		linked(t, node)
		if call != "" {
			inject(t, node, winsim.Fault{Call: call, Error: uint32(winerr.AccessDenied)})
		}
		found, err := inspector(t, node).Describe(t.Context(), wholenode.Links, wholenode.Shares)
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]bool{found.VolumesFailed, found.LinksFailed, found.SharesFailed}; got != want {
			t.Errorf("%s fails: got %v, want %v: %q", call, got, want, found.Problems)
		}
	}
}

func TestDescribe_Cancelled(t *testing.T) {
	node := newNode(t, zoo())
	linked(t, node)
	ctx, cancel := context.WithCancel(t.Context())
	inject(t, node, winsim.Fault{Call: "ListDirectory", Nth: 3, Do: func(*winsim.Node) { cancel() }})
	for range 2 { // half-way, and before
		if _, err := inspector(t, node).Describe(ctx, wholenode.Links); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it was cancelled", err)
		}
	}
}

// TestDescribe_ManyCallers: those who look at the same time wait for their turn, but not for long, or
// leave.
func TestDescribe_ManyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, winsim.Default())
		entered := make(chan struct{}, 10)
		fault, err := node.Inject(winsim.Fault{Call: "VolumeIDs", Delay: time.Hour, Do: func(*winsim.Node) { entered <- struct{}{} }})
		if err != nil {
			t.Fatal(err)
		}
		i := inspector(t, node)
		done := make(chan error)
		for range 8 {
			go func() {
				_, err := i.Describe(t.Context())
				done <- err
			}()
			<-entered
		}
		soon, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		refused := func(ctx context.Context, wait time.Duration) {
			start := time.Now()
			_, err := i.Describe(ctx)
			if took := time.Since(start); !errors.Is(err, winerr.NoSpace) || took != wait {
				t.Errorf("got %v after %s, want that there is no room after %s", err, took, wait)
			}
		}
		refused(soon, 500*time.Millisecond)
		refused(t.Context(), time.Second)
		leaving, leave := context.WithCancel(t.Context())
		go func() {
			_, err := i.Describe(leaving)
			done <- err
		}()
		synctest.Wait()
		leave()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("who has left: %v", err)
		}
		if len(entered) != 0 {
			t.Error("more than eight have looked")
		}
		go func() {
			_, err := i.Describe(t.Context())
			done <- err
		}()
		synctest.Wait()
		fault.Remove()
		for range 9 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// watched is a machine that notes which calls are not marked as an inspector's.
type watched struct {
	*winsim.Node
	mu     sync.Mutex
	others []string
	calls  int
}

func (m *watched) note(ctx context.Context, call string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls++; !win.IsInspector(ctx) {
		m.others = append(m.others, call)
	}
}

func (m *watched) DeviceNumber(ctx context.Context, d win.Device) (win.DeviceNumber, error) {
	m.note(ctx, "DeviceNumber")
	return m.Node.DeviceNumber(ctx, d)
}

func (m *watched) DeviceIdentifiers(ctx context.Context, d win.Device) ([]win.DeviceIdentifier, error) {
	m.note(ctx, "DeviceIdentifiers")
	return m.Node.DeviceIdentifiers(ctx, d)
}

func (m *watched) FileSystem(ctx context.Context, id win.VolumeID) (win.FileSystemInfo, error) {
	m.note(ctx, "FileSystem")
	return m.Node.FileSystem(ctx, id)
}

func (m *watched) FileInfo(ctx context.Context, path win.Path) (win.FileInfo, error) {
	m.note(ctx, "FileInfo")
	return m.Node.FileInfo(ctx, path)
}

func (m *watched) SystemVolumes(ctx context.Context) ([]win.VolumeID, error) {
	m.note(ctx, "SystemVolumes")
	return m.Node.SystemVolumes(ctx)
}

// TestDescribe_MarksItsCalls: the calls that the inspector abandons must keep no driver from a
// disk, so it marks all of them: those about disks, lists of ids, volumes and links.
func TestDescribe_MarksItsCalls(t *testing.T) {
	m := &watched{Node: newNode(t, zoo())}
	linked(t, m.Node)
	describe(t, inspector(t, m))
	if m.calls == 0 || len(m.others) != 0 {
		t.Errorf("%d calls, of which these are not marked: %q", m.calls, m.others)
	}
}

// TestDescribe_CopiedDisk: a volume that does not answer lies where its name says, unless two
// disks have a partition of that name.
func TestDescribe_CopiedDisk(t *testing.T) {
	const id = "da7a0000-0000-0000-0000-000000000000"
	for _, copied := range []bool{false, true} {
		model := zoo()
		if copied {
			model.Disks[2] = winsim.Disk{Size: 10 * winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{ID: id, Type: "linux"}}}
		}
		node := newNode(t, model)
		for _, call := range []string{"DeviceNumber", "VolumeExtents"} {
			inject(t, node, winsim.Fault{Call: call, Object: "*" + id + "*", Error: 1117})
		}
		got := describe(t, inspector(t, node))
		i := slices.IndexFunc(got.Volumes, func(v wholenode.Volume) bool { return v.ID == data })
		if i < 0 {
			t.Fatal(text(got))
		}
		v := got.Volumes[i]
		want := wholenode.Volume{Disks: []uint32{1}, Partition: 2, Problems: []wholenode.Problem{}}
		if copied {
			want = wholenode.Volume{Problems: []wholenode.Problem{{Kind: wholenode.Failure, WindowsCode: 1117, Object: "disk", Text: "disk: " + ioError}}}
		}
		if diff := cmp.Diff(want, wholenode.Volume{Disks: v.Disks, Partition: v.Partition, Problems: v.Problems}); diff != "" {
			t.Errorf("copied %v: %s", copied, diff)
		}
	}
}

// TestDescribe_Panic: a mistake of ours costs one object, and its stack stays with us.
func TestDescribe_Panic(t *testing.T) {
	var geometry, space sync.Once
	got := describe(t, inspector(t, win.Intercept(newNode(t, winsim.Default()), func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		switch c.Method {
		case "DiskGeometry":
			geometry.Do(func() { panic("boom") })
		case "VolumeSpace":
			space.Do(func() { panic("boom") })
		}
		return next(ctx)
	})))
	problems := ""
	for _, d := range got.Disks {
		problems += strings.TrimSpace(problemText(d.Problems))
	}
	for _, v := range got.Volumes {
		problems += strings.TrimSpace(problemText(v.Problems))
	}
	if diff := cmp.Diff("! internal error; see the csi-proxy log: panic: boom! volume: internal error; see the csi-proxy log: panic: boom", problems); diff != "" || len(got.Disks) != 4 || len(got.Volumes) != 2 {
		t.Errorf("%s\n%s", diff, text(got))
	}
}
