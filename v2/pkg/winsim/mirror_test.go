package winsim_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const kubelet = `C:\var\lib\kubelet`

// mirrored is a node whose files are in a real directory. Problems fail the test.
func mirrored(t *testing.T, model winsim.Model) (node *winsim.Node, dir string) {
	t.Helper()
	needLinks(t)
	node, dir = newNode(t, model), t.TempDir()
	stop, err := node.Mirror(dir, func(err error) { t.Error("mirror:", err) })
	mustAll(t, err)
	t.Cleanup(stop)
	return node, dir
}

func needLinks(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("links there depend on privileges, and on their targets")
	}
}

// snapshot describes a real directory, except for what is hidden there.
func snapshot(t *testing.T, dir string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.Name() == ".csi-proxy-sim":
			return fs.SkipDir
		case d.Type() == fs.ModeSymlink:
			text, err := os.Readlink(path)
			lines = append(lines, name+" -> "+text)
			return err
		case name == "volumes" || name == "shares": // once there was one
		case d.IsDir():
			lines = append(lines, name+"/")
		default:
			content, err := os.ReadFile(path)
			lines = append(lines, fmt.Sprintf("%s %q", name, content))
			return err
		}
		return nil
	})
	mustAll(t, err)
	return lines
}

// agree checks that a real directory matches the node: a new mirror is
// the same.
func agree(t *testing.T, node *winsim.Node, dir string, stop func()) {
	t.Helper()
	before := snapshot(t, dir)
	stop()
	again := t.TempDir()
	stop, err := node.Mirror(again, nil)
	mustAll(t, err)
	defer stop()
	if diff := cmp.Diff(before, snapshot(t, again)); diff != "" {
		t.Errorf("what was shown is not what the node has (-shown +node):\n%s", diff)
	}
}

func realPath(dir, path string) string {
	return filepath.Join(dir, path[:1], filepath.FromSlash(strings.ReplaceAll(path[3:], `\`, "/")))
}

// listPath returns the names in a directory, whose parent is opened for that.
func listPath(t *testing.T, node *winsim.Node, path string) []string {
	t.Helper()
	end := strings.LastIndexByte(path, '\\')
	parent, err := node.OpenDirectory(t.Context(), win.Following(path[:end]))
	mustAll(t, err)
	defer parent.Close()
	return list(t, parent, path[end+1:])
}

// TestMirror_Follows: every kind of change is shown.
func TestMirror_Follows(t *testing.T) {
	node, dir := mirrored(t, withDataVolume())
	pods, ctx := kubelet+`\pods`, t.Context()
	link := func(path string) string {
		t.Helper()
		text, err := os.Readlink(realPath(dir, path))
		mustAll(t, err)
		return filepath.ToSlash(text)
	}
	content := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		mustAll(t, err)
		return string(text)
	}
	missing := func(path string) {
		t.Helper()
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", path, err)
		}
	}

	// What the model has, with the rights of this user only.
	info, err := os.Lstat(realPath(dir, pods))
	mustAll(t, err)
	if runtime.GOOS != "windows" && info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("a directory has mode %v", info.Mode())
	}

	mustAll(t, node.WriteFile(pods+`\1\file`, "first"), node.WriteFile(pods+`\1\FILE`, "second"))
	if got := content(realPath(dir, pods+`\1\file`)); got != "second" {
		t.Errorf("the file contains %q", got)
	}
	mustAll(t, node.Symlink(pods+`\abs`, `c:\VAR\lib\kubelet\PODS\1`), node.Symlink(pods+`\rel`, `..\pods\1`),
		node.Symlink(pods+`\dangling`, `C:\nothing`), node.Junction(pods+`\junction`, pods+`\1`))
	for path, want := range map[string]string{`\abs`: "1", `\rel`: "1", `\junction`: "1", `\dangling`: "../../../../nothing"} {
		if got := link(pods + path); got != want {
			t.Errorf("%s leads to %s, want %s", path, got, want)
		}
	}
	if got := content(realPath(dir, pods+`\abs\file`)); got != "second" {
		t.Errorf("behind the link there is %q", got)
	}

	// A mounted folder, and what is on the volume.
	parent, err := node.OpenDirectory(ctx, win.Following(pods))
	mustAll(t, err)
	defer parent.Close()
	mustAll(t, parent.CreateDirectory(ctx, "stage"), parent.SetMountPoint(ctx, "stage", dataVolume))
	if got := link(pods + `\stage`); got != "../../../../../volumes/11111111-2222-3333-4444-555555555555" {
		t.Errorf("the mounted folder leads to %s", got)
	}
	mustAll(t, node.WriteFile(pods+`\stage\data`, "precious"))
	if got := content(realPath(dir, pods+`\stage\data`)); got != "precious" {
		t.Errorf("on the volume there is %q", got)
	}
	mustAll(t, node.SetVolumeState(dataVolume, winsim.Gone))
	missing(filepath.Join(dir, "volumes", "11111111-2222-3333-4444-555555555555"))
	mustAll(t, node.SetVolumeState(dataVolume, winsim.Healthy))
	if got := content(realPath(dir, pods+`\stage\data`)); got != "precious" {
		t.Errorf("on the volume that came back there is %q", got)
	}
	mustAll(t, parent.DeleteMountPoint(ctx, "stage"))
	if names, err := os.ReadDir(realPath(dir, pods+`\stage`)); err != nil || len(names) > 0 {
		t.Errorf("the unmounted folder: %v, %v", names, err)
	}

	// A share, while it is mapped.
	mustAll(t, node.Symlink(pods+`\smb`, dataShare))
	missing(filepath.Join(dir, "shares", "files", "data"))
	mustAll(t, node.CreateSMBMapping(ctx, asCSI(dataShare)), node.WriteFile(pods+`\smb\shared`, "x"))
	if got := content(filepath.Join(dir, "shares", "files", "data", "shared")); got != "x" {
		t.Errorf("on the share there is %q", got)
	}
	if _, err := os.ReadDir(realPath(dir, pods+`\smb`)); err != nil {
		t.Error(err)
	}
	mustAll(t, node.RemoveSMBMapping(ctx, dataShare, false))
	if _, err := os.ReadDir(realPath(dir, pods+`\smb`)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a share that is not mapped: %v", err)
	}

	// Removing.
	mustAll(t, node.Mkdir(pods+`\deep\er`))
	mustAll(t, node.RemoveAll(pods+`\deep`), parent.Remove(ctx, "rel"))
	missing(realPath(dir, pods+`\deep`))
	missing(realPath(dir, pods+`\rel`))
	if got := content(realPath(dir, pods+`\1\file`)); got != "second" {
		t.Errorf("what links led to contains %q", got)
	}
}

// TestMirror_SeesOthers: what another process does is done to the node.
func TestMirror_SeesOthers(t *testing.T) {
	node, dir := mirrored(t, withDataVolume())
	ctx := t.Context()
	api, err := filesystem.New(node.Filesystem())
	mustAll(t, err)
	exists := func(path string) bool {
		t.Helper()
		response, err := api.PathExists(ctx, &filesystem.PathExistsRequest{Path: path})
		mustAll(t, err)
		return response.Exists
	}
	pods := kubelet + `\pods`
	mine := realPath(dir, pods)

	// A driver makes the parent of its target, and the node the link.
	mustAll(t, os.MkdirAll(filepath.Join(mine, "Web", "volumes"), 0o755))
	if !exists(pods + `\web\VOLUMES`) {
		t.Error("a directory is not seen")
	}
	_, err = api.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: kubelet + `\plugins`, TargetPath: pods + `\web\volumes\pv`})
	mustAll(t, err)
	if info, err := os.Stat(filepath.Join(mine, "Web", "volumes", "pv")); err != nil || !info.IsDir() {
		t.Errorf("the link in it: %v, %v", info, err)
	}
	// Names keep the case that they were given.
	if tree := node.Tree(pods + `\web`); !strings.Contains(tree, `\volumes\pv -> `+kubelet+`\plugins`) {
		t.Error(tree)
	}
	if names := listPath(t, node, pods); !strings.Contains(strings.Join(names, " "), "Web") {
		t.Errorf("listed are %q", names)
	}
	if _, err = api.Rmdir(ctx, &filesystem.RmdirRequest{Path: pods + `\web`}); winerr.KindOf(err) != winerr.InUse {
		t.Errorf("removing what is not empty: %v", err)
	}
	mustAll(t, os.WriteFile(filepath.Join(mine, "Web", "file"), []byte("x"), 0o600))
	_, err = api.Rmdir(ctx, &filesystem.RmdirRequest{Path: pods + `\web`, Force: true})
	mustAll(t, err)
	if _, err := os.Lstat(filepath.Join(mine, "Web")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed directory: %v", err)
	}

	// A driver removes and replaces.
	mustAll(t, node.WriteFile(pods+`\a\b`, "x"), os.RemoveAll(filepath.Join(mine, "a")))
	if exists(pods+`\a`) || node.Exists(pods+`\a\b`) {
		t.Error("what was removed is seen")
	}
	mustAll(t, os.WriteFile(filepath.Join(mine, "a"), []byte("file now"), 0o600))
	if got, err := node.ReadFile(pods + `\a`); got != "file now" {
		t.Errorf("what replaced it: %q, %v", got, err)
	}
	for i := range 20 { // within the time that a file system cannot tell apart
		want := fmt.Sprintf("%08d", i)
		mustAll(t, os.WriteFile(filepath.Join(mine, "a"), []byte(want), 0o600))
		if got, err := node.ReadFile(pods + `\a`); got != want {
			t.Fatalf("the file contains %q, %v, want %q", got, err, want)
		}
	}

	// A driver makes links by itself.
	mustAll(t, os.Symlink(filepath.Join(dir, "C", "var", "lib"), filepath.Join(mine, "abs")),
		os.Symlink(filepath.Join("..", "plugins"), filepath.Join(mine, "rel")))
	for path, want := range map[string]string{`\abs`: `C:\var\lib`, `\rel`: kubelet + `\plugins`} {
		point, err := node.ReparsePoint(ctx, win.Following(pods).Join(path[1:]))
		if err != nil || point.Target() != want {
			t.Errorf("%s leads to %+v, %v, want %s", path, point, err, want)
		}
	}

	// A volume's data stay with the volume, wherever it is mounted.
	mustAll(t, node.MountFolder(kubelet+`\plugins\one`, dataVolume))
	mustAll(t, os.WriteFile(realPath(dir, kubelet+`\plugins\one\data`), []byte("precious"), 0o600))
	mustAll(t, node.RemoveAll(kubelet+`\plugins\one`), node.MountFolder(kubelet+`\plugins\two`, dataVolume))
	if got, err := node.ReadFile(kubelet + `\plugins\two\data`); got != "precious" {
		t.Errorf("the volume contains %q, %v", got, err)
	}
	before, err := node.VolumeSpace(ctx, dataVolume)
	mustAll(t, err)
	mustAll(t, os.WriteFile(realPath(dir, kubelet+`\plugins\two\large`), make([]byte, 1<<20), 0o600))
	if after, err := node.VolumeSpace(ctx, dataVolume); err != nil || before.Free-after.Free != 1<<20 {
		t.Errorf("a file of 1 MiB takes %d bytes, %v", before.Free-after.Free, err)
	}
}

// TestMirror_Hostile: links of other processes never lead out of the directory.
func TestMirror_Hostile(t *testing.T) {
	needLinks(t)
	node, dir := newNode(t, withDataVolume()), t.TempDir()
	stop, err := node.Mirror(dir, nil) // what it refuses is reported
	mustAll(t, err)
	defer stop()
	ctx, pods := t.Context(), kubelet+`\pods`
	mine := realPath(dir, pods)
	outside := t.TempDir()
	mustAll(t, os.WriteFile(filepath.Join(outside, "precious"), []byte("x"), 0o600))
	untouched := snapshot(t, outside)

	mustAll(t, os.Symlink(outside, filepath.Join(mine, "out")), os.Symlink("../../../../../../../../../../etc", filepath.Join(mine, "up")),
		os.Symlink(filepath.Join(outside, "precious"), filepath.Join(mine, "file")))
	for _, name := range []string{"out", "up", "file"} {
		info, err := node.FileInfo(ctx, win.Following(pods).Join(name))
		if err != nil || info.Tag != 0xa000001d {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
	if _, err := node.ReadFile(pods + `\out\precious`); winerr.CodeOf(err) != 1920 {
		t.Errorf("reading through the link: %v", err)
	}
	if _, err := node.ReadFile(pods + `\file`); winerr.CodeOf(err) != 1920 {
		t.Errorf("reading the link: %v", err)
	}
	if err := node.WriteFile(pods+`\file`, "overwritten"); err == nil {
		t.Error("the link is written to")
	}
	if err := node.WriteFile(pods+`\out\more`, "more"); err == nil {
		t.Error("written through the link")
	}

	// A directory becomes a link while it is open.
	mustAll(t, node.WriteFile(pods+`\dir\precious`, "y"))
	opened, err := node.OpenDirectory(ctx, win.Following(pods).Join("dir"))
	mustAll(t, err)
	defer opened.Close()
	mustAll(t, os.RemoveAll(filepath.Join(mine, "dir")), os.Symlink(outside, filepath.Join(mine, "dir")))
	_ = opened.Remove(ctx, "precious")
	_ = node.RemoveAll(pods + `\dir`)
	api, err := filesystem.New(node.Filesystem())
	mustAll(t, err)
	_, err = api.Rmdir(ctx, &filesystem.RmdirRequest{Path: pods + `\out`, Force: true})
	mustAll(t, err)
	mustAll(t, node.RemoveAll(pods))
	if diff := cmp.Diff(untouched, snapshot(t, outside)); diff != "" {
		t.Errorf("outside (-before +after):\n%s", diff)
	}
}

// TestMirror_HostileLinks: links of the node never lead out of the directory.
func TestMirror_HostileLinks(t *testing.T) {
	node, dir := mirrored(t, winsim.Default())
	for i, target := range []string{
		`C:\..\..\..\..\..\..\etc`, `..\..\..\..\..\..\..\..\..\etc`, `\etc`, `\\..\..\etc`, `\\.\C:\etc`, `\\server\..\..\..\etc`,
		`\\?\Volume{../../../../etc}\`, `\\?\GLOBALROOT\etc`, `//etc`, `/etc`, `C:\a/../../../etc`, `1:\etc`,
	} {
		path := fmt.Sprintf(`C:\links\%d`, i)
		mustAll(t, node.Symlink(path, target))
		text, err := os.Readlink(realPath(dir, path))
		if err != nil {
			continue // a directory instead
		}
		if rel, err := filepath.Rel(dir, filepath.Join(filepath.Dir(realPath(dir, path)), text)); filepath.IsAbs(text) || err != nil || !filepath.IsLocal(rel) {
			t.Errorf("%s is shown as a link to %s", target, text)
		}
	}
}

// TestMirror_Names: what one of both cannot name is only seen by the other.
func TestMirror_Names(t *testing.T) {
	needLinks(t)
	if runtime.GOOS == "windows" {
		t.Skip("other names there")
	}
	node, dir := newNode(t, winsim.Default()), t.TempDir()
	var problems []string
	stop, err := node.Mirror(dir, func(err error) { problems = append(problems, err.Error()) })
	mustAll(t, err)
	defer stop()
	pods := kubelet + `\pods`
	long := strings.Repeat("ü", 200) // 400 bytes, which Linux cannot have
	mustAll(t, node.WriteFile(pods+`\`+long+`\file`, "x"))
	if got, err := node.ReadFile(pods + `\` + long + `\file`); got != "x" {
		t.Errorf("in a directory with a long name: %q, %v", got, err)
	}
	mine := realPath(dir, pods)
	for _, name := range []string{"a:b", "what?", `back\slash`, "\xff"} {
		mustAll(t, os.WriteFile(filepath.Join(mine, name), nil, 0o600))
	}
	mustAll(t, os.Mkdir(filepath.Join(mine, "Same"), 0o700), os.WriteFile(filepath.Join(mine, "same"), nil, 0o600))
	names := listPath(t, node, pods)
	if diff := cmp.Diff([]string{"Same", long}, names); diff != "" {
		t.Errorf("seen are (-want +got):\n%s", diff)
	}
	listPath(t, node, pods)
	if len(problems) != 6 { // the long name with its file, and four others
		t.Errorf("reported are %q", problems)
	}
}

// TestMirror_Claim: a directory that is in use elsewhere is refused.
func TestMirror_Claim(t *testing.T) {
	node, other := newNode(t, winsim.Default()), newNode(t, winsim.Default())
	dir := filepath.Join(t.TempDir(), "new", "files")
	stop, err := node.Mirror(dir, nil)
	mustAll(t, err)
	if _, err := other.Mirror(dir, nil); err == nil || !strings.Contains(err.Error(), "another csi-proxy-sim") {
		t.Errorf("a directory in use: %v", err)
	}
	if _, err := node.Mirror(t.TempDir(), nil); err == nil {
		t.Error("a node is mirrored twice")
	}
	mustAll(t, node.WriteFile(kubelet+`\old`, "x"))
	stop()
	stop()
	if _, err := os.Stat(realPath(dir, kubelet+`\old`)); err != nil {
		t.Errorf("what is left: %v", err)
	}
	mustAll(t, node.WriteFile(kubelet+`\older`, "x"), node.RemoveAll(kubelet+`\old`)) // in memory

	// A restart begins with the model.
	stop, err = other.Mirror(dir, nil)
	mustAll(t, err)
	defer stop()
	if _, err := os.Stat(realPath(dir, kubelet+`\old`)); !errors.Is(err, fs.ErrNotExist) || other.Exists(kubelet+`\old`) {
		t.Errorf("what was left: %v", err)
	}

	foreign := t.TempDir()
	mustAll(t, os.WriteFile(filepath.Join(foreign, "thesis"), []byte("x"), 0o600))
	if _, err := node.Mirror(foreign, nil); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("the directory of another user: %v", err)
	}
	if diff := cmp.Diff([]string{"./", `thesis "x"`}, snapshot(t, foreign)); diff != "" {
		t.Errorf("the directory of another user was changed:\n%s", diff)
	}
	if _, err := node.Mirror(filepath.Join(foreign, "thesis"), nil); err == nil {
		t.Error("a file is taken")
	}
}

// TestMirror_Drives: only the working directories are shown, at their own places.
func TestMirror_Drives(t *testing.T) {
	needLinks(t)
	node, top := newNode(t, withDataVolume()), t.TempDir()
	locate := func(dir string) string { return realPath(top, dir) }
	for name, dirs := range map[string][]string{"none": nil, "a drive": {`C:\`}, "one in another": {kubelet, `c:\VAR\lib\kubelet\x`}, "no path": {"var"}} {
		if _, err := node.MirrorDrivesAt(dirs, nil, func(dir string) string { return realPath(t.TempDir(), dir) }); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	stop, err := node.MirrorDrivesAt([]string{kubelet, `C:\more`}, func(err error) { t.Error("mirror:", err) }, locate)
	mustAll(t, err)
	defer stop()
	mustAll(t, node.WriteFile(`C:\var\lib\elsewhere`, "x"), node.WriteFile(`C:\more\file`, "x"), node.WriteFile(kubelet+`\file`, "x"),
		node.MountFolder(kubelet+`\stage`, dataVolume), node.WriteFile(kubelet+`\stage\data`, "y"),
		node.Symlink(kubelet+`\out`, `C:\Windows`), node.Symlink(kubelet+`\across`, `C:\more`), node.Mkdir(kubelet+`\.csi-proxy-sim`))
	want := []string{
		"./", "C/", "C/more/", `C/more/file "x"`, "C/var/", "C/var/lib/", "C/var/lib/kubelet/", "C/var/lib/kubelet/across/", `C/var/lib/kubelet/file "x"`, "C/var/lib/kubelet/out/",
		"C/var/lib/kubelet/plugins/", "C/var/lib/kubelet/pods/", "C/var/lib/kubelet/stage -> .csi-proxy-sim/volumes/11111111-2222-3333-4444-555555555555",
	}
	if diff := cmp.Diff(want, snapshot(t, top)); diff != "" {
		t.Errorf("shown are (-want +got):\n%s", diff)
	}
	mustAll(t, os.WriteFile(realPath(top, kubelet+`\stage\more`), []byte("z"), 0o600), os.Symlink("pods", realPath(top, kubelet+`\link`)))
	if got, err := node.ReadFile(dataVolume + `more`); got != "z" {
		t.Errorf("on the volume there is %q, %v", got, err)
	}
	if point, err := node.ReparsePoint(t.Context(), win.Following(kubelet).Join("link")); err != nil || point.Target() != kubelet+`\pods` {
		t.Errorf("a link of the driver leads to %+v, %v", point, err)
	}
	mustAll(t, node.RemoveAll(`C:\more`), node.RemoveAll(`C:\var`), node.Mkdir(kubelet+`\new`), node.Mkdir(`C:\more`))
	want = []string{"./", "C/", "C/more/", "C/var/", "C/var/lib/", "C/var/lib/kubelet/", "C/var/lib/kubelet/new/"}
	if diff := cmp.Diff(want, snapshot(t, top)); diff != "" {
		t.Errorf("shown after all was removed (-want +got):\n%s", diff)
	}
	if tree := node.Tree(kubelet); tree != kubelet+"\n"+kubelet+"\\new\n" {
		t.Error(tree)
	}
	if _, err := os.Lstat(realPath(top, kubelet+`\.csi-proxy-sim\lock`)); err != nil {
		t.Error(err)
	}
}

// TestMirror_UnmountRemovesFiles: where a mounted folder cannot be a real link, it is a directory.
// What a driver writes there goes with the mount, so that the driver can remove the directory.
func TestMirror_UnmountRemovesFiles(t *testing.T) {
	node, top := newNode(t, withDataVolume()), t.TempDir()
	stop, err := node.MirrorDrivesAt([]string{kubelet, `C:\more`}, func(err error) { t.Error("mirror:", err) }, func(dir string) string { return realPath(top, dir) })
	mustAll(t, err)
	defer stop()
	folder := `C:\more\stage` // volumes are shown below the first directory, and links do not lead across
	mustAll(t, node.Mkdir(`C:\more`), node.MountFolder(folder, dataVolume), os.Mkdir(realPath(top, folder+`\dir`), 0o700),
		os.WriteFile(realPath(top, folder+`\dir\file`), []byte("x"), 0o600))
	mustAll(t, os.Symlink(top, realPath(top, folder+`\dir\link`)))

	dir, err := node.OpenDirectory(t.Context(), win.Following(`C:\more`))
	mustAll(t, err)
	defer dir.Close()
	mustAll(t, dir.DeleteMountPoint(t.Context(), "stage"))
	if got := snapshot(t, realPath(top, folder)); len(got) != 1 {
		t.Errorf("shown after the unmount are %q, want an empty directory", got)
	}
	mustAll(t, os.Remove(realPath(top, folder)))
	if _, err := os.Stat(top); err != nil {
		t.Error("what a link in the folder leads to is gone:", err)
	}
}

// TestMirror_Conformance: a mirrored node does what others do.
func TestMirror_Conformance(t *testing.T) {
	hosttest.Filesystem(t, func(t *testing.T) hosttest.FilesystemNode {
		t.Helper()
		needLinks(t)
		node := newNode(t, withDataVolume())
		stop, err := node.Mirror(t.TempDir(), nil)
		mustAll(t, err)
		t.Cleanup(stop)
		n := filesystemNode(t, node)
		n.LongestPath = 4000 // the real directory is 100 deep at most; more only takes time
		return n
	})
}

// TestMirror_Concurrent: the node's callers and other processes at once.
func TestMirror_Concurrent(t *testing.T) {
	needLinks(t)
	node, dir := newNode(t, withDataVolume()), t.TempDir()
	stop, err := node.Mirror(dir, nil) // a change of others in between may be reported
	mustAll(t, err)
	api, err := filesystem.New(node.Filesystem())
	mustAll(t, err)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 20 {
				path := fmt.Sprintf(`%s\pods\%d\%d`, kubelet, worker%2, i%3)
				if worker < 2 {
					_, _ = api.Mkdir(t.Context(), &filesystem.MkdirRequest{Path: path})
					_ = node.Symlink(path+`\link`, kubelet)
					_, _ = api.Rmdir(t.Context(), &filesystem.RmdirRequest{Path: path, Force: true})
					continue
				}
				_ = os.MkdirAll(filepath.Join(realPath(dir, path), "sub"), 0o700)
				_ = os.WriteFile(filepath.Join(realPath(dir, path), "file"), []byte("x"), 0o600)
				_ = os.RemoveAll(realPath(dir, path))
			}
		})
	}
	group.Wait()
	node.Tree(`C:\`)
	agree(t, node, dir, stop)
}
