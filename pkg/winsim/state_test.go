package winsim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// modelOf is the description of a node as it is now.
func modelOf(t *testing.T, node *winsim.Node) winsim.Model {
	t.Helper()
	model, err := node.Model()
	mustAll(t, err)
	return model
}

// reload is what a node is after the end of its process.
func reload(t *testing.T, node *winsim.Node) *winsim.Node {
	t.Helper()
	model := modelOf(t, node)
	again := newNode(t, model)
	if diff := cmp.Diff(model, modelOf(t, again)); diff != "" {
		t.Fatalf("what was described is described as something else (-node +new node):\n%s", diff)
	}
	return again
}

// TestState_Transcripts: all transcripts say the same if the process ends after every command.
func TestState_Transcripts(t *testing.T) {
	eachTranscript(t, func(t *testing.T, file, want string) {
		t.Helper()
		model, reloads := modelFor(t, file), 0
		got := replay(t, newNode(t, model), want, func(node *winsim.Node) *winsim.Node {
			reloads++
			return reload(t, node)
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("differs (-want +got):\n%s", diff)
		}
		if reloads == 0 {
			t.Error("the node was never saved")
		}
	})
}

// stateModel is a node with everything that can be different afterwards.
func stateModel() winsim.Model {
	model := winsim.Default()
	model.Storage.VolumeArrival = time.Second
	model.Storage.FormatTime = time.Minute
	model.Storage.GrowDelay = time.Second
	model.Storage.CapacityDelay = time.Second
	model.Storage.CreateDiskMSR = winsim.MSRLate
	model.Volumes = append(model.Volumes, winsim.Volume{ID: dataVolume, Files: []winsim.File{{Path: `\old`, Content: "x"}}})
	model.SMBServers[0].Aliases = []string{"10.0.0.5"}
	model.SMBServers[0].Guest = true
	model.Services = append(model.Services, winsim.Service{Name: "Slow", StartTime: time.Minute})
	return model
}

// TestState_Everything: what a node has, what others have of it, and what is on its way.
func TestState_Everything(t *testing.T) {
	model, ctx := stateModel(), t.Context()
	node := newNode(t, model)
	must := func(err error) {
		t.Helper()
		mustAll(t, err)
	}
	// Files of all kinds.
	must(node.WriteFile(`C:\var\lib\kubelet\a long name with spaces.txt`, "binary \x00\xff"))
	must(node.WriteFile(`C:\var\lib\kubelet\file:stream`, "in a stream"))
	must(node.Symlink(`C:\var\lib\kubelet\link`, `C:\var`))
	must(node.MountFolder(`C:\var\lib\kubelet\folder`, dataVolume))
	must(node.WriteFile(`C:\var\lib\kubelet\folder\data`, "on the volume"))
	must(node.Mkdir(`C:` + strings.Repeat(`\d`, 6000)))
	// Disks: one in the middle of its change, one attached, one detached, one grown.
	disk1 := win.PhysicalDrive(1)
	must(node.CreateDisk(ctx, disk1, win.GUID{}))
	must(node.GrowDisk(2, 2*winsim.GiB))
	_, err := node.AttachDisk(winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{{Volume: &winsim.Volume{Letter: "X", Files: []winsim.File{{Path: `\file`, Content: "on an attached disk"}}}}}})
	must(err)
	must(node.DetachDisk(3))
	// A share by its alias and a guest, and one whose password is wrong by now.
	must(node.CreateSMBMapping(ctx, win.SMBMappingRequest{Remote: `\\files\data`, User: "csi", Password: win.NewSecret("csi-Pa55")}))
	must(node.CreateSMBMapping(ctx, win.SMBMappingRequest{Remote: `\\10.0.0.5\data`}))
	must(node.WriteFile(`\\files\data\shared`, "on the share"))
	// iSCSI: a session whose disks are on their way, and a secret.
	portal := win.TargetPortal{Address: "10.0.0.10", Port: 3260}
	must(node.AddSendTargetPortal(ctx, portal))
	must(node.SetInitiatorCHAPSharedSecret(ctx, win.NewSecret("winsim-mutual-1")))
	_, err = node.Login(ctx, win.Login{Target: "iqn.2025-01.com.example:guarded", Portal: portal, Auth: win.MutualCHAP, User: "winsim", Secret: win.NewSecret("winsim-secret-1")})
	must(err)
	must(node.StartService(ctx, "Slow"))

	again := reload(t, node)
	for what, look := range map[string]func(*winsim.Node) any{
		"drive C":  func(n *winsim.Node) any { return n.Tree(`C:\var`) },
		"volume":   func(n *winsim.Node) any { return n.Tree(`C:\var\lib\kubelet\folder\data`) },
		"depth":    func(n *winsim.Node) any { return n.Exists(`C:` + strings.Repeat(`\d`, 6000)) },
		"share":    func(n *winsim.Node) any { return n.Tree(`\\files\data`) },
		"guest":    func(n *winsim.Node) any { return n.Tree(`\\10.0.0.5\data`) },
		"paths":    func(n *winsim.Node) any { return answers(n.VolumePaths(ctx, dataVolume)) },
		"mappings": func(n *winsim.Node) any { return answers(n.SMBMappings(ctx)) },
		"rest":     func(n *winsim.Node) any { return n.Describe() },
		"targets":  func(n *winsim.Node) any { return answers(n.ReportTargets(ctx)) },
		"short": func(n *winsim.Node) any {
			return answers(n.ShortName(`C:\var\lib\kubelet\a long name with spaces.txt`))
		},
		"disk 4": func(n *winsim.Node) any { return answers(n.DiskFingerprint(4)) },
	} {
		if diff := cmp.Diff(look(node), look(again)); diff != "" {
			t.Errorf("%s differs (-saved +loaded):\n%s", what, diff)
		}
	}

	// What was on its way arrives at both.
	for _, n := range []*winsim.Node{node, again} {
		must(n.Sleep(ctx, 2*time.Minute))
		info, err := n.DiskInfo(1)
		must(err)
		if len(info.Partitions) != 1 || info.Partitions[0].Type != "msr" {
			t.Errorf("the late partition is %+v", info.Partitions)
		}
		if s, err := n.ServiceInfo("Slow"); err != nil || s.State != winsim.ServiceRunning {
			t.Errorf("the slow service is %+v, %v", s, err)
		}
		if luns := n.Describe().ISCSI.Targets[1].LUNs; luns[0].Presence != winsim.DiskAttached || luns[1].Presence != winsim.DiskAttached {
			t.Errorf("the session has %+v", luns)
		}
		if _, err := n.ReattachDisk(3); err != nil {
			t.Errorf("the detached disk does not come back: %v", err)
		}
	}
	if diff := cmp.Diff(modelOf(t, node), modelOf(t, again)); diff != "" {
		t.Errorf("they went different ways (-saved +loaded):\n%s", diff)
	}
}

func answers[T any](answer T, err error) []any {
	if err != nil {
		return []any{err.Error()}
	}
	return []any{answer}
}

// TestState_Format: a format that was begun goes on without the process that asked for it.
func TestState_Format(t *testing.T) {
	model, ctx := winsim.Default(), t.Context()
	model.RealTime = true
	model.Storage.FormatTime = time.Hour
	model.Disks[1].Layout, model.Disks[1].Partitions = winsim.LayoutGPT, []winsim.Partition{{}}
	node := newNode(t, model)
	info, err := node.DiskInfo(1)
	mustAll(t, err)
	id := win.VolumeID(info.Partitions[0].Volume.ID)
	// The caller leaves when the format has begun, as if it had been killed.
	asking, leave := context.WithCancel(ctx)
	if _, err := node.Inject(winsim.Fault{Call: "Format", Do: func(*winsim.Node) { time.AfterFunc(10*time.Millisecond, leave) }}); err != nil {
		t.Fatal(err)
	}
	if err := node.Format(asking, id, win.FormatOptions{}); err == nil {
		t.Fatal("an hour has passed")
	}
	saved := modelOf(t, node)
	saved.RealTime = false // of which a day can pass
	again := newNode(t, saved)
	if err := again.Format(ctx, id, win.FormatOptions{}); err == nil {
		t.Error("it is formatted twice at the same time")
	}
	mustAll(t, again.Sleep(ctx, time.Since(again.Now())+2*time.Hour))
	if fs, err := again.FileSystem(ctx, id); err != nil || fs.Name != "NTFS" {
		t.Errorf("the file system is %+v, %v", fs, err)
	}
}

// TestOpen_Refused: each is one error that says what is wrong.
func TestOpen_Refused(t *testing.T) {
	text, err := json.Marshal(modelOf(t, newNode(t, winsim.Default())))
	mustAll(t, err)
	good := string(text)
	with := func(change func(*winsim.Model)) string {
		changed := modelOf(t, newNode(t, winsim.Default()))
		change(&changed)
		text, err := json.Marshal(changed)
		mustAll(t, err)
		return string(text)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":          {"", "not the model of a running node, or damaged"},
		"half":           {good[:len(good)/2], "not the model of a running node, or damaged"},
		"another file":   {`{"name": "package.json"}`, "not the model of a running node"},
		"a new node":     {`{"seed": 1}`, "running is missing"},
		"more behind it": {good + `{"more": true}`, "unexpected data after the end"},
		"an older file":  {`{"format": "csi-proxy-sim node state", "version": 1}`, `unknown field "format"`},
		"another model":  {with(func(m *winsim.Model) { m.Running.Origin = "0" }), "another model"},
		"a missing disk": {with(func(m *winsim.Model) {
			m.Volumes = append(m.Volumes, winsim.Volume{ID: dataVolume, Extents: []winsim.Extent{{Disk: 99}}})
		}), "there is no disk 99"},
		"an event": {
			with(func(m *winsim.Model) { m.Disks[0].Pending = []winsim.Event{{Kind: "nova"}} }),
			`damaged: disks[0].pending[0].kind: "nova" is not an event of it`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "node.json")
			mustAll(t, os.WriteFile(path, []byte(c.text), 0o600))
			_, _, err := winsim.Open(winsim.Default(), path, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "delete this one") {
				t.Errorf("got %v, want an error with %q and the way out", err, c.want)
			}
		})
	}
}

// TestModel_Left: what disks and volumes leave behind: places, names, letters and file systems.
func TestModel_Left(t *testing.T) {
	ctx := t.Context()
	model := winsim.Default()
	model.Storage.AttachByRescan = true
	model.Disks = append(model.Disks,
		winsim.Disk{Number: 7, Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{
			{Volume: &winsim.Volume{Letter: "L", Files: []winsim.File{{Path: `\left`, Content: "behind"}}}},
		}},
		winsim.Disk{Number: 8, Size: winsim.GiB}, winsim.Disk{Number: 9, Size: winsim.GiB})
	model.Volumes = append(model.Volumes, winsim.Volume{ID: dataVolume, Letter: "S", Files: []winsim.File{{Path: `\spanning`}}, Extents: []winsim.Extent{
		{Disk: 8, Offset: winsim.MiB, Size: 16 * winsim.MiB}, {Disk: 9, Offset: winsim.MiB, Size: 16 * winsim.MiB},
	}})
	node := newNode(t, model)
	mustAll(t, node.CreateDisk(ctx, win.PhysicalDrive(7), win.GUID{}), node.DetachDisk(8))
	_, err := node.AttachDisk(winsim.Disk{Number: 8, Size: winsim.GiB})
	mustAll(t, err, node.MountFolder(`C:\gone`, dataVolume))
	again := reload(t, node)
	for _, n := range []*winsim.Node{node, again} {
		number, err := n.ReattachDisk(8)
		mustAll(t, err, n.RescanAdapter(ctx, ""), n.Sleep(ctx, time.Minute))
		if tree := n.Tree(`S:\`); number == 8 || !strings.Contains(tree, "spanning") {
			t.Errorf("disk %d came back, and its volume has\n%s", number, tree)
		}
	}
	if diff := cmp.Diff(modelOf(t, node), modelOf(t, again)); diff != "" {
		t.Errorf("they went different ways (-node +copy):\n%s", diff)
	}
}

// TestModel_Secrets: they are those of a test, and a node without them would be another one.
func TestModel_Secrets(t *testing.T) {
	ctx := t.Context()
	node := newNode(t, winsim.Default())
	mapping := win.SMBMappingRequest{Remote: `\\files\data`, User: "csi", Password: win.NewSecret("another")}
	portal := win.TargetPortal{Address: "10.0.0.10", Port: 3260}
	login := win.Login{Target: "iqn.2025-01.com.example:guarded", Portal: portal, Auth: win.MutualCHAP, User: "winsim", Secret: win.NewSecret("winsim-secret-1")}
	mustAll(t,
		node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[0].Password = "another" }),
		node.SetInitiatorCHAPSharedSecret(ctx, win.NewSecret("not-the-target")),
		node.AddSendTargetPortal(ctx, portal),
	)
	again := reload(t, node)
	mustAll(t, again.CreateSMBMapping(ctx, mapping))
	_, before := node.Login(ctx, login)
	_, after := again.Login(ctx, login)
	if before == nil || after == nil || before.Error() != after.Error() {
		t.Errorf("%v before, %v after", before, after)
	}
}

// TestModel_YAML: the JSON of a state file is a model like any other.
func TestModel_YAML(t *testing.T) {
	model := modelOf(t, newNode(t, stateModel()))
	text, err := json.Marshal(model)
	mustAll(t, err)
	read, err := winsim.LoadModel(bytes.NewReader(text), "node.json")
	mustAll(t, err)
	if diff := cmp.Diff(modelOf(t, newNode(t, model)), modelOf(t, newNode(t, read))); diff != "" {
		t.Errorf("differs (-JSON +YAML):\n%s", diff)
	}
}

// TestOpen: each change is in the file before its call returns, also with concurrent calls.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.json")
	model := winsim.Default()
	node, closeFile, err := winsim.Open(model, path, func(err error) { t.Error(err) })
	mustAll(t, err)
	if _, _, err := winsim.Open(model, path, nil); err == nil || !strings.Contains(err.Error(), "another csi-proxy-sim") {
		t.Errorf("opened twice: %v", err)
	}
	if _, err := node.Mirror(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "state file") {
		t.Errorf("mirrored: %v", err)
	}
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for j := range 20 {
				name := `C:\` + string(rune('a'+i)) + string(rune('a'+j))
				if err := node.Mkdir(name); err != nil {
					t.Error(err)
					return
				}
				var kept winsim.Model
				if err := json.Unmarshal([]byte(readState(t, path)), &kept); err != nil {
					t.Error(err)
				} else if !newNode(t, kept).Exists(name) {
					t.Errorf("%s is not in the file", name)
				}
			}
		})
	}
	writers.Wait()
	tree := node.Tree(`C:\`)
	closeFile()
	if err := node.Mkdir(`C:\afterwards`); err != nil {
		t.Error(err)
	}
	again, closeFile, err := winsim.Open(model, path, func(err error) { t.Error(err) })
	mustAll(t, err)
	defer closeFile()
	if diff := cmp.Diff(tree, again.Tree(`C:\`)); diff != "" {
		t.Errorf("differs (-before +after):\n%s", diff)
	}
}

// readState reads a state file. On Windows it cannot be opened in the moment in which it is replaced.
func readState(t *testing.T, path string) string {
	t.Helper()
	for {
		text, err := os.ReadFile(path)
		if err != nil && runtime.GOOS == "windows" && t.Context().Err() == nil &&
			(errors.Is(err, syscall.Errno(winerr.SharingViolation)) || errors.Is(err, syscall.Errno(winerr.AccessDenied))) {
			runtime.Gosched()
			continue
		}
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

// TestOpen_Link: a file is the same under the name of a link to it or to its directory.
func TestOpen_Link(t *testing.T) {
	dir := t.TempDir()
	path, link, linked := filepath.Join(dir, "node.json"), filepath.Join(dir, "alias.json"), filepath.Join(dir, "linked")
	for to, at := range map[string]string{path: link, dir: linked} {
		_ = os.Symlink(to, at)
		if _, err := os.Readlink(at); err != nil { // Wine says that it made one
			t.Skipf("links cannot be made here: %v", err)
		}
	}
	if _, _, err := winsim.Open(winsim.Default(), link, nil); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a link that leads nowhere: %v", err)
	}
	_, closeFile, err := winsim.Open(winsim.Default(), path, func(err error) { t.Error(err) })
	mustAll(t, err)
	for _, other := range []string{link, filepath.Join(linked, "node.json")} {
		if _, _, err := winsim.Open(winsim.Default(), other, nil); err == nil || !strings.Contains(err.Error(), "another csi-proxy-sim") {
			t.Errorf("opened again as %s: %v", other, err)
		}
	}
	closeFile()
	node, closeFile, err := winsim.Open(winsim.Default(), link, func(err error) { t.Error(err) })
	mustAll(t, err)
	defer closeFile()
	mustAll(t, node.Mkdir(`C:\new`))
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
}

// TestOpen_Failed: a file that cannot be written is reported, once, and not before it matters.
func TestOpen_Failed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.json")
	var failures []error
	node, closeFile, err := winsim.Open(winsim.Default(), path, func(err error) { failures = append(failures, err) })
	mustAll(t, err)
	defer closeFile()
	mustAll(t, os.MkdirAll(filepath.Join(path+".new", "in the way"), 0o700))
	node.Exists(`C:\var`)
	if len(failures) > 0 {
		t.Errorf("a call that changes nothing: %v", failures)
	}
	for range 2 {
		if err := node.Mkdir(`C:\new`); err != nil {
			t.Error(err)
		}
		if err := node.RemoveAll(`C:\new`); err != nil {
			t.Error(err)
		}
	}
	if len(failures) != 1 || !strings.Contains(failures[0].Error(), "node.json") {
		t.Errorf("reported %v, want one error that names the file", failures)
	}
	if _, _, err := winsim.Open(winsim.Default(), filepath.Join(t.TempDir(), "missing", "node.json"), nil); err == nil {
		t.Error("a file in a missing directory was opened")
	}
}

// FuzzModel: no model of a running node brings the program down, nor does a node that came of it.
func FuzzModel(f *testing.F) {
	node, err := winsim.New(stateModel())
	if err != nil {
		f.Fatal(err)
	}
	model, err := node.Model()
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(model)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"running": {}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var model winsim.Model
		if err := json.Unmarshal(data, &model); err != nil {
			return
		}
		model.RealTime = false
		node, err := winsim.New(model)
		if err != nil {
			return
		}
		ctx := t.Context()
		reload(t, node)
		_ = node.Sleep(ctx, time.Hour)
		node.Tree(`C:\`)
		node.Reboot()
		for _, d := range []uint32{0, 1, 2, 3} {
			_, _ = node.DiskInfo(d)
			_ = node.HealDisk(d) // a hanging one would wait for it
			_ = node.CreateDisk(ctx, win.PhysicalDrive(d), win.GUID{})
		}
		_ = node.Mkdir(`C:\x`)
		reload(t, node)
	})
}

// TestState_FolderOnRemovedPartition: a mounted folder outlives the partition that it is on, and comes back with it.
func TestState_FolderOnRemovedPartition(t *testing.T) {
	node, ctx := newNode(t, storageModel()), t.Context()
	device := win.PhysicalDrive(2)
	mustAll(t, node.MountFolder(dataVolume+`folder`, dataVolume))
	layout, err := node.DriveLayout(ctx, device)
	mustAll(t, err, node.SetDriveLayout(ctx, device, win.DriveLayout{Style: win.StyleGPT}))
	again := reload(t, node)
	for name, n := range map[string]*winsim.Node{"saved": node, "loaded": again} {
		mustAll(t, n.SetDriveLayout(ctx, device, layout), n.Sleep(ctx, time.Minute))
		paths, err := n.VolumePaths(ctx, dataID)
		if want := []string{`D:\`, dataVolume + `folder\`}; err != nil || !slices.Equal(paths, want) {
			t.Errorf("the %s node has the paths %q, %v, want %q", name, paths, err, want)
		}
	}
}
