package architecture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestLimits: docs/status.md has the limits that the code has. All others have a comment where they are declared.
func TestLimits(t *testing.T) {
	page := readWords(t, "docs/status.md")
	for _, limit := range []struct{ row, file, declared string }{
		{"256 KiB, 8 KiB", "v2/cmd/pkg/daemon/server/endpoint.go", "maxMessageBytes = 256 << 10"},
		{"256 KiB, 8 KiB", "v2/cmd/pkg/daemon/server/endpoint.go", "maxHeaderBytes = 8 << 10"},
		{"200, more wait", "v2/cmd/pkg/daemon/server/endpoint.go", "maxConcurrentStreams = 200"},
		{"1,024, more are refused", "v2/cmd/pkg/daemon/server/limits.go", "maxRequests = 1024"},
		{"Connections to all endpoints | 1,024", "v2/cmd/pkg/daemon/server/server.go", "DefaultMaxConnections = 1024"},
		{"| 5 s; 15 min", "v2/cmd/pkg/daemon/server/server.go", "DefaultConnectionTimeout = 5 * time.Second"},
		{"| 5 s; 15 min", "v2/cmd/pkg/daemon/server/server.go", "DefaultIdleTimeout = 15 * time.Minute"},
		{"one per 10 s", "v2/cmd/pkg/daemon/server/endpoint.go", "pingInterval = 10 * time.Second"},
		{"4 per connection", "v2/cmd/pkg/daemon/server/limits.go", "maxWatches = 4"},
		{"volumes of a disk | 30 s", "v2/pkg/disk/hostapi/arrival.go", "arrivalTimeout = 30 * time.Second"},
		{"of an iSCSI session | 30 s", "v2/pkg/iscsi/hostapi/disks.go", "arrivalTimeout = 30 * time.Second"},
		{"disks of a target that is disconnected | 1 min", "v2/pkg/iscsi/hostapi/disconnect.go", "logoutTimeout = time.Minute"},
		{"an adapter; all adapters | 1 min; 3 min", "v2/pkg/disk/hostapi/rescan.go", "adapterLimit = time.Minute"},
		{"an adapter; all adapters | 1 min; 3 min", "v2/pkg/disk/hostapi/rescan.go", "rescanLimit = 3 * time.Minute"},
		{"without a deadline | 30 s", "v2/pkg/system/hostapi/wait.go", "defaultTimeout = 30 * time.Second"},
		{"an open file | 2 s", "v2/pkg/filesystem/hostapi/remove.go", "Limit: 2 * time.Second"},
		{"| 2 min; 10 min; 5 min; 2 min", "v2/pkg/disk/hostapi/change.go", "changeLimit = 2 * time.Minute"},
		{"| 2 min; 10 min; 5 min; 2 min", "v2/pkg/volume/hostapi/host.go", "workLimit = 10 * time.Minute"},
		{"| 2 min; 10 min; 5 min; 2 min", "v2/pkg/iscsi/hostapi/host.go", "changeLimit = 5 * time.Minute"},
		{"| 2 min; 10 min; 5 min; 2 min", "v2/pkg/smb/hostapi/host.go", "workLimit = 2 * time.Minute"},
	} {
		if !strings.Contains(readWords(t, limit.file), limit.declared) {
			t.Errorf("%s has no %q; change docs/status.md and this test, too", limit.file, limit.declared)
		}
		if !strings.Contains(page, limit.row) {
			t.Errorf("docs/status.md has no %q, which is %s in %s", limit.row, limit.declared, limit.file)
		}
	}
}

// readWords returns a file with one space between all words.
func readWords(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return strings.Join(strings.Fields(string(text)), " ")
}
