package winsim_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/strictyaml"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/sweep"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// modelOf is the model of a node as it is now.
func modelOf(t *testing.T, node *winsim.Node) winsim.Model {
	t.Helper()
	model, err := node.Model()
	mustAll(t, err)
	return model
}

// TestModel_Copies: after every command of the transcripts New makes a node of the model, also of its YAML, and the
// copy of a copy is the same.
func TestModel_Copies(t *testing.T) {
	eachTranscript(t, func(t *testing.T, file, want string) {
		t.Helper()
		try := sweep.OneIn(t, 8)
		replay(t, newNode(t, modelFor(t, file)), want, func(node *winsim.Node) {
			if !try() {
				return
			}
			copied := newNode(t, modelOf(t, node))
			text, err := strictyaml.Encode(modelOf(t, copied))
			mustAll(t, err)
			read, err := winsim.LoadModel(bytes.NewReader(text), "node.yaml")
			mustAll(t, err)
			if diff := cmp.Diff(modelOf(t, copied), modelOf(t, newNode(t, read))); diff != "" {
				t.Fatalf("the copy of a copy differs (-copy +second):\n%s", diff)
			}
		})
	})
}

// TestModel_Content: what a copy has of its original.
func TestModel_Content(t *testing.T) {
	ctx := t.Context()
	model := winsim.Default()
	model.Storage.FormatTime = time.Minute
	model.Volumes = append(model.Volumes, winsim.Volume{ID: dataVolume, Files: []winsim.File{{Path: `\old`, Content: "x"}}})
	model.SMBServers[0].Aliases, model.SMBServers[0].Guest = []string{"10.0.0.5"}, true
	node := newNode(t, model)
	const kubelet = `C:\var\lib\kubelet`
	mustAll(t,
		node.WriteFile(kubelet+`\a long name with spaces.txt`, "binary \x00\xff"),
		node.WriteFile(`\\?\`+kubelet+`\NUL`, "odd"),
		node.Symlink(kubelet+`\link`, `C:\var`),
		node.MountFolder(kubelet+`\folder`, dataVolume),
		node.WriteFile(kubelet+`\folder\data`, "on the volume"),
		node.GrowDisk(2, 2*winsim.GiB),
		node.DetachDisk(3),
		node.CreateSMBMapping(ctx, win.SMBMappingRequest{Remote: `\\files\data`, User: "csi", Password: win.NewSecret("csi-Pa55")}),
		node.WriteFile(`\\files\data\shared`, "on the share"),
	)
	_, err := node.AttachDisk(winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{{Volume: &winsim.Volume{Letter: "X", Files: []winsim.File{{Path: `\file`, Content: "on an attached disk"}}}}}})
	mustAll(t, err)
	portal := win.TargetPortal{Address: "10.0.0.10", Port: 3260}
	mustAll(t, node.AddSendTargetPortal(ctx, portal), node.SetInitiatorCHAPSharedSecret(ctx, win.NewSecret("winsim-mutual-1")))

	mustAll(t, node.Sleep(ctx, time.Minute)) // until the volumes of the new disk are there
	again := newNode(t, modelOf(t, node))
	for what, look := range map[string]func(*winsim.Node) string{
		"drive C":  func(n *winsim.Node) string { return n.Tree(`C:\var`) },
		"volume":   func(n *winsim.Node) string { return n.Tree(kubelet + `\folder\data`) },
		"share":    func(n *winsim.Node) string { return n.Tree(`\\files\data`) },
		"drive X":  func(n *winsim.Node) string { return n.Tree(`X:\`) },
		"paths":    func(n *winsim.Node) string { return fmt.Sprint(n.VolumePaths(ctx, dataVolume)) },
		"mappings": func(n *winsim.Node) string { return fmt.Sprint(n.SMBMappings(ctx)) },
		"targets":  func(n *winsim.Node) string { return fmt.Sprint(n.ReportTargets(ctx)) },
		"disks":    func(n *winsim.Node) string { return text(t, modelOf(t, n).Disks) },
		"content":  func(n *winsim.Node) string { return fmt.Sprint(n.DiskFingerprint(3)) },
		"short":    func(n *winsim.Node) string { return fmt.Sprint(n.ShortName(kubelet + `\a long name with spaces.txt`)) },
		"detached": func(n *winsim.Node) string { return fmt.Sprint(n.ReattachDisk(3)) },
	} {
		if want, got := look(node), look(again); got != want || strings.Contains(want, "error") {
			t.Errorf("%s differs (-node +copy):\n%s", what, cmp.Diff(want, got))
		}
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	encoded, err := strictyaml.Encode(value)
	mustAll(t, err)
	return strings.ReplaceAll(string(encoded), ",", ",\n")
}

// FuzzModel: no model brings the program down, nor does a node that came of it.
func FuzzModel(f *testing.F) {
	node, err := winsim.New(winsim.Busy())
	if err != nil {
		f.Fatal(err)
	}
	model, err := node.Model()
	if err != nil {
		f.Fatal(err)
	}
	text, err := strictyaml.Encode(model)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`disks: [{size: 1MiB, presence: detached}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		model, err := winsim.LoadModel(bytes.NewReader(data), "model.yaml")
		if err != nil || model.RealTime {
			return
		}
		node, err := winsim.New(model)
		if err != nil {
			return
		}
		ctx := t.Context()
		_ = node.Sleep(ctx, time.Hour)
		node.Tree(`C:\`)
		node.Reboot()
		for _, d := range []uint32{0, 1, 2, 3} {
			_, _ = node.DiskInfo(d)
			_ = node.HealDisk(d) // a hanging one would wait for it
			_ = node.CreateDisk(ctx, win.PhysicalDrive(d), win.GUID{})
		}
		_ = node.Mkdir(`C:\x`)
		_, _ = winsim.New(modelOf(t, node)) // may be refused: a volume can be where no model puts one
	})
}
