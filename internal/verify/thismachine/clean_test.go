package thismachine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/journal"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// emulated is an emulated node, and the journal in a directory.
func emulated(t *testing.T, dir string) (*winsim.Node, *journal.Journal) {
	t.Helper()
	node, err := winsim.New(winsim.Default())
	if err != nil {
		t.Fatal(err)
	}
	j, _, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() }) // some tests close it themselves
	return node, j
}

// TestClean removes what a killed run has left on an emulated node: files, mounted folders whose disk is
// gone, links out of the folder, a mapping, a portal, and services that depend on each other. Nothing else is touched.
func TestClean(t *testing.T) {
	node, j := emulated(t, t.TempDir())
	m := journaled{node, j}
	for _, err := range []error{
		node.WriteFile(`C:\verify\run-1\files\a\file`, "data"),
		node.WriteFile(`C:\verify\mine\file`, "precious"),
		node.WriteFile(`C:\verify\csi-proxy-verify-20261116-133100.zip`, "half of it"),
		node.WriteFile(`C:\verify\csi-proxy-verify-20261115-080000.zip`, "complete"),
		node.WriteFile(`C:\precious\file`, "precious"),
		node.Symlink(`C:\verify\run-1\files\link`, `C:\precious`),
		node.Junction(`C:\verify\run-1\files\junction`, `C:\precious`),
		node.MountFolder(`C:\verify\run-1\files\mount`, winsim.SystemVolume),
		m.CreateSMBMapping(t.Context(), win.SMBMappingRequest{Remote: `\\files\data`, User: "csi", Password: win.NewSecret("csi-Pa55")}),
		m.AddSendTargetPortal(t.Context(), win.TargetPortal{Address: "10.0.0.10", Port: 3260}),
		node.AddService(winsim.Service{Name: "csi-proxy-verify-1-1", State: winsim.ServiceRunning, StopTime: time.Second}),
		node.AddService(winsim.Service{Name: "csi-proxy-verify-1-2", State: winsim.ServiceRunning, DependsOn: []string{"csi-proxy-verify-1-1"}}),
		node.AddService(winsim.Service{Name: "csi-proxy-verify-1-3", State: winsim.ServiceStartPending, StartTime: time.Second}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	entries := []journal.Entry{
		{Kind: journal.Folder, Name: "run-1"},
		{Kind: journal.Folder, Name: "run-2"},
		{Kind: journal.Mapping, Name: `\\files\data`},
		{Kind: journal.Mapping, Name: `\\files\missing`},
		{Kind: journal.Portal, Name: "10.0.0.10:3260"},
		{Kind: journal.Portal, Name: "10.0.0.11:3260"},
		{Kind: journal.Table, Name: "1"}, // an empty disk
		{Kind: journal.Service, Name: "csi-proxy-verify-1-1"},
		{Kind: journal.Service, Name: "csi-proxy-verify-1-2"},
		{Kind: journal.Service, Name: "csi-proxy-verify-1-3"},
		{Kind: journal.Service, Name: "csi-proxy-verify-1-4"}, // was not made
		{Kind: journal.Zip, Name: "csi-proxy-verify-20261116-133100.zip"},
	}
	for range 2 { // a second time there is nothing to do
		for _, e := range entries {
			if err := j.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := clean(t.Context(), node, `C:\verify`, j, func(string) {}); err != nil {
			t.Fatal(err)
		}
	}
	if node.Exists(`C:\verify\run-1`) || node.Exists(`C:\verify\csi-proxy-verify-20261116-133100.zip`) {
		t.Errorf("files are left:\n%s", node.Tree(`C:\verify`))
	}
	for _, path := range []string{`C:\verify\mine\file`, `C:\verify\csi-proxy-verify-20261115-080000.zip`, `C:\precious\file`, `C:\Windows`} {
		if !node.Exists(path) {
			t.Errorf("%s is gone", path)
		}
	}
	if mappings := node.SMBMappingInfos(); len(mappings) > 0 {
		t.Errorf("mappings are left: %v", mappings)
	}
	if portals, err := node.ReportSendTargetPortals(t.Context()); err != nil || len(portals) > 0 {
		t.Errorf("portals are left: %v, %v", portals, err)
	}
	for _, name := range []string{"csi-proxy-verify-1-1", "csi-proxy-verify-1-2", "csi-proxy-verify-1-3"} {
		if info, err := node.ServiceInfo(name); err != nil || info.State != winsim.ServiceStopped {
			t.Errorf("service %s: %+v, %v", name, info, err)
		}
	}
	if info, err := node.ServiceInfo("kubelet"); err != nil || info.State != winsim.ServiceRunning {
		t.Errorf("kubelet: %+v, %v", info, err)
	}
	// A disk that the operator has named is not wiped without the operator.
	before, _ := node.DiskFingerprint(0)
	said := ""
	if err := j.Add(journal.Entry{Kind: journal.Table, Name: "0"}); err != nil {
		t.Fatal(err)
	}
	err := clean(t.Context(), node, `C:\verify`, j, func(text string) { said += text })
	if after, _ := node.DiskFingerprint(0); err != nil || !strings.Contains(said, "Clear-Disk -Number 0") || after != before {
		t.Errorf("a disk with a table: %v, %q", err, said)
	}
}

// TestClean_KeepsOthers removes the mapping and the portal that a run has made. It keeps those that were there
// before, although the run has tried to make them again.
func TestClean_KeepsOthers(t *testing.T) {
	dir := t.TempDir()
	node, j := emulated(t, dir)
	m := journaled{node, j}
	mapping := func(remote string) win.SMBMappingRequest {
		return win.SMBMappingRequest{Remote: remote, User: "csi", Password: win.NewSecret("csi-Pa55")}
	}
	theirs, ours := win.TargetPortal{Address: "10.0.0.10", Port: 3260}, win.TargetPortal{Address: "10.0.0.11", Port: 3260}
	for _, err := range []error{
		node.CreateSMBMapping(t.Context(), mapping(`\\files\data`)),
		node.AddSendTargetPortal(t.Context(), theirs),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// The answers do not matter: those that are there may be refused, and portals may not answer.
	_ = m.CreateSMBMapping(t.Context(), mapping(`\\files\data`))
	_ = m.CreateSMBMapping(t.Context(), mapping(`\\files\missing`))
	_ = m.AddSendTargetPortal(t.Context(), theirs)
	_ = m.AddSendTargetPortal(t.Context(), ours)
	want := []journal.Entry{{Kind: journal.Mapping, Name: `\\files\missing`}, {Kind: journal.Portal, Name: ours.String()}}
	if got := j.Entries(); !slices.Equal(got, want) {
		t.Errorf("the journal names %v, want %v", got, want)
	}
	// A portal that cannot be removed stays in the journal. What was removed does not.
	fault, err := node.Inject(winsim.Fault{Call: "ReportSendTargetPortals", Error: 1722})
	if err != nil {
		t.Fatal(err)
	}
	if err := clean(t.Context(), node, `C:\verify`, j, func(string) {}); err == nil || !strings.Contains(err.Error(), ours.String()+" is left") {
		t.Errorf("a portal that cannot be removed: %v", err)
	}
	if got := j.Entries(); !slices.Equal(got, want[1:]) {
		t.Errorf("the journal names %v, want %v", got, want[1:])
	}
	fault.Remove()
	if err := clean(t.Context(), node, `C:\verify`, j, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := node.SMBMapping(t.Context(), `\\files\data`); err != nil {
		t.Errorf("the mapping of a user is gone: %v", err)
	}
	portals, err := node.ReportSendTargetPortals(t.Context())
	if err != nil || len(portals) != 1 || portals[0].Portal.String() != theirs.String() {
		t.Errorf("the portals are %v, %v, want that of a user", portals, err)
	}
	if _, err := os.Stat(filepath.Join(dir, journal.FileName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the journal is left: %v", err)
	}
}

// TestClean_NoService ends a run on a machine without the service of iSCSI: nothing was registered, so
// nothing is left.
func TestClean_NoService(t *testing.T) {
	node, j := emulated(t, t.TempDir())
	if _, err := node.Inject(winsim.Fault{Call: "ReportSendTargetPortals", Error: 1722}); err != nil {
		t.Fatal(err)
	}
	if err := (journaled{node, j}).AddSendTargetPortal(t.Context(), win.TargetPortal{Address: "10.0.0.10", Port: 3260}); err == nil {
		t.Error("a portal was registered on a machine that does not tell its portals")
	}
	if err := clean(t.Context(), node, `D:\scratch`, j, func(string) {}); err != nil {
		t.Errorf("something is said to be left: %v", err)
	}
}

// TestClean_DoesNotStop: a service that goes on is not said to be removed, and the next run looks again.
func TestClean_DoesNotStop(t *testing.T) {
	node, j := emulated(t, t.TempDir())
	entry := journal.Entry{Kind: journal.Service, Name: "csi-proxy-verify-1-1"}
	if err := errors.Join(j.Add(entry), node.AddService(winsim.Service{Name: entry.Name, State: winsim.ServiceRunning, StopTime: time.Hour})); err != nil {
		t.Fatal(err)
	}
	said := ""
	err := clean(t.Context(), node, `C:\verify`, j, func(text string) { said += text })
	if err == nil || !strings.Contains(err.Error(), entry.Name) || said != "" || !slices.Contains(j.Entries(), entry) {
		t.Errorf("%v, said %q, left %v", err, said, j.Entries())
	}
	if stops := node.Calls()["StopService"]; stops != 1 {
		t.Errorf("it was asked %d times to stop, want once", stops)
	}
}
