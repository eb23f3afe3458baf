package windows_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
)

func TestPaths(t *testing.T) {
	g := newGroup(t)
	ctx := g.Context()
	dir, err := g.machine.OpenDirectory(ctx, win.Following(g.dir))
	g.must(err)
	g.Cleanup(dir.Close)
	// Does a relative open ignore case? Expected: yes, by OBJ_CASE_INSENSITIVE. If not: paths in another case are
	// NotFound.
	g.ask("Q-case", func(a *answer) {
		a.must(dir.CreateDirectory(ctx, "MiXed"))
		_, err := dir.FileInfo(ctx, "mIxED")
		a.fact("another case", err)
		a.fact("create it in another case", dir.CreateDirectory(ctx, "mixed"))
	})
	// Do paths of 10,000 and 32,000 characters work? Expected: yes.
	g.ask("Q-long-paths", func(a *answer) {
		for _, length := range []int{260, 1000, 4000, 10_000, 32_000} {
			if g.longestPath > 0 && length > g.longestPath {
				a.Logf("paths of %d characters are beyond this machine", length)
				continue
			}
			a.fact(fmt.Sprintf("%d characters", length), g.longPath(ctx, length))
		}
	})
	// Can a symbolic link be created on a handle and read back, with a local, a relative and a \\server\share target?
	// Expected: the bytes of CreateSymbolicLinkW. If not: the link fails at first use, or a second CreateSymlink is
	// AlreadyExists.
	g.ask("Q-link-handle", func(a *answer) {
		for _, target := range []struct{ name, path string }{
			{"local", `C:\no\such\directory`}, {"relative", `..\beside`}, {"share", `\\server\share\directory`},
		} {
			if err := dir.CreateDirectoryLink(ctx, target.name, target.path); err != nil {
				a.fact(target.name, err)
				continue
			}
			link, err := dir.ReparsePoint(ctx, target.name)
			a.must(err)
			a.fact(target.name, fmt.Sprintf("tag %#x, %s, relative: %v", uint32(link.Tag), link.Substitute, link.Relative))
		}
	})
	// Does an open directory stay the same when a junction replaces it, and lead nowhere when it becomes one in place?
	// Expected: yes; opens through a directory that became a junction fail with 2, 123, 161 or 1921.
	g.ask("Q-swap", func(a *answer) {
		a.must(dir.CreateDirectory(ctx, "checked"))
		a.must(dir.CreateDirectory(ctx, "elsewhere"))
		open, err := dir.Open(ctx, "checked")
		a.must(err)
		defer open.Close()
		if err := g.swap(g.dir+`\checked`, g.dir+`\elsewhere`); err != nil {
			a.fact("swap an open directory for a junction", err)
			return
		}
		a.must(open.CreateDirectory(ctx, "made"))
		_, err = g.machine.FileInfo(ctx, win.Following(g.dir+`\elsewhere\made`))
		a.fact("what is made in it, seen through the junction", err)
		_, err = open.FileInfo(ctx, "made")
		a.fact("and in the directory that was opened", err)
		g.askTurned(a, dir)
	})
	// Rmdir of a file that another process has open, and of a read-only file.
	g.ask("Q-rmdir-open", func(a *answer) {
		a.must(g.writeFile(g.dir+`\held`, "data"))
		release, err := g.hold(g.dir + `\held`)
		a.must(err)
		a.fact("remove an open file", dir.Remove(ctx, "held"))
		release()
		a.fact("after it is closed", dir.Remove(ctx, "held"))
	})
	// The kubelet directory is a junction, and then a symbolic link, to another drive: stage, publish, unpublish and
	// unstage a disk and a share.
	g.ask("Q-kubelet-link", func(a *answer) {
		a.must(dir.CreateDirectory(ctx, "real"))
		for _, kind := range []string{"junction", "symlink"} {
			link := g.dir + `\kubelet-` + kind
			var err error
			if kind == "junction" {
				err = g.junction(link, g.dir+`\real`)
			} else {
				err = dir.CreateDirectoryLink(ctx, "kubelet-symlink", g.dir+`\real`)
			}
			if err != nil {
				a.fact("create a "+kind, err)
				continue
			}
			files, err := filesystem.New(fsapi.NewOn(g.machine), filesystem.WorkingDirs(link))
			a.must(err)
			_, err = files.Mkdir(ctx, &filesystem.MkdirRequest{Path: link + `\pods\` + kind})
			a.fact("Mkdir below a "+kind, err)
			_, err = files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: link + `\pods\` + kind, TargetPath: link + `\pods\link`})
			a.fact("CreateSymlink below a "+kind, err)
			_, err = files.Rmdir(ctx, &filesystem.RmdirRequest{Path: link + `\pods`, Force: true})
			a.fact("Rmdir below a "+kind, err)
		}
	})
}

// askTurned turns an open directory into a junction, and tries to reach the junction's target through the
// handle. Codes differ even on one version of Windows. Nothing is created: that could stay open for good.
func (g *group) askTurned(a *answer, dir win.Directory) {
	ctx := g.Context()
	a.must(g.writeFile(g.dir+`\behind\file`, "data"))
	a.must(g.writeFile(g.dir+`\behind\sub\file`, "data"))
	a.must(dir.CreateDirectory(ctx, "turned"))
	open, err := dir.Open(ctx, "turned")
	a.must(err)
	defer open.Close()
	err = g.turnIntoJunction(g.dir+`\turned`, g.dir+`\behind`)
	a.fact("turn an open directory into a junction", err)
	if err != nil {
		return
	}
	for _, call := range []struct {
		name string
		make func() error
	}{
		{"look at a file of its target", func() error { _, err := open.FileInfo(ctx, "file"); return err }},
		{"list a directory of its target", func() error { return win.List(ctx, open, "sub", nil) }},
		{"remove a file of its target", func() error { return open.Remove(ctx, "file") }},
	} {
		err := call.make()
		a.fact("through it, "+call.name, map[bool]string{true: "succeeds", false: "fails"}[err == nil])
		if a.measured(call.name, err); err == nil {
			a.Errorf("%s: it succeeded", call.name)
		}
	}
	_, err = g.machine.FileInfo(ctx, win.Following(g.dir+`\behind\file`))
	a.fact("and then the file", err)
}

// longPath makes a directory whose path has so many characters, by the library, looks at it and
// removes it.
func (g *group) longPath(ctx context.Context, length int) error {
	const each = 200
	path := g.dir + `\long`
	for len(path)+1+each < length {
		path += `\` + strings.Repeat("a", each-1)
	}
	path += `\` + strings.Repeat("b", length-len(path)-1)
	if _, err := g.files.Mkdir(ctx, &filesystem.MkdirRequest{Path: path}); err != nil {
		return err
	}
	found, err := g.files.PathExists(ctx, &filesystem.PathExistsRequest{Path: path})
	if err == nil && !found.Exists {
		err = winerr.FileNotFound
	}
	if err != nil {
		return err
	}
	_, err = g.files.Rmdir(ctx, &filesystem.RmdirRequest{Path: g.dir + `\long`, Force: true})
	return err
}

// serial is the serial number of the machine by the library.
func (n *node) serial(ctx context.Context) (string, error) {
	api, err := system.New(systemapi.NewOn(n.machine))
	if err != nil {
		return "", err
	}
	response, err := api.GetBIOSSerialNumber(ctx, &system.GetBIOSSerialNumberRequest{})
	if err != nil {
		return "", err
	}
	return response.SerialNumber, nil
}
