package serve_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestInspector_Groups: what is not served is not reported by the inspector either.
func TestInspector_Groups(t *testing.T) {
	node := newNode(t)
	for _, c := range []struct {
		groups []string
		code   codes.Code
		links  bool
	}{
		{nil, codes.OK, true},
		{[]string{"system", "disk", "volume"}, codes.OK, false},
		{[]string{"system", "disk/v1", "volume/v1", "filesystem/v1"}, codes.OK, true},
		{[]string{"system"}, codes.Unimplemented, false},
		{[]string{"system", "disk", "filesystem"}, codes.Unimplemented, false},
		{[]string{"system", "volume", "filesystem"}, codes.Unimplemented, false},
	} {
		t.Run(strings.Join(c.groups, ","), func(t *testing.T) {
			dir := runWith(t, node, serve.Config{Config: daemon.Config{APIGroups: c.groups}})
			conn := dial(t, dir, grpcapi.Endpoint{Group: "system", Version: "v1alpha1"})
			response, err := extensionv1.NewInspectorClient(conn).DescribeNode(t.Context(), &extensionv1.DescribeNodeRequest{Links: true})
			if status.Code(err) != c.code || response.GetLinksSearched() != c.links {
				t.Errorf("got %v, links %v, want %v, %v", err, response.GetLinksSearched(), c.code, c.links)
			}
			if err == nil && (len(response.GetDisks()) == 0 || len(response.GetVolumes()) == 0) {
				t.Error(response)
			}
		})
	}
}

// TestInspector_Keys: the keys of a disk are on the wire, and shares only if their group is served.
func TestInspector_Keys(t *testing.T) {
	for groups, listed := range map[string]bool{"": true, "system disk volume": false, "system disk volume smb": true} {
		t.Run("groups "+groups, func(t *testing.T) {
			node, err := winsim.New(winsim.AzureNVMe())
			must(t, err)
			dir := run(t, node, strings.Fields(groups)...)
			conn := dial(t, dir, grpcapi.Endpoint{Group: "system", Version: "v1alpha1"})
			response, err := extensionv1.NewInspectorClient(conn).DescribeNode(t.Context(), &extensionv1.DescribeNodeRequest{Shares: true})
			must(t, err)
			if response.GetSharesListed() != listed {
				t.Errorf("groups %q: shares listed: %v, want %v", groups, response.GetSharesListed(), listed)
			}
			disk := response.GetDisks()[2]
			if disk.GetModel() != "MSFT NVMe Accelerator v1.0" || disk.GetBus() != "nvme" || disk.GetNvmeNamespaceId() != 3 ||
				disk.GetNguid() != "371bbe562601463d8419338d66a00003" || !strings.HasSuffix(disk.GetLocation(), ":1") || disk.GetScsiAddress() == "" ||
				!strings.Contains(disk.GetDevice(), "&000002#") {
				t.Error(disk)
			}
			address := &extensionv1.FindDiskRequest{Disk: &extensionv1.Disk{ScsiAddress: disk.GetScsiAddress(), Nguid: disk.GetNguid()}}
			if found, err := extensionv1.NewInspectorClient(conn).FindDisk(t.Context(), address); err != nil || found.GetNumber() != disk.GetNumber() {
				t.Errorf("the disk at %s is %v, %v", disk.GetScsiAddress(), found, err)
			}
		})
	}
}

// TestInspector_BadKeys: a request without keys, or with one that the search would ignore, finds no disk.
func TestInspector_BadKeys(t *testing.T) {
	find := extensionv1.NewInspectorClient(dial(t, run(t, newNode(t)), grpcapi.Endpoint{Group: "system", Version: "v1alpha1"})).FindDisk
	for _, keys := range []*extensionv1.Disk{
		nil,
		{},
		{SizeBytes: new(int64(0))},
		{Number: new(uint32(1)), Online: new(true)},
		{ScsiAddress: "0:0:1"},
		{ScsiAddress: "0:0:1:256"},
		{ScsiAddress: "0:0:1:0x"},
		{ScsiAddress: "0:0:1:-1"},
		{ScsiAddress: "\x00"},
		{Partitions: []*extensionv1.Partition{{Number: 1}}},
		{Partitions: []*extensionv1.Partition{{Id: "a"}, {Id: "b"}}},
	} {
		if found, err := find(t.Context(), &extensionv1.FindDiskRequest{Disk: keys}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v, %v, want InvalidArgument", keys, found, err)
		}
	}
}

// TestInspector_Sessions: it reports iSCSI sessions only if their group is served.
func TestInspector_Sessions(t *testing.T) {
	for groups, listed := range map[string]bool{"disk,volume,system": false, "disk,volume,system,iscsi": true} {
		t.Run(groups, func(t *testing.T) { // one server at a time: pipes have one name
			conn := dial(t, run(t, newNode(t), strings.Split(groups, ",")...), grpcapi.Endpoint{Group: "system", Version: "v1alpha1"})
			response, err := extensionv1.NewInspectorClient(conn).DescribeNode(t.Context(), &extensionv1.DescribeNodeRequest{Sessions: true})
			if err != nil || response.GetSessionsListed() != listed {
				t.Errorf("listed %v, %v, want %v", response.GetSessionsListed(), err, listed)
			}
			want := map[bool]codes.Code{false: codes.Unimplemented, true: codes.OK}[listed]
			response, err = extensionv1.NewInspectorClient(conn).DescribeNode(t.Context(), &extensionv1.DescribeNodeRequest{OnlySessionsOfDisks: []uint32{1}})
			if status.Code(err) != want || response.GetSessionsListed() != listed || len(response.GetDisks()) != 0 {
				t.Errorf("of a disk: %v, %v, want %v", response, err, want)
			}
		})
	}
}

// TestInspector_OnlyVolumes: it can look at some volumes and at nothing else.
func TestInspector_OnlyVolumes(t *testing.T) {
	inspector := extensionv1.NewInspectorClient(dial(t, run(t, newNode(t)), grpcapi.Endpoint{Group: "system", Version: "v1alpha1"}))
	response, err := inspector.DescribeNode(t.Context(), &extensionv1.DescribeNodeRequest{OnlyVolumeIds: []string{winsim.SystemVolume}})
	if err != nil || len(response.GetDisks()) != 0 || len(response.GetVolumes()) != 1 || !slices.Equal(response.GetVolumes()[0].GetMountPaths(), []string{`C:\`}) {
		t.Errorf("%v, %v", response, err)
	}
	_, err = inspector.DescribeNode(t.Context(), &extensionv1.DescribeNodeRequest{OnlyVolumeIds: []string{`C:\`}})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a path: %v, want InvalidArgument", err)
	}
	_, err = inspector.DescribeNode(t.Context(), &extensionv1.DescribeNodeRequest{OnlyVolumeIds: []string{winsim.SystemVolume}, OnlySessionsOfDisks: []uint32{1}})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("volumes and sessions: %v, want InvalidArgument", err)
	}
}

// TestInspector_Fits: whatever strangers call their links, and wherever those lead, the answer
// is one that a client takes. Sentences in it spell out what cannot be printed.
func TestInspector_Fits(t *testing.T) {
	odd := strings.Repeat("\x7f", 240)
	for name, target := range map[string]string{
		"mounted":  `\\?\Volume{00000000-0000-0000-0000-00000000dead}\`,
		"dangling": kubelet + `\plugins\` + odd + `\` + odd,
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t)
			for i := range 3000 {
				must(t, node.Junction(fmt.Sprintf(`%s\plugins\%s%d`, kubelet, odd, i), target))
			}
			conn := dial(t, run(t, node), grpcapi.Endpoint{Group: "system", Version: "v1alpha1"})
			response, err := extensionv1.NewInspectorClient(conn).DescribeNode(t.Context(), &extensionv1.DescribeNodeRequest{Links: true})
			must(t, err)
			if size := proto.Size(response); size > 2<<20 || len(response.GetLinks()) < 100 || len(response.GetProblems()) != 1 {
				t.Errorf("%d bytes, %d links, problems %q", size, len(response.GetLinks()), response.GetProblems())
			}
		})
	}
}

// methods remembers what was asked for.
type methods struct {
	mu   sync.Mutex
	done []string
}

func (*methods) RequestStarted(string) {}

func (m *methods) RequestDone(method string, code codes.Code, _ time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done = append(m.done, method+" "+code.String())
}

// TestInspector_Observed: it passes the edge like every other request, and its texts are fit
// for the wire, whatever devices and strangers call things.
func TestInspector_Observed(t *testing.T) {
	model := winsim.Default()
	model.Disks[1].Serial = "\xff\xfe"
	node, err := winsim.New(model)
	must(t, err)
	must(t, node.Symlink("C:\\var\\lib\\kubelet\\pods\\a\u202eb", `C:\var\lib\kubelet\none`))
	var seen methods
	dir := runWith(t, node, serve.Config{Config: daemon.Config{Observer: &seen}})
	conn := dial(t, dir, grpcapi.Endpoint{Group: "system", Version: "v1alpha1"})
	response, err := extensionv1.NewInspectorClient(conn).DescribeNode(t.Context(), &extensionv1.DescribeNodeRequest{Links: true})
	must(t, err)
	if got := response.GetDisks()[1].GetSerialNumber(); got != "\uFFFD" {
		t.Errorf("serial number %q", got)
	}
	if links := response.GetLinks(); len(links) != 1 || links[0].GetPath() != "C:\\var\\lib\\kubelet\\pods\\a\u202eb" {
		t.Errorf("links %v, want the path as it is", links)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if want := "/csiproxy.extension.v1.Inspector/DescribeNode OK"; !slices.Contains(seen.done, want) {
		t.Errorf("%q were observed, want %q", seen.done, want)
	}
}
