package mountertest_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestNew_DetectsTheMode(t *testing.T) {
	t.Setenv("CSI_PROXY_SOCKET_DIR", filepath.Join(t.TempDir(), "none"))
	_, err := mounter.New(t.Context())
	for _, part := range []string{"daemon mode", "csi-proxy-filesystem-v1", "CONTAINER_SANDBOX_MOUNT_POINT"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("outside a container: %v, want %q", err, part)
		}
	}
	if class := failure.ClassOf(err); class != failure.Unavailable {
		t.Errorf("the class is %s, want unavailable", class)
	}
	t.Setenv("CONTAINER_SANDBOX_MOUNT_POINT", `C:\hpc`)
	m, err := mounter.New(t.Context())
	if err != nil || m.Mode() != mounter.Library {
		t.Fatalf("in a HostProcess container: %v, %v", m, err)
	}
}

// TestNew_WarnsOfDaemon: a mounter in a HostProcess container says that the node has a daemon, which shares no queues with it.
func TestNew_WarnsOfDaemon(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	must(t, err)
	t.Setenv("CONTAINER_SANDBOX_MOUNT_POINT", `C:\hpc`)
	for _, dir := range []string{filepath.Join(t.TempDir(), "none"), serve.SocketDir(t)} {
		t.Setenv("CSI_PROXY_SOCKET_DIR", dir)
		runs := filepath.Base(dir) != "none"
		if runs {
			serve.StartWith(t, node, serve.Config{Config: daemon.Config{SocketDir: dir}})
		}
		var log strings.Builder
		for _, option := range []mounter.Option{mounter.WithMode(mounter.Detect), mountertest.Library(node)} {
			m, err := mounter.New(klog.NewContext(t.Context(), funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{})), option)
			if err != nil || m.Mode() != mounter.Library {
				t.Fatalf("%v, %v", m, err)
			}
		}
		if got := strings.Count(log.String(), "CSI Proxy runs on this node"); got != map[bool]int{true: 1}[runs] {
			t.Errorf("daemon %t: %s", runs, &log)
		}
	}
}

// TestNew_Refuses: options that contradict each other, in any order, and hosts that are missing.
func TestNew_Refuses(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	must(t, err)
	noPipe := func(string, string) string { return filepath.Join(t.TempDir(), "none") }
	library, pipes := mountertest.Library(node), mounter.WithPipePaths(noPipe)
	dirs, wait := mounter.WithWorkingDirs(`D:\only`), mounter.WithWait()
	for name, c := range map[string]struct {
		options []mounter.Option
		says    []string
	}{
		"an unknown mode":              {[]mounter.Option{mounter.WithMode(9)}, []string{"mode 9 is not a mode"}},
		"hosts for the daemon":         {[]mounter.Option{library, mounter.WithMode(mounter.Daemon)}, []string{"WithHosts", "WithMode", "daemon", "library"}},
		"pipes for the library":        {[]mounter.Option{pipes, mounter.WithMode(mounter.Library)}, []string{"WithPipePaths", "WithMode"}},
		"hosts and pipes":              {[]mounter.Option{library, pipes}, []string{"WithHosts", "WithPipePaths"}},
		"two modes":                    {[]mounter.Option{mounter.WithMode(mounter.Library), mounter.WithMode(mounter.Daemon)}, []string{"WithMode"}},
		"directories for the daemon":   {[]mounter.Option{dirs, mounter.WithMode(mounter.Daemon)}, []string{"WithWorkingDirs", "only in the mode library"}},
		"directories for pipes":        {[]mounter.Option{pipes, dirs}, []string{"WithWorkingDirs", "WithPipePaths"}},
		"wait for the library":         {[]mounter.Option{wait, library}, []string{"WithWait", "only in the mode daemon"}},
		"directories twice":            {[]mounter.Option{library, dirs, dirs}, []string{"WithWorkingDirs is given twice"}},
		"no directories":               {[]mounter.Option{library, mounter.WithWorkingDirs()}, []string{"no directory"}},
		"a directory that is relative": {[]mounter.Option{library, mounter.WithWorkingDirs(`var\lib`)}, []string{`var\lib`, "not absolute"}},
		"no option":                    {[]mounter.Option{nil}, []string{"option 1 is nil"}},
		"no pipes":                     {[]mounter.Option{mounter.WithPipePaths(nil)}, []string{"WithPipePaths is nil"}},
		"no hosts":                     {[]mounter.Option{mounter.WithHosts(mounter.Hosts{})}, []string{"Hosts.Disk of WithHosts is nil"}},
		"no node": {[]mounter.Option{mounter.WithHosts(mounter.Hosts{
			Disk: node.Disk(), Volume: node.Volume(), Filesystem: node.Filesystem(), SMB: node.SMB(), ISCSI: node.ISCSI(),
		})}, []string{"Hosts.Node"}},
	} {
		for range 2 { // in both orders
			m, err := mounter.New(t.Context(), c.options...)
			if m != nil || failure.ClassOf(err) != failure.Invalid || strings.Count(err.Error(), "check options") != 1 {
				t.Errorf("%s: %v, want one invalid argument", name, err)
				continue
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %v does not say %q", name, err, part)
				}
			}
			slices.Reverse(c.options)
		}
	}
}

// TestClose: a closed Mounter stays closed, in both modes and with any context.
func TestClose(t *testing.T) {
	inBothModes(t, func(k *kit) {
		k.must(k.stage())
		bound := k.WithContext(k.ctx)
		for range 2 {
			k.must(k.Close())
		}
		before := k.state()
		for i, err := range []error{
			k.stage(), k.stageShare(), k.unstage(), k.Publish(k.ctx, staging, target), k.Unpublish(k.ctx, target),
			second(k.Expand(k.ctx, staging, 0)), second(k.NeedsResize(k.ctx, staging)), second(k.Stats(k.ctx, staging)),
			second(bound.List()), second(bound.GetMountRefs(staging)), bound.Mount("2", staging+"2", "", nil), bound.Unmount(staging),
			second(bound.IsMountPoint(staging)), second(k.FindDisk(k.ctx, number(1))), second(k.DiskBytes(k.ctx, 1)), second(k.StagedAt(k.ctx, staging)),
			second(k.Exists(k.ctx, staging)), k.MakeDir(k.ctx, target), second(k.Condition(k.ctx, staging)),
		} {
			if !errors.Is(err, fs.ErrClosed) || failure.ClassOf(err) != failure.InUse {
				k.t.Errorf("verb %d: %v", i, err)
			}
		}
		if k.state() != before {
			k.t.Errorf("it changed\n%sto\n%s", before, k.state())
		}
	})
}

// TestWait: New returns when the daemon comes up, or its context ends.
func TestWait(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	nowhere := mounter.WithPipePaths(func(group, version string) string { return filepath.Join(t.TempDir(), "none") })
	if _, err := mounter.New(ended, nowhere, mounter.WithWait()); err == nil || !strings.Contains(err.Error(), "daemon mode") {
		t.Errorf("an ended context: %v", err)
	}
	node, err := winsim.New(winsim.Default())
	must(t, err)
	m, err := mounter.New(t.Context(), mountertest.NewDaemon(t, node).Option(), mounter.WithWait())
	must(t, err)
	_ = m.Close()
}

// TestWorkingDirs: a Mounter in the mode Library changes nothing outside its directories, whose spelling
// can be any that the verbs take.
func TestWorkingDirs(t *testing.T) {
	for _, dir := range []string{`C:\csi`, "/csi", `c:/csi/`, `\\?\C:\csi`, `\csi`} {
		t.Run(dir, func(t *testing.T) { testWorkingDir(t, dir) })
	}
}

func testWorkingDir(t *testing.T, dir string) {
	t.Helper()
	node, err := winsim.New(winsim.Default())
	must(t, err)
	m, err := mounter.New(t.Context(), mountertest.Library(node), mounter.WithWorkingDirs(dir))
	must(t, err)
	if _, err := m.Stage(t.Context(), mounter.StageRequest{Path: staging, Source: number(1)}); failure.ClassOf(err) != failure.Denied || node.Exists(staging) {
		t.Errorf("outside: %v, want not allowed", err)
	}
	if _, err := m.Stage(t.Context(), mounter.StageRequest{Path: `C:\csi\staging`, Source: number(1)}); err != nil {
		t.Errorf("inside: %v", err)
	}
	for _, dir := range []string{`C:\`, `C:\Windows\System32`, `C:\Users`} {
		if _, err := mounter.New(t.Context(), mountertest.Library(node), mounter.WithWorkingDirs(dir)); err == nil || !strings.Contains(err.Error(), "folder of Windows") {
			t.Errorf("%s: %v, want that a driver cannot have it", dir, err)
		}
	}
}

// TestDaemon_WithoutTheInspector: a driver whose container lacks the pipe of the group system, or
// the original daemon.
func TestDaemon_WithoutTheInspector(t *testing.T) {
	node, err := winsim.New(winsim.EBSNVMe())
	must(t, err)
	option := mountertest.NewDaemonWith(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"disk", "volume", "filesystem", "smb"}}}).Option()
	m, err := mounter.New(t.Context(), option)
	must(t, err)
	defer m.Close()
	for _, listErr := range []error{second(m.List()), second(m.GetMountRefs(staging))} {
		if failure.ClassOf(listErr) != failure.Unavailable || !strings.Contains(listErr.Error(), "csi-proxy-system-v1alpha1") {
			t.Errorf("%v, want unavailable with the name of the pipe", listErr)
		}
	}
	_, err = m.Stage(t.Context(), mounter.StageRequest{Path: staging, Source: mounter.Disk{EUI64: "0"}})
	if failure.ClassOf(err) != failure.Unavailable || !strings.Contains(err.Error(), "csi-proxy-system-v1alpha1") {
		t.Errorf("a key that only the inspector knows: %v", err)
	}
	ids, err := nodeapi.NewOn(node)
	must(t, err)
	found, err := ids.Describe(t.Context())
	must(t, err)
	staged, err := m.Stage(t.Context(), mounter.StageRequest{Path: staging, Source: mounter.Disk{Serial: found.Disks[1].Serial}})
	if err != nil || staged.DiskNumber != 1 {
		t.Fatalf("%+v, %v", staged, err)
	}
	must(t, m.Unstage(t.Context(), mounter.UnstageRequest{Path: staging, Offline: true}))
	if info, err := node.DiskInfo(1); err != nil || !info.Offline {
		t.Errorf("%+v, %v, want an offline disk", info, err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestDaemon_FormatDefault: a driver that asks for NTFS gets it, whatever the daemon formats with by default.
func TestDaemon_FormatDefault(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	must(t, err)
	d := mountertest.NewDaemonWith(t, node, serve.Config{Config: daemon.Config{Format: volumeapi.FormatOptions{FileSystem: "ReFS"}}})
	m, err := mounter.New(t.Context(), d.Option())
	must(t, err)
	defer m.Close()
	for i, want := range []winsim.FileSystem{winsim.ReFS, winsim.NTFS} {
		fsType := []string{"", "NTFS"}[i]
		_, err := m.Stage(t.Context(), mounter.StageRequest{Path: staging + fsType, Source: number(uint32(i + 1)), FSType: fsType})
		must(t, err)
		info, err := node.DiskInfo(uint32(i + 1))
		must(t, err)
		if got := info.Partitions[len(info.Partitions)-1].Volume.FileSystem; got != want {
			t.Errorf("FSType %q: %s, want %s", fsType, got, want)
		}
	}
}

// TestStorageClasses: what StorageClasses of Linux say does no harm, and is in the log once, without its secrets.
func TestStorageClasses(t *testing.T) {
	for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
		t.Run(mode.String(), func(t *testing.T) {
			k := newKit(t, mode, winsim.Default())
			var log strings.Builder
			k.ctx = klog.NewContext(k.ctx, funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{}))
			flags := []string{"dir_mode=0777,uid=1000", "mfsymlinks", "noatime", "password=Pa55,Pa55rest", ""}
			fileSystems := []string{"ext2", "ext3", "EXT4", "xfs", "btrfs", "f2fs", "jfs", "reiserfs", "zfs"}
			for _, fs := range fileSystems {
				k.must(k.stage(func(r *mounter.StageRequest) { r.FSType, r.MountFlags = fs, flags }), k.unstage())
			}
			k.must(k.stage(func(r *mounter.StageRequest) { r.FSType = "ext4" }))
			info, err := k.node.DiskInfo(1)
			if k.must(err); info.Partitions[len(info.Partitions)-1].Volume.FileSystem != winsim.NTFS {
				t.Errorf("the disk is %+v", info)
			}
			k.must(second(k.Stage(k.ctx, mounter.StageRequest{
				Path: staging2, Source: mounter.SMB{Remote: "//files/data", Username: "csi", Password: "csi-Pa55"}, FSType: "anything", MountFlags: flags,
			})))
			lines := 0
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "ignoring") || strings.Contains(line, "node's default") {
					lines++
				}
			}
			if want := len(fileSystems) + len([]string{"anything", "dir_mode", "uid", "mfsymlinks", "noatime", "password", "another"}); lines != want || strings.Contains(log.String(), "Pa55") {
				t.Errorf("%d lines, want %d without secrets:\n%s", lines, want, &log)
			}
		})
	}
}
