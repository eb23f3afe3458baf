package windows_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// openDirectory opens a directory until the end of the test.
func openDirectory(t *testing.T, path win.Path) win.Directory {
	t.Helper()
	dir, err := machine.OpenDirectory(timeLimit(t), path)
	if err != nil {
		t.Fatalf("open %q: %v", path, err)
	}
	t.Cleanup(dir.Close)
	return dir
}

func createDirectory(t *testing.T, dir win.Directory, name string) {
	t.Helper()
	if err := dir.CreateDirectory(timeLimit(t), name); err != nil {
		t.Fatalf("create %q: %v", name, err)
	}
}

func putFile(t *testing.T, mode os.FileMode, path ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(path...), nil, mode))
}

// exists fails the test unless a file is there.
func exists(t *testing.T, path ...string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(path...)); err != nil {
		t.Error(err)
	}
}

// cannotStoreLinks is what file systems answer that have no reparse points. Wine 10 is one.
var cannotStoreLinks = []winerr.Code{winerr.InvalidFunction, winerr.NotSupported}

// makeJunction makes a junction, or skips the test where the file system stores none.
func makeJunction(t *testing.T, path, target string) {
	t.Helper()
	mustStore(t, path, junction(path, target))
}

// mustStore ends the test if a link could not be made, and skips it where the file system stores none.
func mustStore(t *testing.T, path string, err error) {
	t.Helper()
	if slices.Contains(cannotStoreLinks, winerr.CodeOf(err)) {
		t.Skipf("the file system of %s stores no links: %v", path, err)
	}
	require.NoError(t, err)
}

// junction makes a junction, past what is tested. Unlike symbolic links they take no privilege.
func junction(path, target string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return turnIntoJunction(path, target)
}

// turnIntoJunction makes an empty directory a junction without replacing it, past what is tested. It may be
// open elsewhere.
func turnIntoJunction(path, target string) error {
	point, err := winlayout.EncodeReparsePoint(win.ReparsePoint{Tag: win.TagMountPoint, Substitute: `\??\` + target, Print: target})
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	handle, err := windows.CreateFile(name, windows.GENERIC_WRITE, share, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return winapi.Error(err)
	}
	defer windows.CloseHandle(handle)
	var n uint32
	err = windows.DeviceIoControl(handle, windows.FSCTL_SET_REPARSE_POINT, unsafe.SliceData(point), winapi.Length(point), nil, 0, &n, nil)
	return winapi.Error(err)
}

func TestLocal_FilesDirectory(t *testing.T) {
	ctx, root := timeLimit(t), t.TempDir()
	dir := openDirectory(t, win.Following(root))
	createDirectory(t, dir, "a")
	wantCode(t, "create again", dir.CreateDirectory(ctx, "a"), winerr.AlreadyExists)
	wantCode(t, "create again in another case", dir.CreateDirectory(ctx, "A"), winerr.AlreadyExists)
	putFile(t, 0o444, root, "file")
	wantCode(t, "create over a file", dir.CreateDirectory(ctx, "file"), winerr.AlreadyExists)

	if info, err := dir.FileInfo(ctx, "file"); err != nil || info != (win.FileInfo{ReadOnly: true}) {
		t.Errorf("%+v, %v, want a read-only file", info, err)
	}
	if info, err := dir.FileInfo(ctx, "a"); err != nil || info != (win.FileInfo{Directory: true}) {
		t.Errorf("%+v, %v, want a directory", info, err)
	}
	inner, err := dir.Open(ctx, "a")
	require.NoError(t, err)
	createDirectory(t, inner, "b")
	inner.Close()
	exists(t, root, "a", "b")
	_, err = inner.FileInfo(ctx, "b")
	wantCode(t, "use after it was closed", err, 6)
	inner.Close()

	wantCode(t, "remove what is not empty", dir.Remove(ctx, "a"), winerr.DirNotEmpty)
	_, err = dir.ReparsePoint(ctx, "a")
	if winerr.CodeOf(err) != winerr.NotAReparsePoint && !slices.Contains(cannotStoreLinks, winerr.CodeOf(err)) {
		t.Errorf("a directory as a link: %v", err)
	}
	other, err := dir.Open(ctx, "file")
	wantCode(t, "open a file", err, winerr.Directory)
	if other != nil {
		t.Error("it failed, but returned a directory")
	}
	_, err = dir.Open(ctx, "nothing")
	wantCode(t, "open nothing", err, winerr.FileNotFound)
	wantCode(t, "list a file", win.List(ctx, dir, "file", nil), winerr.Directory)
	wantCode(t, "list nothing", win.List(ctx, dir, "nothing", nil), winerr.FileNotFound)
	wantCode(t, "remove nothing", dir.Remove(ctx, "nothing"), winerr.FileNotFound)
	for _, name := range []string{"", `a\b`, "a/b", "a\x00"} {
		_, err := dir.FileInfo(ctx, name)
		wantCode(t, fmt.Sprintf("the name %q", name), err, winerr.InvalidName)
		wantCode(t, fmt.Sprintf("remove the name %q", name), dir.Remove(ctx, name), winerr.InvalidName)
	}
	require.NoError(t, dir.Remove(ctx, "file"), "remove a read-only file:")
}

// volumeHasFiles reports whether a volume's id leads to its files. That of Wine does not.
func volumeHasFiles(t *testing.T) bool {
	t.Helper()
	_, err := os.ReadDir(string(systemVolume(t)))
	if err != nil {
		t.Logf("this system has no files below a volume's id: %v", err)
	}
	return err == nil
}

func TestLocal_FilesPath(t *testing.T) {
	ctx, root := timeLimit(t), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o700))
	putFile(t, 0o444, root, "a", "file")
	directory, file := win.FileInfo{Directory: true}, win.FileInfo{ReadOnly: true}
	found := map[win.Path]win.FileInfo{
		{Base: root}:                                     directory,
		{Base: root, Rest: `a`}:                          directory,
		{Base: root, Rest: `a\b`}:                        directory,
		{Base: root, Rest: `A\B`}:                        directory,
		{Base: root, Rest: `A\FILE`}:                     file,
		{Base: strings.ToUpper(root), Rest: `a\file`}:    file,
		win.Anywhere(filepath.Join(root, `a\file`)):      file,
		win.Following(filepath.Join(root, `a\file`)):     file,
		win.Beneath(root, filepath.Join(root, `a\file`)): file,
		{Base: systemDrive(t)}:                           directory,
	}
	if volumeHasFiles(t) {
		found[win.Path{Base: string(systemVolume(t))}] = directory
		found[win.Path{Base: string(systemVolume(t)), Rest: "Windows"}] = directory
	}
	for path, want := range found {
		if info, err := machine.FileInfo(ctx, path); err != nil || info != want {
			t.Errorf("%q: %+v, %v, want %+v", path, info, err, want)
		}
		if info, err := machine.TargetInfo(ctx, path); err != nil || info != want {
			t.Errorf("target of %q: %+v, %v, want %+v", path, info, err, want)
		}
		dir, err := machine.OpenDirectory(ctx, path)
		if want.Directory && err != nil {
			t.Errorf("open %q: %v", path, err)
		}
		if !want.Directory {
			wantCode(t, "open "+path.String(), err, winerr.Directory)
		}
		if (dir == nil) != (err != nil) {
			t.Errorf("open %q: %v, %v", path, dir, err)
		}
		if dir != nil {
			dir.Close()
		}
	}
	for path, want := range map[win.Path][]winerr.Code{
		{Base: root, Rest: `nothing`}:           {winerr.FileNotFound},
		{Base: root, Rest: `a\nothing`}:         {winerr.FileNotFound},
		{Base: root, Rest: `nothing\file`}:      {winerr.PathNotFound},
		{Base: root, Rest: `a\file\below`}:      {winerr.PathNotFound},
		{Base: root + `\nothing`, Rest: `file`}: {winerr.FileNotFound, winerr.PathNotFound}, // the base is opened, or is on the way
		{Base: root + `\nothing`}:               {winerr.FileNotFound},
		{Base: root, Rest: "a\x00b"}:            {winerr.InvalidName},
		{Base: root + "\x00"}:                   {winerr.InvalidName},
	} {
		_, err := machine.FileInfo(ctx, path)
		wantCode(t, fmt.Sprintf("%q", path), err, want...)
		_, err = machine.TargetInfo(ctx, path)
		wantCode(t, fmt.Sprintf("target of %q", path), err, want...)
		_, err = machine.ReparsePoint(ctx, path)
		wantCode(t, fmt.Sprintf("link %q", path), err, want...)
		_, err = machine.OpenDirectory(ctx, path)
		wantCode(t, fmt.Sprintf("open %q", path), err, want...)
		_, err = machine.Location(ctx, path)
		wantCode(t, fmt.Sprintf("volume of %q", path), err, want...)
	}
	_, err := machine.FileInfo(ctx, win.Following(string(noVolume)))
	wantCode(t, "a volume that does not exist", err, winerr.FileNotFound, winerr.PathNotFound)
}

func TestLocal_FilesCreateDirectory(t *testing.T) {
	ctx, root := timeLimit(t), t.TempDir()
	putFile(t, 0o444, root, "file")
	require.NoError(t, machine.CreateDirectory(ctx, win.Path{Base: root, Rest: "a"}))
	require.NoError(t, machine.CreateDirectory(ctx, win.Path{Base: root, Rest: `A\b`}))
	exists(t, root, "a", "b")
	for path, want := range map[win.Path][]winerr.Code{
		{Base: root, Rest: "A"}:             {winerr.AlreadyExists},
		{Base: root, Rest: "file"}:          {winerr.AlreadyExists},
		{Base: root, Rest: `no\thing`}:      {winerr.PathNotFound},
		{Base: root, Rest: `file\below`}:    {winerr.PathNotFound},
		{Base: root + `\no`, Rest: "thing"}: {winerr.FileNotFound},
		{Base: root}:                        {winerr.InvalidName},
		{Base: root, Rest: "a\x00"}:         {winerr.InvalidName},
	} {
		wantCode(t, fmt.Sprintf("create %q", path), machine.CreateDirectory(ctx, path), want...)
	}
}

// handles counts the open handles of this process.
func handles(t *testing.T) uint32 {
	t.Helper()
	var n uint32
	ok, _, err := windows.NewLazySystemDLL("kernel32.dll").NewProc("GetProcessHandleCount").
		Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&n)))
	if ok == 0 {
		t.Fatal(err)
	}
	return n
}

// filesListAndRemove: entries can be removed while they are listed, in directories of
// any size, and what was opened for it is closed.
func TestLocal_FilesListAndRemove(t *testing.T) {
	const files = 3000 // several batches
	root := t.TempDir()
	dir := openDirectory(t, win.Following(root))
	createDirectory(t, dir, "tree")
	createDirectory(t, dir, "empty")
	inner := openDirectory(t, win.Path{Base: root, Rest: "tree"})
	createDirectory(t, inner, "below")
	want := []string{"below"}
	for i := range files {
		name := fmt.Sprintf("%04d %s", i, strings.Repeat("x", 50))
		putFile(t, 0o600, root, "tree", name)
		want = append(want, name)
	}
	inner.Close()
	before := handles(t)
	ctx := timeLimit(t) // from here: a busy machine takes minutes to make the files
	var names []string
	var last win.Tree
	batches := 0
	err := win.List(ctx, dir, "tree", func(open win.Tree, entries []win.DirEntry) error {
		batches++
		last = open
		for _, entry := range entries {
			names = append(names, entry.Name)
			if entry.Directory != (entry.Name == "below") || entry.Tag != 0 {
				t.Errorf("%+v", entry)
			}
			if err := open.Remove(ctx, entry.Name); err != nil {
				return err
			}
		}
		return nil
	})
	slices.Sort(want)
	if slices.Sort(names); err != nil || !slices.Equal(names, want) {
		t.Errorf("%d names of %d, %v", len(names), len(want), err)
	}
	t.Logf("%d batches", batches)
	wantCode(t, "use it afterwards", last.Remove(ctx, "x"), 6)
	err = win.List(ctx, dir, "empty", func(_ win.Tree, entries []win.DirEntry) error {
		if len(entries) != 0 {
			t.Errorf("an empty directory has %v", entries)
		}
		return nil
	})
	require.NoError(t, err)
	failure := errors.New("enough")
	err = win.List(ctx, dir, "", func(win.Tree, []win.DirEntry) error { return failure })
	if !errors.Is(err, failure) {
		t.Errorf("%v, want what the receiver returned", err)
	}
	runtime.GC()
	// Threads of the runtime have handles, too, and come and go.
	if after := handles(t); after > before+50 {
		t.Errorf("%d handles are open, were %d", after, before)
	}
	for _, name := range []string{"tree", "empty"} { // nothing holds them
		require.NoError(t, dir.Remove(ctx, name))
	}
}

// filesListItself: an empty name is the open directory, twice in a row and for nothing but a list.
func TestLocal_FilesListItself(t *testing.T) {
	ctx, root := timeLimit(t), t.TempDir()
	dir := openDirectory(t, win.Following(root))
	createDirectory(t, dir, "sub")
	putFile(t, 0o600, root, "file")
	for range 2 {
		var names []string
		err := win.List(ctx, dir, "", func(open win.Tree, entries []win.DirEntry) error {
			for _, entry := range entries {
				names = append(names, entry.Name)
			}
			return win.List(ctx, open, "sub", func(win.Tree, []win.DirEntry) error { return nil })
		})
		if slices.Sort(names); err != nil || !slices.Equal(names, []string{"file", "sub"}) {
			t.Errorf("%q, %v", names, err)
		}
	}
	_, err := dir.FileInfo(ctx, "")
	wantCode(t, "look at nothing", err, winerr.InvalidName)
	wantCode(t, "remove nothing", dir.Remove(ctx, ""), winerr.InvalidName)
	exists(t, root, "file")
}

// filesCrowd: more callers than may be with Windows at once list the same tree, and in
// it make calls on the way. Each gets its turn, also when the directory is closed meanwhile.
func TestLocal_FilesCrowd(t *testing.T) {
	const callers = 40
	ctx, root := timeLimit(t), t.TempDir()
	dir := openDirectory(t, win.Following(root))
	createDirectory(t, dir, "tree")
	putFile(t, 0o600, root, "tree", "file")
	var wg, inside sync.WaitGroup
	inside.Add(callers)
	for range callers {
		wg.Go(func() {
			arrive := sync.OnceFunc(inside.Done)
			defer arrive()
			err := win.List(ctx, dir, "tree", func(open win.Tree, entries []win.DirEntry) error {
				arrive()
				inside.Wait()
				for _, entry := range entries {
					if err := win.List(ctx, open, entry.Name, nil); winerr.CodeOf(err) != winerr.Directory {
						return fmt.Errorf("a file was listed: %w", err)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	inside.Wait()
	dir.Close()
	wg.Wait()
}

// filesSwap: an open directory stays the one it is, when a directory is put in its place.
func TestLocal_FilesSwap(t *testing.T) {
	swapWhileOpen(t, func(t *testing.T, path, victim string) {
		t.Helper()
		require.NoError(t, os.Rename(victim, path))
	})
}

// TestLocal_FilesSwapJunction is TestLocal_FilesSwap with a junction.
func TestLocal_FilesSwapJunction(t *testing.T) { swapWhileOpen(t, makeJunction) }

func swapWhileOpen(t *testing.T, replace func(t *testing.T, path, victim string)) {
	t.Helper()
	ctx, root := timeLimit(t), t.TempDir()
	path, moved, victim := filepath.Join(root, "dir"), filepath.Join(root, "moved"), filepath.Join(root, "victim")
	for _, name := range []string{path, victim, filepath.Join(victim, "sub")} {
		require.NoError(t, os.Mkdir(name, 0o700))
	}
	putFile(t, 0o600, victim, "file")
	dir := openDirectory(t, win.Path{Base: root, Rest: "dir"})
	require.NoError(t, os.Rename(path, moved))
	replace(t, path, victim)

	_, err := dir.FileInfo(ctx, "file")
	wantCode(t, "look at a file", err, winerr.FileNotFound)
	wantCode(t, "remove a file", dir.Remove(ctx, "file"), winerr.FileNotFound)
	wantCode(t, "list a directory", win.List(ctx, dir, "sub", nil), winerr.FileNotFound)
	_, err = dir.Open(ctx, "sub")
	wantCode(t, "open a directory", err, winerr.FileNotFound)
	createDirectory(t, dir, "new")
	exists(t, moved, "new")
	if _, err := os.Lstat(filepath.Join(path, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was put in its place has a new directory: %v", err)
	}
	exists(t, path, "file")
}

func TestLocal_FilesJunction(t *testing.T) {
	ctx, root := timeLimit(t), t.TempDir()
	target, link := filepath.Join(root, "target"), filepath.Join(root, "link")
	require.NoError(t, os.MkdirAll(filepath.Join(target, "inner"), 0o700))
	makeJunction(t, link, target)
	dir := openDirectory(t, win.Following(root))
	itself := win.FileInfo{Directory: true, Tag: win.TagMountPoint}
	ordinary := win.FileInfo{Directory: true}

	// The last name is not followed, and none before it; in the base all are.
	onTheWay := win.Path{Base: root, Rest: `link\inner`}
	for path, want := range map[win.Path]win.FileInfo{
		{Base: root, Rest: "link"}:  itself,
		win.Following(link):         ordinary,
		{Base: link, Rest: "inner"}: ordinary,
		onTheWay:                    {},
	} {
		info, err := machine.FileInfo(ctx, path)
		if path == onTheWay {
			wantCode(t, "a link on the way", err, winerr.ReparsePointEncounter)
		} else if err != nil || info != want {
			t.Errorf("%q: %+v, %v, want %+v", path, info, err, want)
		}
	}
	for _, path := range []win.Path{onTheWay, {Base: root, Rest: `LINK\nothing`}} {
		_, err := machine.TargetInfo(ctx, path)
		wantCode(t, "target behind a link", err, winerr.ReparsePointEncounter)
		_, err = machine.ReparsePoint(ctx, path)
		wantCode(t, "link behind a link", err, winerr.ReparsePointEncounter)
		_, err = machine.OpenDirectory(ctx, path)
		wantCode(t, "open behind a link", err, winerr.ReparsePointEncounter)
		_, err = machine.Location(ctx, path)
		wantCode(t, "volume behind a link", err, winerr.ReparsePointEncounter)
		wantCode(t, "create behind a link", machine.CreateDirectory(ctx, path), winerr.ReparsePointEncounter)
	}
	wantCode(t, "create in place of a link", machine.CreateDirectory(ctx, win.Path{Base: root, Rest: "link"}), winerr.AlreadyExists)
	_, err := machine.TargetInfo(ctx, win.Path{Base: root, Rest: "link"})
	wantCode(t, "target of a junction", err, winerr.ReparsePointEncounter)
	_, err = machine.OpenDirectory(ctx, win.Path{Base: root, Rest: "link"})
	wantCode(t, "open a junction", err, winerr.ReparsePointEncounter)
	_, err = dir.Open(ctx, "link")
	wantCode(t, "open a junction in a directory", err, winerr.ReparsePointEncounter)
	if info, err := dir.FileInfo(ctx, "link"); err != nil || info != itself {
		t.Errorf("%+v, %v", info, err)
	}
	wantCode(t, "list a junction", win.List(ctx, dir, "link", nil), winerr.Directory)
	wantCode(t, "create over a junction", dir.CreateDirectory(ctx, "link"), winerr.AlreadyExists)
	wantCode(t, "unmount a junction", dir.DeleteMountPoint(ctx, "link"), winerr.InvalidParameter)
	wantCode(t, "unmount a directory", dir.DeleteMountPoint(ctx, "target"), winerr.NotAReparsePoint)
	wantCode(t, "mount over a junction", dir.SetMountPoint(ctx, "link", systemVolume(t)), winerr.DirNotEmpty)
	point, err := dir.ReparsePoint(ctx, "link")
	if want := (win.ReparsePoint{Tag: win.TagMountPoint, Substitute: `\??\` + target, Print: target}); err != nil || point != want {
		t.Errorf("%+v, %v, want %+v", point, err, want)
	}
	require.NoError(t, dir.Remove(ctx, "link"))
	exists(t, target, "inner")
}

// createLink makes a symbolic link, or skips the test where that cannot be. Whatever the
// reason is, nothing may be left of it.
func createLink(t *testing.T, dir win.Directory, name, target string) {
	t.Helper()
	err := dir.CreateDirectoryLink(timeLimit(t), name, target)
	if err == nil {
		return
	}
	_, missing := dir.FileInfo(timeLimit(t), name)
	wantCode(t, "after a link could not be made", missing, winerr.FileNotFound)
	switch code := winerr.CodeOf(err); {
	case slices.Contains(cannotStoreLinks, code):
		t.Skipf("the file system stores no links: %v", err)
	case code == winerr.PrivilegeNotHeld && (onWine() || !windows.GetCurrentProcessToken().IsElevated()):
		t.Skipf("only for administrators: %v", err)
	default:
		t.Fatal(err)
	}
}

func TestLocal_FilesDirectoryLink(t *testing.T) {
	ctx, root := timeLimit(t), t.TempDir()
	dir := openDirectory(t, win.Following(root))
	createDirectory(t, dir, "target")
	target := filepath.Join(root, "target")
	wantCode(t, "a target that is too long", dir.CreateDirectoryLink(ctx, "long", `C:\`+strings.Repeat(`x\`, 2050)), winerr.FilenameExcedRange)
	wantCode(t, "a target with NUL", dir.CreateDirectoryLink(ctx, "nul", "C:\\\x00"), winerr.InvalidName)
	wantCode(t, "over a directory", dir.CreateDirectoryLink(ctx, "TARGET", target), winerr.AlreadyExists)

	links := map[string]string{"Local": target, "dangling": `C:\does\not\exist`, "UNC": `\\server.invalid\share\`}
	if !onWine() { // which stores no more than about 4 KB
		links["deep"] = `C:\` + strings.Repeat(`x\`, 2000) + "x"
	}
	for name, to := range links {
		createLink(t, dir, name, to)
		if info, err := dir.FileInfo(ctx, name); err != nil || info != (win.FileInfo{Directory: true, Tag: win.TagSymlink}) {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
		point, err := dir.ReparsePoint(ctx, name)
		if want := winlayout.SymlinkTo(to); err != nil || point != want || point.Target() != to || point.Relative {
			t.Errorf("%s: %+v, %v, want %+v", name, point, err, want)
		}
		wantCode(t, "again", dir.CreateDirectoryLink(ctx, strings.ToLower(name), to), winerr.AlreadyExists)
		_, err = dir.Open(ctx, name)
		wantCode(t, "open "+name, err, winerr.ReparsePointEncounter)
		wantCode(t, "unmount "+name, dir.DeleteMountPoint(ctx, name), winerr.InvalidParameter)
		_, err = machine.TargetInfo(ctx, win.Path{Base: root, Rest: name})
		wantCode(t, "target of "+name, err, winerr.ReparsePointEncounter)
	}
	if point, err := dir.ReparsePoint(ctx, "UNC"); err != nil || point.Substitute != `\??\UNC\server.invalid\share\` || point.Print != `\\server.invalid\share\` {
		t.Errorf("%+v, %v", point, err)
	}
	putFile(t, 0o600, target, "file")
	if _, err := machine.FileInfo(ctx, win.Path{Base: filepath.Join(root, "local"), Rest: "file"}); err != nil {
		t.Errorf("through the link: %v", err)
	}
	_, err := machine.FileInfo(ctx, win.Path{Base: root, Rest: `local\file`})
	wantCode(t, "a symbolic link on the way", err, winerr.ReparsePointEncounter)
	entries, err := os.ReadDir(root)
	if err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "Local" }) {
		t.Errorf("%v, %v, want Local", entries, err)
	}
	for name := range links {
		if err := dir.Remove(ctx, strings.ToLower(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	exists(t, target, "file")
}

// filesMountPoint shows the volume of Windows in an empty folder for a moment.
func TestLocal_FilesMountPoint(t *testing.T) {
	ctx, root, volume := timeLimit(t), t.TempDir(), systemVolume(t)
	dir := openDirectory(t, win.Following(root))
	for _, name := range []string{"folder", "full"} {
		createDirectory(t, dir, name)
	}
	putFile(t, 0o600, root, "full", "file")
	putFile(t, 0o600, root, "file")
	ordinary := win.FileInfo{Directory: true}
	wantCode(t, "mount a volume that does not exist", dir.SetMountPoint(ctx, "folder", noVolume), winerr.FileNotFound)
	wantCode(t, "mount at nothing", dir.SetMountPoint(ctx, "nothing", volume), winerr.FileNotFound)
	wantCode(t, "mount at a file", dir.SetMountPoint(ctx, "file", volume), winerr.Directory)
	wantCode(t, "unmount nothing", dir.DeleteMountPoint(ctx, "nothing"), winerr.FileNotFound)

	err := dir.SetMountPoint(ctx, "folder", volume)
	if slices.Contains(cannotStoreLinks, winerr.CodeOf(err)) {
		if info, err := dir.FileInfo(ctx, "folder"); err != nil || info != ordinary {
			t.Errorf("%+v, %v after it could not be mounted", info, err)
		}
		t.Skipf("the file system stores no mount points: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = dir.DeleteMountPoint(context.WithoutCancel(ctx), "folder") })
	wantCode(t, "mount at what is not empty", dir.SetMountPoint(ctx, "full", volume), winerr.DirNotEmpty)
	wantCode(t, "mount again", dir.SetMountPoint(ctx, "FOLDER", volume), winerr.DirNotEmpty)
	point, err := dir.ReparsePoint(ctx, "folder")
	if err != nil || point != winlayout.MountedFolder(volume) {
		t.Errorf("%+v, %v", point, err)
	}
	folder := win.Path{Base: root, Rest: "folder"}
	if info, err := machine.FileInfo(ctx, folder); err != nil || info != (win.FileInfo{Directory: true, Tag: win.TagMountPoint}) {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := machine.TargetInfo(ctx, folder); err != nil || info != ordinary {
		t.Errorf("%+v, %v, want the root of the volume", info, err)
	}
	_, err = machine.FileInfo(ctx, folder.Join("Windows"))
	wantCode(t, "a mounted folder on the way", err, winerr.ReparsePointEncounter)
	if _, err := machine.FileInfo(ctx, win.Path{Base: folder.String(), Rest: "Windows"}); err != nil {
		t.Errorf("in the folder: %v", err)
	}
	if windows.GetCurrentProcessToken().IsElevated() { // only then the mount manager listens
		if paths := mountPaths(t, volume); !slices.ContainsFunc(paths, func(p string) bool { return winpath.SameTarget(p, folder.String()) }) {
			t.Errorf("the mount manager knows %q, without %s", paths, folder)
		}
	}
	require.NoError(t, dir.DeleteMountPoint(ctx, "Folder"))
	if info, err := dir.FileInfo(ctx, "folder"); err != nil || info != ordinary {
		t.Errorf("%+v, %v after it was unmounted", info, err)
	}
	wantCode(t, "unmount again", dir.DeleteMountPoint(ctx, "folder"), winerr.NotAReparsePoint)
	if paths := mountPaths(t, volume); slices.ContainsFunc(paths, func(p string) bool { return winpath.SameTarget(p, folder.String()) }) {
		t.Errorf("the mount manager still knows %q", paths)
	}

	// Of several mounts at once one succeeds, and none replaces it.
	refused := []winerr.Code{winerr.DirNotEmpty, winerr.SharingViolation}
	if onWine() { // which renames a folder that becomes a link, and may still look for the former name
		refused = append(refused, winerr.FileNotFound)
	}
	var wg sync.WaitGroup
	var mounted atomic.Int32
	for range 8 {
		wg.Go(func() {
			if err := dir.SetMountPoint(ctx, "folder", volume); err == nil {
				mounted.Add(1)
			} else {
				wantCode(t, "mount at once", err, refused...)
			}
		})
	}
	wg.Wait()
	if n := mounted.Load(); n != 1 {
		t.Errorf("%d mounted at once", n)
	}
	require.NoError(t, dir.DeleteMountPoint(ctx, "folder"))
	require.NoError(t, dir.Remove(ctx, "folder"))
}

// mountPaths asks the mount manager where a volume is mounted.
func mountPaths(t *testing.T, volume win.VolumeID) []string {
	t.Helper()
	name, err := windows.UTF16PtrFromString(string(volume))
	require.NoError(t, err)
	paths := make([]uint16, 64<<10)
	var n uint32
	require.NoError(t, windows.GetVolumePathNamesForVolumeName(name, &paths[0], uint32(len(paths)&math.MaxInt32), &n))
	return strings.FieldsFunc(string(utf16.Decode(paths[:n])), func(r rune) bool { return r == 0 })
}

func TestLocal_FilesLongName(t *testing.T) {
	ctx, root := timeLimit(t), t.TempDir()
	dir := openDirectory(t, win.Following(root))
	longest := strings.Repeat("x", winpath.MaxComponent)
	createDirectory(t, dir, longest)
	if info, err := machine.FileInfo(ctx, win.Path{Base: root, Rest: strings.ToUpper(longest)}); err != nil || !info.Directory {
		t.Errorf("%+v, %v", info, err)
	}
	if err := dir.CreateDirectory(ctx, longest+"x"); err == nil {
		t.Error("a name with 256 characters was made")
	} else {
		t.Logf("a name with 256 characters: %v", err)
	}
	require.NoError(t, dir.Remove(ctx, longest))
	for _, units := range []int{winpath.MaxName, winpath.MaxName + 1} {
		_, err := machine.FileInfo(ctx, win.Path{Base: root, Rest: strings.Repeat(`x\`, units/2) + strings.Repeat("y", units%2)})
		t.Logf("names of %d units: %v", units, err)
		if err == nil {
			t.Errorf("names of %d units were found", units)
		}
		if units > winpath.MaxName {
			wantCode(t, "names that no UNICODE_STRING holds", err, winerr.FilenameExcedRange)
		}
	}
}

// TestLocal_FilesLongPath: one call reaches what is below a long path. The last is about all that Windows can handle.
func TestLocal_FilesLongPath(t *testing.T) {
	for _, length := range []int{300, 1000, 10_000, 32_000} {
		t.Run(fmt.Sprint(length), func(t *testing.T) { wantLongPath(t, length) })
	}
}

func wantLongPath(t *testing.T, length int) {
	t.Helper()
	ctx, root := timeLimit(t), t.TempDir()
	base := win.Following(root)
	at, rest := openDirectory(t, base), ""
	names := strings.Repeat(strings.Repeat("d", 99)+`\`, length/100) + "end"
	for name := range strings.SplitSeq(names, `\`) {
		in := at
		// Where nothing can be made by its whole path, it could not be removed, either.
		probe := winpath.Long(root + rest + `\` + strings.Repeat("p", 2*len(name)))
		if err := errors.Join(os.Mkdir(probe, 0o700), os.Remove(probe)); err != nil {
			t.Skipf("this system has no paths of %d characters: %.100v", len(rest), err)
		}
		require.NoError(t, in.CreateDirectory(ctx, name))
		t.Cleanup(func() { // os.RemoveAll need not know such paths
			require.NoError(t, in.Remove(context.WithoutCancel(ctx), name))
		})
		inner, err := in.Open(ctx, name)
		if err != nil {
			t.Fatalf("after %d characters: %v", len(rest), err)
		}
		t.Cleanup(inner.Close)
		at, rest = inner, rest+`\`+name
	}
	deep := win.Path{Base: root, Rest: rest[1:]}
	info, err := machine.FileInfo(ctx, deep)
	if err != nil || info != (win.FileInfo{Directory: true}) {
		t.Errorf("%d characters: %+v, %v", len(deep.Rest), info, err)
	}
	if _, err := machine.FileInfo(ctx, win.Anywhere(deep.String())); err != nil {
		t.Errorf("by the whole path: %v", err)
	}
	dir, err := machine.OpenDirectory(ctx, deep)
	require.NoError(t, err)
	defer dir.Close()
	createDirectory(t, dir, "below")
	require.NoError(t, dir.Remove(ctx, "below"))
}

func TestLocal_FilesReplaceFile(t *testing.T) {
	ctx, root := timeLimit(t), t.TempDir()
	dir := openDirectory(t, win.Following(root))
	for _, content := range []string{"a longer text", "", "text"} {
		require.NoError(t, dir.ReplaceFile(ctx, "file.json", content))
		if got, err := dir.ReadFile(ctx, "FILE.json"); err != nil || got != content {
			t.Errorf("%q, %v, want %q", got, err, content)
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v, want one file", entries, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "large"), make([]byte, 2*win.MaxFile), 0o600))
	if got, err := dir.ReadFile(ctx, "large"); err != nil || len(got) != win.MaxFile {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_, err = dir.ReadFile(ctx, "nothing")
	wantCode(t, "nothing", err, winerr.FileNotFound)
	createDirectory(t, dir, "folder")
	_, err = dir.ReadFile(ctx, "folder")
	wantCode(t, "a folder", err, winerr.AccessDenied)
	wantCode(t, "over a folder", dir.ReplaceFile(ctx, "folder", "text"), winerr.AccessDenied)
}

// filesContextEnded: nothing is done for callers that have left.
func TestLocal_FilesContextEnded(t *testing.T) {
	root := t.TempDir()
	dir := openDirectory(t, win.Following(root))
	createDirectory(t, dir, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"FileInfo":            func() error { _, err := dir.FileInfo(ctx, "a"); return err },
		"ReparsePoint":        func() error { _, err := dir.ReparsePoint(ctx, "a"); return err },
		"Open":                func() error { _, err := dir.Open(ctx, "a"); return err },
		"ListDirectory":       func() error { return win.List(ctx, dir, "a", nil) },
		"CreateDirectory":     func() error { return dir.CreateDirectory(ctx, "b") },
		"CreateDirectoryLink": func() error { return dir.CreateDirectoryLink(ctx, "b", root) },
		"SetMountPoint":       func() error { return dir.SetMountPoint(ctx, "a", noVolume) },
		"DeleteMountPoint":    func() error { return dir.DeleteMountPoint(ctx, "a") },
		"Remove":              func() error { return dir.Remove(ctx, "a") },
		"OpenDirectory":       func() error { _, err := machine.OpenDirectory(ctx, win.Following(root)); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want that the context has ended", name, err)
		}
	}
	exists(t, root, "a")
}
