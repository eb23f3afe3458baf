package windows_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// shown are the questions that cases of the conformance suite answer.
var shown = map[string]string{
	// CreateSymlink, again, and over another link; IsSymlink of all of them.
	"CreateSymlink links a directory and may be repeated": "Q-symlink",
	"IsSymlink has four answers":                          "Q-symlink",
	// IsSymlink of a mounted folder, and after its disk was detached.
	"IsSymlink sees a mounted folder until its volume is gone": "Q-mounted-folder",
	// Rmdir of a link and of a mounted folder keeps what is behind it; the mount manager no longer lists the folder.
	"Rmdir removes a link and keeps its target":                         "Q-rmdir-link",
	"Rmdir of a mounted folder unmounts and keeps the volume's content": "Q-rmdir-link",
	// Rmdir with force of a tree with links and mounted folders inside.
	"Rmdir of a tree stops at links and mounted folders inside": "Q-rmdir-tree",
}

// TestConformance runs the conformance suite over the library. Q-vhdx: it passes on virtual disks.
func TestConformance(t *testing.T) {
	t.Run("filesystem", func(t *testing.T) { hosttest.Filesystem(t, this.filesystemNode) })
	for _, sectors := range []uint32{512, 4096} {
		t.Run(fmt.Sprintf("disk, %d-byte sectors", sectors), func(t *testing.T) {
			hosttest.Disk(t, func(t *testing.T) hosttest.DiskNode { //nolint:thelper // diskNode is
				return this.diskNode(t, sectors)
			})
		})
		t.Run(fmt.Sprintf("volume, %d-byte sectors", sectors), func(t *testing.T) {
			hosttest.Volume(t, func(t *testing.T) hosttest.VolumeNode { //nolint:thelper // volumeNode is
				return this.volumeNode(t, sectors)
			})
		})
	}
}

// beginCase skips a case that cannot run here, and says which question it answers.
func (n *node) beginCase(t *testing.T) {
	t.Helper()
	name := strings.ReplaceAll(t.Name()[strings.LastIndexByte(t.Name(), '/')+1:], "_", " ")
	t.Attr("question", cmp.Or(shown[name], "Q-vhdx"))
	skipIfInterrupted(t)
	if why := n.cannot[name]; why != "" {
		t.Skip(why)
	}
}

func (n *node) diskNode(t *testing.T, sectorSize uint32) hosttest.DiskNode {
	t.Helper()
	n.beginCase(t)
	ctx := t.Context()
	empty, other := n.scratch(t, sectorSize), n.scratch(t, sectorSize)
	node := hosttest.DiskNode{
		API:       n.disks,
		Empty:     empty.Number(),
		EmptySize: empty.Size(),
		Others:    []uint32{other.Number()},
		Missing:   missingDisk,
		// No System: if the refusal failed, the machine would be lost.
		Content: n.content,
		Volumes: func(number uint32) ([]string, error) {
			ids, err := n.settledVolumesOn(ctx, number)
			var texts []string
			for _, id := range ids {
				texts = append(texts, string(id))
			}
			return texts, err
		},
		Grow: func(number uint32, size int64) (uint32, error) { return n.grow(t, number, size) },
	}
	if n.fileBacked {
		node.Unlocated = []uint32{empty.Number(), other.Number()}
	}
	// What a disk of a Linux pod begins with, and Windows takes for nothing.
	sector := make([]byte, sectorSize)
	copy(sector, "XFSB")
	used := n.scratch(t, sectorSize)
	must(t, used.Write(ctx, 0, sector))
	node.Suspect = map[string]uint32{"XFS": used.Number()}
	return node
}

func (n *node) volumeNode(t *testing.T, sectorSize uint32) hosttest.VolumeNode {
	t.Helper()
	n.beginCase(t)
	ctx := t.Context()
	empty, other := n.scratch(t, sectorSize), n.scratch(t, sectorSize)
	var lacks []string
	if n.noLinks != "" {
		lacks = append(lacks, "mounted folders")
	}
	return hosttest.VolumeNode{
		Lacks:       lacks,
		API:         n.volumes,
		Disks:       n.disks,
		Root:        n.newDir(t),
		Empty:       [2]uint32{empty.Number(), other.Number()},
		EmptySize:   empty.Size(),
		MissingDisk: missingDisk,
		Missing:     missingVolume,
		WriteFile:   n.writeFile,
		ReadFile:    n.readFile,
		Symlink: func(path, target string) error {
			_, err := n.files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: target, TargetPath: path})
			return err
		},
		Grow: func(number uint32, size int64) (uint32, error) { return n.grow(t, number, size) },
		Detach: func(number uint32) error {
			d, err := n.disk(number)
			if err != nil {
				return err
			}
			err = d.Detach(ctx)
			skipIfCannot(t, err)
			return err
		},
		// No Content: NTFS writes to its volumes when it likes.
	}
}

func (n *node) filesystemNode(t *testing.T) hosttest.FilesystemNode {
	t.Helper()
	n.beginCase(t)
	ctx := t.Context()
	var d scratchDisk // most cases need none
	var id win.VolumeID
	return hosttest.FilesystemNode{
		API:         n.files,
		Root:        n.newDir(t),
		WriteFile:   n.writeFile,
		ReadFile:    n.readFile,
		LongestPath: n.longestPath,
		NoLinks:     n.noLinks,
		MountVolume: func(path string) error {
			if n.noLinks != "" {
				t.Skip(n.noLinks)
			}
			if d == nil {
				d = n.scratch(t, 512)
				id = n.newFormatted(t, d)
			}
			_, err := n.volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: string(id), TargetPath: path})
			return err
		},
		LoseVolume: func() error {
			err := d.Detach(ctx)
			skipIfCannot(t, err)
			return err
		},
	}
}

// grow enlarges a disk, and returns the number that it has then.
func (n *node) grow(t *testing.T, number uint32, size int64) (uint32, error) {
	t.Helper()
	d, err := n.disk(number)
	if err != nil {
		return 0, err
	}
	volumes, err := n.volumesOn(t.Context(), number)
	if err != nil {
		return 0, err
	}
	how, err := d.Grow(t.Context(), size)
	skipIfCannot(t, err)
	if err != nil {
		return 0, err
	}
	t.Logf("disk %d has grown to %d bytes: %s; it is disk %d", number, size, how, d.Number())
	_, err = n.await(t.Context(), func() error {
		back, err := n.volumesOn(t.Context(), d.Number())
		if err == nil && len(back) < len(volumes) {
			err = fmt.Errorf("disk %d has grown and lost volumes: %q, want %q", d.Number(), back, volumes)
		}
		return err
	})
	return d.Number(), err
}
