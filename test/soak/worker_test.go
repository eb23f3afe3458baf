//go:build unix

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// worker is a client with disks, a directory, a share and a target of its own, of which it
// knows what the node must say. Of what a call that failed left behind it knows nothing until
// it has repeated the call.
type worker struct {
	t      *testing.T
	node   *winsim.Node
	dir    string // of the sockets
	tally  *tally
	number int
	random *rand.Rand
	conns  map[string]*grpc.ClientConn // by group

	home   string
	disks  []*ownDisk
	exists map[string]bool // directories in home
	mapped bool
	logged bool // in to the target
}

// ownDisk is a disk that only one worker uses. Its life goes on by one stage at a time.
type ownDisk struct {
	number     uint32
	stage      int
	size       winsim.Size
	partitions int
	volume     string
	written    map[string]string
}

func target(i int) string { return fmt.Sprintf("iqn.2025-01.com.example:soak%d", i) }

func newWorker(t *testing.T, node *winsim.Node, dir string, tally *tally, number int) *worker {
	t.Helper()
	w := &worker{
		t: t, node: node, dir: dir, tally: tally, number: number,
		random: rand.New(rand.NewPCG(*soakSeed, uint64(number))),
		conns:  map[string]*grpc.ClientConn{},
		home:   fmt.Sprintf(`%s\pods\client%d`, workDir, number),
		exists: map[string]bool{},
	}
	for d := number + 1; d <= diskCount; d += clientCount {
		w.disks = append(w.disks, &ownDisk{number: uint32(d), size: winsim.GiB, written: map[string]string{}})
	}
	return w
}

// work makes calls until ctx ends.
func (w *worker) work(ctx context.Context) {
	for ctx.Err() == nil && !w.t.Failed() {
		if w.random.IntN(100) == 0 {
			w.close() // the next call connects again
			w.tally.add("connections closed", 1)
		}
		switch w.random.IntN(10) {
		case 0, 1, 2, 3:
			w.goOn(ctx, w.disks[w.random.IntN(len(w.disks))])
		case 4, 5:
			w.directories(ctx)
		case 6:
			w.share(ctx)
		case 7:
			w.target(ctx)
		case 8:
			w.listDisks(ctx)
		default:
			w.ask(ctx)
		}
	}
}

// finish puts everything away, on a node that is well again.
func (w *worker) finish(ctx context.Context) {
	w.close() // connections that wait before they look for the server again
	for _, d := range w.disks {
		for d.stage%len(stages) != 0 && !w.t.Failed() {
			w.succeed(fmt.Sprintf("stage %d of disk %d", d.stage, d.number), func() bool { return w.goOn(ctx, d) })
		}
	}
	// What is not sure is done again, which makes it so, and then undone.
	for _, own := range []struct {
		name string
		do   func(context.Context) bool
		has  *bool
	}{{"its share", w.share, &w.mapped}, {"its target", w.target, &w.logged}} {
		w.succeed(own.name, func() bool { return (*own.has || own.do(ctx)) && own.do(ctx) })
	}
	w.directories(ctx)
}

// succeed repeats what must succeed by now. A call can join work that began in the bad times,
// and share its failure, so it may take more than one attempt.
func (w *worker) succeed(what string, do func() bool) {
	const attempts = 5
	for range attempts {
		if do() {
			return
		}
	}
	w.wrong("%s fails without any trouble", what)
}

func (w *worker) close() {
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	clear(w.conns)
}

// conn connects to a group of the server, which may not be there.
func (w *worker) conn(ctx context.Context, group, version string) *grpc.ClientConn {
	if conn := w.conns[group]; conn != nil {
		return conn
	}
	path := filepath.Join(w.dir, fmt.Sprintf("csi-proxy-%s-%s.sock", group, version))
	conn, err := client.Connect(ctx, group, apiversion.NewVersionOrPanic(version), client.WithPipePath(path))
	if err != nil {
		return nil
	}
	w.conns[group] = conn
	return conn
}

// documented are the codes that docs/api lists, for a caller who asks for nothing wrong.
var documented = map[codes.Code]bool{
	codes.Canceled: true, codes.DeadlineExceeded: true, codes.Unavailable: true, codes.Aborted: true,
	codes.FailedPrecondition: true, codes.NotFound: true, codes.Internal: true, codes.ResourceExhausted: true,
}

// retryPause is what a client waits before it tries again to reach a server that is not there.
const retryPause = 20 * time.Millisecond

// call makes a call, whose caller often gives up early, and reports whether it succeeded.
func call[Request, Response any](ctx context.Context, w *worker, group, version, method string, request Request) (response *Response, ok bool) {
	conn := w.conn(ctx, group, version)
	if conn == nil {
		w.tally.add("failed attempts to connect", 1)
		pause(ctx, retryPause)
		return nil, false
	}
	calling, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, troubled := ctx.Deadline()
	timeout := time.Duration(w.random.IntN(5000)) * time.Microsecond
	switch giveUpKind := w.random.IntN(20); {
	case troubled && giveUpKind == 0:
		timer := time.AfterFunc(timeout, cancel)
		defer timer.Stop()
	case troubled && giveUpKind == 1:
		var giveUp context.CancelFunc
		calling, giveUp = context.WithTimeout(calling, timeout)
		defer giveUp()
	}
	response = new(Response)
	err := conn.Invoke(calling, method, request, response)
	code := status.Code(err)
	w.tally.add(fmt.Sprintf("%-14s %s", group, code), 1)
	switch {
	case err == nil:
		return response, true
	case !documented[code], strings.Contains(err.Error(), "internal error; see"): // a panic
		w.t.Errorf("client %d: %s answers %v", w.number, method, err)
	case !troubled:
		w.tally.add("calls that failed after the bad times, because of them", 1)
		w.t.Logf("client %d: %s: %v", w.number, method, err)
	case code == codes.Unavailable:
		pause(ctx, retryPause)
	}
	return response, false
}

// wrong reports an answer that is not what the worker knows.
func (w *worker) wrong(format string, args ...any) {
	w.t.Errorf("client %d: %s", w.number, fmt.Sprintf(format, args...))
}

// stages are the life of a disk, from the beginning to the beginning; each may be repeated.
var stages = []func(*worker, context.Context, *ownDisk) bool{
	func(w *worker, ctx context.Context, d *ownDisk) bool {
		_, ok := call[*diskv1.SetDiskStateRequest, diskv1.SetDiskStateResponse](ctx, w, "disk", "v1", diskv1.Disk_SetDiskState_FullMethodName,
			&diskv1.SetDiskStateRequest{DiskNumber: d.number, IsOnline: true})
		return ok
	},
	func(w *worker, ctx context.Context, d *ownDisk) bool {
		d.partitions++ // perhaps also if it fails
		_, ok := call[*diskv1.PartitionDiskRequest, diskv1.PartitionDiskResponse](ctx, w, "disk", "v1", diskv1.Disk_PartitionDisk_FullMethodName,
			&diskv1.PartitionDiskRequest{DiskNumber: d.number})
		return ok
	},
	func(w *worker, ctx context.Context, d *ownDisk) bool {
		r, ok := call[*volumev1.ListVolumesOnDiskRequest, volumev1.ListVolumesOnDiskResponse](ctx, w, "volume", "v1", volumev1.Volume_ListVolumesOnDisk_FullMethodName,
			&volumev1.ListVolumesOnDiskRequest{DiskNumber: d.number})
		if !ok {
			return false
		}
		if len(r.VolumeIds) != 1 || d.volume != "" && r.VolumeIds[0] != d.volume {
			w.wrong("disk %d has the volumes %v, and had %s", d.number, r.VolumeIds, d.volume)
			return false
		}
		d.volume = r.VolumeIds[0]
		return true
	},
	func(w *worker, ctx context.Context, d *ownDisk) bool {
		_, ok := call[*volumev1.FormatVolumeRequest, volumev1.FormatVolumeResponse](ctx, w, "volume", "v1", volumev1.Volume_FormatVolume_FullMethodName,
			&volumev1.FormatVolumeRequest{VolumeId: d.volume})
		return ok
	},
	func(w *worker, ctx context.Context, d *ownDisk) bool {
		_, ok := call[*volumev1.MountVolumeRequest, volumev1.MountVolumeResponse](ctx, w, "volume", "v1", volumev1.Volume_MountVolume_FullMethodName,
			&volumev1.MountVolumeRequest{VolumeId: d.volume, TargetPath: d.staged()})
		return ok
	},
	func(w *worker, ctx context.Context, d *ownDisk) bool {
		_, ok := call[*filesystemv1.CreateSymlinkRequest, filesystemv1.CreateSymlinkResponse](ctx, w, "filesystem", "v1", filesystemv1.Filesystem_CreateSymlink_FullMethodName,
			&filesystemv1.CreateSymlinkRequest{SourcePath: d.staged(), TargetPath: d.published()})
		return ok
	},
	func(w *worker, _ context.Context, d *ownDisk) bool { // a pod, without any other call
		name, content := fmt.Sprintf("file%d", d.stage), fmt.Sprintf("of client %d, seed %d", w.number, *soakSeed)
		for written, content := range d.written {
			if got, err := w.node.ReadFile(d.published() + `\` + written); err != nil || got != content {
				w.wrong("disk %d: %s contains %q, want %q: %v", d.number, written, got, content, err)
			}
		}
		if err := w.node.WriteFile(d.published()+`\`+name, content); err != nil {
			w.wrong("disk %d: %v", d.number, err)
			return false
		}
		d.written[name] = content
		if d.size < 8*winsim.GiB {
			d.size += 64 * winsim.MiB
			if err := w.node.GrowDisk(d.number, d.size); err != nil {
				w.wrong("disk %d: %v", d.number, err)
			}
		}
		return true
	},
	func(w *worker, ctx context.Context, d *ownDisk) bool {
		_, ok := call[*volumev1.ResizeVolumeRequest, volumev1.ResizeVolumeResponse](ctx, w, "volume", "v1", volumev1.Volume_ResizeVolume_FullMethodName,
			&volumev1.ResizeVolumeRequest{VolumeId: d.volume})
		return ok
	},
	func(w *worker, ctx context.Context, d *ownDisk) bool {
		r, ok := call[*volumev1.GetVolumeStatsRequest, volumev1.GetVolumeStatsResponse](ctx, w, "volume", "v1", volumev1.Volume_GetVolumeStats_FullMethodName,
			&volumev1.GetVolumeStatsRequest{VolumeId: d.volume})
		if least := int64(d.size - 20*winsim.MiB); ok && (r.TotalBytes < least || r.TotalBytes > int64(d.size)) {
			w.wrong("disk %d has %s, its volume %d bytes", d.number, d.size, r.TotalBytes)
		}
		return ok
	},
	func(w *worker, ctx context.Context, d *ownDisk) bool {
		r, ok := call[*volumev1.GetVolumeIDFromTargetPathRequest, volumev1.GetVolumeIDFromTargetPathResponse](ctx, w, "volume", "v1", volumev1.Volume_GetVolumeIDFromTargetPath_FullMethodName,
			&volumev1.GetVolumeIDFromTargetPathRequest{TargetPath: d.published()})
		if ok && r.VolumeId != d.volume {
			w.wrong("%s shows %s, want %s", d.published(), r.VolumeId, d.volume)
		}
		return ok
	},
	func(w *worker, ctx context.Context, d *ownDisk) bool { return w.rmdir(ctx, d.published()) },
	func(w *worker, ctx context.Context, d *ownDisk) bool {
		_, ok := call[*volumev1.UnmountVolumeRequest, volumev1.UnmountVolumeResponse](ctx, w, "volume", "v1", volumev1.Volume_UnmountVolume_FullMethodName,
			&volumev1.UnmountVolumeRequest{VolumeId: d.volume, TargetPath: d.staged()})
		return ok
	},
	func(w *worker, ctx context.Context, d *ownDisk) bool { return w.rmdir(ctx, d.staged()) },
}

func (d *ownDisk) staged() string    { return fmt.Sprintf(`%s\plugins\disk%d`, workDir, d.number) }
func (d *ownDisk) published() string { return fmt.Sprintf(`%s\pods\disk%d`, workDir, d.number) }

// goOn takes the next stage of a disk, or the same one again.
func (w *worker) goOn(ctx context.Context, d *ownDisk) bool {
	ok := stages[d.stage%len(stages)](w, ctx, d)
	if ok {
		d.stage++
	}
	return ok
}

func (w *worker) rmdir(ctx context.Context, path string) bool {
	_, ok := call[*filesystemv1.RmdirRequest, filesystemv1.RmdirResponse](ctx, w, "filesystem", "v1", filesystemv1.Filesystem_Rmdir_FullMethodName,
		&filesystemv1.RmdirRequest{Path: path, Force: true})
	return ok
}

// directories creates and removes its own directories.
func (w *worker) directories(ctx context.Context) {
	path := fmt.Sprintf(`%s\%d`, w.home, w.random.IntN(20))
	known, sure := w.exists[path]
	if sure {
		r, ok := call[*filesystemv1.PathExistsRequest, filesystemv1.PathExistsResponse](ctx, w, "filesystem", "v1", filesystemv1.Filesystem_PathExists_FullMethodName,
			&filesystemv1.PathExistsRequest{Path: path})
		if ok && r.Exists != known {
			w.wrong("%s exists: %v, want %v", path, r.Exists, known)
		}
	}
	delete(w.exists, path)
	if known {
		if w.rmdir(ctx, path) {
			w.exists[path] = false
		}
		return
	}
	_, ok := call[*filesystemv1.MkdirRequest, filesystemv1.MkdirResponse](ctx, w, "filesystem", "v1", filesystemv1.Filesystem_Mkdir_FullMethodName,
		&filesystemv1.MkdirRequest{Path: path + `\below`})
	if ok {
		w.exists[path] = true
	}
}

// remote is the share of the worker.
func (w *worker) remote() string {
	return fmt.Sprintf(`\\files%d\share%d`, w.number%serverCount, w.number/serverCount)
}

// share maps the share of the worker, or gives it up.
func (w *worker) share(ctx context.Context) bool {
	remote := w.remote()
	link := fmt.Sprintf(`%s\plugins\share%d`, workDir, w.number)
	if !w.mapped {
		_, ok := call[*smbv1.NewSmbGlobalMappingRequest, smbv1.NewSmbGlobalMappingResponse](ctx, w, "smb", "v1", smbv1.Smb_NewSmbGlobalMapping_FullMethodName,
			&smbv1.NewSmbGlobalMappingRequest{RemotePath: remote, LocalPath: link, Username: "csi", Password: "csi-Pa55"})
		w.mapped = ok
		return ok
	}
	r, ok := call[*filesystemv1.IsSymlinkRequest, filesystemv1.IsSymlinkResponse](ctx, w, "filesystem", "v1", filesystemv1.Filesystem_IsSymlink_FullMethodName,
		&filesystemv1.IsSymlinkRequest{Path: link})
	// A share that cannot be reached at the moment, for whatever reason, makes it a link to
	// nothing.
	if _, troubled := ctx.Deadline(); ok && !r.IsSymlink && !troubled {
		w.wrong("the link to %s leads nowhere", remote)
	}
	w.mapped = false // not sure, from here on
	if !w.rmdir(ctx, link) {
		return false
	}
	return w.unmap(ctx)
}

// unmap asks for the removal of the worker's mapping.
func (w *worker) unmap(ctx context.Context) bool {
	_, ok := call[*smbv1.RemoveSmbGlobalMappingRequest, smbv1.RemoveSmbGlobalMappingResponse](ctx, w, "smb", "v1", smbv1.Smb_RemoveSmbGlobalMapping_FullMethodName,
		&smbv1.RemoveSmbGlobalMappingRequest{RemotePath: w.remote()})
	return ok
}

// target logs in to the target of the worker, or out.
func (w *worker) target(ctx context.Context) bool {
	portal, iqn := &iscsiv1alpha2.TargetPortal{TargetAddress: "10.0.0.10"}, target(w.number)
	if w.logged {
		w.logged = false
		_, ok := call[*iscsiv1alpha2.DisconnectTargetRequest, iscsiv1alpha2.DisconnectTargetResponse](ctx, w, "iscsi", "v1alpha2", iscsiv1alpha2.Iscsi_DisconnectTarget_FullMethodName,
			&iscsiv1alpha2.DisconnectTargetRequest{TargetPortal: portal, Iqn: iqn})
		return ok
	}
	_, ok := call[*iscsiv1alpha2.AddTargetPortalRequest, iscsiv1alpha2.AddTargetPortalResponse](ctx, w, "iscsi", "v1alpha2", iscsiv1alpha2.Iscsi_AddTargetPortal_FullMethodName,
		&iscsiv1alpha2.AddTargetPortalRequest{TargetPortal: portal})
	if !ok {
		return false
	}
	if _, ok = call[*iscsiv1alpha2.ConnectTargetRequest, iscsiv1alpha2.ConnectTargetResponse](ctx, w, "iscsi", "v1alpha2", iscsiv1alpha2.Iscsi_ConnectTarget_FullMethodName,
		&iscsiv1alpha2.ConnectTargetRequest{TargetPortal: portal, Iqn: iqn}); !ok {
		return false
	}
	w.logged = true
	r, ok := call[*iscsiv1alpha2.GetTargetDisksRequest, iscsiv1alpha2.GetTargetDisksResponse](ctx, w, "iscsi", "v1alpha2", iscsiv1alpha2.Iscsi_GetTargetDisks_FullMethodName,
		&iscsiv1alpha2.GetTargetDisksRequest{TargetPortal: portal, Iqn: iqn})
	if ok && len(r.DiskIDs) != 1 {
		w.wrong("%s has the disks %v", iqn, r.DiskIDs)
	}
	return ok
}

// listDisks wants the serial numbers of the worker's disks. A disk that answers nothing at the
// moment is left out of the list, so one that is missing is no mistake while there is trouble.
func (w *worker) listDisks(ctx context.Context) {
	r, ok := call[*diskv1.ListDiskIDsRequest, diskv1.ListDiskIDsResponse](ctx, w, "disk", "v1", diskv1.Disk_ListDiskIDs_FullMethodName, &diskv1.ListDiskIDsRequest{})
	if !ok {
		return
	}
	for _, d := range w.disks {
		found, listed := r.DiskIDs[d.number]
		if want := fmt.Sprintf("SOAK%04d", d.number); listed && found.SerialNumber != "" && found.SerialNumber != want {
			w.wrong("disk %d has the serial number %q, want %q", d.number, found.SerialNumber, want)
		}
	}
}

// ask asks the system group.
func (w *worker) ask(ctx context.Context) {
	r, ok := call[*systemv1alpha1.GetBIOSSerialNumberRequest, systemv1alpha1.GetBIOSSerialNumberResponse](ctx, w, "system", "v1alpha1", systemv1alpha1.System_GetBIOSSerialNumber_FullMethodName, &systemv1alpha1.GetBIOSSerialNumberRequest{})
	if ok && r.SerialNumber != "WINSIM-NODE-1" {
		w.wrong("the serial number is %q", r.SerialNumber)
	}
}
