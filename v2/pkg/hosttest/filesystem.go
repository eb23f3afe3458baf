package hosttest

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
)

// FilesystemNode is a node under test.
type FilesystemNode struct {
	// API is the implementation under test. Its errors must match those of io/fs.
	API filesystem.Interface
	// Root is an existing directory in which the suite may create files.
	Root string

	// WriteFile and ReadFile access the node's files without the API.
	WriteFile func(path, content string) error
	ReadFile  func(path string) (string, error)
	// MountVolume mounts a formatted volume of the node at a new folder. The volume may have
	// files; the suite adds its own. May be nil.
	MountVolume func(path string) error
	// LoseVolume removes the mounted volume, as a detached disk does.
	LoseVolume func() error

	// LongestPath is the maximum length of a path on this node, if it is less than the 32,000
	// of Windows, as on Wine.
	LongestPath int

	// NoLinks is the reason why the file system has no links; if set, the suite skips cases
	// about links.
	NoLinks string

	// Lacks names methods that this version of the API does not have.
	Lacks []string
}

// ErrConflict matches errors of API about a wrong state, such as a directory that is not empty
// or a link where a directory is needed. The standard library has no such error.
var ErrConflict error = winerr.InUse

// Filesystem runs the cases of the filesystem group. newNode is called once per case.
func Filesystem(t *testing.T, newNode func(t *testing.T) FilesystemNode) {
	t.Helper()
	runCases(t, filesystemCases, func(t *testing.T) (*filesystemNode, []string) {
		t.Helper()
		n := &filesystemNode{FilesystemNode: newNode(t), runner: runner{t}}
		return n, n.Lacks
	})
}

// filesystemNode adds short names for the calls.
type filesystemNode struct {
	FilesystemNode
	runner
}

func (n *filesystemNode) path(names ...string) string {
	return strings.TrimSuffix(n.Root, `\`) + `\` + strings.Join(names, `\`)
}

func (n *filesystemNode) mkdir(path string) error {
	return errOf(n.API.Mkdir(n.ctx(), &filesystem.MkdirRequest{Path: path}))
}

func (n *filesystemNode) rmdir(path string, force bool) error {
	return errOf(n.API.Rmdir(n.ctx(), &filesystem.RmdirRequest{Path: path, Force: force}))
}

func (n *filesystemNode) rmdirContents(path string) error {
	return errOf(n.API.RmdirContents(n.ctx(), &filesystem.RmdirContentsRequest{Path: path}))
}

func (n *filesystemNode) link(source, target string) error {
	return errOf(n.API.CreateSymlink(n.ctx(), &filesystem.CreateSymlinkRequest{SourcePath: source, TargetPath: target}))
}

func (n *filesystemNode) mustMkdir(path string) {
	n.t.Helper()
	n.must(n.mkdir(path))
}

func (n *filesystemNode) mustWrite(path, content string) {
	n.t.Helper()
	n.must(n.WriteFile(path, content))
}

func (n *filesystemNode) needLinks() {
	n.t.Helper()
	if n.NoLinks != "" {
		n.t.Skip(n.NoLinks)
	}
}

func (n *filesystemNode) mustLink(source, target string) {
	n.t.Helper()
	n.needLinks()
	n.must(n.link(source, target))
}

func (n *filesystemNode) mustMount(path string) {
	n.t.Helper()
	if n.MountVolume == nil {
		n.t.Skip("this node cannot mount a volume")
	}
	n.must(n.MountVolume(path))
}

func (n *filesystemNode) wantExists(path string, want bool) {
	n.t.Helper()
	response, err := n.API.PathExists(n.ctx(), &filesystem.PathExistsRequest{Path: path})
	if err != nil || response.Exists != want {
		n.t.Errorf("PathExists(%s) = %v, %v, want %v", path, response, err, want)
	}
}

func (n *filesystemNode) wantSymlink(path string, want bool) {
	n.t.Helper()
	response, err := n.API.IsSymlink(n.ctx(), &filesystem.IsSymlinkRequest{Path: path})
	if err != nil || response.IsSymlink != want {
		n.t.Errorf("IsSymlink(%s) = %v, %v, want %v", path, response, err, want)
	}
}

func (n *filesystemNode) wantContent(path, want string) {
	n.t.Helper()
	if got, err := n.ReadFile(path); err != nil || got != want {
		n.t.Errorf("content of %s = %q, %v, want %q", path, got, err, want)
	}
}

// longPath returns a path of exactly that length below top.
func longPath(top string, length int) string {
	const each = 200
	path := top
	for len(path)+1+each < length {
		path += `\` + strings.Repeat("a", each-1)
	}
	return path + `\` + strings.Repeat("b", length-len(path)-1)
}

var filesystemCases = []testCase[*filesystemNode]{
	{name: "Mkdir makes parents and may be repeated", run: func(n *filesystemNode) {
		path := n.path("a", "b", "c")
		twice(n.t, "Mkdir", func() error { return n.mkdir(path) })
		n.wantExists(path, true)
		n.wantExists(strings.ToUpper(path), true)
		n.wantExists(path+`\d`, false)
	}},
	{name: "Mkdir takes a trailing backslash and a small drive letter", run: func(n *filesystemNode) {
		n.mustMkdir(strings.ToLower(n.Root[:1]) + n.Root[1:] + `\x\`)
		n.wantExists(n.path("x"), true)
	}},
	{name: "Mkdir refuses a file in its place", run: func(n *filesystemNode) {
		n.mustWrite(n.path("file"), "data")
		wantError(n.t, "Mkdir over a file", n.mkdir(n.path("file")), fs.ErrExist)
		n.wantContent(n.path("file"), "data")
	}},
	{name: "Mkdir accepts a link to a directory in its place", run: func(n *filesystemNode) {
		n.mustMkdir(n.path("dir"))
		n.mustLink(n.path("dir"), n.path("link"))
		n.mustMkdir(n.path("link"))
		n.wantSymlink(n.path("link"), true)
	}},
	{name: "Mkdir refuses a dangling link in its place, and below it", run: func(n *filesystemNode) {
		n.mustLink(n.path("nothing"), n.path("link"))
		for _, path := range []string{n.path("link"), n.path("link", "below")} {
			err := n.mkdir(path)
			wantError(n.t, "Mkdir", err, fs.ErrExist)
			if errors.Is(err, fs.ErrNotExist) {
				n.t.Errorf("Mkdir: %v is of two kinds", err)
			}
		}
		n.wantExists(n.path("nothing"), false)
	}},
	{name: "paths of up to 32,000 characters work", run: func(n *filesystemNode) {
		n.mustWrite(n.path("source", "file"), "data")
		for _, length := range []int{259, 260, 261, 1000, 4000, 32_000} {
			if n.LongestPath > 0 && length > n.LongestPath {
				n.t.Logf("paths of %d characters are beyond this node", length)
				continue
			}
			top := n.path("long")
			path := longPath(top, length-len(`\link`))
			n.mustMkdir(path)
			n.mustMkdir(path)
			n.wantExists(path, true)
			n.wantExists(strings.ToUpper(path), true)
			if n.NoLinks == "" {
				n.mustLink(n.path("source"), path+`\link`)
				n.wantSymlink(path+`\link`, true)
				n.wantExists(path+`\link\file`, true)
				if err := n.rmdir(path+`\link`, false); err != nil {
					n.t.Errorf("%d characters: %v", length, err)
				}
				n.wantExists(path+`\link`, false)
			}
			if err := n.rmdir(top, true); err != nil {
				n.t.Errorf("%d characters: %v", length, err)
			}
			n.wantExists(top, false)
		}
		n.wantContent(n.path("source", "file"), "data")
	}},
	{name: "components of more than 255 characters are refused with that reason", run: func(n *filesystemNode) {
		n.mustMkdir(n.path(strings.Repeat("x", 255)))
		for _, name := range []string{strings.Repeat("x", 256), strings.Repeat("\U0001F4BE", 128)} { // two units each
			err := n.mkdir(n.path(name))
			wantError(n.t, "Mkdir", err, fs.ErrInvalid)
			if err == nil || !strings.Contains(err.Error(), "255") {
				n.t.Errorf("%v does not give the reason", err)
			}
		}
	}},
	{name: "no path is longer than Windows can handle", run: func(n *filesystemNode) {
		err := n.mkdir(longPath(n.path("long"), 33_000))
		wantError(n.t, "Mkdir", err, fs.ErrInvalid)
		n.wantExists(n.path("long"), false)
	}},
	{name: "concurrent Mkdir of one path all succeed", run: func(n *filesystemNode) {
		n.atOnce("Mkdir", func() error { return n.mkdir(n.path("x", "y", "z")) })
		n.wantExists(n.path("x", "y", "z"), true)
	}},
	{name: "Rmdir of a missing path succeeds", run: func(n *filesystemNode) {
		for _, force := range []bool{false, true} {
			twice(n.t, "Rmdir", func() error { return n.rmdir(n.path("no", "such", "dir"), force) })
		}
	}},
	{name: "Rmdir removes an empty directory", run: func(n *filesystemNode) {
		n.mustMkdir(n.path("dir"))
		twice(n.t, "Rmdir", func() error { return n.rmdir(n.path("dir"), false) })
		n.wantExists(n.path("dir"), false)
		n.wantExists(n.Root, true)
	}},
	{name: "Rmdir without force keeps a directory that is not empty", run: func(n *filesystemNode) {
		n.mustWrite(n.path("dir", "file"), "data")
		wantError(n.t, "Rmdir", n.rmdir(n.path("dir"), false), ErrConflict)
		n.wantContent(n.path("dir", "file"), "data")
	}},
	{name: "Rmdir without force refuses a file", run: func(n *filesystemNode) {
		n.mustWrite(n.path("file"), "data")
		wantError(n.t, "Rmdir", n.rmdir(n.path("file"), false), fs.ErrInvalid)
		n.wantContent(n.path("file"), "data")
		if err := n.rmdir(n.path("file"), true); err != nil {
			n.t.Errorf("with force: %v", err)
		}
		n.wantExists(n.path("file"), false)
	}},
	{name: "Rmdir with force removes a tree", run: func(n *filesystemNode) {
		for _, name := range []string{"1", "2", `sub\3`, `sub\deeper\4`} {
			n.mustWrite(n.path("tree", name), "data")
		}
		twice(n.t, "Rmdir", func() error { return n.rmdir(n.path("tree"), true) })
		n.wantExists(n.path("tree"), false)
	}},
	{name: "Rmdir removes a link and keeps its target", run: func(n *filesystemNode) {
		n.mustWrite(n.path("target", "file"), "data")
		for _, force := range []bool{false, true} {
			n.mustLink(n.path("target"), n.path("link"))
			twice(n.t, "Rmdir", func() error { return n.rmdir(n.path("link"), force) })
			n.wantExists(n.path("link"), false)
			n.wantContent(n.path("target", "file"), "data")
		}
	}},
	{name: "Rmdir removes a dangling link", run: func(n *filesystemNode) {
		n.mustLink(n.path("nothing"), n.path("link"))
		if err := n.rmdir(n.path("link"), false); err != nil {
			n.t.Error(err)
		}
		n.wantExists(n.path("link"), false)
	}},
	{name: "Rmdir of a tree stops at links and mounted folders inside", run: func(n *filesystemNode) {
		n.mustWrite(n.path("target", "file"), "data")
		n.mustMkdir(n.path("tree", "sub"))
		n.mustLink(n.path("target"), n.path("tree", "sub", "link"))
		n.mustMount(n.path("tree", "sub", "mount"))
		n.mustWrite(n.path("tree", "sub", "mount", "precious"), "volume data")
		n.must(n.rmdir(n.path("tree"), true))
		n.wantExists(n.path("tree"), false)
		n.wantContent(n.path("target", "file"), "data")
		n.mustMount(n.path("again"))
		n.wantContent(n.path("again", "precious"), "volume data")
	}},
	{name: "Rmdir of a mounted folder unmounts and keeps the volume's content", run: func(n *filesystemNode) {
		for _, force := range []bool{false, true} {
			n.mustMount(n.path("mount"))
			n.mustWrite(n.path("mount", "precious"), "volume data")
			twice(n.t, "Rmdir", func() error { return n.rmdir(n.path("mount"), force) })
			n.wantExists(n.path("mount"), false)
		}
		n.mustMount(n.path("again"))
		n.wantContent(n.path("again", "precious"), "volume data")
	}},
	{name: "Rmdir of a mounted folder works after the volume is gone", run: func(n *filesystemNode) {
		n.mustMount(n.path("mount"))
		n.must(n.LoseVolume())
		twice(n.t, "Rmdir", func() error { return n.rmdir(n.path("mount"), true) })
		n.wantExists(n.path("mount"), false)
	}},
	{name: "RmdirContents empties a directory and keeps it", uses: []string{"RmdirContents"}, run: func(n *filesystemNode) {
		n.mustWrite(n.path("dir", "file"), "data")
		n.mustWrite(n.path("dir", "sub", "file"), "data")
		n.mustWrite(n.path("target", "file"), "data")
		if n.NoLinks == "" {
			n.mustLink(n.path("target"), n.path("dir", "link"))
		}
		twice(n.t, "RmdirContents", func() error { return n.rmdirContents(n.path("dir")) })
		n.wantExists(n.path("dir"), true)
		n.wantExists(n.path("dir", "file"), false)
		n.wantExists(n.path("dir", "sub"), false)
		n.wantExists(n.path("dir", "link"), false)
		n.wantContent(n.path("target", "file"), "data")
	}},
	{name: "RmdirContents refuses links, mounted folders, files and missing paths", uses: []string{"RmdirContents"}, run: func(n *filesystemNode) {
		n.mustWrite(n.path("target", "file"), "data")
		n.mustLink(n.path("target"), n.path("link"))
		n.mustMount(n.path("mount"))
		n.mustWrite(n.path("mount", "precious"), "volume data")
		wantError(n.t, "of a link", n.rmdirContents(n.path("link")), ErrConflict)
		wantError(n.t, "of a mounted folder", n.rmdirContents(n.path("mount")), ErrConflict)
		wantError(n.t, "of a file", n.rmdirContents(n.path("target", "file")), fs.ErrInvalid)
		wantError(n.t, "of nothing", n.rmdirContents(n.path("nothing")), fs.ErrNotExist)
		n.wantContent(n.path("target", "file"), "data")
		n.wantContent(n.path("mount", "precious"), "volume data")
	}},
	{name: "CreateSymlink links a directory and may be repeated", run: func(n *filesystemNode) {
		n.needLinks()
		n.mustWrite(n.path("source", "file"), "data")
		twice(n.t, "CreateSymlink", func() error { return n.link(n.path("source"), n.path("link")) })
		n.wantSymlink(n.path("link"), true)
		n.wantExists(n.path("link", "file"), true)
		n.wantContent(n.path("link", "file"), "data")
	}},
	{name: "CreateSymlink never replaces what is there", run: func(n *filesystemNode) {
		n.mustMkdir(n.path("source"))
		n.mustMkdir(n.path("other"))
		n.mustMkdir(n.path("dir"))
		n.mustWrite(n.path("file"), "data")
		n.mustLink(n.path("other"), n.path("link"))
		for _, name := range []string{"dir", "file", "link"} {
			wantError(n.t, "CreateSymlink over a "+name, n.link(n.path("source"), n.path(name)), fs.ErrExist)
		}
		n.wantSymlink(n.path("dir"), false)
		n.wantContent(n.path("file"), "data")
	}},
	{name: "CreateSymlink needs the parent of the link", run: func(n *filesystemNode) {
		n.mustMkdir(n.path("source"))
		wantError(n.t, "CreateSymlink", n.link(n.path("source"), n.path("missing", "link")), fs.ErrNotExist)
	}},
	{name: "IsSymlink has four answers", run: func(n *filesystemNode) {
		n.mustMkdir(n.path("dir"))
		n.mustLink(n.path("dir"), n.path("link"))
		n.mustLink(n.path("nothing"), n.path("dangling"))
		n.wantSymlink(n.path("dir"), false)
		n.wantSymlink(n.path("link"), true)
		n.wantSymlink(n.path("dangling"), false)
		_, err := n.API.IsSymlink(n.ctx(), &filesystem.IsSymlinkRequest{Path: n.path("nothing")})
		wantError(n.t, "IsSymlink of nothing", err, fs.ErrNotExist)
	}},
	{name: "IsSymlink sees a mounted folder until its volume is gone", run: func(n *filesystemNode) {
		n.mustMount(n.path("mount"))
		n.wantSymlink(n.path("mount"), true)
		n.mustLink(n.path("mount"), n.path("link"))
		n.wantSymlink(n.path("link"), true)
		n.must(n.LoseVolume())
		n.wantSymlink(n.path("mount"), false)
		n.wantSymlink(n.path("link"), false)
	}},
	{name: "PathExists does not follow the last link", run: func(n *filesystemNode) {
		n.mustLink(n.path("nothing"), n.path("dangling"))
		n.wantExists(n.path("dangling"), true)
		n.wantExists(n.path("nothing"), false)
		n.wantExists(n.path("dangling", "below"), false)
	}},
	{name: "several backslashes count as one", run: func(n *filesystemNode) {
		doubled := func(path string) string { return strings.ReplaceAll(path, `\`, `\\`) + `\` }
		n.mustMkdir(doubled(n.path("dir")))
		n.wantExists(n.path("dir"), true)
		n.mustLink(doubled(n.path("dir")), doubled(n.path("link")))
		n.mustLink(n.path("dir"), n.path("link"))
		n.wantSymlink(doubled(n.path("link")), true)
		n.must(n.rmdir(doubled(n.path("link")), false))
		n.wantExists(doubled(n.path("link")), false)
		n.wantExists(doubled(n.path("dir")), true)
	}},
	{name: "malformed paths are refused and nothing changes", run: func(n *filesystemNode) {
		n.mustWrite(n.path("keep", "file"), "data")
		for _, path := range []string{
			``, `relative`, `\rooted`, `C:`, `C:relative`, `\\server\share`, `\\?\` + n.path("keep"), `\\.\PhysicalDrive0`,
			n.path("keep", "..", "keep"), n.path("keep", "."), n.path("keep") + "/file", n.path("keep."), n.path("keep "),
			n.path("keep:stream"), n.path("keep::$INDEX_ALLOCATION"), n.path("NUL"), n.path("com1.txt"), n.path("KEEP~1"),
			n.path("a*"), n.path("a?"), n.path("a|b"), n.path("a<b"), n.path("a>b"), n.path(`a"b`), n.path("a\x00b"), n.path("a\nb"),
			n.path("", "..", "keep"), n.path(strings.Repeat("x", 256)), strings.Repeat(`C:\x`, 10_000),
		} {
			wantError(n.t, "Mkdir of "+path, n.mkdir(path), fs.ErrInvalid)
			wantError(n.t, "Rmdir of "+path, n.rmdir(path, true), fs.ErrInvalid)
			wantError(n.t, "link at "+path, n.link(n.path("keep"), path), fs.ErrInvalid)
			wantError(n.t, "link to "+path, n.link(path, n.path("link")), fs.ErrInvalid)
			_, err := n.API.PathExists(n.ctx(), &filesystem.PathExistsRequest{Path: path})
			wantError(n.t, "PathExists of "+path, err, fs.ErrInvalid)
			_, err = n.API.IsSymlink(n.ctx(), &filesystem.IsSymlinkRequest{Path: path})
			wantError(n.t, "IsSymlink of "+path, err, fs.ErrInvalid)
			if !slices.Contains(n.Lacks, "RmdirContents") {
				wantError(n.t, "RmdirContents of "+path, n.rmdirContents(path), fs.ErrInvalid)
			}
		}
		n.wantContent(n.path("keep", "file"), "data")
		n.wantExists(n.path("link"), false)
	}},
}
