package prose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestDocs: what users ask for is on the page where they look for it.
func TestDocs(t *testing.T) {
	for page, facts := range map[string][]string{
		"docs/mounter.md":                 {"such as ext4, or none means the default of the node", "only `ro` counts", "`WithMode(Daemon)` if others use the daemon"},
		"docs/api/volume.md":              {"only in this group", "are on the drive of Windows"},
		"docs/operations.md":              {"`after-restart`, the default", "--set format.rootAccess=users-modify", "containerd 1.7.4 to 1.7.11"},
		"deploy/openshift/README.md":      {"enhancements/pull/2072", "HostProcess pods beside the daemon"},
		"docs/migration-from-original.md": {"`csi-proxy-agent-url`", "`CSIProxyURL`", "`image.csiproxy.repository`"},
		"docs/drivers.md":                 {"fstype: ntfs", "only write files", "asks its own DNS"},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", page))
		require.NoError(t, err)
		for _, fact := range facts {
			if !strings.Contains(string(text), fact) {
				t.Errorf("%s does not say %q", page, fact)
			}
		}
		if _, questions, ok := strings.Cut(string(text), "\n## Questions of users\n"); ok {
			questions, _, _ = strings.Cut(questions, "\n## ")
			if n := len(strings.Fields(questions)); n > 250 {
				t.Errorf("%s answers questions with %d words of 250", page, n)
			}
		}
	}
}
