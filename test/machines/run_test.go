package machines_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/machines"
)

func newSite(t *testing.T) (*verify.Site, *winsim.Node) {
	t.Helper()
	site, err := machines.Emulator(winsim.Default(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return site, site.Machine.(*winsim.Node)
}

func find(t *testing.T, doc answer.Document, id string) answer.Answer {
	t.Helper()
	a, ok := doc.Find(id)
	if !ok {
		t.Fatalf("%s is not in the document", id)
	}
	return a
}

// panicking is a machine with a bug.
type panicking struct{ win.Machine }

func (panicking) SANPolicy(context.Context) (win.SANPolicy, error) { panic("a bug") }

// TestRun_Survives asks a machine on which calls fail and panic. The other questions are answered.
func TestRun_Survives(t *testing.T) {
	site, node := newSite(t)
	site.Machine = panicking{node}
	if _, err := node.Inject(winsim.Fault{Call: "CreateDisk", Error: 1117}); err != nil {
		t.Fatal(err)
	}
	doc, err := verify.Run(t.Context(), site, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a := find(t, doc, "Q-san-policy"); a.Status != answer.Failed || a.Reason != "panic: a bug" {
		t.Errorf("after a panic: %+v", a)
	}
	if a := find(t, doc, "Q-msr"); a.Status != answer.Failed || !strings.Contains(a.Reason, "1117") {
		t.Errorf("after a failure: %+v", a)
	}
	// The whole group fails where its disk cannot be partitioned.
	if a := find(t, doc, "Q-mount-listed"); a.Status != answer.Failed || !strings.Contains(a.Reason, "1117") {
		t.Errorf("without a volume: %+v", a)
	}
	for _, id := range []string{"Q-bios-serial", "Q-raw-entries", "Q-case", "Q-smb-parameters"} {
		if a := find(t, doc, id); a.Status != answer.Answered {
			t.Errorf("%+v", a)
		}
	}
}

// TestRun_CleansUp leaves no disk, no file, no mapping and no portal behind.
func TestRun_CleansUp(t *testing.T) {
	site, node := newSite(t)
	before := len(node.Disks())
	if _, err := verify.Run(t.Context(), site, verify.Options{Suites: true}); err != nil {
		t.Fatal(err)
	}
	if now := len(node.Disks()); now != before {
		t.Errorf("the node has %d disks, and had %d", now, before)
	}
	if tree := node.Tree(site.Root); strings.TrimSpace(tree) != site.Root {
		t.Errorf("files are left:\n%s", tree)
	}
	if mappings := node.SMBMappingInfos(); len(mappings) > 0 {
		t.Errorf("mappings are left: %v", mappings)
	}
	if portals, err := node.ReportSendTargetPortals(t.Context()); err != nil || len(portals) > 0 {
		t.Errorf("portals are left: %v, %v", portals, err)
	}
	if n := node.OpenDirectories(); n > 0 {
		t.Errorf("%d directories are open", n)
	}
}

// TestRun_Interrupted asks nothing more, and still cleans up.
func TestRun_Interrupted(t *testing.T) {
	site, node := newSite(t)
	before := len(node.Disks())
	ctx, cancel := context.WithCancel(t.Context())
	doc, err := verify.Run(ctx, site, verify.Options{Suites: true, Progress: func(s verify.Step) {
		if s.Name == "Q-mount-listed" {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if a := find(t, doc, "Q-msr"); a.Status != answer.Answered {
		t.Errorf("before the interrupt: %+v", a)
	}
	if a := find(t, doc, "Q-cluster-sizes"); a.Status != answer.NotAsked || a.Reason != "the run was interrupted" {
		t.Errorf("after it: %+v", a)
	}
	if now := len(node.Disks()); now != before {
		t.Errorf("the node has %d disks, and had %d", now, before)
	}
	if tree := node.Tree(site.Root); strings.TrimSpace(tree) != site.Root {
		t.Errorf("files are left:\n%s", tree)
	}
}

// TestRun_Only asks one question.
func TestRun_Only(t *testing.T) {
	site, _ := newSite(t)
	doc, err := verify.Run(t.Context(), site, verify.Options{Only: []string{"Q-case"}})
	if err != nil {
		t.Fatal(err)
	}
	if doc.Count(answer.Answered) != 1 || find(t, doc, "Q-case").Status != answer.Answered {
		t.Errorf("%d questions are answered, want Q-case alone", doc.Count(answer.Answered))
	}
}

// TestRun_ForeignDisk gives the run a disk that pretends to be one of its own: its number becomes
// that of the disk of Windows after it was made. Nothing reaches that disk.
func TestRun_ForeignDisk(t *testing.T) {
	site, node := newSite(t)
	before, err := node.DiskFingerprint(0)
	if err != nil {
		t.Fatal(err)
	}
	newDisk := site.NewDisk
	site.NewDisk = func(ctx context.Context, sectorSize uint32) (verify.Disk, error) {
		d, err := newDisk(ctx, sectorSize)
		return detached{d}, err
	}
	doc, err := verify.Run(t.Context(), site, verify.Options{Suites: true})
	if err != nil {
		t.Fatal(err)
	}
	if a := find(t, doc, "Q-msr"); a.Status != answer.Failed || !strings.Contains(a.Reason, "may change") {
		t.Errorf("%+v", a)
	}
	after, err := node.DiskFingerprint(0)
	if err != nil || after != before {
		t.Errorf("the disk of Windows has changed: %v", err)
	}
}

// detached is a disk that is not there any more, with a number that another disk has.
type detached struct{ verify.Disk }

func (detached) Number() uint32                              { return 0 }
func (detached) Attached() bool                              { return false }
func (detached) Write(context.Context, int64, []byte) error  { return errors.ErrUnsupported }
func (detached) Attach(context.Context, bool) error          { return errors.ErrUnsupported }
func (detached) Grow(context.Context, int64) (string, error) { return "", errors.ErrUnsupported }
func (detached) Detach(context.Context) error                { return fs.ErrNotExist }

// TestRun_KeepsOthers asks a machine whose users have mapped the share and registered a portal. They keep
// both, and the mapping also if the machine does not tell what is mapped.
func TestRun_KeepsOthers(t *testing.T) {
	for _, fault := range []string{"", "SMBMapping"} {
		t.Run("fails: "+fault, func(t *testing.T) {
			site, node := newSite(t)
			request := win.SMBMappingRequest{Remote: site.Share.Remote, User: site.Share.User, Password: site.Share.Password}
			if err := node.CreateSMBMapping(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if err := node.AddSendTargetPortal(t.Context(), *site.Portal); err != nil {
				t.Fatal(err)
			}
			if fault != "" {
				if _, err := node.Inject(winsim.Fault{Call: fault, Error: 1722}); err != nil {
					t.Fatal(err)
				}
			}
			doc, err := verify.Run(t.Context(), site, verify.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for id, want := range map[string]string{"Q-smb-parameters": "mapped already", "Q-iscsi-refresh": "registered already"} {
				if a := find(t, doc, id); a.Status != answer.NotAsked || !strings.Contains(a.Reason, want) {
					t.Errorf("%+v", a)
				}
			}
			if mappings := node.SMBMappingInfos(); len(mappings) != 1 {
				t.Errorf("the mappings are %v, want that of a user", mappings)
			}
			if portals, err := node.ReportSendTargetPortals(t.Context()); err != nil || len(portals) != 1 {
				t.Errorf("the portals are %v, %v, want that of a user", portals, err)
			}
		})
	}
}

// TestRun_Password: the password of the share goes to its server only. Another that answers for every name would
// get it.
func TestRun_Password(t *testing.T) {
	site, node := newSite(t)
	machine := &mappings{Machine: node}
	site.Machine = machine
	if _, err := verify.Run(t.Context(), site, verify.Options{}); err != nil {
		t.Fatal(err)
	}
	others := 0
	for _, request := range machine.requests {
		if strings.HasPrefix(request.Remote, `\\files\`) {
			continue
		}
		others++
		if request.User == site.Share.User || bytes.Equal(request.Password.Bytes(), site.Share.Password.Bytes()) {
			t.Errorf("%s gets the user %s, or the password of the share", request.Remote, request.User)
		}
	}
	if others == 0 {
		t.Error("no other server was tried")
	}
}

type mappings struct {
	win.Machine
	requests []win.SMBMappingRequest
}

func (m *mappings) CreateSMBMapping(ctx context.Context, request win.SMBMappingRequest) error {
	m.requests = append(m.requests, request)
	return m.Machine.CreateSMBMapping(ctx, request)
}

// TestRun_KeepsDeadPortal asks a machine on which a portal without a target is registered.
func TestRun_KeepsDeadPortal(t *testing.T) {
	site, node := newSite(t)
	machine := &deadPortal{Machine: node}
	site.Machine = machine
	doc, err := verify.Run(t.Context(), site, verify.Options{Only: []string{"Q-iscsi-dead-portal"}})
	if err != nil {
		t.Fatal(err)
	}
	if a := find(t, doc, "Q-iscsi-dead-portal"); a.Status != answer.NotAsked || machine.removed {
		t.Errorf("%+v; it was removed: %t", a, machine.removed)
	}
}

type deadPortal struct {
	win.Machine
	removed bool
}

var dead = win.SendTargetPortal{Portal: win.TargetPortal{Address: "127.0.0.1", Port: 9}}

func (d *deadPortal) ReportSendTargetPortals(ctx context.Context) ([]win.SendTargetPortal, error) {
	portals, err := d.Machine.ReportSendTargetPortals(ctx)
	return append(portals, dead), err
}

func (d *deadPortal) RemoveSendTargetPortal(ctx context.Context, p win.SendTargetPortal) error {
	d.removed = d.removed || p.Portal == dead.Portal
	return d.Machine.RemoveSendTargetPortal(ctx, p)
}
