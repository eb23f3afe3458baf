package record

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// TestPlayer_GUIDs: a GUID that the host makes up for a disk or a partition stands for the recorded one, and no
// other GUID does.
func TestPlayer_GUIDs(t *testing.T) {
	const (
		disk          = win.Device(`\\.\PhysicalDrive1`)
		diskA, diskB  = "aaaaaaaa-0000-0000-0000-000000000001", "bbbbbbbb-0000-0000-0000-000000000001"
		partA, partB  = "aaaaaaaa-0000-0000-0000-000000000002", "bbbbbbbb-0000-0000-0000-000000000002"
		wrong         = "cccccccc-0000-0000-0000-000000000003"
		volume, other = win.VolumeID(`\\?\Volume{dddddddd-0000-0000-0000-000000000004}\`), win.VolumeID(`\\?\Volume{` + wrong + `}\`)
	)
	id := func(text string) win.GUID {
		t.Helper()
		made, err := win.ParseGUID(text)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	layout := func(diskID, part string, kind win.GUID) win.DriveLayout {
		return win.DriveLayout{DiskID: id(diskID), Partitions: []win.Partition{{Type: kind, ID: id(part)}}}
	}
	var out bytes.Buffer
	r := New(t.Context(), machine{conductor: &planter{}}, &out, Options{})
	use := func(m win.Machine, diskID, part string) error {
		if err := m.CreateDisk(t.Context(), disk, id(diskID)); err != nil {
			return err
		}
		return m.SetDriveLayout(t.Context(), disk, layout(diskID, part, win.PartitionBasicData))
	}
	if err := use(r.Machine(), diskA, partA); err != nil {
		t.Fatal(err)
	}
	if err := use(r.Machine(), diskA, partA); err != nil {
		t.Fatal(err)
	}
	_ = r.Machine().Format(t.Context(), volume, win.FormatOptions{})
	for _, test := range []struct {
		name string
		call func(win.Machine) error
	}{
		{"", func(m win.Machine) error { return use(m, diskB, partB) }},
		{"", func(m win.Machine) error { return use(m, diskA, partA) }},
		{"another disk", func(m win.Machine) error {
			_ = m.CreateDisk(t.Context(), disk, id(diskB))
			return m.SetDriveLayout(t.Context(), disk, layout(wrong, partB, win.PartitionBasicData))
		}},
		{"a second one for a disk", func(m win.Machine) error {
			_ = m.CreateDisk(t.Context(), disk, id(diskB))
			return m.CreateDisk(t.Context(), disk, id(wrong))
		}},
		{"the recorded one, too", func(m win.Machine) error {
			_ = m.CreateDisk(t.Context(), disk, id(diskB))
			return m.CreateDisk(t.Context(), disk, id(diskA))
		}},
		{"one for two", func(m win.Machine) error { return use(m, diskB, diskB) }},
		{"another type", func(m win.Machine) error {
			_ = m.CreateDisk(t.Context(), disk, id(diskB))
			return m.SetDriveLayout(t.Context(), disk, layout(diskB, partB, id(wrong)))
		}},
		{"another volume", func(m win.Machine) error { return m.Format(t.Context(), other, win.FormatOptions{}) }},
	} {
		recording, err := Read(bytes.NewReader(out.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		err = test.call(recording.Player(nil))
		if (err == nil) != (test.name == "") || err != nil && !strings.Contains(err.Error(), "the recording has no answer to it") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// bigMachine has a directory with more entries than are recorded.
type bigMachine struct{ win.Machine }

type bigDirectory struct{ win.Directory }

func (bigMachine) OpenDirectory(context.Context, win.Path) (win.Directory, error) {
	return bigDirectory{}, nil
}

func (bigDirectory) ListDirectory(_ context.Context, _ string, each func(win.Tree, []win.DirEntry) error) error {
	for range 3 {
		if err := each(bigDirectory{}, make([]win.DirEntry, maxEntries/2)); err != nil {
			return err
		}
	}
	return nil
}

// TestPlayer_Part: a listing of which the recording has only the beginning, because the directory was large or the
// host wanted no more, is not taken for a whole one.
func TestPlayer_Part(t *testing.T) {
	enough := errors.New("enough")
	list := func(m win.Machine, most int) (batches int, err error) {
		dir, err := m.OpenDirectory(t.Context(), win.Following(`C:\`))
		if err != nil {
			t.Fatal(err)
		}
		err = dir.ListDirectory(t.Context(), "x", func(win.Tree, []win.DirEntry) error {
			if batches++; batches == most {
				return enough
			}
			return nil
		})
		return batches, err
	}
	for _, test := range []struct {
		recorded, wants, batches int
		err                      string
	}{
		{1, 1, 1, "enough"},
		{1, 2, 1, "replay a recording: ListDirectory \"x\": the recording has only the first 2048 entries, and the host wants more; record the operation again"},
		{4, 2, 2, "enough"},
		{4, 4, 2, "replay a recording: ListDirectory \"x\": the recording has only the first 4096 entries, and the host wants more; record the operation again"},
	} {
		var out bytes.Buffer
		r := New(t.Context(), bigMachine{machine{conductor: &planter{}}}, &out, Options{})
		if batches, err := list(r.Machine(), test.recorded); batches != min(3, test.recorded) || (err == nil) != (test.recorded > 3) {
			t.Errorf("recorded %d batches, %v", batches, err)
		}
		recording, err := Read(&out)
		if err != nil {
			t.Fatal(err)
		}
		if batches, err := list(recording.Player(nil), test.wants); batches != test.batches || err == nil || err.Error() != test.err {
			t.Errorf("recorded up to %d batches, played up to %d: %d, %v", test.recorded, test.wants, batches, err)
		}
	}
}
