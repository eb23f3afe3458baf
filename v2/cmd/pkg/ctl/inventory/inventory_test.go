package inventory_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

var update = flag.Bool("update", false, "rewrite testdata")

const kubelet = `C:\var\lib\kubelet`

// id returns a volume id with a number that is easy to find in a drawing.
func id(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) }

// dataDisk returns a disk with a reserved partition, as PartitionDisk creates it, and others.
func dataDisk(size winsim.Size, partitions ...winsim.Partition) winsim.Disk {
	reserved := winsim.Partition{Type: "msr", Size: 16 * winsim.MiB}
	return winsim.Disk{Size: size, Layout: winsim.LayoutGPT, Partitions: append([]winsim.Partition{reserved}, partitions...)}
}

// models are nodes with one problem each. Their drawings are in testdata.
var models = map[string]struct {
	disks   []winsim.Disk
	volumes []winsim.Volume
	arrange func(t *testing.T, node *winsim.Node) // may be nil
}{
	"healthy": {disks: []winsim.Disk{dataDisk(10*winsim.GiB, winsim.Partition{Volume: &winsim.Volume{ID: id(1)}})}},
	"offline": {disks: []winsim.Disk{
		func() winsim.Disk {
			d := dataDisk(winsim.GiB, winsim.Partition{Volume: &winsim.Volume{ID: id(1)}})
			d.Offline = true
			return d
		}(),
		dataDisk(winsim.GiB, winsim.Partition{Volume: &winsim.Volume{ID: id(2), State: winsim.NotReady}}),
	}},
	"read-only": {disks: []winsim.Disk{
		func() winsim.Disk {
			d := dataDisk(winsim.GiB, winsim.Partition{Volume: &winsim.Volume{ID: id(1)}})
			d.ReadOnly = true
			return d
		}(),
		dataDisk(winsim.GiB, winsim.Partition{Attributes: win.ReadOnlyPartition, Volume: &winsim.Volume{ID: id(2), Used: 950 * winsim.MiB}}),
	}},
	"raw":    {disks: []winsim.Disk{dataDisk(winsim.GiB, winsim.Partition{Volume: &winsim.Volume{ID: id(1), FileSystem: winsim.FileSystemNone}})}},
	"locked": {disks: []winsim.Disk{dataDisk(winsim.GiB, winsim.Partition{Volume: &winsim.Volume{ID: id(1), State: winsim.Locked}})}},
	"full":   {disks: []winsim.Disk{dataDisk(winsim.GiB, winsim.Partition{Volume: &winsim.Volume{ID: id(1), Used: 950 * winsim.MiB}})}},
	"dying": {disks: []winsim.Disk{
		{Size: winsim.GiB, Dying: true},
		dataDisk(10*winsim.GiB, winsim.Partition{Volume: &winsim.Volume{ID: id(1)}}),
	}},
	"lagging": {
		disks: []winsim.Disk{
			dataDisk(winsim.GiB, winsim.Partition{Size: 600 * winsim.MiB, Volume: &winsim.Volume{ID: id(1)}}),
			// Only the last one can grow.
			dataDisk(80*winsim.GiB,
				winsim.Partition{Size: 21 * winsim.GiB, Volume: &winsim.Volume{ID: id(21)}},
				winsim.Partition{Size: 21 * winsim.GiB, Volume: &winsim.Volume{ID: id(22)}}),
			// The partition grew, its file system did not.
			dataDisk(4*winsim.GiB, winsim.Partition{Size: 2 * winsim.GiB, Volume: &winsim.Volume{ID: id(3)}}),
			// Other file systems and RAW volumes cannot grow.
			dataDisk(4*winsim.GiB, winsim.Partition{Size: 2 * winsim.GiB, Volume: &winsim.Volume{ID: id(41), FileSystem: winsim.ReFS}}),
			dataDisk(4*winsim.GiB, winsim.Partition{Size: 2 * winsim.GiB, Volume: &winsim.Volume{ID: id(42), FileSystem: winsim.FileSystemNone}}),
			{Size: 4 * winsim.GiB, Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{{Size: 2 * winsim.GiB, Volume: &winsim.Volume{ID: id(43)}}}},
		},
		arrange: func(t *testing.T, node *winsim.Node) {
			t.Helper()
			require.NoError(t, node.GrowPartition(t.Context(), win.PhysicalDrive(3), 2, int64(winsim.GiB)))
		},
	},
	"stale": {
		disks: []winsim.Disk{dataDisk(winsim.GiB, winsim.Partition{Volume: &winsim.Volume{ID: id(1)}})},
		arrange: func(t *testing.T, node *winsim.Node) {
			t.Helper()
			for _, err := range []error{
				node.MountFolder(kubelet+`\plugins\kubernetes.io\csi\disk.csi.example.com\0123456789abcdef0123456789abcdef\globalmount`, id(1)),
				node.Symlink(kubelet+`\pods\0f9d2c4e-58ab-4c0d-9f8c-3d1f0d4f4a11\volumes\kubernetes.io~csi\pvc-1\mount`, kubelet+`\plugins\kubernetes.io\csi\disk.csi.example.com\0123456789abcdef0123456789abcdef\globalmount`),
				node.Junction(kubelet+`\plugins\gone`, `\\?\Volume{`+id(9)+`}\`),
				node.Symlink(kubelet+`\pods\dangling`, kubelet+`\plugins\none`),
			} {
				require.NoError(t, err)
			}
		},
	},
	"spanned": { // volumes that are not one partition of one disk
		disks: []winsim.Disk{{Size: 2 * winsim.GiB}, {Size: 2 * winsim.GiB}},
		volumes: []winsim.Volume{
			{ID: id(1), Letter: "E", CDROM: true, FileSystem: winsim.CDFS, Size: 600 * winsim.MiB},
			{ID: id(2), Extents: []winsim.Extent{{Disk: 1, Offset: winsim.MiB, Size: winsim.GiB}, {Disk: 2, Offset: winsim.MiB, Size: winsim.GiB}}},
		},
	},
}

func newNode(t *testing.T, name string) *winsim.Node {
	t.Helper()
	m := models[name]
	model := winsim.Default()
	model.Disks = append(model.Disks[:1], m.disks...)
	model.Volumes = m.volumes
	node, err := winsim.New(model)
	require.NoError(t, err)
	if m.arrange != nil {
		m.arrange(t, node)
	}
	return node
}

func source(t *testing.T, dir string) inventory.Source {
	t.Helper()
	endpoints := endpoint.Node{Dir: dir}
	client := call.New(endpoints, time.Now)
	t.Cleanup(client.Close)
	return inventory.Source{Client: client}
}

func draw(t *testing.T, s inventory.Source, width int) string {
	t.Helper()
	node, err := s.Node(t.Context())
	require.NoError(t, err)
	node.Unfolded = true
	return node.Draw(&output.Printer{Format: output.Table}, width)
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (run with -update to rewrite it):\n%s", file, diff)
	}
}

// TestNode_Draw draws each model for a terminal and for a file.
func TestNode_Draw(t *testing.T) {
	for name := range models {
		t.Run(name, func(t *testing.T) {
			dir := withInspector(t, newNode(t, name))
			narrow := draw(t, source(t, dir), 80)
			for line := range strings.Lines(narrow) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
					t.Errorf("%d characters: %s", n, line)
				}
			}
			golden(t, name, narrow)
			if whole := draw(t, source(t, dir), 0); strings.Contains(whole, "…") {
				t.Errorf("something is left out without a terminal:\n%s", whole)
			}
		})
	}
}

// withInspector serves a node like the daemon.
func withInspector(t *testing.T, node *winsim.Node) string {
	t.Helper()
	dir := serve.SocketDir(t)
	serve.StartWith(t, node, serve.Config{Config: daemon.Config{SocketDir: dir}})
	return dir
}

// TestNode_NoInspector: one sentence says what is missing; the volumes of a disk can be listed all the same.
func TestNode_NoInspector(t *testing.T) {
	dir := serve.SocketDir(t)
	serve.StartWith(t, newNode(t, "raw"), serve.Config{Config: daemon.Config{SocketDir: dir, APIGroups: []string{"disk", "volume"}}})
	if _, err := source(t, dir).Node(t.Context()); !errors.As(err, new(*endpoint.UnreachableError)) || !strings.Contains(err.Error(), "csi-proxyctl doctor") {
		t.Errorf("without the group system: %v", err)
	}
	serve.StartWith(t, newNode(t, "raw"), serve.Config{Config: daemon.Config{SocketDir: dir, APIGroups: []string{"system"}}}) // without disk and volume it has no inspector
	s := source(t, dir)
	if _, err := s.Node(t.Context()); status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "this needs the csi-proxy of this project") {
		t.Errorf("without an inspector: %v", err)
	}
	found, err := s.VolumesOn(t.Context(), 1, 2)
	require.NoError(t, err)
	if all := found.GetVolumes(); len(all) != 1 || all[0].GetId() != `\\?\Volume{`+id(1)+`}\` || found.Problems[0].Kind != problem.Unseen {
		t.Errorf("volumes %v, problems %+v", all, found.Problems)
	}
}

// TestNode_NoFilesystemGroup: a problem says that links are not visible.
func TestNode_NoFilesystemGroup(t *testing.T) {
	dir := serve.SocketDir(t)
	serve.StartWith(t, newNode(t, "stale"), serve.Config{Config: daemon.Config{SocketDir: dir, APIGroups: []string{"disk", "volume", "system"}}})
	node, err := source(t, dir).Node(t.Context())
	require.NoError(t, err)
	if len(node.Stale()) != 0 || len(node.Problems) != 1 || node.Problems[0].Kind != problem.Unseen {
		t.Errorf("stale mounts %+v, problems %+v", node.Stale(), node.Problems)
	}
}

// TestVolumes: the list has all volumes with disk and partition.
func TestVolumes(t *testing.T) {
	s := source(t, withInspector(t, newNode(t, "lagging")))
	all, err := s.Volumes(t.Context())
	require.NoError(t, err)
	one, err := s.VolumesOn(t.Context(), 2, 3)
	require.NoError(t, err)
	if volumes := one.GetVolumes(); len(all.GetVolumes()) != 9 || len(volumes) != 1 || volumes[0].GetId() != `\\?\Volume{`+id(22)+`}\` || volumes[0].GetDisks()[0] != 2 || volumes[0].GetPartition() != 3 {
		t.Errorf("%d volumes, and %+v", len(all.GetVolumes()), volumes)
	}
	if _, err := s.VolumesOn(t.Context(), 99, 0); err == nil {
		t.Error("disk 99 has volumes")
	}
}

// TestNode_JSON: it has all fields of what the server sends, and lists are never null.
func TestNode_JSON(t *testing.T) {
	for name := range models {
		t.Run(name, func(t *testing.T) {
			n, err := source(t, withInspector(t, newNode(t, name))).Node(t.Context())
			require.NoError(t, err)
			encoded, err := json.Marshal(n)
			require.NoError(t, err)
			for _, list := range []string{"disks", "volumes", "sessions", "shares", "pods", "problems", "partitions", "mountPaths", "links"} {
				if bytes.Contains(encoded, []byte(`"`+list+`":null`)) {
					t.Errorf("%s is null in %s", list, encoded)
				}
			}
			for _, field := range []string{"dirty", "damage", "health", "healthReason", "volumeID", "since"} {
				if !bytes.Contains(encoded, []byte(`"`+field+`":`)) {
					t.Errorf("no %s in %s", field, encoded)
				}
			}
		})
	}
}
