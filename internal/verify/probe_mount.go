package verify

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// askMount mounts a volume at folders, and takes its disk away in the end.
func askMount(b *bench) {
	ctx, d := b.Context(), b.newDisk(512)
	id := b.newFormatted(b.T, d)
	dir, err := b.machine.OpenDirectory(ctx, win.Following(b.dir))
	b.must(err)
	b.Cleanup(dir.Close)
	mount := b.dir + `\mount`
	b.must(dir.CreateDirectory(ctx, "mount"))
	before, err := dir.ChangedAt(ctx, "mount")
	b.must(err)
	b.must(b.machine.Sleep(ctx, 1100*time.Millisecond)) // some file systems count seconds
	set := dir.SetMountPoint(ctx, "mount", id)
	b.ask("Q-mount-handle", func(a *Ask) {
		a.Fact("set a mount point", set)
		if set == nil {
			a.Must(dir.CreateDirectory(ctx, "other"))
			a.Must(dir.SetMountPoint(ctx, "other", id))
			a.Fact("delete a mount point", dir.DeleteMountPoint(ctx, "other"))
			info, err := dir.FileInfo(ctx, "other")
			a.Must(err)
			a.Fact("a directory is left", info == win.FileInfo{Directory: true})
			b.askPrintName(a, dir, id)
		}
	})
	if set != nil {
		b.Skipf("no mount points can be set: %s", text(set))
	}
	b.ask("Q-link-time", func(a *Ask) {
		after, err := dir.ChangedAt(ctx, "mount")
		a.Must(err)
		a.Fact("setting a mount point changes the time", after.After(before))
	})
	listed := func() (bool, error) {
		paths, err := b.machine.VolumePaths(ctx, id)
		return slices.ContainsFunc(paths, func(path string) bool { return winpath.Equal(path, mount+`\`) || winpath.Equal(path, mount) }), err
	}
	b.ask("Q-mount-listed", func(a *Ask) {
		is, err := listed()
		a.Must(err)
		a.Fact("while it is mounted", is)
		a.Must(dir.DeleteMountPoint(ctx, "mount"))
		is, err = listed()
		a.Must(err)
		a.Fact("after it is unmounted", is)
		a.Must(dir.SetMountPoint(ctx, "mount", id))
	})
	b.ask("Q-mount-race", func(a *Ask) {
		a.Fact("over a mount point", dir.SetMountPoint(ctx, "mount", id))
		a.Must(dir.CreateDirectory(ctx, "race"))
		var wg sync.WaitGroup
		results := make([]error, 2)
		for i := range results {
			wg.Go(func() { results[i] = dir.SetMountPoint(ctx, "race", id) })
		}
		wg.Wait()
		a.Fact("one of two at once succeeds", (results[0] == nil) != (results[1] == nil))
		answers := []string{text(results[0]), text(results[1])}
		slices.Sort(answers)
		a.Measured("answers", strings.Join(answers, ", "))
		a.Must(dir.DeleteMountPoint(ctx, "race"))
	})
	b.ask("Q-mount-nonempty", func(a *Ask) {
		a.Must(b.WriteFile(b.dir+`\full\file`, "data"))
		a.Fact("FSCTL_SET_REPARSE_POINT", dir.SetMountPoint(ctx, "full", id))
	})
	b.ask("Q-dont-reparse", func(a *Ask) { b.askReparse(a, dir, mount) })
	b.ask("Q-offline-guid", func(a *Ask) {
		p, err := b.dataPartition(ctx, d.Number())
		a.Must(err)
		offline := win.DiskAttributes{Offline: true}
		a.Must(b.machine.SetDiskAttributes(ctx, device(d), offline, offline))
		link, err := dir.ReparsePoint(ctx, "mount")
		a.Must(err)
		named, ok := link.MountedVolume()
		a.Fact("the folder names a volume", ok)
		a.Fact("by the GUID of the partition", winpath.Equal(named, `\\?\Volume{`+p.ID.String()+`}\`))
		a.Must(b.makeWritable(a, d))
		_, _, err = b.awaitVolume(ctx, d.Number())
		a.Must(err)
	})
	b.ask("Q-offline-busy", func(a *Ask) {
		a.Must(b.awaitFileSystem(a, d, id))
		a.Must(b.WriteFile(mount+`\open`, "data"))
		release, err := b.Hold(mount + `\open`)
		a.Must(err)
		offline := win.DiskAttributes{Offline: true}
		a.Fact("IOCTL_DISK_SET_DISK_ATTRIBUTES", b.machine.SetDiskAttributes(ctx, device(d), offline, offline))
		release()
		a.Must(b.makeWritable(a, d))
		_, _, err = b.awaitVolume(ctx, d.Number())
		a.Must(err)
	})
	b.ask("Q-remove-link", func(a *Ask) {
		a.Must(dir.CreateDirectory(ctx, "removed"))
		a.Must(dir.SetMountPoint(ctx, "removed", id))
		link, err := dir.ReparsePoint(ctx, "removed")
		a.Must(err)
		changed, err := dir.ChangedAt(ctx, "removed")
		a.Must(err)
		removed, err := dir.RemoveLink(ctx, "removed", link, changed)
		a.Fact("remove it on the handle", err)
		a.Fact("it was the link", removed)
		_, err = dir.FileInfo(ctx, "removed")
		a.Fact("what is there then", err)
	})
	if err := d.Detach(ctx); err != nil {
		b.must(err)
	}
	b.ask("Q-stale-volume", func(a *Ask) {
		_, err := b.machine.TargetInfo(ctx, win.Anywhere(mount))
		a.Fact("look at what is mounted", err)
		open, err := b.machine.OpenDirectory(ctx, win.Following(mount))
		if err == nil {
			open.Close()
		}
		a.Fact("open the folder", err)
	})
	b.ask("Q-mount-remembers", func(a *Ask) {
		link, err := dir.ReparsePoint(ctx, "mount")
		a.Fact("read the reparse point", err)
		named, _ := link.MountedVolume()
		a.Fact("it names the volume", winpath.Equal(named, string(id)))
	})
	b.ask("Q-unmount-gone", func(a *Ask) {
		a.Fact("delete the mount point", dir.DeleteMountPoint(ctx, "mount"))
		info, err := dir.FileInfo(ctx, "mount")
		a.Must(err)
		a.Fact("a directory is left", info == win.FileInfo{Directory: true})
	})
}

// askPrintName asks what people see of a mount point that the machine's own function makes, in the empty
// directory other. Ours have an empty print name.
func (b *bench) askPrintName(a *Ask, dir win.Directory, id win.VolumeID) {
	if b.MountFolder == nil {
		return
	}
	ctx, name := b.Context(), "empty"
	if err := b.MountFolder(winpath.Join(b.dir, "other"), id); err != nil {
		a.Fact("SetVolumeMountPointW", err)
		return
	}
	link, err := dir.ReparsePoint(ctx, "other")
	a.Must(err)
	switch link.Print {
	case "":
	case link.Substitute:
		name = "equal to the substitute name"
	default:
		name = "another"
	}
	a.Fact("print name of SetVolumeMountPointW", name)
	a.Must(dir.DeleteMountPoint(ctx, "other"))
}

// askReparse opens paths through a link of each kind, at each position.
func (b *bench) askReparse(a *Ask, dir win.Directory, mount string) {
	ctx := b.Context()
	a.Must(b.WriteFile(b.dir+`\target\below\file`, "data"))
	a.Must(b.WriteFile(mount+`\below\file`, "data"))
	a.Fact("create a symbolic link", dir.CreateDirectoryLink(ctx, "symlink", b.dir+`\target`))
	a.Fact("create a junction", b.Junction(b.dir+`\junction`, b.dir+`\target`))
	for _, name := range []string{"symlink", "junction", "mount"} {
		info, err := b.machine.FileInfo(ctx, win.Path{Base: b.dir, Rest: name})
		if err == nil && info.Tag == 0 {
			err = winerr.NotAReparsePoint
		}
		a.Fact(name+", last", err)
		_, err = b.machine.FileInfo(ctx, win.Path{Base: b.dir, Rest: name + `\below`})
		a.Fact(name+", first of two", err)
		_, err = b.machine.FileInfo(ctx, win.Path{Base: b.Root, Rest: b.dir[len(b.Root)+1:] + `\` + name + `\below\file`})
		a.Fact(name+", second of four", err)
		_, err = b.machine.FileInfo(ctx, win.Following(b.dir+`\`+name+`\below\file`))
		a.Fact(name+", followed", err)
	}
}
