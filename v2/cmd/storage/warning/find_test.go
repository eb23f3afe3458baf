package warning_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/storage/warning"
)

const (
	gib     = int64(1) << 30
	pod     = `C:\k\pods\1\volumes\kubernetes.io~csi\pv\mount`
	staging = `C:\k\plugins\kubernetes.io\csi\d\1\globalmount`
)

func id(n int) string { return fmt.Sprintf(`\\?\Volume{%d}\`, n) }

// disk is a disk with one partition, which has volume n.
func disk(number uint32, n int, change ...func(*extensionv1.Disk)) *extensionv1.Disk {
	d := &extensionv1.Disk{
		Number: &number, SizeBytes: new(10 * gib), Online: new(true), ReadOnly: new(false), PartitionStyle: "GPT",
		Partitions: []*extensionv1.Partition{{Number: 1, OffsetBytes: 1 << 20, SizeBytes: 10*gib - 1<<20, Type: "data", Id: fmt.Sprint(n), VolumeId: id(n)}},
	}
	for _, c := range change {
		c(d)
	}
	return d
}

func offline(d *extensionv1.Disk) {
	d.Online, d.OfflineReason = new(false), "unknown"
	d.Partitions[0].VolumeId = ""
}

func volume(number uint32, n int, change ...func(*extensionv1.Volume)) *extensionv1.Volume {
	v := &extensionv1.Volume{
		Id: id(n), State: extensionv1.VolumeFormatted, FileSystem: "NTFS", TotalBytes: new(10*gib - 1<<20), UsedBytes: new(gib),
		Disks: []uint32{number}, Partition: 1,
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func node(disks []*extensionv1.Disk, volumes []*extensionv1.Volume, links ...*extensionv1.Link) *extensionv1.Node {
	return &extensionv1.Node{Disks: disks, Volumes: volumes, Links: links, LinksSearched: true, SharesListed: true, SessionsListed: true}
}

func stale(path string, n int) *extensionv1.Link {
	return &extensionv1.Link{Path: path, VolumeId: id(n), Stale: "its volume is gone, or on a disk that is offline"}
}

type (
	disks   = []*extensionv1.Disk
	volumes = []*extensionv1.Volume
)

// cases are descriptions and their warnings: kind, object, command, and what is affected.
var cases = map[string]struct {
	node *extensionv1.Node
	want string
}{
	"healthy": {node(disks{disk(1, 1)}, volumes{volume(1, 1)}, &extensionv1.Link{Path: pod, VolumeId: id(1)}), ""},
	// One cause is one warning.
	"offline, in use": {
		node(disks{disk(1, 1, offline)}, nil, stale(staging, 1), stale(pod, 1)),
		"offline: disk 1: csi-proxyctl disk online 1: " + staging + ", " + pod,
	},
	// A driver takes a disk offline when it unstages its volume.
	"offline, unstaged":    {node(disks{disk(1, 1, offline)}, nil), ""},
	"offline by policy":    {node(disks{disk(1, 1, offline, func(d *extensionv1.Disk) { d.OfflineReason = "policy" })}, nil), ""},
	"offline by collision": {node(disks{disk(1, 1, offline, func(d *extensionv1.Disk) { d.OfflineReason = "collision with disk 2" })}, nil), "offline: disk 1: : "},
	"offline, links unknown": {
		&extensionv1.Node{Disks: disks{disk(1, 1, offline)}},
		"offline: disk 1: csi-proxyctl disk online 1: ",
	},
	// A link that the search has missed may need the disk, or the share.
	"offline, links failed": {
		&extensionv1.Node{Disks: disks{disk(1, 1, offline)}, LinksSearched: true, LinksFailed: true},
		"offline: disk 1: csi-proxyctl disk online 1: ",
	},
	"waiting removal, links failed": {
		&extensionv1.Node{Shares: []*extensionv1.Share{{Remote: `\\a\left`, Status: "ok", RemovalWaits: new(true)}}, LinksSearched: true, LinksFailed: true}, "",
	},
	"offline, blank, links unknown": {
		&extensionv1.Node{Disks: disks{disk(1, 1, offline, func(d *extensionv1.Disk) { d.PartitionStyle, d.Partitions = "RAW", nil })}}, "",
	},
	"offline disk, another volume is gone": {
		node(disks{disk(1, 1, offline)}, nil, stale(staging, 1), stale(pod, 2)),
		"offline: disk 1: csi-proxyctl disk online 1: " + staging + "\n" +
			"stale-mount: " + pod + ": csi-proxyctl fs rmdir '" + pod + "': ",
	},
	"silent disk with its volume": {
		node(disks{
			{Number: new(uint32(1)), Problems: []string{"it does not answer: no answer in time"}},
			{Number: new(uint32(2)), Problems: []string{"it does not answer: the device reported an I/O error"}},
		}, volumes{{Id: id(1), MountPaths: []string{staging}, Problems: []string{"disk, file system: no answer in time"}}},
			&extensionv1.Link{Path: pod, Stale: "where it leads: no answer in time"}),
		"no-answer: disk 1: : " + id(1) + ", " + staging + ", " + pod + "\nno-answer: disk 2: : ",
	},
	// Which of the disks has the volume is unknown.
	"two silent disks": {
		node(disks{
			{Number: new(uint32(1)), Problems: []string{"it does not answer: no answer in time"}},
			{Number: new(uint32(2)), Problems: []string{"it does not answer: no answer in time"}},
		}, volumes{{Id: id(1), MountPaths: []string{staging}, Problems: []string{"disk, file system: no answer in time"}}}),
		"no-answer: disk 1: : \nno-answer: disk 2: : \nno-answer: volume 1: : " + staging,
	},
	"dead session, silent disk": {
		&extensionv1.Node{
			Disks:    disks{{Number: new(uint32(1)), Problems: []string{"it does not answer: no answer in time"}}},
			Sessions: []*extensionv1.Session{{Target: "iqn.a", Disks: []uint32{1}}, {Target: "iqn.b", Connections: 1, Disks: []uint32{2}}, {Target: "iqn.c", Connections: 1}},
		},
		"dead-session: session iqn.a: : disk 1\ndead-session: session iqn.c: : ",
	},
	"read-only disk": {
		node(disks{disk(1, 1, func(d *extensionv1.Disk) { d.ReadOnly = new(true) })}, volumes{volume(1, 1, func(v *extensionv1.Volume) { v.ReadOnly = new(true) })}),
		"read-only: disk 1: csi-proxyctl disk writable 1: ",
	},
	"read-only partition": {
		node(disks{disk(1, 1)}, volumes{volume(1, 1, func(v *extensionv1.Volume) { v.ReadOnly, v.MountPaths = new(true), []string{staging} })}),
		"read-only: volume 1: : " + staging,
	},
	"volumes": {
		node(disks{disk(1, 1), disk(2, 2), disk(3, 3), disk(4, 4)}, volumes{
			volume(1, 1, func(v *extensionv1.Volume) { v.State = extensionv1.VolumeRaw }),
			volume(2, 2, func(v *extensionv1.Volume) { v.State = extensionv1.VolumeLocked }),
			volume(3, 3, func(v *extensionv1.Volume) { v.State = extensionv1.VolumeOffline }),
			volume(4, 4, func(v *extensionv1.Volume) { v.TotalBytes, v.UsedBytes = new(5*gib), new(5*gib-1) }),
		}),
		"offline: volume 3: : \nlocked: volume 2: : \nfull: volume 4: : \nraw: volume 1: : \nlagging: volume 4: csi-proxyctl volume resize 4 max: ",
	},
	"stale mount": {
		node(nil, nil, stale(pod, 9), stale(staging, 9)),
		"stale-mount: " + staging + ": csi-proxyctl node heal: " + pod,
	},
	"dangling links to one target": {
		node(nil, nil, &extensionv1.Link{Path: `C:\k\a`, Stale: "x", Target: `C:\k\none`}, &extensionv1.Link{Path: `C:\k\b`, Stale: "x", Target: `C:\k\none`}),
		`stale-mount: C:\k\a: csi-proxyctl fs rmdir 'C:\k\a': C:\k\b`,
	},
	"circles": {
		node(nil, nil, &extensionv1.Link{Path: `C:\k\a`, Stale: "it leads in a circle"}, &extensionv1.Link{Path: `C:\k\b`, Stale: "it leads in a circle"}),
		`stale-mount: C:\k\a: csi-proxyctl fs rmdir 'C:\k\a': ` + "\n" + `stale-mount: C:\k\b: csi-proxyctl fs rmdir 'C:\k\b': `,
	},
	// A pod cannot make an operator run a command.
	"hostile name": {
		node(nil, nil, &extensionv1.Link{Path: `C:\k\a' & calc & '`, Stale: "x"}),
		`stale-mount: C:\k\a' & calc & ': : `,
	},
	"shares": {
		&extensionv1.Node{LinksSearched: true, Shares: []*extensionv1.Share{
			{Remote: `\\a\ok`, Status: "ok", Links: []string{pod}},
			{Remote: `\\a\idle`, Status: "disconnected", RemovalWaits: new(true), Links: []string{pod}},
			{Remote: `\\a\dead`, Status: "ok", Answers: new(false), Problems: []string{"it does not answer: x"}, Links: []string{staging}},
			{Remote: `\\a\gone`, Status: "unavailable"},
			{Remote: `\\a\left`, Status: "ok", RemovalWaits: new(true)},
		}, Links: []*extensionv1.Link{{Path: `C:\k\b`, Share: `\\a\unmapped`}, {Path: `C:\k\c`, Share: `\\a\unmapped`}}},
		`dead-share: share \\a\dead: : ` + staging + "\n" +
			`dead-share: share \\a\gone: : ` + "\n" +
			`dead-share: share \\a\unmapped: csi-proxyctl node heal: C:\k\b, C:\k\c` + "\n" +
			`waiting-removal: share \\a\left: csi-proxyctl smb unmap '\\a\left': `,
	},
	"almost many mappings": {&extensionv1.Node{Shares: slices.Repeat([]*extensionv1.Share{{}}, 499)}, ""},
	"many mappings":        {&extensionv1.Node{Shares: slices.Repeat([]*extensionv1.Share{{}}, 500)}, "many-mappings: node: : "},
	"problems": {
		&extensionv1.Node{Problems: []string{"links: x"}, Sessions: []*extensionv1.Session{{Target: "iqn.a", Connections: 1, Problems: []string{"disks: busy"}}}},
		"no-answer: node: : \nno-answer: session iqn.a: : ",
	},
}

func TestFind(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for _, w := range warning.Find(c.node) {
				lines = append(lines, fmt.Sprintf("%s: %s: %s: %s", w.Kind, w.Object.Name(), w.Run, strings.Join(w.Affects, ", ")))
				if w.Run == "" && w.Advice == "" {
					t.Errorf("%+v has no remedy, and does not say that there is none", w)
				}
				if w.Text == "" || w.Affects == nil || !slices.Contains(warning.Kinds(), w.Kind) {
					t.Errorf("%+v is incomplete", w)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(lines, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFind_Kinds: there is a case for each kind.
func TestFind_Kinds(t *testing.T) {
	missing := map[warning.Kind]bool{}
	for _, kind := range warning.Kinds() {
		missing[kind] = true
	}
	for _, c := range cases {
		for _, w := range warning.Find(c.node) {
			delete(missing, w.Kind)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no case has %v", missing)
	}
}

func TestFind_Full(t *testing.T) {
	for used, want := range map[int64]string{
		9 * gib: "", 9*gib + 1: "90% full: 9.0 GiB of 10.0 GiB used", 10*gib - 1: "99% full: 10.0 GiB of 10.0 GiB used", 10 * gib: "100% full: 10.0 GiB of 10.0 GiB used",
	} {
		found := warning.Find(node(nil, volumes{volume(1, 1, func(v *extensionv1.Volume) { v.TotalBytes, v.UsedBytes = new(10*gib), &used })}))
		got := ""
		if len(found) > 0 {
			got = found[0].Text
		}
		if got != want {
			t.Errorf("%d: got %q, want %q", used, got, want)
		}
	}
}
