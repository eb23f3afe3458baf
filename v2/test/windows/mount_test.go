package windows_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// TestMount mounts a volume at folders, and takes its disk away in the end.
func TestMount(t *testing.T) {
	g := newGroup(t)
	ctx, d := g.Context(), g.scratch(g.T, 512)
	id := g.newFormatted(g.T, d)
	dir, err := g.machine.OpenDirectory(ctx, win.Following(g.dir))
	g.must(err)
	g.Cleanup(dir.Close)
	mount := g.dir + `\mount`
	g.must(dir.CreateDirectory(ctx, "mount"))
	before, err := dir.ChangedAt(ctx, "mount")
	g.must(err)
	g.must(g.machine.Sleep(ctx, 1100*time.Millisecond)) // some file systems count seconds
	set := dir.SetMountPoint(ctx, "mount", id)
	// Can a mount point be set and deleted on a handle, and which print name does one of SetVolumeMountPointW have?
	// Expected: yes, with FILE_WRITE_ATTRIBUTES and FILE_WRITE_DATA; an empty one, or the substitute name again. If
	// not: MountVolume fails; print names are not read.
	g.ask("Q-mount-handle", func(a *answer) {
		a.fact("set a mount point", set)
		if set == nil {
			a.must(dir.CreateDirectory(ctx, "other"))
			a.must(dir.SetMountPoint(ctx, "other", id))
			a.fact("delete a mount point", dir.DeleteMountPoint(ctx, "other"))
			info, err := dir.FileInfo(ctx, "other")
			a.must(err)
			a.fact("a directory is left", info == win.FileInfo{Directory: true})
			g.askPrintName(a, dir, id)
		}
	})
	if set != nil {
		g.Skipf("no mount points can be set: %s", text(set))
	}
	// Does setting a mount point change ChangeTime of the folder? Expected: yes. If not: a young mount on an old
	// folder counts as old; two looks and the disks still decide.
	g.ask("Q-link-time", func(a *answer) {
		after, err := dir.ChangedAt(ctx, "mount")
		a.must(err)
		a.fact("setting a mount point changes the time", after.After(before))
	})
	listed := func() (bool, error) {
		paths, err := g.machine.VolumePaths(ctx, id)
		return slices.ContainsFunc(paths, func(path string) bool { return winpath.Equal(path, mount+`\`) || winpath.Equal(path, mount) }), err
	}
	// Does GetVolumePathNamesForVolumeName list the folder until the unmount? Expected: yes, by
	// IOCTL_MOUNTMGR_VOLUME_MOUNT_POINT_CREATED and ..._DELETED. If not: the mount works, and a log line says that the
	// mount manager did not learn of it; mountvol does not list it.
	g.ask("Q-mount-listed", func(a *answer) {
		isListed, err := listed()
		a.must(err)
		a.fact("while it is mounted", isListed)
		a.must(dir.DeleteMountPoint(ctx, "mount"))
		isListed, err = listed()
		a.must(err)
		a.fact("after it is unmounted", isListed)
		a.must(dir.SetMountPoint(ctx, "mount", id))
	})
	// If two callers mount at one folder, does one get 32 or 145? Expected: 32 while the other has it open, then 145.
	// If not: the later one replaces the earlier.
	g.ask("Q-mount-race", func(a *answer) {
		a.fact("over a mount point", dir.SetMountPoint(ctx, "mount", id))
		a.must(dir.CreateDirectory(ctx, "race"))
		var wg sync.WaitGroup
		results := make([]error, 2)
		for i := range results {
			wg.Go(func() { results[i] = dir.SetMountPoint(ctx, "race", id) })
		}
		wg.Wait()
		a.fact("one of two at once succeeds", (results[0] == nil) != (results[1] == nil))
		answers := []string{text(results[0]), text(results[1])}
		slices.Sort(answers)
		a.measured("answers", strings.Join(answers, ", "))
		a.must(dir.DeleteMountPoint(ctx, "race"))
	})
	// Which code does FSCTL_SET_REPARSE_POINT return for a folder that is not empty? Expected: 145. If not: another
	// number and kind of error.
	g.ask("Q-mount-nonempty", func(a *answer) {
		a.must(g.writeFile(g.dir+`\full\file`, "data"))
		a.fact("FSCTL_SET_REPARSE_POINT", dir.SetMountPoint(ctx, "full", id))
	})
	// Does one relative open of several names fail with 4395 at a symbolic link, a junction or a mounted folder, at
	// any position? Expected: yes, by OBJ_DONT_REPARSE; hcsshim's internal/safefile relies on it in production. If
	// not: the rule about links does not hold; each name must be opened alone.
	g.ask("Q-dont-reparse", func(a *answer) { g.askReparse(a, dir, mount) })
	// A GPT disk with a mounted volume goes offline: the GUID in the stale folder is that of the partition, so that
	// csi-proxyctl node says which disk has it, and an interrupted Unstage of the mounter, which takes the disk offline
	// first, finds it. Also for a volume that was mounted before the disk moved from another node.
	g.ask("Q-offline-guid", func(a *answer) {
		p, err := g.dataPartition(ctx, d.Number())
		a.must(err)
		offline := win.DiskAttributes{Offline: true}
		a.must(g.machine.SetDiskAttributes(ctx, device(d), offline, offline))
		link, err := dir.ReparsePoint(ctx, "mount")
		a.must(err)
		named, ok := link.MountedVolume()
		a.fact("the folder names a volume", ok)
		a.fact("by the GUID of the partition", winpath.Equal(named, `\\?\Volume{`+p.ID.String()+`}\`))
		a.must(g.makeWritable(a, d))
		_, _, err = g.awaitVolume(ctx, d.Number())
		a.must(err)
	})
	// Which code does IOCTL_DISK_SET_DISK_ATTRIBUTES return while files of the disk are open? Expected: 5, 32 or 170.
	// If not: a code that does not mean busy ends the call at once instead of after 5 s.
	g.ask("Q-offline-busy", func(a *answer) {
		a.must(g.awaitFileSystem(a, d, id))
		a.must(g.writeFile(mount+`\open`, "data"))
		release, err := g.hold(mount + `\open`)
		a.must(err)
		offline := win.DiskAttributes{Offline: true}
		a.fact("IOCTL_DISK_SET_DISK_ATTRIBUTES", g.machine.SetDiskAttributes(ctx, device(d), offline, offline))
		release()
		a.must(g.makeWritable(a, d))
		_, _, err = g.awaitVolume(ctx, d.Number())
		a.must(err)
	})
	// Can a mounted folder be deleted on the handle on which its reparse point was deleted? Expected: yes. If not:
	// node heal leaves an empty directory, which the kubelet accepts, and reports an error.
	g.ask("Q-remove-link", func(a *answer) {
		a.must(dir.CreateDirectory(ctx, "removed"))
		a.must(dir.SetMountPoint(ctx, "removed", id))
		link, err := dir.ReparsePoint(ctx, "removed")
		a.must(err)
		changed, err := dir.ChangedAt(ctx, "removed")
		a.must(err)
		removed, err := dir.RemoveLink(ctx, "removed", link, changed)
		a.fact("remove it on the handle", err)
		a.fact("it was the link", removed)
		_, err = dir.FileInfo(ctx, "removed")
		a.fact("what is there then", err)
	})
	if err := d.Detach(ctx); err != nil {
		g.must(err)
	}
	// What does opening a mounted folder return whose volume is gone? Expected: 2 or 3. If not: node heal keeps the
	// link and says what Windows answered.
	g.ask("Q-stale-volume", func(a *answer) {
		_, err := g.machine.TargetInfo(ctx, win.Anywhere(mount))
		a.fact("look at what is mounted", err)
		open, err := g.machine.OpenDirectory(ctx, win.Following(mount))
		if err == nil {
			open.Close()
		}
		a.fact("open the folder", err)
	})
	// Does a mounted folder still name its volume after that is gone? Expected: yes, the reparse point stays. If not:
	// it is an ordinary folder, and unmounting it succeeds.
	g.ask("Q-mount-remembers", func(a *answer) {
		link, err := dir.ReparsePoint(ctx, "mount")
		a.fact("read the reparse point", err)
		named, _ := link.MountedVolume()
		a.fact("it names the volume", winpath.Equal(named, string(id)))
	})
	// Can the mount point of a missing volume be deleted on the folder's handle? Expected: yes. If not: the reparse
	// point before and after counts; if it stays, an empty folder replaces it.
	g.ask("Q-unmount-gone", func(a *answer) {
		a.fact("delete the mount point", dir.DeleteMountPoint(ctx, "mount"))
		info, err := dir.FileInfo(ctx, "mount")
		a.must(err)
		a.fact("a directory is left", info == win.FileInfo{Directory: true})
	})
}

// askPrintName asks what people see of a mount point that the machine's own function makes, in the empty
// directory other. Ours have an empty print name.
func (g *group) askPrintName(a *answer, dir win.Directory, id win.VolumeID) {
	if g.mountFolder == nil {
		return
	}
	ctx, name := g.Context(), "empty"
	if err := g.mountFolder(winpath.Join(g.dir, "other"), id); err != nil {
		a.fact("SetVolumeMountPointW", err)
		return
	}
	link, err := dir.ReparsePoint(ctx, "other")
	a.must(err)
	switch link.Print {
	case "":
	case link.Substitute:
		name = "equal to the substitute name"
	default:
		name = "another"
	}
	a.fact("print name of SetVolumeMountPointW", name)
	a.must(dir.DeleteMountPoint(ctx, "other"))
}

// askReparse opens paths through a link of each kind, at each position.
func (g *group) askReparse(a *answer, dir win.Directory, mount string) {
	ctx := g.Context()
	a.must(g.writeFile(g.dir+`\target\below\file`, "data"))
	a.must(g.writeFile(mount+`\below\file`, "data"))
	a.fact("create a symbolic link", dir.CreateDirectoryLink(ctx, "symlink", g.dir+`\target`))
	a.fact("create a junction", g.junction(g.dir+`\junction`, g.dir+`\target`))
	for _, name := range []string{"symlink", "junction", "mount"} {
		info, err := g.machine.FileInfo(ctx, win.Path{Base: g.dir, Rest: name})
		if err == nil && info.Tag == 0 {
			err = winerr.NotAReparsePoint
		}
		a.fact(name+", last", err)
		_, err = g.machine.FileInfo(ctx, win.Path{Base: g.dir, Rest: name + `\below`})
		a.fact(name+", first of two", err)
		_, err = g.machine.FileInfo(ctx, win.Path{Base: g.root, Rest: g.dir[len(g.root)+1:] + `\` + name + `\below\file`})
		a.fact(name+", second of four", err)
		_, err = g.machine.FileInfo(ctx, win.Following(g.dir+`\`+name+`\below\file`))
		a.fact(name+", followed", err)
	}
}
