package policy_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/calltable"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/sweep"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// waysOut are links at C:\var\lib\kubelet\link that lead out of the working directory.
var waysOut = map[string]func(n *winsim.Node, at string) error{
	"symlink":                func(n *winsim.Node, at string) error { return n.Symlink(at, `C:\Windows`) },
	"symlink with backslash": func(n *winsim.Node, at string) error { return n.Symlink(at, `C:\Windows\`) },
	"symlink in small":       func(n *winsim.Node, at string) error { return n.Symlink(at, `c:\windows`) },
	"symlink by prefix":      func(n *winsim.Node, at string) error { return n.Symlink(at, `\\?\C:\Windows`) },
	"symlink to a sibling":   func(n *winsim.Node, at string) error { return n.Symlink(at, work+`-evil`) },
	"relative symlink":       func(n *winsim.Node, at string) error { return n.Symlink(at, `..\..\..\Windows`) },
	"beyond the root":        func(n *winsim.Node, at string) error { return n.Symlink(at, `..\..\..\..\..\Windows`) },
	"rooted symlink":         func(n *winsim.Node, at string) error { return n.Symlink(at, `\Windows`) },
	"detour":                 func(n *winsim.Node, at string) error { return n.Symlink(at, work+`\a\..\..\..\..\Windows`) },
	"symlink by device": func(n *winsim.Node, at string) error {
		return n.Symlink(at, `\\?\GLOBALROOT\Device\HarddiskVolume2\Windows`)
	},
	"junction":                func(n *winsim.Node, at string) error { return n.Junction(at, `C:\Windows`) },
	"junction to a parent":    func(n *winsim.Node, at string) error { return n.Junction(at, `C:\var\lib`) },
	"junction to the root":    func(n *winsim.Node, at string) error { return n.Junction(at, `C:\`) },
	"upwards and back":        func(n *winsim.Node, at string) error { return n.Symlink(at, `a\b\..\..\..\kubelet\a`) },
	"symlink to a volume":     func(n *winsim.Node, at string) error { return n.Symlink(at, hostVolume) },
	"below a volume":          func(n *winsim.Node, at string) error { return n.Symlink(at, hostVolume+`a`) },
	"junction below a volume": func(n *winsim.Node, at string) error { return n.Junction(at, hostVolume+`a`) },
	"junction by drive":       func(n *winsim.Node, at string) error { return n.Junction(at, `D:\`) },
	"chain": func(n *winsim.Node, at string) error {
		return errors.Join(n.Symlink(work+`\second`, `C:\Windows`), n.Symlink(at, work+`\second`))
	},
	"chain of chains": func(n *winsim.Node, at string) error {
		return errors.Join(n.Junction(work+`\third`, `C:\Windows`), n.Symlink(work+`\a\second`, `..\third`), n.Symlink(at, `a\second`))
	},
	"through the volume":          func(n *winsim.Node, at string) error { return n.Symlink(at, work+`\mounted\out`) },
	"through the volume, upwards": func(n *winsim.Node, at string) error { return n.Symlink(at, work+`\mounted\up`) },
	"through the volume, rooted":  func(n *winsim.Node, at string) error { return n.Symlink(at, work+`\mounted\rooted`) },
	"administrative share":        func(n *winsim.Node, at string) error { return n.Symlink(at, `\\localhost\C$\Windows`) },
	"pipe":                        func(n *winsim.Node, at string) error { return n.Symlink(at, `\\localhost\pipe\x`) },
	"share":                       func(n *winsim.Node, at string) error { return n.Symlink(at, `\\server\share`) },
}

// TestWaysOut sends every call through every link: nothing outside is touched, or even
// looked at, and whatever the call wanted there is denied.
func TestWaysOut(t *testing.T) {
	const link = work + `\link`
	try := sweep.OneIn(t, 8)
	for _, kind := range names(waysOut) {
		for _, call := range names(pathCalls) {
			for _, below := range []string{`\a`, `\a\b\empty`, `\a\b\c`, `\empty`, `\file`, `\mounted`, `\new`, `\new\deep`} {
				if !try() {
					continue
				}
				w := newWorld(t)
				check(t, waysOut[kind](w.node, link))
				before, inside := w.outside(), w.node.Tree(work)
				err := w.run(call, link+below)
				if kind == "share" && call == "CreateSymlink to" {
					continue // it is how shares are published
				}
				if !errors.Is(err, winerr.Denied) || !strings.Contains(err.Error(), link+below) {
					t.Errorf("%s of %s%s through a %s: %v, want it denied", call, link, below, kind, err)
				}
				if diff := cmp.Diff(before+inside, w.outside()+w.node.Tree(work)); diff != "" {
					t.Errorf("%s of %s%s through a %s changed something:\n%s", call, link, below, kind, diff)
				}
			}
		}
	}
}

// TestWaysOut_TheLinkItself: a link that leads out can be seen and removed, and nothing
// more.
func TestWaysOut_TheLinkItself(t *testing.T) {
	const link = work + `\link`
	for _, kind := range names(waysOut) {
		for call, want := range map[string]error{
			"PathExists":                       nil,
			"IsSymlink":                        winerr.Denied,
			"PathValid":                        winerr.Denied,
			"Mkdir":                            winerr.Denied,
			"Rmdir":                            nil,
			"Rmdir with force":                 nil,
			"RmdirContents":                    winerr.InUse,
			"CreateSymlink at":                 winerr.Exists,
			"CreateSymlink to":                 winerr.Denied,
			"MountVolume":                      winerr.Exists,
			"UnmountVolume":                    winerr.InUse,
			"GetVolumeIDFromTargetPath":        winerr.Denied,
			"GetClosestVolumeIDFromTargetPath": winerr.Denied,
		} {
			w := newWorld(t)
			check(t, waysOut[kind](w.node, link))
			before := w.outside()
			err := w.run(call, link)
			switch {
			case kind == "share" && errors.Is(want, winerr.Denied): // see TestShares
			case call == "GetVolumeIDFromTargetPath" && !errors.Is(err, winerr.Denied): // it reads the link and no more
				if !strings.HasSuffix(kind, "a volume") && !errors.Is(err, winerr.NotFound) {
					t.Errorf("%s of a %s: %v", call, kind, err)
				}
			case want == nil && err != nil, want != nil && !errors.Is(err, want):
				t.Errorf("%s of a %s: %v, want %v", call, kind, err, want)
			}
			if diff := cmp.Diff(before, w.outside()); diff != "" {
				t.Errorf("%s of a %s changed something outside:\n%s", call, kind, diff)
			}
			if gone := !w.node.Exists(link); gone != (call == "Rmdir" || call == "Rmdir with force") {
				t.Errorf("%s of a %s: the link is gone: %v", call, kind, gone)
			}
		}
	}
}

// TestShares: the state of a link to a share can be asked for, and it can be published. It
// is not entered otherwise, and not followed at all if a pod can have made it.
func TestShares(t *testing.T) {
	w := newWorld(t)
	const link, published = work + `\staged`, work + `\published`
	check(t, w.node.Symlink(link, `\\server\share`), w.node.Symlink(published, link))
	for _, path := range []string{link, published} {
		if err := w.run("IsSymlink", path); err != nil {
			t.Errorf("IsSymlink of %s: %v", path, err)
		}
		if err := w.run("CreateSymlink to", path); err != nil {
			t.Errorf("CreateSymlink to %s: %v", path, err)
		}
		check(t, w.node.RemoveAll(work+`\made`))
		if err := w.run("PathExists", path+`\file`); !errors.Is(err, winerr.Denied) {
			t.Errorf("PathExists below %s: %v", path, err)
		}
		if err := w.run("GetClosestVolumeIDFromTargetPath", path); !errors.Is(err, winerr.NotFound) {
			t.Errorf("volume of %s: %v", path, err)
		}
	}
	for _, call := range names(pathCalls) {
		if err := w.run(call, work+`\mounted\share\x`); !errors.Is(err, winerr.Denied) {
			t.Errorf("%s through a link on the volume: %v", call, err)
		}
	}
	for _, call := range []string{"IsSymlink", "CreateSymlink to"} {
		if err := w.run(call, work+`\mounted\share`); !errors.Is(err, winerr.Denied) {
			t.Errorf("%s of a link on the volume: %v", call, err)
		}
	}
}

// TestOwnVolumes: the volume of Windows has a name by which it can be mounted and linked
// like any other.
func TestOwnVolumes(t *testing.T) {
	for kind, make := range map[string]func(n *winsim.Node, at, id string) error{
		"mounted folder":   func(n *winsim.Node, at, id string) error { return n.MountFolder(at, id) },
		"symlink":          func(n *winsim.Node, at, id string) error { return n.Symlink(at, id) },
		"symlink below":    func(n *winsim.Node, at, id string) error { return n.Symlink(at, id+`var\..\`) },
		"to small letters": func(n *winsim.Node, at, id string) error { return n.Symlink(at, strings.ToLower(id)) },
	} {
		for _, call := range names(pathCalls) {
			for _, below := range []string{`\Windows\a`, `\Windows\empty`, `\Windows\new`} {
				w := newWorld(t)
				check(t, make(w.node, work+`\link`, systemVolume(t, w.node)))
				before := w.outside()
				if err := w.run(call, work+`\link`+below); !errors.Is(err, winerr.Denied) {
					t.Errorf("%s of %s by a %s: %v, want it denied", call, below, kind, err)
				}
				if w.outside() != before {
					t.Errorf("%s of %s by a %s changed something", call, below, kind)
				}
			}
		}
		w := newWorld(t)
		check(t, make(w.node, work+`\link`, systemVolume(t, w.node)))
		if err := w.run("CreateSymlink to", work+`\link`); !errors.Is(err, winerr.Denied) {
			t.Errorf("publishing a %s of the system volume: %v, want it denied", kind, err)
		}
	}
}

// TestWaysInside: links that stay inside are followed, and what is done, is done there.
func TestWaysInside(t *testing.T) {
	for kind, link := range map[string]func(n *winsim.Node, at string) error{
		"symlink":          func(n *winsim.Node, at string) error { return n.Symlink(at, work+`\a`) },
		"relative symlink": func(n *winsim.Node, at string) error { return n.Symlink(at, `a`) },
		"junction":         func(n *winsim.Node, at string) error { return n.Junction(at, work+`\a`) },
		"other case":       func(n *winsim.Node, at string) error { return n.Symlink(at, `c:\VAR\LIB\KUBELET\A`) },
		"chain": func(n *winsim.Node, at string) error {
			return errors.Join(n.Symlink(work+`\second`, `a`), n.Symlink(at, work+`\second`))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			newWorld := func() *world {
				w := newWorld(t)
				check(t, link(w.node, work+`\link`))
				return w
			}
			w := newWorld()
			check(t, w.run("Mkdir", work+`\link\new\deep`))
			if !w.node.Exists(work + `\a\new\deep`) {
				t.Error("the directory was made elsewhere")
			}
			check(t, w.run("PathExists", work+`\link\b\c\file`), w.run("Mkdir", work+`\link`))
			check(t, w.run("CreateSymlink at", work+`\link\published`), w.run("CreateSymlink to", work+`\link\b`))
			check(t, w.run("MountVolume", work+`\link\b\empty`), w.run("GetVolumeIDFromTargetPath", work+`\link\b\empty`))
			check(t, w.run("UnmountVolume", work+`\link\b\empty`), w.run("RmdirContents", work+`\link\b\c`))
			check(t, w.run("Rmdir with force", work+`\link\b`))
			if w.node.Exists(work+`\a\b`) || !w.node.Exists(work+`\link`) {
				t.Error("something else was removed")
			}
		})
	}
}

// TestWaysInside_KeepsWorkingDirectories: a working directory is not removed by another
// name either.
func TestWaysInside_KeepsWorkingDirectories(t *testing.T) {
	w := newWorld(t)
	check(t, w.node.Junction(work+`\a\again`, `C:\var\lib\kubelet`))
	for _, call := range []string{"Rmdir", "Rmdir with force", "RmdirContents", "MountVolume", "UnmountVolume", "CreateSymlink at"} {
		for _, path := range []string{work, work + `\`, strings.ToUpper(work)} {
			if err := w.run(call, path); !errors.Is(err, winerr.Denied) {
				t.Errorf("%s of %s: %v", call, path, err)
			}
		}
	}
	// Through the links everything inside is reached by another name; the last name of these
	// paths is that of an ordinary directory.
	const path = work + `\a\again\empty`
	check(t, w.run("Rmdir", path), w.run("Mkdir", path))
}

// insideVolume is what calls about a path on a mounted volume answer.
var insideVolume = map[string]error{
	"PathExists":                       nil,
	"PathValid":                        nil,
	"IsSymlink":                        nil,
	"Mkdir":                            winerr.Denied,
	"Rmdir":                            winerr.Denied,
	"Rmdir with force":                 winerr.Denied,
	"RmdirContents":                    winerr.Denied,
	"CreateSymlink at":                 winerr.Denied,
	"CreateSymlink to":                 winerr.Denied,
	"MountVolume":                      winerr.Denied,
	"UnmountVolume":                    nil,
	"GetVolumeIDFromTargetPath":        winerr.NotFound,
	"GetClosestVolumeIDFromTargetPath": nil,
}

// TestMountedVolumes: a volume can be looked at, but pods write to it, so nothing is made or
// removed there.
func TestMountedVolumes(t *testing.T) {
	for call, want := range insideVolume {
		w := newWorld(t)
		before := w.outside()
		err := w.run(call, work+`\mounted\a\b`)
		if (want == nil) != (err == nil) || (want != nil && !errors.Is(err, want)) {
			t.Errorf("%s below a mounted volume: %v, want %v", call, err, want)
		}
		if got := w.outside(); got != before {
			t.Errorf("%s below a mounted volume changed it", call)
		}
	}
	w := newWorld(t)
	check(t, w.run("PathExists", work+`\mounted\back\b`)) // a link on the volume that leads inside
}

// TestMountedVolumes_Gone: a dead volume does not keep its folder.
func TestMountedVolumes_Gone(t *testing.T) {
	for _, state := range []winsim.VolumeState{winsim.Gone, winsim.NotReady, winsim.Raw, winsim.Locked} {
		w := newWorld(t)
		check(t, w.node.SetVolumeState(dataVolume, state), w.node.Symlink(work+`\published`, work+`\mounted`))
		for _, path := range []string{work + `\mounted`, work + `\published`} {
			for _, call := range []string{"IsSymlink", "PathExists", "PathValid", "GetVolumeIDFromTargetPath", "GetClosestVolumeIDFromTargetPath", "CreateSymlink to"} {
				if err := w.run(call, path); err != nil {
					t.Errorf("%s of %s with a volume in state %q: %v", call, path, state, err)
				}
			}
			check(t, w.node.RemoveAll(work+`\made`))
		}
		if err := w.run("Mkdir", work+`\mounted`); !errors.Is(err, fs.ErrExist) {
			t.Errorf("Mkdir over a dead mount: %v", err)
		}
		if err := w.run("UnmountVolume", work+`\mounted`); (err != nil) != (state == winsim.NotReady) { // it may be ready a moment later
			t.Errorf("the first unmount of a volume in state %q: %v", state, err)
		}
		check(t, w.run("UnmountVolume", work+`\mounted`), w.run("Rmdir", work+`\mounted`))
	}
}

// TestLoops: circles of links end.
func TestLoops(t *testing.T) {
	w := newWorld(t)
	check(t, w.node.Symlink(work+`\loop`, work+`\loop`), w.node.Symlink(work+`\ping`, `pong`), w.node.Symlink(work+`\pong`, `ping`))
	for _, path := range []string{`\loop\x`, `\ping\x`, `\loop\a\b\c`} {
		for _, call := range names(pathCalls) {
			if err := w.run(call, work+path); err == nil && call != "PathValid" { // which says no
				t.Errorf("%s through a circle succeeded", call)
			}
		}
	}
	for _, path := range []string{`\loop`, `\ping`} {
		check(t, w.run("PathExists", work+path), w.run("IsSymlink", work+path), w.run("Rmdir", work+path))
	}
}

// TestWorkingDirectoryBehindALink: an operator may keep the working directory on another
// drive and put a link in its place.
func TestWorkingDirectoryBehindALink(t *testing.T) {
	for _, link := range []func(n *winsim.Node, path, target string) error{(*winsim.Node).Junction, (*winsim.Node).Symlink} {
		w := newWorld(t)
		check(t, w.node.RemoveAll(work), w.node.Mkdir(`C:\really\here`), link(w.node, work, `C:\really\here`))
		for _, call := range []string{"Mkdir", "CreateSymlink to", "MountVolume", "UnmountVolume", "Rmdir"} {
			if err := pathCalls[call](w, work+`\new`); err != nil {
				t.Errorf("%s: %v", call, err)
			}
		}
		if !w.node.Exists(`C:\really\here\made`) {
			t.Error("the link was made elsewhere")
		}
	}
}

// TestWorkingDirectoryBehindALink_Itself: it can be asked about like any directory.
func TestWorkingDirectoryBehindALink_Itself(t *testing.T) {
	w := newWorld(t)
	check(t, w.node.RemoveAll(work), w.node.Mkdir(`C:\really\here\x`), w.node.Junction(work, `C:\really\here`))
	for _, call := range []string{"PathExists", "PathValid", "IsSymlink", "Mkdir", "GetClosestVolumeIDFromTargetPath"} {
		if err := pathCalls[call](w, work); err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	check(t, w.node.Symlink(work+`\x\back`, work))
	check(t, pathCalls["IsSymlink"](w, work+`\x\back`), pathCalls["Mkdir"](w, work+`\x\back\y`))
	if !w.node.Exists(`C:\really\here\y`) {
		t.Error("the directory was made elsewhere")
	}
}

// TestNestedWorkingDirectories: the link that an operator put between two working directories
// leads to the inner one, and to nothing else.
func TestNestedWorkingDirectories(t *testing.T) {
	w := newWorld(t)
	check(t, w.node.Mkdir(`C:\outer\x`), w.node.Mkdir(`C:\elsewhere\inner`), w.node.Mkdir(`C:\elsewhere\aside`), w.node.Junction(`C:\outer\link`, `C:\elsewhere`))
	for _, dirs := range [][]string{{`C:\outer`, `C:\outer\link\inner`}, {`C:\outer\link\inner`, `C:\outer`}} {
		files, err := filesystem.New(w.node.Filesystem(), filesystem.WorkingDirs(dirs...))
		check(t, err)
		mkdir := func(path string) error {
			_, err := files.Mkdir(t.Context(), &filesystem.MkdirRequest{Path: path})
			return err
		}
		check(t, mkdir(`C:\outer\x\y`), mkdir(`C:\outer\link\inner\y`))
		if err := mkdir(`C:\outer\link\aside\y`); !errors.Is(err, winerr.Denied) {
			t.Errorf("with the working directories %q: %v", dirs, err)
		}
	}
}

// TestOwnVolumes_OfWorkingDirectories: a working directory on a data volume does not open the
// rest of that volume.
func TestOwnVolumes_OfWorkingDirectories(t *testing.T) {
	w := newWorld(t)
	check(t, w.node.WriteFile(dataVolume+`kubelet\x\file`, ""), w.node.WriteFile(dataVolume+`secret\file`, ""))
	check(t, w.node.Junction(`C:\kubelet`, work+`\mounted\kubelet`), w.node.Symlink(`C:\kubelet\link`, dataVolume))
	files, err := filesystem.New(w.node.Filesystem(), filesystem.WorkingDirs(`C:\kubelet`))
	check(t, err)
	for path, want := range map[string]error{`C:\kubelet\x\file`: nil, `C:\kubelet\link\secret\file`: winerr.Denied} {
		_, err := files.PathExists(t.Context(), &filesystem.PathExistsRequest{Path: path})
		if (want == nil && err != nil) || (want != nil && !errors.Is(err, want)) {
			t.Errorf("PathExists of %s: %v, want %v", path, err, want)
		}
	}
}

// TestBelowAFile: there is nothing.
func TestBelowAFile(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{work + `\file\x`, work + `\file\x\y`} {
		check(t, w.run("PathExists", path), w.run("Rmdir", path), w.run("Rmdir with force", path), w.run("UnmountVolume", path))
		for call, want := range map[string]error{"Mkdir": fs.ErrExist, "MountVolume": fs.ErrExist, "RmdirContents": fs.ErrNotExist, "CreateSymlink at": fs.ErrNotExist, "IsSymlink": fs.ErrNotExist} {
			if err := w.run(call, path); !errors.Is(err, want) {
				t.Errorf("%s of %s: %v, want %v", call, path, err, want)
			}
		}
	}
}

// TestCorruptLinks: what a crash left behind is a state, and can be removed.
func TestCorruptLinks(t *testing.T) {
	const link = work + `\link`
	for _, code := range []winerr.Code{winerr.InvalidReparseData, winerr.ReparseTagInvalid, winerr.FileCorrupt, winerr.DiskCorrupt} {
		for call, want := range map[string]error{
			"PathExists": nil, "IsSymlink": nil, "Rmdir": nil, "CreateSymlink at": winerr.Exists, "CreateSymlink to": winerr.Denied,
			"MountVolume": winerr.Exists, "UnmountVolume": winerr.InUse, "GetVolumeIDFromTargetPath": winerr.InUse,
		} {
			w := newWorld(t)
			check(t, w.node.MountFolder(link, dataVolume))
			_, err := w.node.Inject(winsim.Fault{Call: "ReparsePoint", Object: link, Error: uint32(code)})
			check(t, err)
			err = w.run(call, link)
			if (want == nil && err != nil) || (want != nil && (!errors.Is(err, want) || !strings.Contains(err.Error(), "Rmdir"))) {
				t.Errorf("%s with %v: %v, want %v and the way out", call, code, err, want)
			}
		}
	}
}

// TestMissingWorkingDirectory: it is made when something is made in it.
func TestMissingWorkingDirectory(t *testing.T) {
	for _, path := range []string{work, work + `\x`, work + `\x\y\z`} {
		w := newWorld(t)
		check(t, w.node.RemoveAll(`C:\var`), pathCalls["PathExists"](w, path), pathCalls["Rmdir"](w, work+`\x`), pathCalls["Mkdir"](w, path))
		if !w.node.Exists(path) {
			t.Errorf("%s was not made", path)
		}
	}
}

// TestDanglingLinks: what a link leads to is not made.
func TestDanglingLinks(t *testing.T) {
	w := newWorld(t)
	check(t, w.node.Symlink(work+`\link`, work+`\nothing`))
	for _, call := range []string{"Mkdir", "MountVolume"} {
		for _, path := range []string{work + `\link\x`, work + `\link\x\y`} {
			if err := w.run(call, path); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "Rmdir") {
				t.Errorf("%s of %s: %v, want an error that says how to get out", call, path, err)
			}
		}
	}
	check(t, w.run("CreateSymlink to", work+`\link`), w.run("CreateSymlink to", work+`\link`))
	if w.node.Exists(work + `\nothing`) {
		t.Error("the target of the link was made")
	}
}

// TestUnlistedFolders has mounted folders of which the mount manager has not heard, of a volume
// that has a drive letter. They are entered like others if they lie in a working directory.
func TestUnlistedFolders(t *testing.T) {
	const folder = work + `\link`
	for call, want := range insideVolume {
		if call == "UnmountVolume" {
			continue
		}
		for _, lost := range []bool{true, false} {
			m := model()
			m.Storage.LoseMountNotices = lost
			w := newWorldOf(t, m)
			_, err := w.vol.MountVolume(t.Context(), &volume.MountVolumeRequest{VolumeID: hostVolume, TargetPath: folder})
			check(t, err)
			if listed, err := w.node.VolumePaths(t.Context(), hostVolume); err != nil || slices.Contains(listed, folder+`\`) == lost {
				t.Fatalf("the mount manager lists %q, %v", listed, err)
			}
			before := w.outside()
			err = pathCalls[call](w, folder+`\a\b`)
			if (want == nil) != (err == nil) || (want != nil && !errors.Is(err, want)) {
				t.Errorf("%s below a folder, notice lost %v: %v, want %v", call, lost, err, want)
			}
			if w.outside() != before {
				t.Errorf("%s below a folder, notice lost %v, changed the volume", call, lost)
			}
			if err := pathCalls["CreateSymlink to"](w, folder); err != nil {
				t.Errorf("publishing a folder, notice lost %v: %v", lost, err)
			}
		}
	}
}

// TestUnlistedFolders_Denied: nothing else than a mounted folder in a working directory counts.
func TestUnlistedFolders_Denied(t *testing.T) {
	for name, make := range map[string]func(w *world) (path string, err error){
		"on a volume": func(w *world) (string, error) {
			return work + `\mounted\pod`, w.node.Junction(dataVolume+`pod`, hostVolume)
		},
		"by a link": func(w *world) (string, error) { return work + `\link`, w.node.Symlink(work+`\link`, hostVolume) },
		"on a drive": func(w *world) (string, error) {
			return work + `\link`, errors.Join(w.node.Junction(`C:\Windows\out`, hostVolume), w.node.Symlink(work+`\link`, `C:\Windows\out`))
		},
		"of Windows": func(w *world) (string, error) {
			return work + `\link`, w.node.Junction(work+`\link`, systemVolume(w.t, w.node))
		},
	} {
		for _, call := range names(pathCalls) {
			w := newWorld(t)
			path, err := make(w)
			check(t, err)
			before := w.outside()
			if err := w.run(call, path+`\a`); !errors.Is(err, winerr.Denied) {
				t.Errorf("%s below a folder %s: %v, want it denied", call, name, err)
			}
			if w.outside() != before {
				t.Errorf("%s below a folder %s changed something", call, name)
			}
		}
	}
}

// otherID is a node on which the volume of Windows has another id as well.
type otherID struct{ *winsim.Node }

const systemAlias = `\\?\Volume{77777777-2222-3333-4444-555555555555}\`

func (n otherID) VolumePaths(context.Context, win.VolumeID) ([]string, error) {
	return []string{`C:\`}, nil
}

func (n otherID) DeviceNumber(ctx context.Context, d win.Device) (win.DeviceNumber, error) {
	if d == win.VolumeID(systemAlias).Device() {
		d = win.VolumeID(winsim.SystemVolume).Device()
	}
	return n.Node.DeviceNumber(ctx, d)
}

func TestUnlistedFolders_OtherIDOfWindows(t *testing.T) {
	w := newWorld(t)
	check(t, w.node.Junction(work+`\link`, systemAlias))
	files, err := filesystem.New(fsapi.NewOn(otherID{w.node}), filesystem.WorkingDirs(work))
	check(t, err)
	for _, path := range []string{work + `\link\Windows`, work + `\link\a\b`} {
		if _, err := files.PathExists(t.Context(), &filesystem.PathExistsRequest{Path: path}); !errors.Is(err, winerr.Denied) || !strings.Contains(err.Error(), "Windows runs") {
			t.Errorf("%s: %v, want it denied", path, err)
		}
	}
}

// TestLinks_NoneThere has a directory of which Windows says that it is a link, as is expected
// of volume mounts in a HostProcess container. The call ends after a few attempts, and the error
// names the directory. If a link disappears while a call is under way, the call goes on.
func TestLinks_NoneThere(t *testing.T) {
	const mount = work + `\a\b`
	for _, call := range names(pathCalls) {
		for _, path := range []string{mount + `\c`, mount + `\c\file`} {
			w := newWorld(t)
			_, err := w.node.Inject(winsim.Fault{Object: mount + `*`, Error: uint32(winerr.ReparsePointEncounter)})
			check(t, err)
			before := w.node.Tree(`C:\`)
			err = w.run(call, path)
			if !errors.Is(err, winerr.InUse) || !strings.Contains(err.Error(), mount+`, but there is none`) {
				t.Errorf("%s of %s: %v, want it to name %s", call, path, err, mount)
			}
			if calls := (calltable.Row{Calls: w.node.Calls()}).Total(); calls > 30 {
				t.Errorf("%s of %s makes %d calls", call, path, calls)
			}
			if w.node.Tree(`C:\`) != before {
				t.Errorf("%s of %s changed something", call, path)
			}
		}
		var want error
		for _, times := range []int{0, 1, 2} {
			w := newWorld(t)
			if times > 0 {
				_, err := w.node.Inject(winsim.Fault{Object: mount + `\*`, Times: times, Error: uint32(winerr.ReparsePointEncounter)})
				check(t, err)
			}
			err := w.run(call, mount+`\c\new`)
			if times == 0 {
				want = err
			} else if winerr.KindOf(err) != winerr.KindOf(want) || (err == nil) != (want == nil) {
				t.Errorf("%s after %d answers that were wrong: %v, want %v", call, times, err, want)
			}
		}
	}
}
