package replay_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

// TestFromDescription: a node that is built from a description gives the same description.
func TestFromDescription(t *testing.T) {
	for _, preset := range winsim.Presets() {
		if preset == "broken" {
			continue // one of its disks hangs
		}
		t.Run(preset, func(t *testing.T) {
			services := []string{"MSiSCSI", "vds", "none"}
			first := record.Describe(t.Context(), newNode(t, preset), services)
			first.Snapshot = nil
			node, notes, err := winsim.FromDescription(first, nil)
			if err != nil || len(notes) > 0 {
				t.Fatal(notes, err)
			}
			second := record.Describe(t.Context(), node, services)
			second.Snapshot = nil
			a, b := indented(t, first), indented(t, second)
			for i, line := range a {
				if i >= len(b) || line != b[i] {
					t.Fatalf("line %d is %s, was\n%s\n%s", i, b[i], strings.Join(a[max(0, i-12):i], "\n"), line)
				}
			}
		})
	}
}

func indented(t *testing.T, value any) []string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// withoutSnapshot makes the recording of an emulated node like that of a machine.
func withoutSnapshot(t *testing.T, text []byte) []byte {
	t.Helper()
	lines := bytes.SplitAfterN(text, []byte("\n"), 3)
	var l struct {
		Machine map[string]json.RawMessage `json:"machine"`
	}
	if err := json.Unmarshal(lines[1], &l); err != nil {
		t.Fatal(err)
	}
	delete(l.Machine, "Snapshot")
	described, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Join([][]byte{lines[0], append(described, '\n'), lines[2]}, nil)
}

// TestCompare_Machine: a recording without the emulator's own state, as one of a machine is, has no
// differences either, if the machine behaves as a node without delays does.
func TestCompare_Machine(t *testing.T) {
	for _, hash := range []bool{false, true} {
		model := winsim.Busy()
		model.Storage = winsim.Storage{}
		text := recorded(t, must(winsim.New(model)), record.Options{Hash: hash}, func(m win.Machine) {
			inspector := must(wholenode.NewOn(m, wholenode.WorkingDirs(`C:\var\lib\kubelet`)))
			_ = must(inspector.Describe(t.Context()))
			life(t.Context(), t, m)
			_ = must(inspector.Describe(t.Context()))
		})
		if !hash {
			text = withoutSnapshot(t, text)
		}
		report, err := replay.Compare(t.Context(), bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if report.Calls < 100 || len(report.Notes)+len(report.Outside) > 0 {
			t.Errorf("%d calls were compared, notes %q, other programs %v", report.Calls, report.Notes, report.Outside)
		}
		for _, d := range report.Differences {
			t.Error(d)
		}
	}
}

// TestCompare_Hashed: accounts, products and adapters are hashed so that an emulated node takes them.
func TestCompare_Hashed(t *testing.T) {
	model := winsim.Busy()
	model.Storage = winsim.Storage{}
	for i := range model.Disks {
		model.Disks[i].Bus, model.Disks[i].Vendor, model.Disks[i].Product = winsim.BusSAS, "LIO-ORG", "Acme"
	}
	text := recorded(t, must(winsim.New(model)), record.Options{Hash: true}, func(m win.Machine) {
		for _, id := range must(m.VolumeIDs(t.Context())) {
			if err := m.SetRootSecurity(t.Context(), id, "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;S-1-5-21-1-2-3-1001)"); err == nil {
				_ = must(m.RootSecurity(t.Context(), id))
			}
		}
		for _, adapter := range must(m.StorageAdapters(t.Context())) {
			if err := m.RescanAdapter(t.Context(), adapter); err != nil {
				t.Error(err)
			}
		}
		for _, device := range must(m.DiskDevices(t.Context())) {
			_ = must(m.DeviceDescriptor(t.Context(), device))
		}
	})
	report, err := replay.Compare(t.Context(), bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"SetRootSecurity", "RescanAdapter", "DeviceDescriptor"} {
		if !bytes.Contains(text, []byte(`"method":"`+method+`"`)) {
			t.Errorf("%s is not recorded", method)
		}
	}
	if bytes.Contains(text, []byte("Acme")) || bytes.Contains(text, []byte("S-1-5-21")) || len(report.Notes) > 0 {
		t.Errorf("notes %q, recorded:\n%s", report.Notes, text)
	}
	for _, d := range report.Differences {
		t.Error(d)
	}
}

// TestCompare_Servers: a recording without the emulator's own state tells of a server that refuses a password,
// and of a portal and its targets.
func TestCompare_Servers(t *testing.T) {
	text := withoutSnapshot(t, recorded(t, newNode(t, "default"), record.Options{}, func(m win.Machine) {
		err := m.CreateSMBMapping(t.Context(), win.SMBMappingRequest{Remote: `\\files\data`, User: "csi", Password: win.NewSecret("wrong")})
		if winerr.CodeOf(err) != winerr.LogonFailure {
			t.Errorf("map with a wrong password: %v", err)
		}
		if err := m.AddSendTargetPortal(t.Context(), win.TargetPortal{Address: "10.0.0.10", Port: 3260}); err != nil {
			t.Error(err)
		}
		targets := must(m.ReportTargets(t.Context()))
		if len(targets) == 0 {
			t.Error("there are no targets")
		}
		for _, target := range targets {
			_ = must(m.ReportTargetPortals(t.Context(), target))
		}
	}))
	report, err := replay.Compare(t.Context(), bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if report.Calls < 4 || len(report.Notes) > 0 {
		t.Errorf("%d calls were compared, notes %q", report.Calls, report.Notes)
	}
	for _, d := range report.Differences {
		t.Error(d)
	}
}
