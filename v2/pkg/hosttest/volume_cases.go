package hosttest

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

var volumeCases = []testCase[*volumeNode]{
	{name: "a volume's life", uses: []string{"mounted folders"}, run: func(n *volumeNode) { n.live() }},
	{name: "ids are taken in any spelling", uses: []string{"mounted folders"}, run: func(n *volumeNode) {
		id := n.newFormatted(n.Empty[0])
		const prefix = `\\?\Volume`
		if rest, ok := strings.CutPrefix(id, prefix); !ok || rest != strings.ToLower(rest) || !strings.HasSuffix(rest, `}\`) {
			n.t.Errorf("%s is not spelled as Windows does", id)
		}
		for _, spelling := range []string{id, strings.TrimSuffix(id, `\`), strings.ToUpper(id)} {
			n.wantFormatted(spelling, true)
			n.must(n.mount(spelling, n.path("mount")))
		}
		n.wantMounted(n.path("mount"), id)
	}},
	{name: "ListVolumesOnDisk of a disk that is empty or not there", run: func(n *volumeNode) {
		if ids, err := n.list(n.Empty[0], 0); err != nil || len(ids) != 0 {
			n.t.Errorf("on an empty disk: %q, %v", ids, err)
		}
		_, err := n.list(n.MissingDisk, 0)
		wantError(n.t, "of no disk", err, fs.ErrNotExist)
	}},
	{name: "ListVolumesOnDisk of one partition", uses: []string{"partitions"}, run: func(n *volumeNode) {
		id := n.newVolume(n.Empty[0])
		var found []uint32
		for partition := range uint32(4) {
			ids, err := n.list(n.Empty[0], partition+1)
			if n.must(err); slices.Equal(ids, []string{id}) {
				found = append(found, partition+1)
			} else if len(ids) != 0 {
				n.t.Errorf("partition %d has the volumes %q", partition+1, ids)
			}
		}
		if len(found) != 1 {
			n.t.Errorf("the volume is in partitions %d, want one", found)
		}
	}},
	{name: "GetDiskNumberFromVolumeID", uses: []string{"GetDiskNumberFromVolumeID"}, run: func(n *volumeNode) {
		for _, number := range n.Empty {
			id := n.newVolume(number)
			response, err := n.API.GetDiskNumberFromVolumeID(n.ctx(), &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: id})
			if err != nil || response.DiskNumber != number {
				n.t.Errorf("the disk of %s is %v, %v, want %d", id, response, err, number)
			}
		}
	}},
	{name: "FormatVolume keeps a file system and what is in it", uses: []string{"mounted folders"}, run: func(n *volumeNode) {
		id := n.newFormatted(n.Empty[0])
		n.must(n.mount(id, n.path("mount")))
		n.must(n.WriteFile(n.path("mount", "precious"), "data"))
		n.unchanged(id, func() { twice(n.t, "FormatVolume", func() error { return n.format(id) }) })
		n.wantContent(n.path("mount", "precious"), "data")
	}},
	{name: "volumes that may hold data are never taken for empty", run: func(n *volumeNode) {
		n.need("suspect volumes", len(n.Suspect) > 0)
		for name, id := range n.Suspect {
			n.unchanged(id, func() {
				for range 2 {
					if formatted, err := n.isFormatted(id); err == nil {
						n.t.Errorf("IsVolumeFormatted of %s = %v, want an error", name, formatted)
					}
					if err := n.format(id); err == nil {
						n.t.Errorf("FormatVolume of %s succeeded", name)
					}
				}
			})
		}
	}},
	{name: "FormatVolume refuses the volume of Windows", run: func(n *volumeNode) {
		n.need("system volume", n.System != "")
		n.unchanged(n.System, func() {
			for range 2 {
				wantError(n.t, "FormatVolume", n.format(n.System), fs.ErrPermission)
			}
		})
	}},
	{name: "Health of a new volume finds nothing", uses: []string{"Health"}, run: func(n *volumeNode) {
		n.wantProblems(n.newFormatted(n.Empty[0]), false)
		_, err := n.health(n.Missing)
		wantError(n.t, "Health of no volume", err, fs.ErrNotExist)
	}},
	{name: "Health finds damage of a mounted volume", uses: []string{"mounted folders", "Health"}, run: func(n *volumeNode) {
		n.need("damage", n.Damage != nil)
		id := n.newFormatted(n.Empty[0])
		n.must(n.mount(id, n.path("mount")))
		n.must(n.Damage(id))
		n.wantProblems(id, true)
	}},
	{name: "concurrent calls on one volume all succeed", uses: []string{"mounted folders"}, run: func(n *volumeNode) {
		id := n.newVolume(n.Empty[0])
		for what, call := range map[string]func() error{
			"FormatVolume": func() error { return n.format(id) },
			"MountVolume":  func() error { return errors.Join(n.format(id), n.mount(id, n.path("mount"))) },
			"ResizeVolume": func() error { return errors.Join(n.format(id), n.resize(id, 0)) },
		} {
			n.atOnce(what, call)
		}
		n.wantMounted(n.path("mount"), id)
	}},
	{name: "MountVolume never replaces what is there", uses: []string{"mounted folders"}, run: func(n *volumeNode) {
		id, other := n.newFormatted(n.Empty[0]), n.newFormatted(n.Empty[1])
		n.must(n.mount(other, n.path("mount")))
		n.must(n.WriteFile(n.path("full", "file"), "data"))
		n.must(n.WriteFile(n.path("file"), "data"))
		n.must(n.Symlink(n.path("link"), n.path("full")))
		for range 2 {
			wantError(n.t, "over another volume", n.mount(id, n.path("mount")), fs.ErrExist)
			wantError(n.t, "over a link", n.mount(id, n.path("link")), fs.ErrExist)
			wantError(n.t, "over a file", n.mount(id, n.path("file")), fs.ErrExist)
			wantError(n.t, "over a folder with files", n.mount(id, n.path("full")), ErrConflict)
		}
		n.wantMounted(n.path("mount"), other)
		n.wantContent(n.path("link", "file"), "data")
		n.wantContent(n.path("file"), "data")
	}},
	{name: "MountVolume needs a formatted volume, and makes parents", uses: []string{"mounted folders"}, run: func(n *volumeNode) {
		id := n.newVolume(n.Empty[0])
		wantError(n.t, "without a file system", n.mount(id, n.path("mount")), ErrConflict)
		n.must(n.format(id))
		wantError(n.t, "of no volume", n.mount(n.Missing, n.path("mount")), fs.ErrNotExist)
		if err := n.mount(id, `X:\`); !errors.Is(err, fs.ErrPermission) { // outside the working directories
			wantError(n.t, "at a drive", err, fs.ErrInvalid)
		}
		twice(n.t, "MountVolume below missing folders", func() error { return n.mount(id, n.path("no", "such", "folder")) })
		n.wantMounted(n.path("no", "such", "folder"), id)
	}},
	{name: "UnmountVolume of what is not mounted", uses: []string{"mounted folders"}, run: func(n *volumeNode) {
		id, other := n.newFormatted(n.Empty[0]), n.newFormatted(n.Empty[1])
		n.must(n.WriteFile(n.path("full", "file"), "data"))
		n.must(n.mount(other, n.path("mount")))
		n.must(n.Symlink(n.path("link"), n.path("mount")))
		twice(n.t, "UnmountVolume of nothing", func() error { return n.unmount(id, n.path("nothing")) })
		twice(n.t, "UnmountVolume of a folder", func() error { return n.unmount(id, n.path("full")) })
		for range 2 {
			wantError(n.t, "of another volume", n.unmount(id, n.path("mount")), ErrConflict)
			wantError(n.t, "of a link", n.unmount(id, n.path("link")), ErrConflict)
		}
		n.wantMounted(n.path("link"), other)
		n.wantContent(n.path("full", "file"), "data")
	}},
	{name: "UnmountVolume of a volume that is gone", uses: []string{"mounted folders"}, run: func(n *volumeNode) {
		n.need("way to detach a disk", n.Detach != nil)
		id := n.newFormatted(n.Empty[0])
		n.must(n.mount(id, n.path("mount")))
		n.must(n.Detach(n.Empty[0]))
		// It is not mounted, unless something that is not ready could still bring it.
		if got, err := n.mounted(n.path("mount")); got != id && !errors.Is(err, fs.ErrNotExist) {
			n.t.Errorf("the mounted volume is %q, %v", got, err)
		}
		twice(n.t, "UnmountVolume", func() error { return n.unmount(id, n.path("mount")) })
		other := n.newFormatted(n.Empty[1])
		n.must(n.mount(other, n.path("mount")))
	}},
	{name: "a volume whose disk fails is not gone", uses: notGoneUses, run: func(n *volumeNode) {
		n.need("way to make a disk fail", n.Fail != nil)
		n.wantNotGone(func(string) error { return n.Fail(n.Empty[0]) })
	}},
	{name: "a volume whose disk hangs is not gone", uses: notGoneUses, run: func(n *volumeNode) {
		n.need("way to make a disk hang", n.Hang != nil)
		n.wantNotGone(func(string) error { return n.Hang(n.Empty[0]) })
	}},
	{name: "a volume that does not answer is not gone", uses: notGoneUses, run: func(n *volumeNode) {
		n.need("way to make a volume not answer", n.Silence != nil)
		n.wantNotGone(n.Silence)
	}},
	{name: "GetVolumeIDFromTargetPath follows links", uses: []string{"mounted folders", "GetVolumeIDFromTargetPath"}, run: func(n *volumeNode) {
		id := n.newFormatted(n.Empty[0])
		n.must(n.mount(id, n.path("mount")))
		n.must(n.Symlink(n.path("publish"), n.path("mount")))
		n.must(n.Symlink(n.path("again"), n.path("publish")))
		for _, name := range []string{"mount", "publish", "again", "MOUNT", `publish\`} {
			n.wantMounted(n.path(name), id)
		}
	}},
	{name: "GetVolumeIDFromTargetPath says where nothing is mounted", uses: []string{"mounted folders", "GetVolumeIDFromTargetPath"}, run: func(n *volumeNode) {
		n.must(n.WriteFile(n.path("folder", "file"), "data"))
		n.must(n.Symlink(n.path("link"), n.path("folder")))
		n.must(n.Symlink(n.path("dangling"), n.path("nothing")))
		for _, name := range []string{"folder", "link", "nothing", "dangling"} {
			_, err := n.mounted(n.path(name))
			wantError(n.t, name, err, fs.ErrNotExist)
			// aws-ebs looks for these words.
			if err != nil && !strings.Contains(err.Error(), "because it does not exist") {
				n.t.Errorf("%s: the error is %q", name, err)
			}
		}
	}},
	{name: "GetClosestVolumeIDFromTargetPath", uses: []string{"mounted folders", "GetClosestVolumeIDFromTargetPath"}, run: func(n *volumeNode) {
		id := n.newFormatted(n.Empty[0])
		n.must(n.mount(id, n.path("mount")))
		n.must(n.WriteFile(n.path("mount", "dir", "file"), "data"))
		n.must(n.Symlink(n.path("publish"), n.path("mount")))
		below, err := n.closest(n.Root)
		n.must(err)
		if below == id {
			n.t.Errorf("%s is on the mounted volume %s", n.Root, id)
		}
		for path, want := range map[string]string{
			n.path("mount"):                id,
			n.path("mount", "dir", "file"): id,
			n.path("mount", "no", "such"):  id,
			n.path("publish"):              id,
			n.path("publish", "dir"):       id,
			n.path("no", "such", "path"):   below,
		} {
			if got, err := n.closest(path); err != nil || got != want {
				n.t.Errorf("closest to %s is %q, %v, want %q", path, got, err, want)
			}
		}
	}},
	{name: "ResizeVolume grows and never shrinks", uses: []string{"mounted folders"}, run: func(n *volumeNode) {
		n.need("way to make a disk larger", n.Grow != nil)
		id := n.newFormatted(n.Empty[0])
		n.must(n.mount(id, n.path("mount")))
		n.must(n.WriteFile(n.path("mount", "precious"), "data"))
		n.wantCapacity(id, n.EmptySize-reserved)
		_, err := n.Grow(n.Empty[0], 3*n.EmptySize)
		n.must(err)
		_, err = n.Disks.Rescan(n.ctx(), &disk.RescanRequest{})
		n.must(err)
		twice(n.t, "ResizeVolume to a size", func() error { return n.resize(id, 2*n.EmptySize) })
		n.wantCapacity(id, 2*n.EmptySize)
		n.unchanged(id, func() { twice(n.t, "ResizeVolume to less", func() error { return n.resize(id, n.EmptySize) }) })
		n.wantCapacity(id, 2*n.EmptySize)
		twice(n.t, "ResizeVolume to all", func() error { return n.resize(id, 0) })
		n.wantCapacity(id, 3*n.EmptySize-reserved)
		wantError(n.t, "to more than all", n.resize(id, 4*n.EmptySize), ErrNoSpace)
		n.wantContent(n.path("mount", "precious"), "data")
	}},
	{name: "GetVolumeStats and WriteVolumeCache need a volume", uses: []string{"GetVolumeStats", "WriteVolumeCache"}, run: func(n *volumeNode) {
		id := n.newVolume(n.Empty[0])
		_, err := n.stats(id)
		wantError(n.t, "stats without a file system", err, ErrConflict)
		n.must(n.format(id))
		twice(n.t, "WriteVolumeCache", func() error { return n.flush(id) })
		_, err = n.stats(n.Missing)
		wantError(n.t, "stats of no volume", err, fs.ErrNotExist)
		wantError(n.t, "cache of no volume", n.flush(n.Missing), fs.ErrNotExist)
	}},
	{name: "malformed ids and paths are refused and nothing changes", run: func(n *volumeNode) {
		id := n.newFormatted(n.Empty[0])
		n.unchanged(id, func() {
			for _, bad := range []string{``, `02`, `C:\`, `\\.\PhysicalDrive1`, `\\?\Volume{}\`, id + `..\x`, id[4:]} {
				_, err := n.isFormatted(bad)
				wantError(n.t, "IsVolumeFormatted of "+bad, err, fs.ErrInvalid)
				wantError(n.t, "FormatVolume of "+bad, n.format(bad), fs.ErrInvalid)
				wantError(n.t, "ResizeVolume of "+bad, n.resize(bad, 0), fs.ErrInvalid)
				wantError(n.t, "MountVolume of "+bad, n.mount(bad, n.path("x")), fs.ErrInvalid)
				wantError(n.t, "UnmountVolume of "+bad, n.unmount(bad, n.path("x")), fs.ErrInvalid)
			}
			for _, bad := range []string{``, `relative`, `\\server\share`, n.path("..", "x"), n.path("NUL"), n.path("x") + "/y", n.path("x:y")} {
				wantError(n.t, "MountVolume at "+bad, n.mount(id, bad), fs.ErrInvalid)
				wantError(n.t, "UnmountVolume from "+bad, n.unmount(id, bad), fs.ErrInvalid)
				if !slices.Contains(n.Lacks, "GetVolumeIDFromTargetPath") {
					_, err := n.mounted(bad)
					wantError(n.t, "GetVolumeIDFromTargetPath of "+bad, err, fs.ErrInvalid)
				}
			}
			wantError(n.t, "ResizeVolume to -1", n.resize(id, -1), fs.ErrInvalid)
		})
	}},
}

// live takes the first empty disk through the life of a volume, each change twice, and returns the volume.
func (n *volumeNode) live() (id string) {
	n.t.Helper()
	id = n.newVolume(n.Empty[0])
	n.wantFormatted(id, false)
	twice(n.t, "FormatVolume", func() error { return n.format(id) })
	n.wantFormatted(id, true)
	stage := n.path("stage")
	twice(n.t, "MountVolume", func() error { return n.mount(id, stage) })
	n.wantMounted(stage, id)
	n.must(n.WriteFile(stage+`\file`, "volume data"))
	size := n.EmptySize
	if n.Grow != nil {
		size += 1 << 30
		_, err := n.Grow(n.Empty[0], size)
		n.must(err)
		_, err = n.Disks.Rescan(n.ctx(), &disk.RescanRequest{})
		n.must(err)
	}
	twice(n.t, "ResizeVolume", func() error { return n.resize(id, 0) })
	n.wantCapacity(id, size-reserved)
	twice(n.t, "UnmountVolume", func() error { return n.unmount(id, stage) })
	n.must(n.mount(id, stage))
	n.wantContent(stage+`\file`, "volume data")
	return id
}

// reserved is what the reserved partition takes of a disk.
const reserved = 16 << 20

var notGoneUses = []string{"mounted folders", "GetVolumeIDFromTargetPath"}

// wantNotGone checks that a mounted volume is still mounted when it is in trouble, and nothing is mounted in its place.
func (n *volumeNode) wantNotGone(trouble func(volumeID string) error) {
	n.t.Helper()
	id, other := n.newFormatted(n.Empty[0]), n.newFormatted(n.Empty[1])
	n.must(n.mount(id, n.path("mount")))
	n.must(trouble(id))
	for range 2 {
		n.wantMounted(n.path("mount"), id)
		wantError(n.t, "MountVolume of another", n.mount(other, n.path("mount")), fs.ErrExist)
	}
}
