package replay_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

// FuzzCompare replays any recording: it must end, with a report or an error.
func FuzzCompare(f *testing.F) {
	var out bytes.Buffer
	model := winsim.Default()
	model.Disks = model.Disks[:1]
	node, err := winsim.New(model)
	if err != nil {
		f.Fatal(err)
	}
	m := record.New(f.Context(), node, &out, record.Options{}).Machine()
	_, _ = m.DriveLayout(f.Context(), win.PhysicalDrive(0))
	_ = m.ReadDevice(f.Context(), win.PhysicalDrive(0), 0, make([]byte, 512))
	_ = m.CreateSMBMapping(f.Context(), win.SMBMappingRequest{Remote: `\\files\data`, User: "csi", Password: win.NewSecret("csi-Pa55")})
	if dir, err := m.OpenDirectory(f.Context(), win.Following(`C:\var\lib\kubelet`)); err == nil {
		_ = dir.ListDirectory(f.Context(), "", func(inner win.Tree, _ []win.DirEntry) error {
			_, err := inner.ReparsePoint(f.Context(), "pods")
			return err
		})
		_, _ = dir.ChangedAt(f.Context(), "pods")
		dir.Close()
	}
	lines := bytes.SplitAfterN(out.Bytes(), []byte("\n"), 3)
	header, described := lines[0], lines[1]
	f.Add(true, lines[2])
	f.Add(false, []byte(`{"machine":{"Disks":[{"Device":"\\\\?\\x","Geometry":{"Value":{"Size":1048576,"BytesPerSector":512}}}],"Volumes":[{"ID":"\\\\?\\Volume{0c51a9e0-0000-0000-0000-100000000000}\\","Paths":{"Value":["C:\\","C:\\m\\"]}}]}}`+"\n"+
		`{"call":{"seq":1,"method":"FileInfo","in":{"path":{"Base":"C:\\x"}},"out":{"Directory":true}}}`+"\n"))
	f.Add(true, []byte(`{"call":{"seq":48,"method":"Now","start_us":1,"took_us":1}}`+"\n"))
	f.Add(true, []byte(`{"call":{"seq":48,"method":"Sleep","in":{"d":1},"start_us":1,"took_us":1}}`+"\n"))
	// The description of a whole node makes inputs too long for the fuzzer, so it is not part of them.
	f.Fuzz(func(t *testing.T, whole bool, text []byte) {
		if whole {
			text = slices.Concat(described, text)
		}
		report, err := replay.Compare(t.Context(), bytes.NewReader(slices.Concat(header, text)))
		if (report == nil) == (err == nil) {
			t.Errorf("%v, %v", report, err)
		}
	})
}
