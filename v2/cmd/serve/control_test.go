package serve_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/controlv1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// controlled is a node with its control service, and the clients of a driver.
type controlled struct {
	controlv1.ControlClient
	node   *winsim.Node
	disk   diskv1.DiskClient
	volume volumev1.VolumeClient
	files  filesystemv1.FilesystemClient
	smb    smbv1.SmbClient
}

func startControlled(t *testing.T) controlled {
	t.Helper()
	node := newNode(t)
	dir := runWith(t, node, serve.Config{
		Config:  daemon.Config{APIGroups: []string{"disk/v1", "volume/v1", "filesystem/v1", "smb/v1"}, StopTimeout: time.Hour},
		Control: serve.DefaultControl,
	})
	dial := func(group string) *grpc.ClientConn {
		conn, err := client.Connect(t.Context(), group, apiversion.NewVersionOrPanic("v1"), client.WithPipePath(endpointPath(dir, group, "v1")))
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	return controlled{
		controlv1.NewControlClient(dial("sim")), node, diskv1.NewDiskClient(dial("disk")), volumev1.NewVolumeClient(dial("volume")),
		filesystemv1.NewFilesystemClient(dial("filesystem")), smbv1.NewSmbClient(dial("smb")),
	}
}

// try fails the test if a call failed.
func try[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(response T, err error) T {
		t.Helper()
		must(t, err)
		return response
	}
}

func wantCode(t *testing.T, err error, code codes.Code, says ...string) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
	for _, text := range says {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v does not say %q", err, text)
		}
	}
}

func (c controlled) attach(t *testing.T, in *controlv1.AttachDiskRequest) uint32 {
	t.Helper()
	return try[*controlv1.AttachDiskResponse](t)(c.AttachDisk(t.Context(), in)).DiskNumber
}

func (c controlled) described(t *testing.T, number uint32) *controlv1.Disk {
	t.Helper()
	for _, d := range try[*controlv1.DescribeNodeResponse](t)(c.DescribeNode(t.Context(), &controlv1.DescribeNodeRequest{})).Disks {
		if d.DiskNumber == number {
			return d
		}
	}
	return nil
}

// TestControl_Disk: what each verb does to a disk, as a driver sees it.
func TestControl_Disk(t *testing.T) {
	c := startControlled(t)
	number := c.attach(t, &controlv1.AttachDiskRequest{SizeBytes: 1 << 30, Serial: "SIM-1", Page83Text: "Sim  disk-1"})
	ids := try[*diskv1.ListDiskIDsResponse](t)(c.disk.ListDiskIDs(t.Context(), &diskv1.ListDiskIDsRequest{})).DiskIDs[number]
	if ids.GetSerialNumber() != "SIM-1" || ids.GetPage83() != "Sim  disk-1" {
		t.Errorf("ids: %v", ids)
	}
	locations := try[*diskv1.ListDiskLocationsResponse](t)(c.disk.ListDiskLocations(t.Context(), &diskv1.ListDiskLocationsRequest{})).DiskLocations
	if at := locations[number]; at.GetAdapter() != "1" || at.GetLUNID() != fmt.Sprint(c.described(t, number).GetLun()) {
		t.Errorf("location: %v", at)
	}

	size := func() int64 {
		return try[*diskv1.GetDiskStatsResponse](t)(c.disk.GetDiskStats(t.Context(), &diskv1.GetDiskStatsRequest{DiskNumber: number})).TotalBytes
	}
	try[*controlv1.GrowDiskResponse](t)(c.GrowDisk(t.Context(), &controlv1.GrowDiskRequest{DiskNumber: number, SizeBytes: 2 << 30}))
	try[*diskv1.RescanResponse](t)(c.disk.Rescan(t.Context(), &diskv1.RescanRequest{}))
	if got := size(); got != 2<<30 {
		t.Errorf("size after a growth: %d", got)
	}

	try[*controlv1.FailDiskResponse](t)(c.FailDisk(t.Context(), &controlv1.FailDiskRequest{DiskNumber: number}))
	_, err := c.disk.PartitionDisk(t.Context(), &diskv1.PartitionDiskRequest{DiskNumber: number})
	wantCode(t, err, codes.Internal, "1117")
	if !c.described(t, number).IsFailing {
		t.Error("the description does not show that the disk fails")
	}
	try[*controlv1.HealDiskResponse](t)(c.HealDisk(t.Context(), &controlv1.HealDiskRequest{DiskNumber: number}))
	if got := size(); got != 2<<30 {
		t.Errorf("size after the failure: %d", got)
	}

	try[*controlv1.DetachDiskResponse](t)(c.DetachDisk(t.Context(), &controlv1.DetachDiskRequest{DiskNumber: number}))
	if ids := try[*diskv1.ListDiskIDsResponse](t)(c.disk.ListDiskIDs(t.Context(), &diskv1.ListDiskIDsRequest{})).DiskIDs[number]; ids != nil {
		t.Errorf("a detached disk: %v", ids)
	}
	number = try[*controlv1.ReattachDiskResponse](t)(c.ReattachDisk(t.Context(), &controlv1.ReattachDiskRequest{DiskNumber: number})).DiskNumber
	if got := size(); got != 2<<30 {
		t.Errorf("size after attaching it again: %d", got)
	}
}

// TestControl_Hang: requests to a hanging disk wait; those to others do not.
func TestControl_Hang(t *testing.T) {
	c := startControlled(t)
	number := c.attach(t, &controlv1.AttachDiskRequest{SizeBytes: 1 << 30, Content: controlv1.Content_CONTENT_NTFS, FilePath: `\a`})
	volumes := try[*volumev1.ListVolumesOnDiskResponse](t)(c.volume.ListVolumesOnDisk(t.Context(), &volumev1.ListVolumesOnDiskRequest{DiskNumber: number})).VolumeIds
	const target = `C:\var\lib\kubelet\plugins\hang`
	try[*filesystemv1.MkdirResponse](t)(c.files.Mkdir(t.Context(), &filesystemv1.MkdirRequest{Path: target}))
	try[*volumev1.MountVolumeResponse](t)(c.volume.MountVolume(t.Context(), &volumev1.MountVolumeRequest{VolumeId: volumes[0], TargetPath: target}))

	try[*controlv1.HangDiskResponse](t)(c.HangDisk(t.Context(), &controlv1.HangDiskRequest{DiskNumber: number}))
	if !c.described(t, number).IsHanging {
		t.Error("the description does not show that the disk hangs")
	}
	limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.files.PathExists(limited, &filesystemv1.PathExistsRequest{Path: target + `\a`})
	wantCode(t, err, codes.DeadlineExceeded)
	try[*diskv1.GetDiskStatsResponse](t)(c.disk.GetDiskStats(t.Context(), &diskv1.GetDiskStatsRequest{DiskNumber: 1}))
	try[*filesystemv1.PathExistsResponse](t)(c.files.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet\pods`}))

	results := make(chan error, 2)
	go func() {
		_, err := c.volume.GetVolumeStats(t.Context(), &volumev1.GetVolumeStatsRequest{VolumeId: volumes[0]})
		results <- err
	}()
	go func() {
		_, err := c.disk.GetDiskStats(t.Context(), &diskv1.GetDiskStatsRequest{DiskNumber: number})
		results <- err
	}()
	for calls := 0; calls == 0; { // until one of them is at the disk
		select {
		case err := <-results:
			t.Fatalf("a call to the hanging disk ended: %v", err)
		default:
			calls = c.node.Calls()["DiskGeometry"] + c.node.Calls()["VolumeSpace"] + c.node.Calls()["VolumeExtents"]
		}
	}
	try[*controlv1.HealDiskResponse](t)(c.HealDisk(t.Context(), &controlv1.HealDiskRequest{DiskNumber: number}))
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// TestControl_Content: the contents that a new disk can have, and what a driver makes of them.
func TestControl_Content(t *testing.T) {
	const gib = 1 << 30
	for name, test := range map[string]struct {
		in        *controlv1.AttachDiskRequest
		layout    string
		partition codes.Code // of PartitionDisk
		fs        string     // of the last partition
	}{
		"blank":     {&controlv1.AttachDiskRequest{SizeBytes: gib}, "raw", codes.OK, ""},
		"ntfs":      {&controlv1.AttachDiskRequest{SizeBytes: gib, Content: controlv1.Content_CONTENT_NTFS, FilePath: "/dir/a.txt", FileText: "x"}, "gpt", codes.OK, "ntfs"},
		"linux gpt": {&controlv1.AttachDiskRequest{SizeBytes: gib, Content: controlv1.Content_CONTENT_LINUX_GPT}, "gpt", codes.FailedPrecondition, "raw"},
		"ext4":      {&controlv1.AttachDiskRequest{SizeBytes: gib, Content: controlv1.Content_CONTENT_EXT4}, "raw", codes.FailedPrecondition, ""},
		"mbr":       {&controlv1.AttachDiskRequest{SizeBytes: gib, Content: controlv1.Content_CONTENT_MBR}, "mbr", codes.OK, "ntfs"},
		"nvme":      {&controlv1.AttachDiskRequest{SizeBytes: gib, Bus: "nvme", Serial: "vol0123_00000001."}, "raw", codes.OK, ""},
		"like":      {&controlv1.AttachDiskRequest{SizeBytes: gib, LikeDisk: new(uint32(3)), Page83Hex: "60022480 00"}, "raw", codes.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := startControlled(t)
			number := c.attach(t, test.in)
			if got := c.described(t, number); got.Layout != test.layout {
				t.Errorf("layout %q, want %q", got.Layout, test.layout)
			} else if at := len(got.Partitions) - 1; test.fs != "" && got.Partitions[at].FileSystem != test.fs {
				t.Errorf("file system %q, want %q", got.Partitions[at].FileSystem, test.fs)
			}
			before := c.described(t, number).Fingerprint
			_, err := c.disk.PartitionDisk(t.Context(), &diskv1.PartitionDiskRequest{DiskNumber: number})
			wantCode(t, err, test.partition)
			if after := c.described(t, number).Fingerprint; before == "" || (after != before) != (test.layout == "raw" && err == nil) {
				t.Errorf("the fingerprint was %q and is %q", before, after)
			}
		})
	}
}

// TestControl_Clone: a restored snapshot beside its original.
func TestControl_Clone(t *testing.T) {
	c := startControlled(t)
	original := c.attach(t, &controlv1.AttachDiskRequest{SizeBytes: 1 << 30, Content: controlv1.Content_CONTENT_NTFS, FilePath: "a", FileText: "x"})
	clone := c.attach(t, &controlv1.AttachDiskRequest{SizeBytes: 2 << 30, Content: controlv1.Content_CONTENT_CLONE, CloneOf: &original})
	if got := c.described(t, clone); !got.IsOffline || len(got.Partitions) != 2 || got.Partitions[1].FileSystem != "ntfs" || got.SizeBytes != 2<<30 {
		t.Errorf("the clone: %v", got)
	}
	try[*diskv1.SetDiskStateResponse](t)(c.disk.SetDiskState(t.Context(), &diskv1.SetDiskStateRequest{DiskNumber: clone, IsOnline: true}))
	list := func(number uint32) string {
		ids := try[*volumev1.ListVolumesOnDiskResponse](t)(c.volume.ListVolumesOnDisk(t.Context(), &volumev1.ListVolumesOnDiskRequest{DiskNumber: number})).VolumeIds
		if len(ids) != 1 {
			t.Fatalf("volumes of disk %d: %v", number, ids)
		}
		return ids[0]
	}
	if list(original) == list(clone) {
		t.Error("the clone's volume has the id of the original's")
	}
	must(t, c.node.WriteFile(list(clone)+"a", "changed"))
	for number, want := range map[uint32]string{original: "x", clone: "changed"} {
		if got, err := c.node.ReadFile(list(number) + "a"); err != nil || got != want {
			t.Errorf("the file on disk %d: %q, %v", number, got, err)
		}
	}
}

// TestControl_OfflineReadOnly: a volume that was moved from another node.
func TestControl_OfflineReadOnly(t *testing.T) {
	c := startControlled(t)
	number := c.attach(t, &controlv1.AttachDiskRequest{SizeBytes: 1 << 30, Content: controlv1.Content_CONTENT_NTFS, IsOffline: true, IsReadOnly: true})
	if d := c.described(t, number); !d.IsOffline || !d.IsReadOnly {
		t.Errorf("it arrives as %v", d)
	}
	try[*diskv1.SetDiskStateResponse](t)(c.disk.SetDiskState(t.Context(), &diskv1.SetDiskStateRequest{DiskNumber: number, IsOnline: true}))
	if d := c.described(t, number); d.IsOffline {
		t.Errorf("online, it is %v", d)
	}
}

// TestControl_SMB: what each verb does to a server, as a driver sees it.
func TestControl_SMB(t *testing.T) {
	c := startControlled(t)
	const local = `C:\var\lib\kubelet\plugins\smb`
	try[*controlv1.AddServerResponse](t)(c.AddServer(t.Context(), &controlv1.AddServerRequest{Server: "srv.example"}))
	try[*controlv1.AddShareResponse](t)(c.AddShare(t.Context(), &controlv1.AddShareRequest{Server: "SRV.example", Share: "data"}))
	try[*controlv1.AddAccountResponse](t)(c.AddAccount(t.Context(), &controlv1.AddAccountRequest{Server: "srv.example", User: "u", Password: "first"}))
	try[*controlv1.MakeDirectoryResponse](t)(c.MakeDirectory(t.Context(), &controlv1.MakeDirectoryRequest{Path: `//srv.example/data/pvc/1`}))
	mount := func(password string) error {
		_, err := c.smb.NewSmbGlobalMapping(t.Context(), &smbv1.NewSmbGlobalMappingRequest{
			RemotePath: `\\srv.example\data\pvc`, LocalPath: local, Username: "u", Password: password,
		})
		return err
	}
	exists := func() bool { return c.node.Exists(local + `\1`) } // as a pod that opens it
	must(t, mount("first"))
	if !exists() {
		t.Error("the directory on the share is missing")
	}

	try[*controlv1.StopServerResponse](t)(c.StopServer(t.Context(), &controlv1.StopServerRequest{Server: "srv.example"}))
	described := try[*controlv1.DescribeNodeResponse](t)(c.DescribeNode(t.Context(), &controlv1.DescribeNodeRequest{}))
	if m := described.Mappings; len(m) != 1 || m[0].RemotePath != `\\srv.example\data` || m[0].IsConnected || exists() {
		t.Errorf("with the server down: %v", m)
	}
	try[*controlv1.StartServerResponse](t)(c.StartServer(t.Context(), &controlv1.StartServerRequest{Server: "srv.example"}))
	if !exists() {
		t.Error("the share stays away")
	}

	try[*controlv1.SetPasswordResponse](t)(c.SetPassword(t.Context(), &controlv1.SetPasswordRequest{Server: "srv.example", User: "U", Password: "second"}))
	try[*controlv1.EndSessionsResponse](t)(c.EndSessions(t.Context(), &controlv1.EndSessionsRequest{}))
	if exists() {
		t.Error("a session with the old password")
	}
	if err := mount("second"); err != nil {
		t.Error(err)
	}
	if !exists() {
		t.Error("the share stays away with the new password")
	}
}

// TestControl_Reboot: all endpoints come back, and mappings have lost their credentials.
func TestControl_Reboot(t *testing.T) {
	c := startControlled(t)
	request := &smbv1.NewSmbGlobalMappingRequest{RemotePath: `\\files\data`, LocalPath: `C:\var\lib\kubelet\plugins\smb`, Username: "csi", Password: "csi-Pa55"}
	try[*smbv1.NewSmbGlobalMappingResponse](t)(c.smb.NewSmbGlobalMapping(t.Context(), request))
	for range 2 {
		try[*controlv1.RebootResponse](t)(c.Reboot(t.Context(), &controlv1.RebootRequest{}))
		response := try[*controlv1.DescribeNodeResponse](t)(c.DescribeNode(t.Context(), &controlv1.DescribeNodeRequest{}))
		if len(response.Mappings) != 0 {
			t.Errorf("mappings after a restart: %v", response.Mappings)
		}
		// WaitForReady, as the connection of before is gone.
		_, err := c.smb.NewSmbGlobalMapping(t.Context(), request, grpc.WaitForReady(true))
		if err != nil {
			t.Error(err)
		}
	}
}

// TestControl_RebootHanging: a restart does not wait for a call that a disk holds. The call fails.
func TestControl_RebootHanging(t *testing.T) {
	c := startControlled(t)
	try[*controlv1.HangDiskResponse](t)(c.HangDisk(t.Context(), &controlv1.HangDiskRequest{DiskNumber: 2}))
	entered := make(chan struct{}, 1)
	_, err := c.node.Inject(winsim.Fault{Call: "ReadDevice", Times: 1, Do: func(*winsim.Node) { entered <- struct{}{} }})
	must(t, err)
	held := make(chan error, 1)
	go func() {
		_, err := c.disk.PartitionDisk(t.Context(), &diskv1.PartitionDiskRequest{DiskNumber: 2})
		held <- err
	}()
	<-entered
	try[*controlv1.RebootResponse](t)(c.Reboot(t.Context(), &controlv1.RebootRequest{}))
	wantCode(t, <-held, codes.Unavailable)
}

// TestControl_AttachAtOnce: disks that are attached at once have LUNs of their own, and one that comes
// back does not share that of another.
func TestControl_AttachAtOnce(t *testing.T) {
	c := startControlled(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := c.AttachDisk(t.Context(), &controlv1.AttachDiskRequest{SizeBytes: 1 << 30}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	try[*controlv1.DetachDiskResponse](t)(c.DetachDisk(t.Context(), &controlv1.DetachDiskRequest{DiskNumber: 3}))
	lun := uint32(2)
	try[*controlv1.AttachDiskResponse](t)(c.AttachDisk(t.Context(), &controlv1.AttachDiskRequest{SizeBytes: 1 << 30, Lun: &lun}))
	if _, err := c.ReattachDisk(t.Context(), &controlv1.ReattachDiskRequest{DiskNumber: 3}); status.Code(err) != codes.AlreadyExists {
		t.Errorf("reattached at the LUN of another disk: %v", err)
	}
	luns := map[uint32]uint32{}
	for _, d := range try[*controlv1.DescribeNodeResponse](t)(c.DescribeNode(t.Context(), &controlv1.DescribeNodeRequest{})).Disks {
		if d.IsSystem {
			continue
		}
		if other, taken := luns[d.GetLun()]; taken {
			t.Errorf("disks %d and %d have LUN %d", other, d.DiskNumber, d.GetLun())
		}
		luns[d.GetLun()] = d.DiskNumber
	}
}

// TestControl_Hostile: nothing that a caller can write ends the process or changes the node.
func TestControl_Hostile(t *testing.T) {
	c := startControlled(t)
	tree, before := c.node.Tree(`C:\`), describe(t, c)
	const gib = 1 << 30
	attach := func(in *controlv1.AttachDiskRequest) func(context.Context) error { return calling(c.AttachDisk, in) }
	mkdir := func(path string) func(context.Context) error {
		return calling(c.MakeDirectory, &controlv1.MakeDirectoryRequest{Path: path})
	}
	long := strings.Repeat("x", 300)
	for name, test := range map[string]struct {
		call func(context.Context) error
		want codes.Code
	}{
		"no size":                {attach(&controlv1.AttachDiskRequest{}), codes.InvalidArgument},
		"negative size":          {attach(&controlv1.AttachDiskRequest{SizeBytes: -gib}), codes.InvalidArgument},
		"huge size":              {attach(&controlv1.AttachDiskRequest{SizeBytes: 1<<63 - 4096}), codes.InvalidArgument},
		"odd size":               {attach(&controlv1.AttachDiskRequest{SizeBytes: gib + 1}), codes.InvalidArgument},
		"odd sectors":            {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, SectorSize: 513}), codes.InvalidArgument},
		"huge number":            {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, DiskNumber: 1<<32 - 1}), codes.InvalidArgument},
		"number in use":          {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, DiskNumber: 1}), codes.AlreadyExists},
		"LUN in use":             {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Lun: new(uint32(0))}), codes.AlreadyExists},
		"huge LUN":               {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Lun: new(uint32(256))}), codes.InvalidArgument},
		"unknown bus":            {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Bus: "isa"}), codes.InvalidArgument},
		"unknown content":        {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Content: 99}), codes.InvalidArgument},
		"long serial":            {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Serial: long}), codes.InvalidArgument},
		"serial with a line":     {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Serial: "a\nb"}), codes.InvalidArgument},
		"wrong digits":           {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Page83Hex: "xyz"}), codes.InvalidArgument},
		"two identifiers":        {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Page83Hex: "00", Page83Text: "a"}), codes.InvalidArgument},
		"like no disk":           {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, LikeDisk: new(uint32(99))}), codes.NotFound},
		"clone of nothing":       {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Content: controlv1.Content_CONTENT_CLONE}), codes.InvalidArgument},
		"clone of no disk":       {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Content: controlv1.Content_CONTENT_CLONE, CloneOf: new(uint32(99))}), codes.NotFound},
		"small clone":            {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Content: controlv1.Content_CONTENT_CLONE, CloneOf: new(uint32(1))}), codes.InvalidArgument},
		"file on a blank":        {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, FilePath: "a"}), codes.InvalidArgument},
		"file without a path":    {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Content: controlv1.Content_CONTENT_NTFS, FileText: "a"}), codes.InvalidArgument},
		"file above the root":    {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Content: controlv1.Content_CONTENT_NTFS, FilePath: `..\..\a`}), codes.InvalidArgument},
		"file with a stream":     {attach(&controlv1.AttachDiskRequest{SizeBytes: gib, Content: controlv1.Content_CONTENT_NTFS, FilePath: `a:b:c`}), codes.InvalidArgument},
		"tiny for NTFS":          {attach(&controlv1.AttachDiskRequest{SizeBytes: 1 << 20, Content: controlv1.Content_CONTENT_NTFS}), codes.InvalidArgument},
		"device as directory":    {mkdir(`\\.\PhysicalDrive0`), codes.InvalidArgument},
		"verbatim directory":     {mkdir(`\\?\C:\dir`), codes.InvalidArgument},
		"relative directory":     {mkdir(`dir`), codes.InvalidArgument},
		"no directory":           {mkdir(""), codes.InvalidArgument},
		"bad name":               {mkdir(`C:\a|b`), codes.InvalidArgument},
		"bad name on a share":    {mkdir(`\\files\data\a|b`), codes.InvalidArgument},
		"reserved name":          {mkdir(`\\files\data\NUL`), codes.InvalidArgument},
		"no server":              {mkdir(`\\`), codes.NotFound},
		"no such share":          {mkdir(`\\files\none\a`), codes.NotFound},
		"system disk":            {calling(c.DetachDisk, &controlv1.DetachDiskRequest{}), codes.FailedPrecondition},
		"failing system disk":    {calling(c.FailDisk, &controlv1.FailDiskRequest{}), codes.FailedPrecondition},
		"hanging system disk":    {calling(c.HangDisk, &controlv1.HangDiskRequest{}), codes.FailedPrecondition},
		"smaller":                {calling(c.GrowDisk, &controlv1.GrowDiskRequest{DiskNumber: 1, SizeBytes: gib}), codes.InvalidArgument},
		"server without a name":  {calling(c.AddServer, &controlv1.AddServerRequest{}), codes.InvalidArgument},
		"server with a slash":    {calling(c.AddServer, &controlv1.AddServerRequest{Server: `a\b`}), codes.InvalidArgument},
		"known server":           {calling(c.AddServer, &controlv1.AddServerRequest{Server: "FILES"}), codes.AlreadyExists},
		"known share":            {calling(c.AddShare, &controlv1.AddShareRequest{Server: "files", Share: "DATA"}), codes.AlreadyExists},
		"wrong share":            {calling(c.AddShare, &controlv1.AddShareRequest{Server: "files", Share: `a\b`}), codes.InvalidArgument},
		"known account":          {calling(c.AddAccount, &controlv1.AddAccountRequest{Server: "files", User: "CSI", Password: "x"}), codes.AlreadyExists},
		"account without a name": {calling(c.AddAccount, &controlv1.AddAccountRequest{Server: "files", Password: "x"}), codes.InvalidArgument},
		"long password":          {calling(c.SetPassword, &controlv1.SetPasswordRequest{Server: "files", User: "csi", Password: long}), codes.InvalidArgument},
		"password of no user":    {calling(c.SetPassword, &controlv1.SetPasswordRequest{Server: "files", User: "none", Password: "s3cret"}), codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.call(t.Context())
			wantCode(t, err, test.want)
			if strings.Contains(fmt.Sprint(err), "s3cret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
	if after := describe(t, c); after != before {
		t.Errorf("refused requests changed the node from\n%s\nto\n%s", before, after)
	}
	if after := c.node.Tree(`C:\`); after != tree {
		t.Errorf("refused requests changed the files from\n%s\nto\n%s", tree, after)
	}
}

func describe(t *testing.T, c controlled) string {
	t.Helper()
	return try[*controlv1.DescribeNodeResponse](t)(c.DescribeNode(t.Context(), &controlv1.DescribeNodeRequest{})).String()
}

// calling makes a call without its answer.
func calling[I, O any](call func(context.Context, *I, ...grpc.CallOption) (*O, error), in *I) func(context.Context) error {
	return func(ctx context.Context) error { _, err := call(ctx, in); return err }
}

// TestControl_NoObject: each call says what is missing.
func TestControl_NoObject(t *testing.T) {
	c := startControlled(t)
	for name, call := range map[string]func(context.Context) error{
		"detach":   calling(c.DetachDisk, &controlv1.DetachDiskRequest{DiskNumber: 99}),
		"reattach": calling(c.ReattachDisk, &controlv1.ReattachDiskRequest{DiskNumber: 99}),
		"grow":     calling(c.GrowDisk, &controlv1.GrowDiskRequest{DiskNumber: 99, SizeBytes: 1 << 30}),
		"fail":     calling(c.FailDisk, &controlv1.FailDiskRequest{DiskNumber: 99}),
		"hang":     calling(c.HangDisk, &controlv1.HangDiskRequest{DiskNumber: 99}),
		"heal":     calling(c.HealDisk, &controlv1.HealDiskRequest{DiskNumber: 99}),
		"stop":     calling(c.StopServer, &controlv1.StopServerRequest{Server: "srv99"}),
		"start":    calling(c.StartServer, &controlv1.StartServerRequest{Server: "srv99"}),
		"share":    calling(c.AddShare, &controlv1.AddShareRequest{Server: "srv99", Share: "a"}),
		"account":  calling(c.AddAccount, &controlv1.AddAccountRequest{Server: "srv99", User: "a", Password: "b"}),
		"password": calling(c.SetPassword, &controlv1.SetPasswordRequest{Server: "srv99", User: "a", Password: "b"}),
	} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, call(t.Context()), codes.NotFound, "99")
		})
	}
}

// TestControl_Off: without the option there is no endpoint.
func TestControl_Off(t *testing.T) {
	dir := run(t, newNode(t), "disk/v1")
	if _, err := client.Connect(t.Context(), "sim", apiversion.NewVersionOrPanic("v1"), client.WithPipePath(endpointPath(dir, "sim", "v1"))); err == nil {
		t.Error("the control endpoint exists")
	}
}
