package winsim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// mustAll ends a test that cannot go on.
func mustAll(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// list returns the names in a directory of an open one.
func list(t *testing.T, dir win.Tree, name string) (names []string) {
	t.Helper()
	err := win.List(t.Context(), dir, name, func(_ win.Tree, entries []win.DirEntry) error {
		for _, entry := range entries {
			names = append(names, entry.Name)
		}
		return nil
	})
	mustAll(t, err)
	return names
}

// TestDirectory_Replaced: an open directory is the one that was opened, whatever has its
// name by now.
func TestDirectory_Replaced(t *testing.T) {
	for name, replace := range map[string]func(*winsim.Node) (old string, err error){
		"by a link": func(n *winsim.Node) (string, error) {
			return `C:\trap`, errors.Join(n.Symlink(`C:\trap`, `C:\aside`), n.Swap(`C:\work\dir`, `C:\trap`))
		},
		"by a junction": func(n *winsim.Node) (string, error) {
			if err := n.Junction(`C:\trap`, `C:\aside`); err != nil {
				return "", err
			}
			return `C:\trap`, n.Swap(`C:\work\dir`, `C:\trap`)
		},
		"by another directory": func(n *winsim.Node) (string, error) { return `C:\aside`, n.Swap(`C:\work\dir`, `C:\aside`) },
		"on the way to it": func(n *winsim.Node) (string, error) {
			return `C:\trap\dir`, errors.Join(n.Symlink(`C:\trap`, `C:\aside`), n.Swap(`C:\work`, `C:\trap`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			node, ctx := newNode(t, winsim.Default()), t.Context()
			mustAll(t, node.Mkdir(`C:\work\dir\mine`), node.WriteFile(`C:\work\dir\file`, "data"), node.Mkdir(`C:\aside\dir\mine`))
			dir := open(t, node, `C:\work\dir`)
			old, err := replace(node)
			mustAll(t, err)
			mustAll(t, dir.CreateDirectory(ctx, "new"), dir.CreateDirectoryLink(ctx, "link", `C:\`), dir.Remove(ctx, "mine"))
			want := old + "\n" + old + "\\file \"data\"\n" + old + "\\link -> C:\\\n" + old + "\\new\n"
			if diff := cmp.Diff(want, node.Tree(old)); diff != "" {
				t.Errorf("the directory that was opened (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDirectory_TurnedIntoJunction: a handle to a directory that became a junction leads nowhere else.
func TestDirectory_TurnedIntoJunction(t *testing.T) {
	for _, answer := range []winerr.Code{0, winerr.FileNotFound, winerr.InvalidName, winerr.BadPathname, winerr.CantResolveFilename} {
		node, ctx := newNode(t, winsim.Default()), t.Context()
		mustAll(t, node.Mkdir(`C:\work\dir`), node.Mkdir(`C:\aside\sub`))
		dir := open(t, node, `C:\work\dir`)
		mustAll(t, node.TurnIntoJunction(`C:\work\dir`, `C:\aside`, uint32(answer)))
		if got := node.Tree(`C:\work`); got != "C:\\work\nC:\\work\\dir => C:\\aside\n" {
			t.Errorf("now there is\n%s", got)
		}
		if err := dir.CreateDirectory(ctx, "new"); winerr.CodeOf(err) != answer {
			t.Errorf("a directory in it: %v, want code %d", err, answer)
		}
		if _, err := dir.Open(ctx, "sub"); err == nil || answer != 0 && !bare(err, answer) {
			t.Errorf("the target's directory: %v, want code %d", err, answer)
		}
		if got := node.Tree(`C:\aside`); got != "C:\\aside\nC:\\aside\\sub\n" {
			t.Errorf("the target is\n%s", got)
		}
		if got, err := node.Filesystem().IsSymlink(`C:\work\dir`); err != nil || !got {
			t.Errorf("it is a link: %v, %v", got, err)
		}
	}
}

// TestDirectory_Removed: a removed directory that is still open stays empty, and its
// successor of the same name is another one.
func TestDirectory_Removed(t *testing.T) {
	node, ctx := newNode(t, winsim.Default()), t.Context()
	mustAll(t, node.WriteFile(`C:\work\dir\sub\file`, "data"))
	dir, sub := open(t, node, `C:\work\dir`), open(t, node, `C:\work\dir\sub`)
	mustAll(t, node.RemoveAll(`C:\work\dir`), node.Mkdir(`C:\work\dir\sub`))
	for name, removed := range map[string]win.Directory{"dir": dir, "sub": sub} {
		if err := removed.CreateDirectory(ctx, "new"); !bare(err, winerr.AccessDenied) {
			t.Errorf("a directory in %s: %v, want code 5", name, err)
		}
		if err := removed.CreateDirectoryLink(ctx, "new", `C:\`); !bare(err, winerr.AccessDenied) {
			t.Errorf("a link in %s: %v, want code 5", name, err)
		}
		if _, err := removed.FileInfo(ctx, "sub"); !bare(err, winerr.FileNotFound) {
			t.Errorf("an entry of %s: %v, want code 2", name, err)
		}
	}
	if got, want := node.Tree(`C:\work`), "C:\\work\nC:\\work\\dir\nC:\\work\\dir\\sub\n"; got != want {
		t.Errorf("now there is\n%s", got)
	}
}

// TestDirectory_VolumeChanges: an open directory fails with its volume, and is worth
// nothing once the volume was formatted.
func TestDirectory_VolumeChanges(t *testing.T) {
	node, ctx := newNode(t, storageModel()), t.Context()
	mustAll(t, node.Mkdir(dataVolume+"dir"))
	dir := open(t, node, dataVolume+"dir")
	for state, want := range map[winsim.VolumeState]error{winsim.Gone: winerr.FileNotFound, winsim.NotReady: winerr.NotReady} {
		mustAll(t, node.SetVolumeState(dataVolume, state))
		if err := dir.CreateDirectory(ctx, "new"); !bare(err, want) {
			t.Errorf("%s: %v, want %v", state, err, want)
		}
	}
	mustAll(t, node.SetVolumeState(dataVolume, winsim.Healthy), dir.CreateDirectory(ctx, "new"), node.Format(ctx, dataID, win.FormatOptions{}))
	if err := dir.CreateDirectory(ctx, "other"); !bare(err, winerr.FileInvalid) {
		t.Errorf("after a format: %v, want code 1006", err)
	}
}

// TestDirectory_Close: directories are counted, and using one that is closed is a mistake
// that no test can miss.
func TestDirectory_Close(t *testing.T) {
	node, ctx := newNode(t, winsim.Default()), t.Context()
	root, err := node.OpenDirectory(ctx, win.Following(`C:\`))
	mustAll(t, err)
	inner, err := root.Open(ctx, "var")
	mustAll(t, err)
	if got := node.OpenDirectories(); got != 2 {
		t.Errorf("%d directories are open, want 2", got)
	}
	var listed win.Tree
	mustAll(t, win.List(ctx, root, "var", func(dir win.Tree, _ []win.DirEntry) error {
		listed = dir
		return nil
	}))
	inner.Close()
	root.Close()
	if got := node.OpenDirectories(); got != 0 {
		t.Errorf("%d directories are open, want none", got)
	}
	for name, use := range map[string]func(){
		"Close":         root.Close,
		"FileInfo":      func() { _, _ = root.FileInfo(ctx, "var") },
		"Open":          func() { _, _ = inner.Open(ctx, "lib") },
		"Remove":        func() { _ = inner.Remove(ctx, "lib") },
		"SetMountPoint": func() { _ = inner.SetMountPoint(ctx, "lib", dataID) },
		"listed":        func() { _ = listed.Remove(ctx, "lib") },
	} {
		func() {
			defer func() {
				if problem := fmt.Sprint(recover()); !strings.Contains(problem, `C:\`) || !strings.Contains(problem, "closed") {
					t.Errorf("%s of a closed directory: %s, want a panic that names it", name, problem)
				}
			}()
			use()
		}()
	}
}

// TestListDirectory_Changes: what is removed before its batch is not listed, what has
// changed is listed as it is.
func TestListDirectory_Changes(t *testing.T) {
	node := newNode(t, winsim.Default())
	for i := range 600 {
		mustAll(t, node.Mkdir(fmt.Sprintf(`C:\many\%03d`, i)))
	}
	var links, names int
	err := win.List(t.Context(), open(t, node, `C:\`), "many", func(_ win.Tree, entries []win.DirEntry) error {
		if names == 0 {
			mustAll(t, node.RemoveAll(`C:\many\300`), node.RemoveAll(`C:\many\301`), node.Symlink(`C:\many\301`, `C:\`))
		}
		for _, entry := range entries {
			if entry.Tag != 0 {
				links++
			}
		}
		names += len(entries)
		return nil
	})
	if err != nil || names != 599 || links != 1 {
		t.Errorf("%v, %d names, %d links, want 599 and 1", err, names, links)
	}
}

// TestObserve: what is reported is where things really are, also through links and on
// volumes without a letter, and whether they changed.
func TestObserve(t *testing.T) {
	node, ctx := newNode(t, withDataVolume()), t.Context()
	mustAll(t,
		node.MountFolder(`C:\mount`, dataVolume), node.Mkdir(`C:\mount\Program Files`), node.WriteFile(`C:\mount\file`, ""),
		node.Symlink(`C:\link`, `C:\mount\Program Files`), node.Mkdir(`C:\var\empty`))
	var got []winsim.Touch
	node.Observe(func(touch winsim.Touch) { got = append(got, touch) })
	dir := open(t, node, `C:\link`)
	_, err := node.FileInfo(ctx, win.Anywhere(`C:\mount\PROGRA~1`))
	_, targetErr := node.TargetInfo(ctx, win.Anywhere(`C:\mount`))
	_, streamErr := node.FileInfo(ctx, win.Anywhere(`C:\mount\FILE::$DATA`))
	mustAll(t, err, targetErr, streamErr,
		dir.CreateDirectory(ctx, "new"), dir.CreateDirectoryLink(ctx, "out", `C:\`), dir.Remove(ctx, "NEW"),
		open(t, node, `C:\var`).SetMountPoint(ctx, "empty", dataID), open(t, node, `C:\var`).DeleteMountPoint(ctx, "empty"))
	if err := dir.Remove(ctx, "missing"); err == nil {
		t.Error("nothing was removed")
	}
	want := []winsim.Touch{
		{Call: "OpenDirectory", Path: dataVolume + `Program Files`},
		{Call: "FileInfo", Path: dataVolume + `Program Files`},
		{Call: "TargetInfo", Path: `C:\mount`},
		{Call: "TargetInfo", Path: dataVolume},
		{Call: "FileInfo", Path: dataVolume + `file`},
		{Call: "CreateDirectory", Path: dataVolume + `Program Files\new`, Changed: true},
		{Call: "CreateDirectoryLink", Path: dataVolume + `Program Files\out`, Changed: true},
		{Call: "Remove", Path: dataVolume + `Program Files\new`, Changed: true},
		{Call: "OpenDirectory", Path: `C:\var`},
		{Call: "SetMountPoint", Path: `C:\var\empty`, Changed: true},
		{Call: "OpenDirectory", Path: `C:\var`},
		{Call: "DeleteMountPoint", Path: `C:\var\empty`, Changed: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCreateDirectoryLink_Length: both names of the target have to fit into 16 KiB, with a
// header of 20 bytes and what ends them.
func TestCreateDirectoryLink_Length(t *testing.T) {
	node, ctx := newNode(t, winsim.Default()), t.Context()
	root := open(t, node, `C:\`)
	const header, ends, kernelPrefix = 20, 4, 4
	most := ((16<<10)-header-ends)/2/2 - kernelPrefix/2
	target := `C:\` + strings.Repeat("x", most-len(`C:\`))
	if err := root.CreateDirectoryLink(ctx, "long", target); err != nil {
		t.Errorf("%d characters: %v", len(target), err)
	}
	if point, err := root.ReparsePoint(ctx, "long"); err != nil || point.Target() != target {
		t.Errorf("the target was not kept: %v", err)
	}
	for name, target := range map[string]string{"longer": target + "x", "two units each": `C:\` + strings.Repeat("\U0001F600", most/2)} {
		if err := root.CreateDirectoryLink(ctx, "x", target); !bare(err, winerr.FilenameExcedRange) {
			t.Errorf("%s: %v, want code 206", name, err)
		}
	}
	if node.Exists(`C:\x`) {
		t.Error("a link was made that does not fit")
	}
}

// TestMissing: for a last name that is missing calls fail with ERROR_FILE_NOT_FOUND (2), and for a directory
// on the way with ERROR_PATH_NOT_FOUND (3). A file is no directory. A missing base is on the way for calls that
// ask for the whole path at once, which they do without a link in it; the others open it.
func TestMissing(t *testing.T) {
	node, ctx := newNode(t, winsim.Default()), t.Context()
	mustAll(t,
		node.CreateSMBMapping(ctx, asCSI(dataShare)), node.WriteFile(`C:\dir\file`, ""),
		node.Symlink(`C:\link`, `C:\dir`), node.Symlink(`C:\nowhere`, `C:\dir\gone`), node.Symlink(`C:\far`, `C:\gone\gone`),
	)
	atOnce := map[string]func(win.Path) error{
		"FileInfo":     func(p win.Path) error { _, err := node.FileInfo(ctx, p); return err },
		"TargetInfo":   func(p win.Path) error { _, err := node.TargetInfo(ctx, p); return err },
		"PathSpace":    func(p win.Path) error { _, err := node.PathSpace(ctx, p); return err },
		"ReparsePoint": func(p win.Path) error { _, err := node.ReparsePoint(ctx, p); return err },
	}
	opening := map[string]func(win.Path) error{
		"Location":        func(p win.Path) error { _, err := node.Location(ctx, p); return err },
		"OpenDirectory":   func(p win.Path) error { _, err := node.OpenDirectory(ctx, p); return err },
		"CreateDirectory": func(p win.Path) error { return node.CreateDirectory(ctx, p) },
	}
	const name, way = winerr.FileNotFound, winerr.PathNotFound
	for path, want := range map[win.Path]struct{ atOnce, opening winerr.Code }{
		{Base: `C:\`, Rest: `no`}:                   {name, name},
		{Base: `C:\dir`, Rest: `no`}:                {name, name},
		{Base: `C:\link`, Rest: `no`}:               {name, name},
		{Base: dataShare, Rest: `no`}:               {name, name},
		{Base: `C:\no`}:                             {name, name},
		{Base: `C:\link\no`}:                        {name, name},
		{Base: `C:\nowhere`}:                        {name, name},
		{Base: dataShare + `\no`}:                   {name, name},
		{Base: `C:\no`, Rest: `thing`}:              {way, name},
		{Base: `C:\dir\no`, Rest: `thing\at\all`}:   {way, name},
		{Base: `C:\link\no`, Rest: `thing`}:         {name, name},
		{Base: `C:\nowhere`, Rest: `thing`}:         {name, name},
		{Base: dataShare + `\no`, Rest: `thing`}:    {name, name},
		{Base: `C:\`, Rest: `no\thing`}:             {way, way},
		{Base: `C:\`, Rest: `dir\file\below`}:       {way, way},
		{Base: `C:\link`, Rest: `no\thing`}:         {way, way},
		{Base: `C:\no\thing`, Rest: `at\all`}:       {way, way},
		{Base: `C:\dir\file`, Rest: `below`}:        {way, way},
		{Base: `C:\no\thing`}:                       {way, way},
		{Base: `C:\dir\file\below`}:                 {way, way},
		{Base: `C:\link\file\below`}:                {way, way},
		{Base: `C:\nowhere\thing`}:                  {way, way},
		{Base: `C:\far`}:                            {way, way},
		{Base: `Q:\`, Rest: `no`}:                   {way, way},
		{Base: dataShare + `\no\thing`, Rest: `at`}: {way, way},
	} {
		for name, call := range atOnce {
			if err := call(path); winerr.CodeOf(err) != want.atOnce {
				t.Errorf("%s of %s, %s: %v, want code %d", name, path.Base, path.Rest, err, want.atOnce)
			}
		}
		for name, call := range opening {
			if makes := name == "CreateDirectory"; makes && (path.Rest == "" || want.atOnce == winerr.FileNotFound) {
				continue // it would make the directory, or has no name for it
			}
			if err := call(path); winerr.CodeOf(err) != want.opening {
				t.Errorf("%s of %s, %s: %v, want code %d", name, path.Base, path.Rest, err, want.opening)
			}
		}
	}
	dir, err := node.OpenDirectory(ctx, win.Following(`C:\link`))
	mustAll(t, err)
	defer dir.Close()
	if _, err := dir.FileInfo(ctx, "no"); winerr.CodeOf(err) != winerr.FileNotFound {
		t.Errorf("FileInfo in a directory: %v, want code 2", err)
	}
}

func TestSwap_Refuses(t *testing.T) {
	node := newNode(t, withDataVolume())
	mustAll(t, node.Mkdir(`C:\a\b`), node.Mkdir(dataVolume+"x"))
	before := node.Tree(`C:\`)
	for _, c := range []struct {
		path, other string
		want        winerr.Code
	}{
		{`C:\a`, `C:\a\b`, 32},
		{`C:\a\b`, `C:\a`, 32},
		{`C:\a`, `C:\A`, 32},
		{`C:\a`, `C:\missing`, 2},
		{`C:\missing`, `C:\a`, 2},
		{`C:\`, `C:\a`, 5},
		{`C:\a`, dataVolume + "x", 17},
	} {
		if err := node.Swap(c.path, c.other); winerr.CodeOf(err) != c.want {
			t.Errorf("Swap(%s, %s): %v, want code %d", c.path, c.other, err, c.want)
		}
	}
	if after := node.Tree(`C:\`); after != before {
		t.Errorf("something changed:\n%s", cmp.Diff(before, after))
	}
}

func TestTurnIntoJunction_Refuses(t *testing.T) {
	node := newNode(t, winsim.Default())
	mustAll(t, node.WriteFile(`C:\dir\file`, "data"), node.Symlink(`C:\link`, `C:\dir`))
	for path, want := range map[string]winerr.Code{
		`C:\`: winerr.AccessDenied, `C:\dir`: winerr.DirNotEmpty, `C:\dir\file`: winerr.Directory, `C:\missing`: winerr.FileNotFound, `C:\link`: 4394,
	} {
		if err := node.TurnIntoJunction(path, `C:\dir`, 0); winerr.CodeOf(err) != want {
			t.Errorf("%s: %v, want code %d", path, err, want)
		}
	}
	if err := node.TurnIntoJunction(`C:\dir`, `relative`, 0); !errors.Is(err, winerr.Invalid) {
		t.Errorf("a relative target: %v", err)
	}
}
