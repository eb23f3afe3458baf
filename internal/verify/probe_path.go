package verify

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
)

func askPaths(b *bench) {
	ctx := b.Context()
	dir, err := b.machine.OpenDirectory(ctx, win.Following(b.dir))
	b.must(err)
	b.Cleanup(dir.Close)
	b.ask("Q-case", func(a *Ask) {
		a.Must(dir.CreateDirectory(ctx, "MiXed"))
		_, err := dir.FileInfo(ctx, "mIxED")
		a.Fact("another case", err)
		a.Fact("create it in another case", dir.CreateDirectory(ctx, "mixed"))
	})
	b.ask("Q-long-paths", func(a *Ask) {
		for _, length := range []int{260, 1000, 4000, 10_000, 32_000} {
			if b.LongestPath > 0 && length > b.LongestPath {
				a.Logf("paths of %d characters are beyond this machine", length)
				continue
			}
			a.Fact(fmt.Sprintf("%d characters", length), b.longPath(ctx, length))
		}
	})
	b.ask("Q-link-handle", func(a *Ask) {
		for _, target := range []struct{ name, path string }{
			{"local", `C:\no\such\directory`}, {"relative", `..\beside`}, {"share", `\\server\share\directory`},
		} {
			if err := dir.CreateDirectoryLink(ctx, target.name, target.path); err != nil {
				a.Fact(target.name, err)
				continue
			}
			link, err := dir.ReparsePoint(ctx, target.name)
			a.Must(err)
			a.Fact(target.name, fmt.Sprintf("tag %#x, %s, relative: %v", uint32(link.Tag), link.Substitute, link.Relative))
		}
	})
	b.ask("Q-swap", func(a *Ask) {
		a.Must(dir.CreateDirectory(ctx, "checked"))
		a.Must(dir.CreateDirectory(ctx, "elsewhere"))
		open, err := dir.Open(ctx, "checked")
		a.Must(err)
		defer open.Close()
		if err := b.Swap(b.dir+`\checked`, b.dir+`\elsewhere`); err != nil {
			a.Fact("swap an open directory for a junction", err)
			return
		}
		a.Must(open.CreateDirectory(ctx, "made"))
		_, err = b.machine.FileInfo(ctx, win.Following(b.dir+`\elsewhere\made`))
		a.Fact("what is made in it, seen through the junction", err)
		_, err = open.FileInfo(ctx, "made")
		a.Fact("and in the directory that was opened", err)
		b.askTurned(a, dir)
	})
	b.ask("Q-rmdir-open", func(a *Ask) {
		a.Must(b.WriteFile(b.dir+`\held`, "data"))
		release, err := b.Hold(b.dir + `\held`)
		a.Must(err)
		a.Fact("remove an open file", dir.Remove(ctx, "held"))
		release()
		a.Fact("after it is closed", dir.Remove(ctx, "held"))
	})
	b.ask("Q-kubelet-link", func(a *Ask) {
		a.Must(dir.CreateDirectory(ctx, "real"))
		for _, kind := range []string{"junction", "symlink"} {
			link := b.dir + `\kubelet-` + kind
			var err error
			if kind == "junction" {
				err = b.Junction(link, b.dir+`\real`)
			} else {
				err = dir.CreateDirectoryLink(ctx, "kubelet-symlink", b.dir+`\real`)
			}
			if err != nil {
				a.Fact("create a "+kind, err)
				continue
			}
			files, err := filesystem.New(fsapi.NewOn(b.machine), filesystem.WorkingDirs(link))
			a.Must(err)
			_, err = files.Mkdir(ctx, &filesystem.MkdirRequest{Path: link + `\pods\` + kind})
			a.Fact("Mkdir below a "+kind, err)
			_, err = files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: link + `\pods\` + kind, TargetPath: link + `\pods\link`})
			a.Fact("CreateSymlink below a "+kind, err)
			_, err = files.Rmdir(ctx, &filesystem.RmdirRequest{Path: link + `\pods`, Force: true})
			a.Fact("Rmdir below a "+kind, err)
		}
	})
}

// askTurned turns an open directory into a junction, and tries to reach the junction's target through the
// handle. Codes differ even on one version of Windows. Nothing is created: that could stay open for good.
func (b *bench) askTurned(a *Ask, dir win.Directory) {
	ctx := b.Context()
	a.Must(b.WriteFile(b.dir+`\behind\file`, "data"))
	a.Must(b.WriteFile(b.dir+`\behind\sub\file`, "data"))
	a.Must(dir.CreateDirectory(ctx, "turned"))
	open, err := dir.Open(ctx, "turned")
	a.Must(err)
	defer open.Close()
	err = b.TurnIntoJunction(b.dir+`\turned`, b.dir+`\behind`)
	a.Fact("turn an open directory into a junction", err)
	if err != nil {
		return
	}
	for _, call := range []struct {
		name string
		make func() error
	}{
		{"look at a file of its target", func() error { _, err := open.FileInfo(ctx, "file"); return err }},
		{"list a directory of its target", func() error { return open.ListDirectory(ctx, "sub", nil) }},
		{"remove a file of its target", func() error { return open.Remove(ctx, "file") }},
	} {
		err := call.make()
		a.Fact("through it, "+call.name, map[bool]string{true: "succeeds", false: "fails"}[err == nil])
		a.Measured(call.name, err)
	}
	_, err = b.machine.FileInfo(ctx, win.Following(b.dir+`\behind\file`))
	a.Fact("and then the file", err)
}

// longPath makes a directory whose path has so many characters, by the library, looks at it and
// removes it.
func (b *bench) longPath(ctx context.Context, length int) error {
	const each = 200
	path := b.dir + `\long`
	for len(path)+1+each < length {
		path += `\` + strings.Repeat("a", each-1)
	}
	path += `\` + strings.Repeat("b", length-len(path)-1)
	if _, err := b.files.Mkdir(ctx, &filesystem.MkdirRequest{Path: path}); err != nil {
		return err
	}
	found, err := b.files.PathExists(ctx, &filesystem.PathExistsRequest{Path: path})
	if err == nil && !found.Exists {
		err = winerr.FileNotFound
	}
	if err != nil {
		return err
	}
	_, err = b.files.Rmdir(ctx, &filesystem.RmdirRequest{Path: b.dir + `\long`, Force: true})
	return err
}

// serial is the serial number of the machine by the library.
func (r *run) serial(ctx context.Context) (string, error) {
	api, err := system.New(systemapi.NewOn(r.machine))
	if err != nil {
		return "", err
	}
	response, err := api.GetBIOSSerialNumber(ctx, &system.GetBIOSSerialNumberRequest{})
	if err != nil {
		return "", err
	}
	return response.SerialNumber, nil
}
