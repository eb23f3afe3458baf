package metrics_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/metrics"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

var _ daemon.StorageObserver = (*metrics.Metrics)(nil)

// brokenNode has one of each.
func brokenNode() *extensionv1.Node {
	volume := func(id string, used int64) *extensionv1.Volume {
		return &extensionv1.Volume{Id: id, State: extensionv1.VolumeFormatted, TotalBytes: new(int64(1000)), UsedBytes: &used}
	}
	return &extensionv1.Node{
		LinksSearched: true, SharesListed: true,
		Disks: []*extensionv1.Disk{
			{Number: new(uint32(0)), SizeBytes: new(int64(1000)), Online: new(true), PartitionStyle: "GPT"},
			{Number: new(uint32(1)), SizeBytes: new(int64(1000)), Online: new(false), PartitionStyle: "GPT", Partitions: []*extensionv1.Partition{{Number: 1, VolumeId: "offline"}}},
			{Number: new(uint32(2)), SizeBytes: new(int64(1000)), Online: new(true), ReadOnly: new(true), PartitionStyle: "GPT"},
			{Number: new(uint32(3)), Problems: []*extensionv1.Problem{{Kind: extensionv1.ProblemSilence}}},
			{Number: new(uint32(4)), SizeBytes: new(int64(1000)), Online: new(true), Problems: []*extensionv1.Problem{{Kind: extensionv1.ProblemSilence, Object: "content"}}},
		},
		Volumes: []*extensionv1.Volume{volume("a", 0), volume("b", 500), volume("c", 900), volume("d", 901), volume("e", 1000), {Id: "f", State: extensionv1.VolumeLocked}},
		Links: []*extensionv1.Link{
			{Path: `C:\link`, Stale: "its target is gone"},
			{Path: `C:\to-offline`, VolumeId: "offline", Stale: "the volume is gone"},
			{Path: `C:\k\pods\1\volumes\kubernetes.io~csi\pv\mount`, VolumeId: "offline", Stale: "the volume is gone"},
		},
		Since:  []*extensionv1.Since{{Kind: "offline", Type: "disk", Id: "1", Unix: time.Now().Add(-time.Hour).Unix()}},
		Shares: []*extensionv1.Share{{Remote: `\\s\a`, Status: "ok"}, {Remote: `\\s\b`, Status: "unavailable"}, {Remote: `\\s\c`, Status: "17"}},
	}
}

// storageLines are the storage metrics of a scrape, without the age, and without comments.
func storageLines(t *testing.T, m *metrics.Metrics) (lines []string) {
	t.Helper()
	for _, line := range scrape(t, m) {
		if strings.HasPrefix(line, "csi_proxy_storage_") && !strings.HasPrefix(line, "csi_proxy_storage_description_age") {
			lines = append(lines, strings.TrimPrefix(line, "csi_proxy_storage_"))
		}
	}
	return lines
}

func TestStorage(t *testing.T) {
	m := metrics.New(metrics.Config{Storage: true})
	m.Storage(brokenNode())
	want := []string{
		`disks{state="offline"} 1`, `disks{state="online"} 1`, `disks{state="read-only"} 1`, `disks{state="unknown"} 2`,
		`mappings{status="connecting"} 0`, `mappings{status="disconnected"} 0`, `mappings{status="network error"} 0`, `mappings{status="ok"} 1`,
		`mappings{status="other"} 1`, `mappings{status="paused"} 0`, `mappings{status="reconnecting"} 0`, `mappings{status="unavailable"} 1`,
		`pods_hurt 1`,
		`problem_age_seconds{severity="hurts"} 3600`, `problem_age_seconds{severity="note"} 0`, `problem_age_seconds{severity="will-hurt"} 0`,
		`problems{kind="dead-share",severity="note"} 1`, `problems{kind="full",severity="note"} 2`, `problems{kind="locked",severity="note"} 1`,
		`problems{kind="no-answer",severity="will-hurt"} 2`, `problems{kind="offline",severity="hurts"} 1`,
		`problems{kind="read-only",severity="note"} 1`, `problems{kind="stale-mount",severity="note"} 1`,
		`stale_links 3`,
		`volumes{fill="0-50"} 2`, `volumes{fill="50-75"} 0`, `volumes{fill="75-90"} 1`, `volumes{fill="90-95"} 1`, `volumes{fill="95-100"} 1`, `volumes{fill="unknown"} 1`,
	}
	got := slices.DeleteFunc(storageLines(t, m), func(line string) bool { return strings.HasPrefix(line, "problems{") && strings.HasSuffix(line, " 0") })
	for i, line := range got {
		if name, age, ok := strings.Cut(line, "} 360"); ok && age != "0" { // it takes a moment
			got[i] = name + "} 3600"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	select {
	case <-m.StorageWanted():
	default:
		t.Error("a scrape does not ask for a newer description")
	}
}

// TestStorage_Series: their number does not depend on the node, nor on what devices and servers say.
func TestStorage_Series(t *testing.T) {
	node := &extensionv1.Node{LinksSearched: true, SharesListed: true}
	m := metrics.New(metrics.Config{Storage: true})
	m.Storage(node)
	empty := storageLines(t, m)
	for i := range 500 {
		name := strconv.Itoa(i)
		node.Disks = append(node.Disks, &extensionv1.Disk{SerialNumber: name, Problems: []*extensionv1.Problem{{Text: name}}})
		node.Volumes = append(node.Volumes, &extensionv1.Volume{Id: name, FileSystem: name, Problems: []*extensionv1.Problem{{Text: name}}})
		node.Shares = append(node.Shares, &extensionv1.Share{Remote: name, Status: name})
		node.Links = append(node.Links, &extensionv1.Link{Path: name, Stale: name})
	}
	m.Storage(node)
	full := storageLines(t, m)
	if len(full) != len(empty) || len(full) > 70 || slices.Equal(full, empty) {
		t.Errorf("%d series, %d without objects", len(full), len(empty))
	}
	for _, kind := range problem.Kinds() {
		for _, severity := range problem.Severities() {
			if !slices.Contains(empty, fmt.Sprintf("problems{kind=%q,severity=%q} 0", kind, severity)) {
				t.Errorf("%s, %s is missing", kind, severity)
			}
		}
	}
}

// TestStorage_Unknown: what was not looked at has no value, because zero would be wrong.
func TestStorage_Unknown(t *testing.T) {
	m := metrics.New(metrics.Config{Storage: true})
	m.Storage(&extensionv1.Node{})
	for _, line := range storageLines(t, m) {
		if strings.HasPrefix(line, "mappings") || strings.HasPrefix(line, "stale_links") {
			t.Error(line)
		}
	}
	off := metrics.New(metrics.Config{})
	off.Storage(brokenNode())
	if lines := storageLines(t, off); len(lines) > 0 {
		t.Errorf("without the flag there are %q", lines)
	}
}
