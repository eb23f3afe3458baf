package serve_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	diskclient "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	fsclient "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	iscsiclient "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha2"
	smbclient "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1"
	volumeclient "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// healStory is a node with three drivers, of which each has staged a volume.
type healStory struct {
	t      *testing.T
	node   *winsim.Node
	stop   func()
	disk   *driver // azuredisk
	away   bool    // its disk
	lun    *driver // democratic-csi
	share  *driver // csi-driver-smb
	iscsi  remote
	smb    remote
	healer extensionv1.HealerClient
}

const healPortal = "10.0.0.10:3260"

// stagingPath is where kubelet stages the only volume of a driver.
func stagingPath(driver string) string {
	return `C:\var\lib\kubelet\plugins\kubernetes.io\csi\` + driver + `\` + strings.Repeat("0", 63) + `1\globalmount`
}

func newHealStory(t *testing.T) *healStory {
	t.Helper()
	model := winsim.Default()
	model.Disks = model.Disks[:2]
	node, err := winsim.New(model)
	must(t, err)
	s := &healStory{t: t, node: node}
	s.serve(serve.Config{})
	s.disk.number = 1
	return s
}

// serve starts the daemon, as after a start of the node.
func (s *healStory) serve(cfg serve.Config) {
	s.t.Helper()
	if s.stop != nil {
		s.stop()
	}
	dir, stop := runUntil(s.t, s.node, cfg)
	s.stop = stop
	connect := func(name string, number uint32) *driver {
		return &driver{
			t: s.t, number: number, path: stagingPath(name),
			disk:       dialRemote(s.t, untyped(diskclient.NewClientWithPipePath), dir, "disk", "v1"),
			volume:     dialRemote(s.t, untyped(volumeclient.NewClientWithPipePath), dir, "volume", "v1"),
			filesystem: dialRemote(s.t, untyped(fsclient.NewClientWithPipePath), dir, "filesystem", "v1"),
		}
	}
	number := uint32(0)
	if s.disk != nil {
		number = s.disk.number
	}
	s.disk, s.lun, s.share = connect("disk.csi.azure.com", number), connect("org.democratic-csi.iscsi", 0), connect("smb.csi.k8s.io", 0)
	s.iscsi = dialRemote(s.t, untyped(iscsiclient.NewClientWithPipePath), dir, "iscsi", "v1alpha2")
	s.smb = dialRemote(s.t, untyped(smbclient.NewClientWithPipePath), dir, "smb", "v1")
	s.healer = extensionv1.NewHealerClient(dial(s.t, dir, grpcapi.Endpoint{Group: "filesystem", Version: "v1"}))
}

// stageDisk is NodeStage of azuredisk, which knows its disk by the LUN: another disk may have got its
// number.
func (s *healStory) stageDisk() {
	if s.away {
		s.disk.err = errors.New("failed to find disk on lun")
		return
	}
	stageAzureDisk(s.disk)
}

// stageLUN is NodeStage of democratic-csi with iSCSI.
func (s *healStory) stageLUN() {
	d := s.lun
	target := fields{"target_portal": fields{"target_address": "10.0.0.10"}, "iqn": openTarget}
	d.do(s.iscsi, "AddTargetPortal", fields{"target_portal": target["target_portal"]})
	d.do(s.iscsi, "ConnectTarget", target)
	d.do(d.disk, "Rescan", nil)
	out := d.do(s.iscsi, "GetTargetDisks", target)
	if d.err != nil {
		return
	}
	ids := out.get(s.t, "diskIDs").(protoreflect.List)
	if ids.Len() == 0 {
		d.err = errors.New("the target has no disk")
		return
	}
	number, err := strconv.ParseUint(ids.Get(0).String(), 10, 32)
	if err != nil {
		s.t.Fatal(err)
	}
	d.number = uint32(number)
	stages["democratic-csi"](d)
}

// stageShare is NodeStage of csi-driver-smb.
func (s *healStory) stageShare() {
	d := s.share
	if out := d.do(d.filesystem, "PathExists", d.atStage()); d.err == nil && out.get(s.t, "exists") == true {
		d.do(d.filesystem, "Rmdir", fields{"path": d.path, "force": true})
	}
	parent := d.path[:strings.LastIndexByte(d.path, '\\')]
	d.do(d.filesystem, "Mkdir", fields{"path": parent})
	d.do(s.smb, "NewSmbGlobalMapping", fields{"remote_path": `\\files\data`, "local_path": d.path, "username": `AZURE\csi`, "password": "csi-Pa55"})
}

// mkdir is what kubelet does before it calls a driver: os.MkdirAll.
// https://github.com/kubernetes/kubernetes/issues/130300
func (s *healStory) mkdir(path string) error {
	if info, err := s.node.FileInfo(s.t.Context(), win.Following(path)); err == nil && info.Directory {
		return nil
	}
	if s.node.Exists(path) {
		return errors.New("attacher.MountDevice failed to create dir: Cannot create a file when that file already exists")
	}
	return s.node.Mkdir(path)
}

// stageAll is an attempt of kubelet to stage every volume. It returns what failed.
func (s *healStory) stageAll() (failed []error) {
	for _, volume := range []struct {
		*driver
		stage func()
	}{{s.disk, s.stageDisk}, {s.lun, s.stageLUN}, {s.share, s.stageShare}} {
		d := volume.driver
		if d.err = s.mkdir(d.path); d.err == nil {
			volume.stage()
		}
		if d.err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", d.path, d.err))
		}
	}
	return failed
}

func (s *healStory) heal() *extensionv1.HealResponse {
	s.t.Helper()
	out, err := s.healer.Heal(s.t.Context(), &extensionv1.HealRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *healStory) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *healStory) wait(d time.Duration) {
	s.t.Helper()
	s.must(s.node.Sleep(s.t.Context(), d))
}

// permutations calls each with every order of the items.
func permutations(items []string, each func([]string)) {
	var order func(done, left []string)
	order = func(done, left []string) {
		if len(left) == 0 {
			each(done)
			return
		}
		for i := range left {
			rest := append(append([]string{}, left[:i]...), left[i+1:]...)
			order(append(append([]string{}, done...), left[i]), rest)
		}
	}
	order(nil, items)
}

// TestHeal_Story restarts a node on which three drivers have staged volumes. Its disk, its iSCSI
// server and its file server come back in every order, before and after heal and kubelet's
// attempts. In the end every volume must be back, with its data.
func TestHeal_Story(t *testing.T) {
	const disk, portal, server, heal, attempt = "disk", "iSCSI server", "file server", "heal", "attempt"
	permutations([]string{disk, portal, server, heal, attempt}, func(order []string) {
		t.Run(strings.Join(order, ", "), func(t *testing.T) {
			s := newHealStory(t)
			if failed := s.stageAll(); failed != nil {
				t.Fatal(failed)
			}
			for _, d := range []*driver{s.disk, s.lun, s.share} {
				s.must(s.node.WriteFile(d.path+`\precious`, d.path))
			}
			s.wait(time.Hour)
			s.must(s.node.DetachDisk(s.disk.number))
			s.away = true
			s.must(s.node.SetISCSIPortalDown(healPortal, true))
			s.must(s.node.ChangeSMBServer("files", func(m *winsim.SMBServer) { m.Down = true }))
			s.node.Reboot()
			s.serve(serve.Config{})
			s.wait(time.Hour)
			for _, event := range order {
				switch event {
				case disk:
					number, err := s.node.ReattachDisk(s.disk.number)
					s.must(err)
					s.disk.number, s.away = number, false
				case portal:
					s.must(s.node.SetISCSIPortalDown(healPortal, false))
				case server:
					s.must(s.node.ChangeSMBServer("files", func(m *winsim.SMBServer) { m.Down = false }))
				case heal:
					s.heal()
				case attempt:
					s.stageAll()
				}
				s.wait(time.Minute)
			}
			// Without heal kubelet is stuck with what a restart left. This daemon has not looked since its start, so that
			// what is gone has to be gone at two looks.
			s.heal()
			s.wait(10 * time.Minute)
			s.heal()
			var failed []error
			for range 3 { // kubelet repeats it
				if failed = s.stageAll(); failed == nil {
					break
				}
				s.wait(time.Minute)
			}
			if failed != nil {
				t.Fatal(failed)
			}
			for _, d := range []*driver{s.disk, s.lun, s.share} {
				if content, err := s.node.ReadFile(d.path + `\precious`); err != nil || content != d.path {
					t.Errorf("%s contains %q, %v", d.path, content, err)
				}
			}
			if out := s.heal(); len(out.GetStale()) != 0 || out.GetLive() != 3 {
				t.Errorf("%v", out)
			}
		})
	})
}

// looks receives what each look has found.
type looks chan []wholenode.StaleMount

// StaleMounts implements daemon.StaleObserver.
func (l looks) StaleMounts(found []wholenode.StaleMount) { l <- found }

// TestHeal_Modes: off refuses requests, remove heals at start, report removes nothing.
func TestHeal_Modes(t *testing.T) {
	for _, mode := range []daemon.HealMode{"off", "report", "remove"} {
		t.Run(string(mode), func(t *testing.T) {
			s := newHealStory(t)
			if failed := s.stageAll(); failed != nil {
				t.Fatal(failed)
			}
			s.wait(2 * time.Hour) // a volume of less than an hour before may be one after it, if the clock was set
			s.node.Reboot()
			s.wait(20 * time.Minute)
			seen := make(looks, 10)
			s.serve(serve.Config{Config: daemon.Config{Heal: mode, StaleMounts: seen}})
			if mode == "off" {
				_, err := s.healer.Heal(t.Context(), &extensionv1.HealRequest{DryRun: true})
				if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "-heal-stale-mounts=off") {
					t.Error(err)
				}
				return
			}
			if found := <-seen; len(found) != 2 {
				t.Errorf("%+v", found)
			}
			if removed := !s.node.Exists(s.lun.path); removed != (mode == "remove") {
				t.Errorf("removed: %v", removed)
			}
		})
	}
}
