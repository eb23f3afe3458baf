package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/kubernetes-csi/csi-proxy/client"
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve/control"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// controlled is a node with its control service, and the clients of a driver.
type controlled struct {
	t      *testing.T
	sim    *grpc.ClientConn
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
		Config:  daemon.Config{APIGroups: []string{"disk/v1", "volume/v1", "filesystem/v1", "smb/v1"}},
		Control: serve.DefaultControl,
	})
	dial := func(group string) *grpc.ClientConn {
		conn, err := client.Connect(t.Context(), group, apiversion.NewVersionOrPanic("v1"), client.WithPipePath(endpointPath(dir, group, "v1")))
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	return controlled{
		t, dial("sim"), node, diskv1.NewDiskClient(dial("disk")), volumev1.NewVolumeClient(dial("volume")),
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

// change makes a change, and returns the numbers of the disks that it attached.
func (c controlled) change(yaml string, args ...any) ([]uint32, error) {
	var out wrapperspb.StringValue
	if err := c.sim.Invoke(c.t.Context(), control.Apply, wrapperspb.String(fmt.Sprintf(yaml, args...)), &out); err != nil {
		return nil, err
	}
	var changed serve.Changed
	return changed.Disks, json.Unmarshal([]byte(out.GetValue()), &changed)
}

func (c controlled) apply(yaml string, args ...any) {
	c.t.Helper()
	if _, err := c.change(yaml, args...); err != nil {
		c.t.Fatal(err)
	}
}

func (c controlled) attach(disk string, args ...any) uint32 {
	c.t.Helper()
	numbers, err := c.change("attach: [{"+disk+"}]", args...)
	if err != nil || len(numbers) != 1 {
		c.t.Fatalf("%v, %v", numbers, err)
	}
	return numbers[0]
}

func (c controlled) describe() string {
	c.t.Helper()
	var out wrapperspb.StringValue
	must(c.t, c.sim.Invoke(c.t.Context(), control.Describe, &emptypb.Empty{}, &out))
	return out.GetValue()
}

// described is a disk, and the hash of its content.
func (c controlled) described(number uint32) (winsim.Disk, string) {
	c.t.Helper()
	var node struct {
		winsim.Model `yaml:",inline"`
		Fingerprints map[string]string `yaml:"fingerprints"`
	}
	must(c.t, yaml.Unmarshal([]byte(c.describe()), &node))
	for _, d := range node.Disks {
		if d.Number == number {
			return d, node.Fingerprints[fmt.Sprint(number)]
		}
	}
	c.t.Fatalf("there is no disk %d", number)
	return winsim.Disk{}, ""
}

// TestControl_Disk: what each change does to a disk, as a driver sees it.
func TestControl_Disk(t *testing.T) {
	c := startControlled(t)
	number := c.attach(`size: 1GiB, serial: SIM-1, page83: [{text: "Sim  disk-1"}]`)
	ids := try[*diskv1.ListDiskIDsResponse](t)(c.disk.ListDiskIDs(t.Context(), &diskv1.ListDiskIDsRequest{})).DiskIDs[number]
	if ids.GetSerialNumber() != "SIM-1" || ids.GetPage83() != "Sim  disk-1" {
		t.Errorf("ids: %v", ids)
	}
	locations := try[*diskv1.ListDiskLocationsResponse](t)(c.disk.ListDiskLocations(t.Context(), &diskv1.ListDiskLocationsRequest{})).DiskLocations
	if d, _ := c.described(number); locations[number].GetAdapter() != "1" || locations[number].GetLUNID() != fmt.Sprint(d.SCSI.LUN) {
		t.Errorf("location: %v", locations[number])
	}

	size := func() int64 {
		return try[*diskv1.GetDiskStatsResponse](t)(c.disk.GetDiskStats(t.Context(), &diskv1.GetDiskStatsRequest{DiskNumber: number})).TotalBytes
	}
	c.apply(`grow: [{disk: %d, size: 2GiB}]`, number)
	if d, _ := c.described(number); d.Size != 2*winsim.GiB || d.Visible != winsim.GiB || size() != 1<<30 {
		t.Errorf("before a rescan: %v, %v", d.Size, d.Visible)
	}
	try[*diskv1.RescanResponse](t)(c.disk.Rescan(t.Context(), &diskv1.RescanRequest{}))
	if got := size(); got != 2<<30 {
		t.Errorf("size after a rescan: %d", got)
	}

	c.apply(`fail: [%d]`, number)
	_, err := c.disk.PartitionDisk(t.Context(), &diskv1.PartitionDiskRequest{DiskNumber: number})
	wantCode(t, err, codes.Internal, "1117")
	if d, _ := c.described(number); !d.Dying {
		t.Error("the description does not show that the disk fails")
	}
	c.apply(`heal: [%d]`, number)
	if got := size(); got != 2<<30 {
		t.Errorf("size after the failure: %d", got)
	}

	c.apply(`detach: [%d]`, number)
	if ids := try[*diskv1.ListDiskIDsResponse](t)(c.disk.ListDiskIDs(t.Context(), &diskv1.ListDiskIDsRequest{})).DiskIDs[number]; ids != nil {
		t.Errorf("a detached disk: %v", ids)
	}
	if numbers, err := c.change(`reattach: [%d]`, number); err != nil || len(numbers) != 1 || size() != 2<<30 {
		t.Errorf("attached again: %v, %v", numbers, err)
	}
}

// TestControl_Hang: requests to a hanging disk wait; those to others do not.
func TestControl_Hang(t *testing.T) {
	c := startControlled(t)
	number := c.attach(ntfs, `\a`, "x")
	volumes := try[*volumev1.ListVolumesOnDiskResponse](t)(c.volume.ListVolumesOnDisk(t.Context(), &volumev1.ListVolumesOnDiskRequest{DiskNumber: number})).VolumeIds
	const target = `C:\var\lib\kubelet\plugins\hang`
	try[*filesystemv1.MkdirResponse](t)(c.files.Mkdir(t.Context(), &filesystemv1.MkdirRequest{Path: target}))
	try[*volumev1.MountVolumeResponse](t)(c.volume.MountVolume(t.Context(), &volumev1.MountVolumeRequest{VolumeId: volumes[0], TargetPath: target}))

	c.apply(`hang: [%d]`, number)
	if d, _ := c.described(number); !d.Hanging {
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
	c.apply(`heal: [%d]`, number)
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// ntfs is a disk with a file.
const ntfs = `size: 1GiB, layout: gpt, partitions: [{type: msr, size: 16MiB}, {volume: {files: [{path: %q, content: %q}]}}]`

// TestControl_Content: the contents that csi-proxyctl gives a new disk, and what a driver makes of them.
func TestControl_Content(t *testing.T) {
	for name, test := range map[string]struct {
		disk      string
		layout    winsim.Layout
		partition codes.Code // of PartitionDisk
	}{
		"blank":     {`size: 1GiB`, "raw", codes.OK},
		"ntfs":      {fmt.Sprintf(ntfs, `dir\a.txt`, "x"), "gpt", codes.OK},
		"linux gpt": {`size: 1GiB, layout: gpt, partitions: [{type: linux, bytes: [{offset: 1080, hex: 53ef}]}]`, "gpt", codes.FailedPrecondition},
		"ext4":      {`size: 1GiB, bytes: [{offset: 1080, hex: 53ef}]`, "raw", codes.FailedPrecondition},
		"mbr":       {`size: 1GiB, layout: mbr, partitions: [{volume: {}}]`, "mbr", codes.OK},
		"nvme":      {`size: 1GiB, bus: nvme, serial: vol0123_00000001.`, "raw", codes.OK},
		"like":      {`size: 1GiB, like: 3, page83: [{hex: 60022480 00}]`, "raw", codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			c := startControlled(t)
			number := c.attach("%s", test.disk)
			got, before := c.described(number)
			if got.Layout != test.layout {
				t.Errorf("layout %q, want %q", got.Layout, test.layout)
			}
			_, err := c.disk.PartitionDisk(t.Context(), &diskv1.PartitionDiskRequest{DiskNumber: number})
			wantCode(t, err, test.partition)
			if _, after := c.described(number); before == "" || (after != before) != (test.layout == "raw" && err == nil) {
				t.Errorf("the fingerprint was %q and is %q", before, after)
			}
		})
	}
}

// TestControl_Clone: a restored snapshot beside its original.
func TestControl_Clone(t *testing.T) {
	c := startControlled(t)
	original := c.attach(ntfs, "a", "x")
	clone := c.attach(`size: 2GiB, cloneOf: %d`, original)
	if got, _ := c.described(clone); !got.Offline || len(got.Partitions) != 2 || got.Partitions[1].Volume.FileSystem != winsim.NTFS || got.Size != 2*winsim.GiB {
		t.Errorf("the clone: %+v", got)
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

// TestControl_SMB: what each change does to a server, as a driver sees it.
func TestControl_SMB(t *testing.T) {
	c := startControlled(t)
	const local = `C:\var\lib\kubelet\plugins\smb`
	c.apply(`
smbServers: [{name: srv.example}]
smbShares: [{server: SRV.example, name: data}]
smbAccounts: [{server: srv.example, user: u, password: first}]
directories: [//srv.example/data/pvc/1]`)
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
	if described := c.describe(); strings.Contains(described, "first") || !strings.Contains(described, `\\\\srv.example\\data`) {
		t.Errorf("the description has a password or lacks the mapping: %s", described)
	}
	c.apply(`stopSMBServers: [srv.example]`)
	if exists() {
		t.Error("the share of a server that is down")
	}
	c.apply(`startSMBServers: [srv.example]`)
	if !exists() {
		t.Error("the share stays away")
	}

	c.apply(`{smbPasswords: [{server: srv.example, user: U, password: second}], endSMBSessions: true}`)
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

// TestControl_Faults: they come with a change, and go with the next that has some.
func TestControl_Faults(t *testing.T) {
	c := startControlled(t)
	ask := func() error {
		_, err := c.files.PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet\x`})
		return err
	}
	c.apply(`faults: [{call: FileInfo, error: 1117}]`)
	wantCode(t, ask(), codes.Internal, "1117")
	c.apply(`hang: []`)
	wantCode(t, ask(), codes.Internal, "1117")
	c.apply(`faults: []`)
	must(t, ask())
}

// TestControl_Restart: after a reboot mappings are gone; after a restart of the daemon the node is as it was.
func TestControl_Restart(t *testing.T) {
	c := startControlled(t)
	request := &smbv1.NewSmbGlobalMappingRequest{RemotePath: `\\files\data`, LocalPath: `C:\var\lib\kubelet\plugins\smb`, Username: "csi", Password: "csi-Pa55"}
	for change, mappings := range map[string]int{`reboot: true`: 0, `restartDaemon: true`: 1} {
		for range 2 {
			err := status.Error(codes.Unavailable, "") // as while the client has not noticed that the connection is gone
			for status.Code(err) == codes.Unavailable && t.Context().Err() == nil {
				_, err = c.smb.NewSmbGlobalMapping(t.Context(), request, grpc.WaitForReady(true))
			}
			must(t, err)
			c.apply("%s", change)
			if got := c.node.Describe().SMBMappings; len(got) != mappings {
				t.Errorf("mappings after %s: %v", change, got)
			}
		}
	}
}

// TestControl_RestartHanging: a restart does not wait for a call that a disk holds. The call fails, and what is left of
// it does not reach the node any more.
func TestControl_RestartHanging(t *testing.T) {
	for _, change := range []string{`reboot: true`, `restartDaemon: true`} {
		t.Run(change, func(t *testing.T) {
			c := startControlled(t)
			c.apply(`hang: [2]`)
			entered := make(chan struct{}, 1)
			_, err := c.node.Inject(winsim.Fault{Call: "ReadDevice", Times: 1, Do: func(*winsim.Node) { entered <- struct{}{} }})
			must(t, err)
			held := make(chan error, 1)
			go func() {
				_, err := c.disk.PartitionDisk(t.Context(), &diskv1.PartitionDiskRequest{DiskNumber: 2})
				held <- err
			}()
			<-entered
			c.apply("%s", change)
			wantCode(t, <-held, codes.Unavailable)
			c.apply(`heal: [2]`)
			if d, _ := c.described(2); d.Layout != winsim.LayoutRaw {
				t.Errorf("the dead daemon has made a partition table: %s", d.Layout)
			}
		})
	}
}

// TestControl_AttachAtOnce: disks that are attached at once have LUNs of their own, and one that comes
// back does not share that of another.
func TestControl_AttachAtOnce(t *testing.T) {
	c := startControlled(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := c.change(`attach: [{size: 1GiB}]`); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c.apply(`{detach: [3], attach: [{size: 1GiB, lun: 2}]}`)
	_, err := c.change(`reattach: [3]`)
	wantCode(t, err, codes.AlreadyExists)
	luns := map[winsim.SCSI]uint32{}
	for _, d := range c.node.Describe().Disks {
		if other, taken := luns[*d.SCSI]; taken && d.Presence == "" {
			t.Errorf("disks %d and %d have the address %+v", other, d.Number, *d.SCSI)
		}
		luns[*d.SCSI] = d.Number
	}
}

// TestControl_Refused: nothing that a caller can write ends the process or changes the node. The error names line and
// field.
func TestControl_Refused(t *testing.T) {
	c := startControlled(t)
	tree, before := c.node.Tree(`C:\`), c.describe()
	for name, test := range map[string]struct {
		change string
		want   codes.Code
		says   string
	}{
		"not YAML":               {"attach: [", codes.InvalidArgument, "line 1: "},
		"nothing":                {"", codes.InvalidArgument, "empty"},
		"unknown field":          {"grow: []\nattach:\n  - {size: 1GiB, colour: red}", codes.InvalidArgument, "line 3: attach[0].colour: unknown field"},
		"unknown change":         {"hang: []\nattack: []", codes.InvalidArgument, "line 2: attack: unknown field"},
		"not a size":             {"attach:\n  - size: big", codes.InvalidArgument, "line 2: attach[0].size: "},
		"no size":                {"attach: [{serial: a}]", codes.InvalidArgument, "line 1: attach[0].size: "},
		"odd size":               {"attach:\n  - {size: 1GiB, number: 77, lun: 77, presence: away}", codes.InvalidArgument, "line 2: attach[0].presence: "},
		"odd sectors":            {"attach:\n- size: 1GiB\n  sectorSize: 513", codes.InvalidArgument, "line 3: attach[0].sectorSize: "},
		"huge number":            {"attach: [{size: 1GiB, number: 4294967295}]", codes.InvalidArgument, "at most 65536"},
		"number in use":          {"attach: [{size: 1GiB, number: 1}]", codes.AlreadyExists, "line 1: attach[0]: "},
		"LUN in use":             {"attach: [{size: 1GiB, lun: 0}]", codes.AlreadyExists, "disk 1"},
		"huge LUN":               {"attach: [{size: 1GiB, lun: 256}]", codes.InvalidArgument, "attach[0].lun: "},
		"like no disk":           {"attach: [{size: 1GiB, like: 99}]", codes.NotFound, "99"},
		"clone of no disk":       {"attach: [{size: 1GiB, cloneOf: 99}]", codes.NotFound, "99"},
		"small clone":            {"attach: [{size: 1GiB, cloneOf: 1}]", codes.InvalidArgument, "10GiB"},
		"file above the root":    {"attach: [{" + fmt.Sprintf(ntfs, `..\..\a`, "x") + "}]", codes.InvalidArgument, "attach[0].partitions[1].volume.files[0].path: "},
		"device as directory":    {`directories: ['C:\ok', '\\.\PhysicalDrive0']`, codes.InvalidArgument, "directories[1]: "},
		"verbatim directory":     {`directories: ['\\?\C:\dir']`, codes.InvalidArgument, "directories[0]: "},
		"relative directory":     {`directories: [dir]`, codes.InvalidArgument, "dir"},
		"bad name on a share":    {`directories: ['\\files\data\a|b']`, codes.InvalidArgument, "a|b"},
		"no such share":          {`directories: ['\\files\none\a']`, codes.NotFound, "none"},
		"system disk":            {"detach: [0]", codes.FailedPrecondition, "system disk"},
		"failing system disk":    {"fail: [0]", codes.FailedPrecondition, "system disk"},
		"hanging system disk":    {"hang: [0]", codes.FailedPrecondition, "system disk"},
		"smaller":                {"grow: [{disk: 1, size: 1GiB}]", codes.InvalidArgument, "grow[0]: "},
		"server with a slash":    {`smbServers: [{name: 'a\b'}]`, codes.InvalidArgument, "smbServers[0].name: "},
		"known server":           {"smbServers: [{name: FILES}]", codes.AlreadyExists, "FILES"},
		"known share":            {"smbShares: [{server: files, name: DATA}]", codes.AlreadyExists, "DATA"},
		"wrong share":            {`smbShares: [{server: files, name: 'a\b'}]`, codes.InvalidArgument, "smbShares[0]"},
		"known account":          {"smbAccounts: [{server: files, user: CSI, password: s3cret}]", codes.AlreadyExists, "smbPasswords"},
		"account without a name": {"smbAccounts: [{server: files, password: s3cret}]", codes.InvalidArgument, "user"},
		"password of no user":    {"smbPasswords: [{server: files, user: none, password: s3cret}]", codes.NotFound, "none"},
		"unknown call":           {"faults: [{call: Nonsense, error: 5}]", codes.InvalidArgument, "faults[0].call: "},
		"detach":                 {"detach: [99]", codes.NotFound, "99"},
		"reattach":               {"reattach: [99]", codes.NotFound, "99"},
		"grow":                   {"grow: [{disk: 99, size: 1GiB}]", codes.NotFound, "99"},
		"heal":                   {"heal: [99]", codes.NotFound, "Describe"},
		"stop":                   {"stopSMBServers: [srv99]", codes.NotFound, "srv99"},
		"share":                  {"smbShares: [{server: srv99, name: a}]", codes.NotFound, "srv99"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.change("%s", test.change)
			wantCode(t, err, test.want, test.says)
			if strings.Contains(fmt.Sprint(err), "s3cret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
	must(t, c.node.RemoveAll(`C:\ok`))
	if after := c.describe(); after != before {
		t.Errorf("refused requests changed the node from\n%s\nto\n%s", before, after)
	}
	if after := c.node.Tree(`C:\`); after != tree {
		t.Errorf("refused requests changed the files from\n%s\nto\n%s", tree, after)
	}
}

// TestControl_Off: without the option there is no endpoint.
func TestControl_Off(t *testing.T) {
	dir := run(t, newNode(t), "disk/v1")
	if _, err := client.Connect(t.Context(), "sim", apiversion.NewVersionOrPanic("v1"), client.WithPipePath(endpointPath(dir, "sim", "v1"))); err == nil {
		t.Error("the control endpoint exists")
	}
}
