package mountertest_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/mounter/remote"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// daemons are what package remote talks to, by what each serves.
var daemons = map[string]struct {
	serve func(t *testing.T, node *winsim.Node) func(group, version string) string
	lacks []string
}{
	"ours": {serve: served},
	"original": {serve: func(t *testing.T, node *winsim.Node) func(string, string) string {
		t.Helper()
		return publishedOnly(t, node, func(string) {})
	}, lacks: []string{"RmdirContents", "GetClosestVolumeIDFromTargetPath", "Health"}},
	"older": {serve: func(t *testing.T, node *winsim.Node) func(string, string) string { // wire formats with other names
		t.Helper()
		groups := []string{"disk/v1beta3", "filesystem/v1beta2", "volume/v1beta3", "smb/v1beta2", "iscsi", "system"}
		return sockets(mountertest.NewDaemonWith(t, node, serve.Config{Config: daemon.Config{APIGroups: groups, AllowedServices: []string{"*"}}}))
	}, lacks: []string{"RmdirContents", "GetClosestVolumeIDFromTargetPath", "SetMutualChapSecret"}},
}

func served(t *testing.T, node *winsim.Node) func(group, version string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it uses sockets, not pipes")
	}
	return sockets(mountertest.NewDaemonWith(t, node, serve.Config{Config: daemon.Config{AllowedServices: []string{"*"}}}))
}

func sockets(d *mountertest.Daemon) func(group, version string) string {
	return func(group, version string) string {
		return filepath.Join(d.Dir(), "csi-proxy-"+group+"-"+version+".sock")
	}
}

// eachDaemon runs the conformance suite of a group with each of the daemons.
func eachDaemon(t *testing.T, run func(t *testing.T, open func(*testing.T, winsim.Model) (*winsim.Node, *remote.Daemon), lacks []string)) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it uses sockets, not pipes")
	}
	for name, d := range daemons {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, model winsim.Model) (*winsim.Node, *remote.Daemon) {
				t.Helper()
				node, err := winsim.New(model)
				must(t, err)
				api, err := remote.New(t.Context(), remote.WithPipePaths(d.serve(t, node)))
				must(t, err)
				t.Cleanup(func() { _ = api.Close() })
				return node, api
			}, d.lacks)
		})
	}
}

type opener = func(*testing.T, winsim.Model) (*winsim.Node, *remote.Daemon)

func TestRemote_Filesystem(t *testing.T) {
	eachDaemon(t, func(t *testing.T, open opener, lacks []string) {
		t.Helper()
		const data = `\\?\Volume{11111111-2222-3333-4444-555555555555}\`
		hosttest.Filesystem(t, func(t *testing.T) hosttest.FilesystemNode {
			t.Helper()
			model := winsim.Default()
			model.Volumes = append(model.Volumes, winsim.Volume{ID: data})
			node, api := open(t, model)
			return hosttest.FilesystemNode{
				API: api.Filesystem(), Root: `C:\var\lib\kubelet\pods`, WriteFile: node.WriteFile, ReadFile: node.ReadFile, Lacks: lacks,
				MountVolume: func(path string) error { return node.MountFolder(path, data) },
				LoseVolume:  func() error { return node.SetVolumeState(data, winsim.Gone) },
			}
		})
	})
}

func TestRemote_Disk(t *testing.T) {
	eachDaemon(t, func(t *testing.T, open opener, lacks []string) {
		t.Helper()
		hosttest.Disk(t, func(t *testing.T) hosttest.DiskNode {
			t.Helper()
			model := winsim.Default()
			model.Disks = append(model.Disks,
				winsim.Disk{Number: 10, Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Volume: &winsim.Volume{}}}},
				winsim.Disk{Number: 14, Size: winsim.GiB, Bytes: []winsim.Bytes{{Offset: 1080, Hex: "53ef"}}})
			node, api := open(t, model)
			system := uint32(0)
			return hosttest.DiskNode{
				API: api.Disk(), Empty: 1, EmptySize: int64(10 * winsim.GiB), Others: []uint32{2, 3}, Missing: 99, System: &system, Lacks: lacks,
				Used: map[string]uint32{"NTFS": 10}, Suspect: map[string]uint32{"ext4": 14}, Content: node.DiskFingerprint,
				Grow: func(number uint32, size int64) (uint32, error) {
					return number, node.GrowDisk(number, winsim.Size(size))
				},
				IDs:       map[uint32]disk.DiskIDs{1: {Page83: "WINSIM  disk-1", SerialNumber: "WINSIM0001"}},
				Locations: map[uint32]disk.DiskLocation{1: {Adapter: "1", Bus: "0", Target: "0", LUNID: "0"}},
			}
		})
	})
}

func TestRemote_Volume(t *testing.T) {
	eachDaemon(t, func(t *testing.T, open opener, lacks []string) {
		t.Helper()
		hosttest.Volume(t, func(t *testing.T) hosttest.VolumeNode {
			t.Helper()
			model := winsim.Default()
			model.Disks[1].Size, model.Disks[2].Size = winsim.GiB, winsim.GiB
			node, api := open(t, model)
			return hosttest.VolumeNode{
				API: api.Volume(), Disks: api.Disk(), Root: `C:\var\lib\kubelet\plugins`, Empty: [2]uint32{1, 2}, EmptySize: int64(winsim.GiB),
				System: winsim.SystemVolume, MissingDisk: 99, Missing: `\\?\Volume{99999999-9999-9999-9999-999999999999}\`, Lacks: lacks,
				WriteFile: node.WriteFile, ReadFile: node.ReadFile, Symlink: node.Symlink, Detach: node.DetachDisk, Fail: node.FailDisk,
				Grow: func(number uint32, size int64) (uint32, error) {
					return number, node.GrowDisk(number, winsim.Size(size))
				},
				Damage: func(id string) error {
					return node.DamageVolume(id, winsim.Damage{Dirty: true, Corruption: winsim.Noted})
				},
			}
		})
	})
}

func TestRemote_SMB(t *testing.T) {
	eachDaemon(t, func(t *testing.T, open opener, _ []string) {
		t.Helper()
		hosttest.SMB(t, func(t *testing.T) hosttest.SMBNode {
			t.Helper()
			model := winsim.Default()
			model.SMBServers[0].Shares = append(model.SMBServers[0].Shares, winsim.SMBShare{Name: "More"})
			node, api := open(t, model)
			return hosttest.SMBNode{
				API: api.SMB(), Root: `C:\var\lib\kubelet\plugins`, Share: `\\files\data`, Other: `\\files\more`, Username: "csi", Password: "csi-Pa55",
				MissingShare: `\\files\none`, WriteFile: node.WriteFile, ReadFile: node.ReadFile, RemoveLink: node.RemoveAll,
				Mapped: func(share string) (bool, error) {
					_, err := node.SMBMapping(t.Context(), share)
					if errors.Is(err, fs.ErrNotExist) {
						return false, nil
					}
					return err == nil, err
				},
				ChangePassword: func(password string) error {
					return node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[0].Password = password })
				},
			}
		})
	})
}

func TestRemote_ISCSI(t *testing.T) {
	eachDaemon(t, func(t *testing.T, open opener, lacks []string) {
		t.Helper()
		hosttest.ISCSI(t, func(t *testing.T) hosttest.ISCSINode {
			t.Helper()
			model := winsim.Default()
			model.ISCSI.Portals = append(model.ISCSI.Portals, winsim.ISCSIPortal{Address: "10.0.0.12", Down: true})
			for i := range 2 { // those of the preset
				model.ISCSI.Targets[i].Portals = []string{"10.0.0.10"}
			}
			node, api := open(t, model)
			return hosttest.ISCSINode{
				API: api.ISCSI(), Portal: &iscsi.TargetPortal{TargetAddress: "10.0.0.10", TargetPort: 3260}, Dead: &iscsi.TargetPortal{TargetAddress: "10.0.0.12", TargetPort: 3260},
				Open: "iqn.2025-01.com.example:open", OpenDisks: len(model.ISCSI.Targets[0].LUNs), Guarded: "iqn.2025-01.com.example:guarded",
				User: "winsim", Secret: "winsim-secret-1", MutualSecret: "winsim-mutual-1", Missing: "iqn.2025-01.com.example:missing",
				SetService: func(state string) error { return node.SetServiceState("MSiSCSI", winsim.ServiceState(state)) },
				Disks:      api.Disk(), Volumes: api.Volume(), Root: `C:\var\lib\kubelet\plugins`, WriteFile: node.WriteFile, ReadFile: node.ReadFile, Lacks: lacks,
			}
		})
	})
}

func TestRemote_System(t *testing.T) {
	eachDaemon(t, func(t *testing.T, open opener, _ []string) {
		t.Helper()
		hosttest.System(t, func(t *testing.T) hosttest.SystemNode {
			t.Helper()
			_, api := open(t, winsim.Default())
			serial := "WINSIM-NODE-1"
			return hosttest.SystemNode{
				API: api.System(), Serial: &serial, Service: "vds", Missing: "Missing",
				Known: system.GetServiceResponse{DisplayName: "Virtual Disk", StartType: system.START_TYPE_MANUAL, Status: system.SERVICE_STATUS_STOPPED},
			}
		})
	})
}

// TestRemote_Node: the description of a node with its problems, a disk that is found and the health of a volume are those
// of the library.
func TestRemote_Node(t *testing.T) {
	model := winsim.EBSNVMe()
	model.Disks[2].Dying = true
	node, err := winsim.New(model)
	must(t, err)
	daemon, err := remote.New(t.Context(), remote.WithPipePaths(served(t, node)))
	must(t, err)
	defer daemon.Close()
	local, err := nodeapi.NewOn(node, nodeapi.WorkingDirs(`C:\var\lib\kubelet`), nodeapi.SMBHost(node.SMB()))
	must(t, err)
	describe := func(n nodeapi.Interface) string {
		found, err := n.Describe(t.Context(), nodeapi.Links, nodeapi.Shares, nodeapi.Sessions)
		must(t, err)
		for i := range found.Disks {
			found.Disks[i].TableID = "" // is not on the wire
		}
		one, err := n.FindDisk(t.Context(), nodeapi.Query{Serial: found.Disks[1].Serial})
		must(t, err)
		one.TableID = ""
		volumes, err := n.DescribeVolumes(t.Context(), found.Volumes[0].ID)
		must(t, err)
		healed, err := n.Heal(t.Context(), nodeapi.HealOptions{})
		must(t, err)
		text, err := json.Marshal([]any{found, one, volumes, healed.Live})
		must(t, err)
		if failed := `"Kind":"failure","WindowsCode":1117,"Object":"content"`; !strings.Contains(string(text), failed) {
			t.Errorf("no disk has %s in %s", failed, text)
		}
		return strings.ReplaceAll(string(text), "null", "[]")
	}
	if got, want := describe(daemon.Node()), describe(local); got != want {
		t.Errorf("the daemon says\n%s\nwant\n%s", got, want)
	}
	for _, options := range []nodeapi.HealOptions{{MinAge: 1}, {Remove: true, AfterRestart: true}, {LeaveMapped: true}} {
		if _, err := daemon.Node().Heal(t.Context(), options); failure.ClassOf(err) != failure.Unsupported {
			t.Errorf("%+v: %v", options, err)
		}
	}
	if _, err := daemon.Filesystem().PathValid(t.Context(), &filesystem.PathValidRequest{Path: `C:\`}); failure.ClassOf(err) != failure.Unsupported || !strings.Contains(err.Error(), "PathValid") {
		t.Errorf("PathValid: %v", err)
	}
}

// TestRemote_NoRequest: no method panics without a request, and none changes disk 0.
func TestRemote_NoRequest(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	must(t, err)
	daemon, err := remote.New(t.Context(), remote.WithPipePaths(served(t, node)))
	must(t, err)
	before := node.Describe()
	for _, group := range []any{daemon.Disk(), daemon.Volume(), daemon.Filesystem(), daemon.SMB(), daemon.ISCSI(), daemon.System()} {
		for _, of := range []reflect.Type{reflect.TypeFor[disk.Extended](), reflect.TypeFor[filesystem.Extended](), reflect.TypeFor[volume.Extended](), reflect.TypeFor[smb.Interface](), reflect.TypeFor[iscsi.Interface](), reflect.TypeFor[system.Interface]()} {
			if !reflect.TypeOf(group).Implements(of) {
				continue
			}
			for i := range of.NumMethod() {
				method := reflect.ValueOf(group).MethodByName(of.Method(i).Name)
				none := reflect.Zero(method.Type().In(1))
				err, _ := reflect.TypeAssert[error](method.Call([]reflect.Value{reflect.ValueOf(t.Context()), none})[1])
				if class := failure.ClassOf(err); class != failure.Invalid && of.Method(i).Name != "PathValid" {
					t.Errorf("%s: %v", of.Method(i).Name, err)
				}
			}
		}
	}
	if after := node.Describe(); !reflect.DeepEqual(after, before) {
		t.Errorf("the node has changed:\n%+v", after)
	}
	must(t, daemon.Close())
	if _, err := daemon.Disk().Rescan(t.Context(), &disk.RescanRequest{}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
