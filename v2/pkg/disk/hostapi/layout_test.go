package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// emptyGPT is the table of a disk that was just initialized.
func emptyGPT(size, sector int64) win.DriveLayout {
	// The header takes a sector after that of the protective MBR, and 128 entries of
	// 128 bytes 32 sectors of 512 or 4 of 4096; a copy of both is at the end.
	reserved := sector + 128*128
	return win.DriveLayout{
		Style: win.StyleGPT, DiskID: win.NewGUID(), MaxPartitions: 128,
		UsableOffset: sector + reserved, UsableLength: size - sector - 2*reserved,
	}
}

func msr(offset, length int64) win.Partition {
	return win.Partition{Type: win.PartitionMSR, Name: "Microsoft reserved partition", Offset: offset, Length: length}
}

func data(offset, length int64) win.Partition {
	return win.Partition{
		Type: win.PartitionBasicData, Name: "Basic data partition", Attributes: 0x8000000000000000, Offset: offset, Length: length,
	}
}

// TestAddPartition has the numbers that Windows' own cmdlets come to.
func TestAddPartition(t *testing.T) {
	for _, c := range []struct {
		name         string
		size, sector int64
		usable       [2]int64 // checks the test itself
		there        []win.Partition
		want         []win.Partition
	}{
		{
			"1 GiB", gib, 512,
			[2]int64{17408, 1073707520},
			nil,
			[]win.Partition{msr(17408, 16759808), data(16777216, 1055916032)},
		},
		{
			"10 GiB", 10 * gib, 512,
			[2]int64{17408, 10737383936},
			nil,
			[]win.Partition{msr(17408, 16759808), data(16777216, 10719592448)},
		},
		{
			"1 GiB with large sectors", gib, 4096,
			[2]int64{24576, 1073696768},
			nil,
			[]win.Partition{msr(24576, 16752640), data(16777216, 1055916032)},
		},
		{
			"64 TiB", 64 << 40, 512,
			[2]int64{17408, 64<<40 - 34304},
			nil,
			[]win.Partition{msr(17408, 16759808), data(16777216, 64<<40-17*mib)},
		},
		{
			"the smallest with a reserved partition", 128 * mib, 512,
			[2]int64{17408, 128*mib - 34304},
			nil,
			[]win.Partition{msr(17408, 16759808), data(16*mib, 111*mib)},
		},
		{
			"the largest without", 128*mib - 512, 512,
			[2]int64{17408, 128*mib - 34816},
			nil,
			[]win.Partition{data(mib, 126*mib)},
		},
		{
			"the smallest of all", 32 * mib, 512,
			[2]int64{17408, 32*mib - 34304},
			nil,
			[]win.Partition{data(mib, 30*mib)},
		},
		{
			"a reserved partition of Windows' is kept", gib, 512,
			[2]int64{17408, 1073707520},
			[]win.Partition{msr(mib, 128*mib)},
			[]win.Partition{msr(mib, 128*mib), data(129*mib, gib-130*mib)},
		},
		{
			"a reserved partition in the middle", gib, 512,
			[2]int64{17408, 1073707520},
			[]win.Partition{msr(700*mib, 16*mib)},
			[]win.Partition{msr(700*mib, 16*mib), data(mib, 699*mib)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := emptyGPT(c.size, c.sector)
			if usable := [2]int64{before.UsableOffset, before.UsableLength}; usable != c.usable {
				t.Fatalf("the usable part is %d, want %d", usable, c.usable)
			}
			before.Partitions = c.there
			table, created, err := diskapi.WithDataPartition(before, c.size)
			require.NoError(t, err)
			if diff := cmp.Diff(c.want, table.Partitions, cmpopts.IgnoreFields(win.Partition{}, "ID", "Number")); diff != "" {
				t.Errorf("partitions (-want +got):\n%s", diff)
			}
			last := table.Partitions[len(table.Partitions)-1]
			if last != created || (created.ID == win.GUID{}) || created.Number != uint32(len(table.Partitions)) {
				t.Errorf("created %+v, the last partition is %+v", created, last)
			}
			if len(before.Partitions) != len(c.there) {
				t.Error("the table that was read has been changed")
			}
			table.Partitions, before.Partitions = nil, nil
			if diff := cmp.Diff(before, table); diff != "" {
				t.Errorf("the rest of the table has changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddPartition_NoRoom(t *testing.T) {
	full := emptyGPT(gib, 512)
	full.Partitions = []win.Partition{msr(17408, gib-9*mib)}
	for name, table := range map[string]win.DriveLayout{
		"a full disk":            full,
		"a table that says so":   {Style: win.StyleGPT, UsableOffset: 17408, UsableLength: 8 * mib},
		"a table without a size": {Style: win.StyleGPT},
		"a table with nonsense":  {Style: win.StyleGPT, UsableOffset: gib, UsableLength: -gib},
	} {
		if _, created, err := diskapi.WithDataPartition(table, 64*mib); err == nil {
			t.Errorf("%s: created %+v", name, created)
		}
	}
}

// FuzzAddPartition: whatever a driver says about a disk, the partition we make of it lies
// in the usable part, overlaps nothing and is aligned.
func FuzzAddPartition(f *testing.F) {
	f.Add(gib, int64(17408), gib-34304, int64(17408), int64(16759808))
	f.Add(int64(1), int64(-5), int64(1)<<62, int64(1)<<61, int64(-1))
	f.Fuzz(func(t *testing.T, size, usableOffset, usableLength, msrOffset, msrLength int64) {
		const limit = 1 << 60
		for _, n := range []int64{size, usableOffset, usableLength, msrOffset, msrLength} {
			if n < 0 || n > limit {
				t.Skip("winlayout lets none through")
			}
		}
		before := win.DriveLayout{Style: win.StyleGPT, UsableOffset: usableOffset, UsableLength: usableLength}
		if msrLength > 0 {
			before.Partitions = []win.Partition{msr(msrOffset, msrLength)}
		}
		table, p, err := diskapi.WithDataPartition(before, size)
		if err != nil {
			return
		}
		if p.Offset%mib != 0 || p.Length%mib != 0 || p.Length < 8*mib || p.Offset < usableOffset || p.End() > before.UsableEnd() {
			t.Errorf("partition at %d with %d bytes", p.Offset, p.Length)
		}
		for _, other := range table.Partitions {
			if other.ID != p.ID && other.Offset < p.End() && p.Offset < other.End() {
				t.Errorf("partition at %d with %d bytes overlaps %d with %d", p.Offset, p.Length, other.Offset, other.Length)
			}
		}
	})
}

func TestPartitioned(t *testing.T) {
	gpt := func(types ...win.GUID) (l win.DriveLayout) {
		l.Style = win.StyleGPT
		for _, id := range types {
			l.Partitions = append(l.Partitions, win.Partition{Type: id, Offset: mib, Length: mib})
		}
		return l
	}
	mbr := func(types ...uint8) (l win.DriveLayout) {
		l.Partitions = make([]win.Partition, 4)
		for i, id := range types {
			l.Partitions[i] = win.Partition{MBRType: id, Offset: mib, Length: mib}
		}
		return l
	}
	for _, c := range []struct {
		name      string
		layout    win.DriveLayout
		want      bool
		mountable int
	}{
		{"no table", win.DriveLayout{Style: win.StyleRaw}, false, 0},
		{"an empty GPT", gpt(), false, 0},
		{"a reserved partition", gpt(win.PartitionMSR), false, 0},
		{"a free entry of a GPT", gpt(win.GUID{}), false, 0},
		{"a basic partition", gpt(win.PartitionMSR, win.PartitionBasicData), true, 1},
		{"an EFI partition", gpt(win.PartitionEFI), true, 0},
		{"a recovery partition", gpt(win.PartitionRecovery), true, 0},
		{"a dynamic disk", gpt(win.PartitionLDMMetadata, win.PartitionMSR, win.PartitionLDMData), true, 0},
		{"an unknown type", gpt(win.NewGUID()), true, 0},
		{"an empty MBR", mbr(), false, 0},
		{"NTFS in an MBR", mbr(0x07), true, 1},
		{"Linux in an MBR", mbr(0x83), true, 0},
		{"an extended partition with nothing in it", mbr(0x05), false, 0},
		{"the same by its other name", mbr(0x0f), false, 0},
		{"the same of Linux", mbr(0x85), false, 0},
		{"a logical drive", mbr(0x0f, 0x07), true, 1},
		{"a file system without a table", win.DriveLayout{Partitions: []win.Partition{{Offset: 0, Length: gib, MBRType: 0x06}}}, true, 1},
		{"the same without a type", win.DriveLayout{Partitions: []win.Partition{{Offset: 0, Length: gib}}}, true, 0},
		{"a table of a style to come", win.DriveLayout{Style: 3}, true, 0},
	} {
		if got := diskapi.Partitioned(c.layout); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if got := c.layout.Mountable(); len(got) != c.mountable {
			t.Errorf("%s: %d volumes expected, want %d", c.name, len(got), c.mountable)
		}
	}
	hidden := gpt(win.PartitionBasicData)
	hidden.Partitions[0].Attributes = win.HiddenPartition
	if got := hidden.Mountable(); len(got) != 0 {
		t.Errorf("a hidden partition: %d volumes expected, want none", len(got))
	}
}
