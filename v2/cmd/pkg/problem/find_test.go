package problem_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
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
		Partitions: []*extensionv1.Partition{{Number: 1, OffsetBytes: new(int64(1 << 20)), SizeBytes: new(10*gib - 1<<20), Type: "data", Id: fmt.Sprint(n), VolumeId: id(n)}},
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

// cases are descriptions and their problems: kind, object, command, and what is affected.
var cases = map[string]struct {
	node *extensionv1.Node
	want string
}{
	"healthy": {node(disks{disk(1, 1)}, volumes{volume(1, 1)}, &extensionv1.Link{Path: pod, VolumeId: id(1)}), ""},
	// One cause is one problem.
	"offline, in use": {
		node(disks{disk(1, 1, offline)}, nil, stale(staging, 1), stale(pod, 1)),
		"hurts offline: disk 1: csi-proxyctl disk online 1: " + staging + ", " + pod,
	},
	// A driver takes a disk offline when it unstages its volume.
	"offline, unstaged":    {node(disks{disk(1, 1, offline)}, nil), ""},
	"offline by policy":    {node(disks{disk(1, 1, offline, func(d *extensionv1.Disk) { d.OfflineReason = "policy" })}, nil), ""},
	"offline by collision": {node(disks{disk(1, 1, offline, func(d *extensionv1.Disk) { d.OfflineReason = "collision with disk 2" })}, nil), "will-hurt offline: disk 1: : "},
	"offline, links unknown": {
		&extensionv1.Node{Disks: disks{disk(1, 1, offline)}},
		"will-hurt offline: disk 1: csi-proxyctl disk online 1: ",
	},
	// A link that the search has missed may need the disk, or the share.
	"offline, links failed": {
		&extensionv1.Node{Disks: disks{disk(1, 1, offline)}, LinksSearched: true, LinksFailed: true},
		"will-hurt offline: disk 1: csi-proxyctl disk online 1: ",
	},
	"waiting removal, links failed": {
		&extensionv1.Node{Shares: []*extensionv1.Share{{Remote: `\\a\left`, Status: "ok", RemovalWaits: new(true)}}, LinksSearched: true, LinksFailed: true}, "",
	},
	"offline, blank, links unknown": {
		&extensionv1.Node{Disks: disks{disk(1, 1, offline, func(d *extensionv1.Disk) { d.PartitionStyle, d.Partitions = "RAW", nil })}}, "",
	},
	"offline disk, another volume is gone": {
		node(disks{disk(1, 1, offline)}, nil, stale(staging, 1), stale(pod, 2)),
		"hurts stale-mount: " + pod + ": csi-proxyctl fs rmdir " + strings.ReplaceAll(pod, `\`, "/") + ": \n" +
			"will-hurt offline: disk 1: csi-proxyctl disk online 1: " + staging,
	},
	"silent disk with its volume": {
		node(disks{
			{Number: new(uint32(1)), Problems: noAnswer("")},
			{Number: new(uint32(2)), Problems: []*extensionv1.Problem{{Kind: extensionv1.ProblemFailure, WindowsCode: 1117}}},
		}, volumes{{Id: id(1), MountPaths: []string{staging}, Disks: []uint32{1}, Problems: noAnswer("file system")}},
			&extensionv1.Link{Path: pod, VolumeId: id(1), Problem: noAnswer("")[0]}),
		"will-hurt no-answer: disk 1: : " + id(1) + ", " + staging + ", " + pod + "\nwill-hurt no-answer: disk 2: : ",
	},
	"disk that hangs, and one that was slow before": {
		&extensionv1.Node{
			Disks: disks{
				{Number: new(uint32(1)), Problems: noAnswer("")},
				disk(2, 2, func(d *extensionv1.Disk) { d.Problems = noAnswer("content") }),
			},
			Volumes:       volumes{{Id: id(1), MountPaths: []string{pod}, Disks: []uint32{1}}, {Id: id(2), MountPaths: []string{pod}, Disks: []uint32{2}}},
			Since:         []*extensionv1.Since{{Kind: "no-answer", Type: "disk", Id: "1", Lasting: "silence"}, {Kind: "no-answer", Type: "disk", Id: "2"}},
			LinksSearched: true,
		},
		"hurts no-answer: disk 1: : " + id(1) + ", " + pod + "\nwill-hurt no-answer: disk 2: : " + id(2) + ", " + pod,
	},
	// Which of the disks has the volume is unknown.
	"two silent disks": {
		node(disks{
			{Number: new(uint32(1)), Problems: noAnswer("")},
			{Number: new(uint32(2)), Problems: noAnswer("")},
		}, volumes{{Id: id(1), MountPaths: []string{staging}, Problems: noAnswer("disk, file system")}}),
		"will-hurt no-answer: disk 1: : \nwill-hurt no-answer: disk 2: : \nwill-hurt no-answer: volume 1: : " + staging,
	},
	"dead session, silent disk": {
		&extensionv1.Node{
			Disks:    disks{{Number: new(uint32(1)), Problems: noAnswer("")}},
			Sessions: []*extensionv1.Session{{Target: "iqn.a", Disks: []uint32{1}}, {Target: "iqn.b", Connections: 1, Disks: []uint32{2}}, {Target: "iqn.c", Connections: 1}},
		},
		"will-hurt dead-session: session iqn.a: : disk 1\nwill-hurt dead-session: session iqn.c: : ",
	},
	"read-only disk": {
		node(disks{disk(1, 1, func(d *extensionv1.Disk) { d.ReadOnly = new(true) })}, volumes{volume(1, 1, func(v *extensionv1.Volume) { v.ReadOnly = new(true) })},
			&extensionv1.Link{Path: pod, VolumeId: id(1)}),
		"will-hurt read-only: disk 1: csi-proxyctl disk writable 1: " + pod,
	},
	"read-only partition": {
		node(disks{disk(1, 1)}, volumes{volume(1, 1, func(v *extensionv1.Volume) { v.ReadOnly, v.MountPaths = new(true), []string{staging} })}),
		"will-hurt read-only: volume 1: : " + staging,
	},
	"volumes": {
		node(disks{disk(1, 1), disk(2, 2), disk(3, 3), disk(4, 4)}, volumes{
			volume(1, 1, func(v *extensionv1.Volume) { v.State = extensionv1.VolumeRaw }),
			volume(2, 2, func(v *extensionv1.Volume) { v.State = extensionv1.VolumeLocked }),
			volume(3, 3, func(v *extensionv1.Volume) { v.State = extensionv1.VolumeOffline }),
			volume(4, 4, func(v *extensionv1.Volume) { v.TotalBytes, v.UsedBytes = new(5*gib), new(5*gib-1) }),
		}),
		"note offline: volume 3: : \nnote locked: volume 2: : \nnote full: volume 4: csi-proxyctl volume resize 4 max: \nnote raw: volume 1: : ",
	},
	"grown": {
		node(disks{disk(1, 1)}, volumes{volume(1, 1, func(v *extensionv1.Volume) { v.TotalBytes = new(5 * gib) })}),
		"note lagging: volume 1: csi-proxyctl volume resize 1 max: ",
	},
	"stale mount": {
		node(nil, nil, stale(pod, 9), stale(staging, 9)),
		"hurts stale-mount: " + staging + ": : " + pod,
	},
	// What heals is the verdict of the healer.
	"stale mount, removable": {
		node(nil, nil, &extensionv1.Link{Path: staging, VolumeId: id(9), Stale: "x", State: extensionv1.StaleRemovable}),
		"will-hurt stale-mount: " + staging + ": csi-proxyctl node heal: ",
	},
	"stale mount, kept": {
		node(nil, nil, &extensionv1.Link{Path: staging, VolumeId: id(9), Stale: "x", State: extensionv1.StaleKept, Reason: "disk 3 is offline"}),
		"will-hurt stale-mount: " + staging + ": : ",
	},
	// No answer is not gone.
	"links that do not answer": {
		node(nil, nil, &extensionv1.Link{Path: pod, Problem: noAnswer("")[0]}, &extensionv1.Link{Path: `C:\k\a`, Problem: &extensionv1.Problem{Kind: extensionv1.ProblemFailure, Text: "it leads in a circle"}}),
		"will-hurt no-answer: " + pod + ": : \n" + `note no-answer: C:\k\a: : `,
	},
	// The daemon does not look there, and it is not a problem.
	"links that lead outside": {node(nil, nil, &extensionv1.Link{Path: pod, Target: `C:\nothing`}), ""},
	"dangling links to one target": {
		node(nil, nil, &extensionv1.Link{Path: `C:\k\a`, Stale: "x", Target: `C:\k\none`}, &extensionv1.Link{Path: `C:\k\b`, Stale: "x", Target: `C:\k\none`}),
		`note stale-mount: C:\k\a: csi-proxyctl fs rmdir C:/k/a: C:\k\b`,
	},
	"volume gone, or on a silent disk": {
		node(disks{{Number: new(uint32(1)), Problems: noAnswer("")}}, nil, stale(pod, 9)),
		"hurts stale-mount: " + pod + ": : \nwill-hurt no-answer: disk 1: : ",
	},
	"volume gone": {node(nil, nil, stale(`C:\k\a`, 9)), `note stale-mount: C:\k\a: csi-proxyctl fs rmdir C:/k/a: `},
	// A pod cannot make an operator run a command.
	"hostile name": {
		node(nil, nil, &extensionv1.Link{Path: `C:\k\a' & calc & '`, Stale: "x"}),
		`note stale-mount: C:\k\a' & calc & ': : `,
	},
	"shares": {
		&extensionv1.Node{LinksSearched: true, Shares: []*extensionv1.Share{
			{Remote: `\\a\ok`, Status: "ok", Links: []string{pod}},
			{Remote: `\\a\idle`, Status: "disconnected", RemovalWaits: new(true), Links: []string{pod}},
			{Remote: `\\a\dead`, Status: "ok", Answers: new(false), Problems: noAnswer(""), Links: []string{staging}},
			{Remote: `\\a\gone`, Status: "unavailable"},
			{Remote: `\\a\left`, Status: "ok", RemovalWaits: new(true)},
		}, Links: []*extensionv1.Link{{Path: `C:\k\b`, Share: `\\a\unmapped`}, {Path: `C:\k\c`, Share: `\\a\unmapped`}}},
		`will-hurt dead-share: share \\a\idle: : ` + pod + "\n" +
			`will-hurt dead-share: share \\a\dead: : ` + staging + "\n" +
			`note dead-share: share \\a\gone: : ` + "\n" +
			`note dead-share: share \\a\unmapped: : C:\k\b, C:\k\c` + "\n" +
			`note waiting-removal: share \\a\left: csi-proxyctl smb unmap //a/left: `,
	},
	"one server that is away": { // and one whose mapping is another trouble
		&extensionv1.Node{LinksSearched: true, Shares: []*extensionv1.Share{
			{Remote: `\\a\s10`, Status: "disconnected", Links: []string{pod}},
			{Remote: `\\a\s2`, Status: "disconnected", Links: []string{staging}},
			{Remote: `\\a\s3`, Status: "unavailable", Links: []string{pod}},
			{Remote: `\\b\s2`, Status: "disconnected", Links: []string{pod}},
		}},
		`hurts dead-share: share \\a\s3: : ` + pod + "\n" +
			`will-hurt dead-share: 2 shares of \\a (s2, s10): : ` + pod + ", " + staging + "\n" +
			`will-hurt dead-share: share \\b\s2: : ` + pod,
	},
	"one cause": {
		&extensionv1.Node{
			LinksSearched: true,
			Shares:        []*extensionv1.Share{deadShare(`\\a\s10`, 1326, pod), deadShare(`\\a\s2`, 1326, staging), deadShare(`\\a\s1`, 67, pod), deadShare(`\\b\s1`, 1326, pod)},
			Disks: disks{
				disk(4, 4, silentAt(`\\?\scsi#x#5&00&0&000#{}`)), disk(10, 10, silentAt(`\\?\scsi#x#5&00&0&000#{}`)), disk(5, 5, silentAt(`\\?\scsi#x#5&01&0&000#{}`)), disk(6, 6, silentAt(`\\?\scsi#x#5&10&0&000#{}`)), disk(7, 7, silentAt(`\\?\scsi#x#5&10&0&000#{}`)),
				disk(8, 8, silentAt("")), disk(11, 11, silentAt("x"), onBus), disk(12, 12, silentAt("y"), onBus), disk(9, 9, silentAt(`\\?\scsi#x#5&00&0&000#{}`), func(d *extensionv1.Disk) { d.System = true }),
			},
			Sessions: []*extensionv1.Session{{Target: "iqn.a", Connections: 1, Disks: []uint32{5, 6}}},
		},
		`hurts dead-share: 2 shares of \\a (s2, s10): : ` + pod + ", " + staging + "\n" +
			`hurts dead-share: share \\a\s1: : ` + pod + "\n" +
			`hurts dead-share: share \\b\s1: : ` + pod + "\n" +
			"will-hurt no-answer: disk 9: : \n" +
			"note no-answer: 2 disks of adapter 5&00&0 (4, 10): : \n" +
			"note no-answer: 2 disks of target iqn.a (5, 6): : \n" +
			"note no-answer: disk 7: : \n" +
			"note no-answer: disk 8: : \n" +
			"note no-answer: 2 disks of bus 2:0 (11, 12): : ",
	},
	"almost many mappings": {&extensionv1.Node{Shares: slices.Repeat([]*extensionv1.Share{{}}, 499)}, ""},
	"many mappings":        {&extensionv1.Node{Shares: slices.Repeat([]*extensionv1.Share{{}}, 500)}, "will-hurt many-mappings: node: : "},
	"problems": {
		&extensionv1.Node{Problems: noAnswer("links"), Sessions: []*extensionv1.Session{{Target: "iqn.a", Connections: 1, Problems: noAnswer("disks")}}},
		"will-hurt no-answer: node: : \nwill-hurt no-answer: session iqn.a: : ",
	},
	"not well": {
		node: node([]*extensionv1.Disk{disk(1, 1, func(d *extensionv1.Disk) { d.Health, d.HealthReason = "warning", "expects to fail" }), disk(2, 2), disk(3, 3), disk(4, 4), disk(5, 5), disk(6, 6), disk(7, 7)},
			[]*extensionv1.Volume{
				volume(1, 1),
				volume(2, 2, func(v *extensionv1.Volume) { v.Dirty, v.MountPaths = new(true), []string{staging} }),
				volume(3, 3, func(v *extensionv1.Volume) { v.Damage, v.Dirty = "spot fix needed", new(true) }),
				volume(4, 4, func(v *extensionv1.Volume) { v.Damage = "offline repair needed" }),
				volume(5, 5, func(v *extensionv1.Volume) { v.Damage, v.Dirty = "unknown", new(false) }),
				volume(6, 6, func(v *extensionv1.Volume) { v.Dirty = new(true) }),
				volume(7, 7, func(v *extensionv1.Volume) { v.Damage, v.FileSystem = "scan needed", "ReFS" }), // has no repair
			}),
		want: "will-hurt failing-disk: disk 1: : \n" +
			"will-hurt dirty: volume 2: : " + staging + "\n" +
			"note damaged: volume 3: : \n" +
			"note damaged: volume 4: : \n" +
			"note damaged: volume 7: : \n" +
			"note dirty: volume 6: : ",
	},
}

// TestFind_ShareAdvice: what helps follows from the code of Windows; without one it is not known.
func TestFind_ShareAdvice(t *testing.T) {
	for code, want := range map[uint32]string{
		0: "if the password has changed, run ", 5: "give the account the right", 53: "only if the server answers: ", 67: "share it again there",
		86: "when it is right again, run ", 1231: "only if the server answers: ", 1326: "when it is right again, run ", 1909: "let the account be used again",
	} {
		found := problem.Find(&extensionv1.Node{LinksSearched: true, Shares: []*extensionv1.Share{deadShare(`\\a\s`, code, pod)}})
		if len(found) != 1 || !strings.Contains(found[0].Advice, want) || strings.Contains(found[0].Advice, "MAP") || strings.HasSuffix(want, " ") && !strings.Contains(found[0].Advice, "csi-proxyctl smb map //a/s --user USER") {
			t.Errorf("%d: %+v, want %q", code, found, want)
		}
	}
}

func deadShare(remote string, code uint32, link string) *extensionv1.Share {
	return &extensionv1.Share{Remote: remote, Status: "ok", Answers: new(false), Links: []string{link}, Problems: []*extensionv1.Problem{{Kind: "failure", WindowsCode: code, Text: "no"}}}
}

func onBus(d *extensionv1.Disk) { d.ScsiAddress = "2:0:1:" + fmt.Sprint(d.GetNumber()) }

func silentAt(device string) func(*extensionv1.Disk) {
	return func(d *extensionv1.Disk) { d.Device, d.Problems = device, noAnswer("content") }
}

func TestFind(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for _, p := range problem.Find(c.node) {
				lines = append(lines, fmt.Sprintf("%s %s: %s: %s: %s", p.Severity, p.Kind, p.Name(), p.Run, strings.Join(p.Affects, ", ")))
				if p.Run == "" && p.Advice == "" {
					t.Errorf("%+v has no remedy, and does not say that there is none", p)
				}
				if p.Text == "" || p.Affects == nil || !slices.Contains(problem.Kinds(), p.Kind) {
					t.Errorf("%+v is incomplete", p)
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
	missing := map[problem.Kind]bool{}
	for _, kind := range problem.Kinds() {
		missing[kind] = true
	}
	for _, c := range cases {
		for _, p := range problem.Find(c.node) {
			delete(missing, p.Kind)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no case has %v", missing)
	}
}

// TestFind_Full: percent and bytes count, and whom it hurts. What Windows made full is not.
func TestFind_Full(t *testing.T) {
	const tib = 1 << 10 * gib
	data := func(p *extensionv1.Partition, _ *extensionv1.Volume) { p.Type = "data" }
	inPod := func(_ *extensionv1.Partition, v *extensionv1.Volume) { v.MountPaths = []string{pod} }
	for name, c := range map[string]struct {
		total, used int64
		change      func(*extensionv1.Partition, *extensionv1.Volume)
		limits      problem.Limits
		want        string
	}{
		"not quite":             {10 * gib, 9 * gib, data, problem.Limits{}, ""},
		"just":                  {10 * gib, 9*gib + 1, inPod, problem.Limits{}, "will-hurt 90% full: 9.0 GiB of 10.0 GiB used"},
		"without a user":        {10 * gib, 9*gib + 1, data, problem.Limits{}, "note 90% full: 9.0 GiB of 10.0 GiB used"},
		"no byte left":          {10 * gib, 10 * gib, inPod, problem.Limits{}, "hurts 100% full: 10.0 GiB of 10.0 GiB used"},
		"one byte left":         {10 * gib, 10*gib - 1, inPod, problem.Limits{}, "hurts 99% full: 10.0 GiB of 10.0 GiB used"},
		"700 GiB free":          {10 * tib, 10*tib - 700*gib, inPod, problem.Limits{}, ""},
		"15 GiB of 10 TiB free": {10 * tib, 10*tib - 15*gib, inPod, problem.Limits{}, "will-hurt 99% full: 10.0 TiB of 10.0 TiB used"},
		"another flag":          {10 * gib, 9*gib + 1, inPod, problem.Limits{Percent: 95, Bytes: gib}, ""},
		"recovery":              {gib / 2, gib/2 - 33<<20, func(p *extensionv1.Partition, _ *extensionv1.Volume) { p.Type = "recovery" }, problem.Limits{}, ""},
		"efi":                   {gib / 10, gib / 10, func(p *extensionv1.Partition, _ *extensionv1.Volume) { p.Type = "efi" }, problem.Limits{}, ""},
		"disc":                  {gib, gib, func(_ *extensionv1.Partition, v *extensionv1.Volume) { v.FileSystem = "UDF" }, problem.Limits{}, ""},
	} {
		d, v := disk(1, 1), volume(1, 1)
		d.SizeBytes, d.Partitions[0].SizeBytes, v.TotalBytes, v.UsedBytes = new(c.total+1<<20), &c.total, &c.total, &c.used
		c.change(d.Partitions[0], v)
		n := node(disks{d}, volumes{v})
		n.FullPercent, n.FullBytes = c.limits.Percent, c.limits.Bytes
		got := ""
		for _, p := range problem.Find(n) {
			got += string(p.Severity) + " " + p.Text
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestLimits(t *testing.T) {
	var l problem.Limits
	for text, ok := range map[string]bool{"90%,20GiB": true, "100%,1GiB": true, "": false, "90%": false, "101%,1GiB": false, "90%,0GiB": false, "90%,20GiBs": false, "-1%,2GiB": false} {
		if err := l.Set(text); (err == nil) != ok || ok && l.String() != text {
			t.Errorf("%q: %v, %s", text, err, l.String())
		}
	}
}

// TestHistory: a problem has a beginning and an end, and each is reported once. A description that is not complete ends nothing.
func TestHistory(t *testing.T) {
	var h problem.History
	bad := node(disks{disk(1, 1, offline)}, nil, stale(pod, 1))
	blind := &extensionv1.Node{Problems: noAnswer("disks")}
	good := node(disks{disk(1, 1)}, volumes{volume(1, 1)}, &extensionv1.Link{Path: pod, VolumeId: id(1)})
	for minute, step := range []struct {
		node         *extensionv1.Node
		began, ended int
		since        int64 // of the offline disk; 0 for none
	}{{good, 0, 0, 0}, {bad, 1, 0, 60}, {bad, 0, 0, 60}, {blind, 0, 0, 60}, {bad, 0, 0, 60}, {good, 0, 1, 0}, {bad, 1, 0, 360}} {
		began, ended := h.Learn(time.Unix(int64(minute)*60, 0), step.node)
		filled := proto.CloneOf(step.node)
		h.Fill(time.Unix(int64(minute)*60, 0), filled)
		since := int64(0)
		for _, s := range filled.GetSince() {
			if s.GetKind() == "offline" {
				since = s.GetUnix()
			}
		}
		if len(began) != step.began || len(ended) != step.ended || since != step.since {
			t.Errorf("minute %d: %d began, %d ended, since %d", minute, len(began), len(ended), since)
		}
		for _, p := range problem.Find(filled) {
			if p.Kind == problem.Offline && (p.Since == nil || p.Since.Unix() != step.since) {
				t.Errorf("minute %d: %+v", minute, p)
			}
		}
	}
}

// TestHistory_Hangs: one look without an answer shows, and does not judge. Another one a minute later does, if no look
// in between got an answer, or could not see.
func TestHistory_Hangs(t *testing.T) {
	mounted := func(v *extensionv1.Volume) { v.MountPaths = []string{pod} }
	read := func(results ...*extensionv1.Problem) *extensionv1.Node {
		d, v := disk(1, 1, func(d *extensionv1.Disk) { d.Problems = results }), volume(1, 1, mounted)
		if len(results) > 0 {
			v.State = extensionv1.VolumeUnknown
		}
		return node(disks{d}, volumes{v})
	}
	good, silent, stuck := read(), read(noAnswer("content")...), read(&extensionv1.Problem{Kind: extensionv1.ProblemSilence, Object: "content", Text: "stuck"})
	locked, half := read(&extensionv1.Problem{Kind: extensionv1.ProblemFailure, WindowsCode: 5, Object: "content"}), read(append(noAnswer("size"), noAnswer("content")...)...)
	blind := read()
	blind.Problems = noAnswer("health of disks")
	for name, c := range map[string]struct {
		looks []*extensionv1.Node // each half minute
		hangs int                 // the first look that says so; 0 for none
	}{
		"slow":               {[]*extensionv1.Node{silent, good, silent, good, silent, good}, 0},
		"hangs":              {[]*extensionv1.Node{good, silent, silent, silent}, 3},
		"stuck":              {[]*extensionv1.Node{good, silent, stuck, stuck}, 3},
		"two texts":          {[]*extensionv1.Node{good, half, half, half, half}, 3},
		"answered meanwhile": {[]*extensionv1.Node{good, silent, blind, silent, silent, silent}, 5},
		"locked before":      {[]*extensionv1.Node{good, locked, locked, locked, silent, silent, silent}, 6},
	} {
		var h problem.History
		for i, look := range c.looks {
			now := time.Unix(int64(i)*30, 0)
			filled := proto.CloneOf(look)
			h.Fill(now, filled)
			found := problem.Find(filled)
			began, ended := h.Learn(now, filled)
			hangs := c.hangs > 0 && i >= c.hangs
			if events := len(began); name != "locked before" && ((i == c.hangs && hangs) != (events == 1) || events > 1 || len(ended) > 0) { // which hurts already
				t.Errorf("%s, look %d: %d events, %d ended", name, i, events, len(ended))
			}
			if look == good || look == blind || look == locked {
				continue
			}
			p := found[0]
			advised := strings.Contains(p.Advice, "move the pods") && strings.Contains(p.Advice, "what is not flushed is lost")
			if (p.Severity == problem.Hurts) != hangs || strings.HasPrefix(p.Text, "it hangs: ") != hangs || strings.HasPrefix(p.Text, "it does not answer: ") == hangs || advised != hangs {
				t.Errorf("%s, look %d: %+v", name, i, p)
			}
		}
	}
}

// noAnswer is what is said of an object that has not answered in time.
func noAnswer(object string) []*extensionv1.Problem {
	return []*extensionv1.Problem{{Kind: extensionv1.ProblemSilence, Object: object, Text: "no answer in time"}}
}

// TestFind_Advice: what Windows says decides what a person reads, and nothing is to be replaced because of one look.
func TestFind_Advice(t *testing.T) {
	known := map[string]string{}
	for code, replace := range map[uint32]bool{0: false, 5: false, 21: false, 23: true, 121: false, 1117: true, 1167: false, 9999: false} {
		failed := &extensionv1.Problem{Kind: extensionv1.ProblemFailure, WindowsCode: code, Object: "content"}
		cause := strconv.Itoa(int(code))
		if code == 0 {
			failed, cause = noAnswer("content")[0], extensionv1.ProblemSilence
		}
		look := node(disks{disk(1, 1, func(d *extensionv1.Disk) { d.Problems = []*extensionv1.Problem{failed} })}, nil)
		first := problem.Find(look)[0].Advice
		if known[first] != "" || strings.Contains(first, "replace") || first == "" {
			t.Errorf("%s, first look: %q, as for %q", cause, first, known[first])
		}
		known[first] = cause
		for _, lasting := range []string{cause, "1", ""} {
			look.Since = []*extensionv1.Since{{Kind: "no-answer", Type: "disk", Id: "1", Lasting: lasting}}
			if got := problem.Find(look)[0].Advice; strings.Contains(got, "replace") != (replace && lasting == cause) || (lasting != cause) && got != first {
				t.Errorf("%s, after looks with %q: %q", cause, lasting, got)
			}
		}
	}
}
