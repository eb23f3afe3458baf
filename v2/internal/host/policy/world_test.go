package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	work       = `C:\var\lib\kubelet`
	dataVolume = `\\?\Volume{11111111-2222-3333-4444-555555555555}\`
	dataDisk   = 1
	hostVolume = `\\?\Volume{99999999-2222-3333-4444-555555555555}\` // drive D:, which is not for us
	hostDisk   = 2

	mappedShare = `\\files\data`
)

// world is a node with a data volume, and groups that are limited to C:\var\lib\kubelet.
// It complains about every file that is reached and is not theirs.
type world struct {
	t    testing.TB
	node *winsim.Node
	fs   filesystem.Extended
	vol  volume.Interface
	smb  smb.Interface

	touches []winsim.Touch
}

// model has the same directories inside and outside, so that a call that is led outside
// succeeds there, and the test notices.
func model() winsim.Model {
	m := winsim.Default()
	m.Disks[dataDisk].Layout = winsim.LayoutGPT
	m.Disks[dataDisk].Partitions = []winsim.Partition{{Volume: &winsim.Volume{ID: dataVolume, Files: []winsim.File{
		{Path: `\precious`, Content: "data"},
		{Path: `\a\b\c\file`, Content: "data"},
		{Path: `\out`, Symlink: `C:\Windows`},
		{Path: `\up`, Symlink: `..\..\..\Windows`},
		{Path: `\rooted`, Symlink: `\Windows`},
		{Path: `\share`, Symlink: `\\server\share`},
		{Path: `\back`, Symlink: work + `\a`},
	}}}}
	m.Disks[hostDisk].Layout = winsim.LayoutGPT
	m.Disks[hostDisk].Partitions = []winsim.Partition{{Volume: &winsim.Volume{ID: hostVolume, Letter: "D"}}}
	for _, dir := range []string{work, `C:\Windows`, `C:\var\lib\kubelet-evil`, `D:\`} {
		dir = strings.TrimSuffix(dir, `\`)
		m.Files = append(m.Files,
			winsim.File{Path: dir + `\a\b\c\file`, Content: "data"},
			winsim.File{Path: dir + `\a\b\empty`},
			winsim.File{Path: dir + `\empty`},
			winsim.File{Path: dir + `\file`, Content: "data"},
			winsim.File{Path: dir + `\mounted`, Volume: dataVolume},
		)
	}
	return m
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOf(t, model())
}

func newWorldOf(t testing.TB, m winsim.Model) *world {
	t.Helper()
	node, err := winsim.New(m)
	require.NoError(t, err)
	w := &world{t: t, node: node}
	if w.fs, err = filesystem.New(node.Filesystem(), filesystem.WorkingDirs(work)); err != nil {
		t.Fatal(err)
	}
	if w.vol, err = volume.New(node.Volume(), volume.WorkingDirs(work)); err != nil {
		t.Fatal(err)
	}
	if w.smb, err = smb.New(node.SMB(), w.fs, smb.WorkingDirs(work)); err != nil {
		t.Fatal(err)
	}
	node.Observe(func(touch winsim.Touch) { w.touches = append(w.touches, touch) })
	return w
}

// path calls of both groups, by name.
var pathCalls = map[string]func(w *world, path string) error{
	"PathExists": func(w *world, path string) error {
		_, err := w.fs.PathExists(w.t.Context(), &filesystem.PathExistsRequest{Path: path})
		return err
	},
	"PathValid": func(w *world, path string) error {
		_, err := w.fs.PathValid(w.t.Context(), &filesystem.PathValidRequest{Path: path})
		return err
	},
	"GetPathStats": func(w *world, path string) error {
		_, err := w.fs.GetPathStats(w.t.Context(), &filesystem.GetPathStatsRequest{Path: path})
		return err
	},
	"ListDirectory": func(w *world, path string) error {
		_, err := w.fs.ListDirectory(w.t.Context(), &filesystem.ListDirectoryRequest{Path: path})
		return err
	},
	"IsSymlink": func(w *world, path string) error {
		_, err := w.fs.IsSymlink(w.t.Context(), &filesystem.IsSymlinkRequest{Path: path})
		return err
	},
	"Mkdir": func(w *world, path string) error {
		_, err := w.fs.Mkdir(w.t.Context(), &filesystem.MkdirRequest{Path: path})
		return err
	},
	"Rmdir": func(w *world, path string) error {
		_, err := w.fs.Rmdir(w.t.Context(), &filesystem.RmdirRequest{Path: path})
		return err
	},
	"Rmdir with force": func(w *world, path string) error {
		_, err := w.fs.Rmdir(w.t.Context(), &filesystem.RmdirRequest{Path: path, Force: true})
		return err
	},
	"RmdirContents": func(w *world, path string) error {
		_, err := w.fs.RmdirContents(w.t.Context(), &filesystem.RmdirContentsRequest{Path: path})
		return err
	},
	"CreateSymlink at": func(w *world, path string) error {
		_, err := w.fs.CreateSymlink(w.t.Context(), &filesystem.CreateSymlinkRequest{SourcePath: work + `\empty`, TargetPath: path})
		return err
	},
	"CreateSymlink to": func(w *world, path string) error {
		_, err := w.fs.CreateSymlink(w.t.Context(), &filesystem.CreateSymlinkRequest{SourcePath: path, TargetPath: work + `\made`})
		return err
	},
	"NewSMBGlobalMapping at": func(w *world, path string) error {
		_, err := w.smb.NewSMBGlobalMapping(w.t.Context(), &smb.NewSMBGlobalMappingRequest{
			RemotePath: mappedShare, LocalPath: path, Username: "csi", Password: "csi-Pa55",
		})
		return err
	},
	"MountVolume": func(w *world, path string) error {
		_, err := w.vol.MountVolume(w.t.Context(), &volume.MountVolumeRequest{VolumeID: dataVolume, TargetPath: path})
		return err
	},
	"UnmountVolume": func(w *world, path string) error {
		_, err := w.vol.UnmountVolume(w.t.Context(), &volume.UnmountVolumeRequest{VolumeID: dataVolume, TargetPath: path})
		return err
	},
	"GetVolumeIDFromTargetPath": func(w *world, path string) error {
		_, err := w.vol.GetVolumeIDFromTargetPath(w.t.Context(), &volume.GetVolumeIDFromTargetPathRequest{TargetPath: path})
		return err
	},
	"GetClosestVolumeIDFromTargetPath": func(w *world, path string) error {
		_, err := w.vol.GetClosestVolumeIDFromTargetPath(w.t.Context(), &volume.GetClosestVolumeIDFromTargetPathRequest{TargetPath: path})
		return err
	},
}

// run makes a call and checks what it touched.
func (w *world) run(name, path string) error {
	w.t.Helper()
	w.touches = nil
	err := pathCalls[name](w, path)
	for _, touch := range w.touches {
		if !allowed(name, touch) {
			w.t.Errorf("%s of %s: %s reached %s (changed: %v); the answer was %v", name, path, touch.Call, touch.Path, touch.Changed, err)
		}
	}
	if open := w.node.OpenDirectories(); open != 0 {
		w.t.Errorf("%s of %s: %d directories stay open", name, path, open)
	}
	return err
}

// allowed is the rule, written down once more: files of the working directory, and what is
// read of the volume that may be mounted there.
func allowed(call string, touch winsim.Touch) bool {
	if winpath.Contains(work, touch.Path) {
		return !(touch.Changed && winpath.Equal(work, touch.Path))
	}
	if strings.HasPrefix(touch.Path, strings.TrimSuffix(dataVolume, `\`)) {
		return !touch.Changed || call == "UnmountVolume"
	}
	// Whether a volume that a folder shows is alive can be asked of any.
	if touch.Call == "TargetInfo" && touch.Path == `D:\` {
		return !touch.Changed
	}
	if call == "NewSMBGlobalMapping at" && strings.HasPrefix(touch.Path, mappedShare) {
		return !touch.Changed
	}
	// A working directory is an entry of the directory above it.
	return !touch.Changed && winpath.Contains(touch.Path, work)
}

// outside is the state of all that is not the working directory's.
func (w *world) outside() string {
	return w.node.Tree(`D:\`) + w.node.Tree(`C:\Windows`) + w.node.Tree(`C:\var\lib\kubelet-evil`) + w.node.Tree(dataVolume)
}

func check(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func names[V any](m map[string]V) []string {
	var all []string
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func systemVolume(t testing.TB, node *winsim.Node) string {
	t.Helper()
	ids, err := node.SystemVolumes(t.Context())
	check(t, err)
	for _, id := range ids {
		if node.Exists(fmt.Sprintf(`%sWindows`, id)) {
			return string(id)
		}
	}
	t.Fatal("the node has no system volume")
	return ""
}
