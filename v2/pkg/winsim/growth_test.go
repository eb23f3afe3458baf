package winsim_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// library is what a driver calls that links it, with the limits that the daemon has.
type library struct {
	disks   disk.Interface
	files   filesystem.Interface
	shares  smb.Interface
	volumes volume.Interface
}

func newLibrary(b *testing.B, node *winsim.Node) library {
	b.Helper()
	disks, diskErr := disk.New(node.Disk())
	files, filesErr := filesystem.New(node.Filesystem(), filesystem.WorkingDirs(kubelet))
	shares, sharesErr := smb.New(node.SMB(), files, smb.WorkingDirs(kubelet))
	volumes, volumesErr := volume.New(node.Volume(), volume.WorkingDirs(kubelet))
	mustAll(b, diskErr, filesErr, sharesErr, volumesErr)
	return library{disks, files, shares, volumes}
}

// growing is a node with a number of things, and what is asked of it. All questions but
// those for a list are about the last of them.
type growing struct {
	things  string
	most    int
	node    func(b *testing.B, count int) *winsim.Node
	prepare func(b *testing.B, l library, count int) // may be nil
	calls   []growingCall
}

type growingCall struct {
	name string
	do   func(ctx context.Context, l library, count int) error
}

var growth = []growing{
	{"disks", 1000, nodeOfDisks, nil, []growingCall{
		{"ListDiskIDs", func(ctx context.Context, l library, _ int) error {
			_, err := l.disks.ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
			return err
		}},
		{"ListDiskLocations", func(ctx context.Context, l library, _ int) error {
			_, err := l.disks.ListDiskLocations(ctx, &disk.ListDiskLocationsRequest{})
			return err
		}},
		{"GetDiskStats", func(ctx context.Context, l library, count int) error {
			_, err := l.disks.GetDiskStats(ctx, &disk.GetDiskStatsRequest{DiskNumber: uint32(count)})
			return err
		}},
	}},
	{"volumes", 1000, nodeOfDisks, nil, []growingCall{
		{"ListVolumesOnDisk", func(ctx context.Context, l library, count int) error {
			_, err := l.volumes.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: uint32(count)})
			return err
		}},
		{"GetVolumeStats", func(ctx context.Context, l library, count int) error {
			_, err := l.volumes.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeID: lastVolume(count)})
			return err
		}},
		{"GetDiskNumberFromVolumeID", func(ctx context.Context, l library, count int) error {
			_, err := l.volumes.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: lastVolume(count)})
			return err
		}},
	}},
	{"links", 10_000, nodeOfLinks, nil, []growingCall{
		{"PathExists", func(ctx context.Context, l library, count int) error {
			_, err := l.files.PathExists(ctx, &filesystem.PathExistsRequest{Path: link(count)})
			return err
		}},
		{"IsSymlink", func(ctx context.Context, l library, count int) error {
			_, err := l.files.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: link(count)})
			return err
		}},
		{"GetVolumeIDFromTargetPath", func(ctx context.Context, l library, count int) error {
			_, err := l.volumes.GetVolumeIDFromTargetPath(ctx, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: link(count)})
			return err
		}},
		{"CreateSymlink and Rmdir", func(ctx context.Context, l library, count int) error {
			path := link(count + 1)
			if _, err := l.files.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: mounted, TargetPath: path}); err != nil {
				return err
			}
			_, err := l.files.Rmdir(ctx, &filesystem.RmdirRequest{Path: path})
			return err
		}},
	}},
	{"mappings", 1000, nodeOfMappings, mapAll, []growingCall{
		{"NewSMBGlobalMapping of a mapped share", func(ctx context.Context, l library, count int) error {
			return mapShare(ctx, l, count)
		}},
		{"New and RemoveSMBGlobalMapping", func(ctx context.Context, l library, count int) error {
			if err := mapShare(ctx, l, count+1); err != nil {
				return err
			}
			if _, err := l.files.Rmdir(ctx, &filesystem.RmdirRequest{Path: staged(count + 1)}); err != nil {
				return err
			}
			_, err := l.shares.RemoveSMBGlobalMapping(ctx, &smb.RemoveSMBGlobalMappingRequest{RemotePath: share(count + 1)})
			return err
		}},
	}},
}

// nodeOfDisks has a number of disks with a volume each, besides the system's.
func nodeOfDisks(b *testing.B, count int) *winsim.Node {
	b.Helper()
	model := winsim.Default()
	model.Disks = model.Disks[:1]
	for range count {
		model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Volume: &winsim.Volume{}}}})
	}
	node, err := winsim.New(model)
	mustAll(b, err)
	return node
}

func lastVolume(count int) string {
	return fmt.Sprintf(`\\?\Volume{d%07x-0000-4000-8000-000000000001}\`, count)
}

const mounted = kubelet + `\plugins\mount`

// nodeOfLinks has a number of links in one directory to a mounted volume.
func nodeOfLinks(b *testing.B, count int) *winsim.Node {
	b.Helper()
	node := nodeOfDisks(b, 1)
	mustAll(b, node.MountFolder(mounted, lastVolume(1)))
	for i := range count + 1 {
		mustAll(b, node.Symlink(link(i), mounted))
	}
	return node
}

func link(number int) string { return fmt.Sprintf(`%s\pods\link-%05d`, kubelet, number) }

// nodeOfMappings has a file server with one share more than are to be mapped.
func nodeOfMappings(b *testing.B, count int) *winsim.Node {
	b.Helper()
	model := winsim.Default()
	model.Files = append(model.Files, winsim.File{Path: kubelet + `\plugins\smb`})
	for i := range count + 2 {
		model.SMBServers[0].Shares = append(model.SMBServers[0].Shares, winsim.SMBShare{Name: fmt.Sprintf("share%d", i)})
	}
	node, err := winsim.New(model)
	mustAll(b, err)
	return node
}

func share(number int) string { return fmt.Sprintf(`\\files\share%d`, number) }

func staged(number int) string { return fmt.Sprintf(`%s\plugins\smb\%d`, kubelet, number) }

func mapShare(ctx context.Context, l library, number int) error {
	_, err := l.shares.NewSMBGlobalMapping(ctx, &smb.NewSMBGlobalMappingRequest{
		RemotePath: share(number), LocalPath: staged(number), Username: "csi", Password: "csi-Pa55",
	})
	return err
}

func mapAll(b *testing.B, l library, count int) {
	b.Helper()
	for i := range count + 1 {
		mustAll(b, mapShare(b.Context(), l, i))
	}
}

// BenchmarkGrowth: what costs more the more there is of something, and what does not.
func BenchmarkGrowth(b *testing.B) {
	for _, g := range growth {
		for count := 10; count <= g.most; count *= 10 {
			node := g.node(b, count)
			l := newLibrary(b, node)
			if g.prepare != nil {
				g.prepare(b, l, count)
			}
			for _, c := range g.calls {
				b.Run(fmt.Sprintf("objects=%s/count=%d/call=%s", g.things, count, c.name), func(b *testing.B) {
					mustAll(b, c.do(b.Context(), l, count)) // the first may look around
					node.ResetCalls()
					b.ReportAllocs()
					n := 0
					for b.Loop() {
						mustAll(b, c.do(b.Context(), l, count))
						n++
					}
					calls := 0
					for _, made := range node.Calls() {
						calls += made
					}
					b.ReportMetric(float64(calls)/float64(n), "calls/op")
				})
			}
		}
	}
}
