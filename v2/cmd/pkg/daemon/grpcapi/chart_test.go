package grpcapi_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestSelect_Chart: the Helm chart admits the API groups and versions that there are, and no others.
func TestSelect_Chart(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "deploy", "charts", "csi-proxy", "values.schema.json"))
	require.NoError(t, err)
	var schema struct {
		Properties struct {
			APIGroups struct {
				Items struct{ Pattern string }
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &schema))
	admits := regexp.MustCompile(schema.Properties.APIGroups.Items.Pattern).MatchString
	groups := map[string]bool{}
	versions := map[string]bool{"v3": true, "": true}
	for _, e := range grpcapi.Endpoints() {
		groups[e.Group], versions[e.Version] = true, true
	}
	for group := range groups {
		if !admits(group) {
			t.Errorf("%s is refused", group)
		}
		for version := range versions {
			name := group + "/" + version
			if _, err := grpcapi.Select([]string{name}); admits(name) != (err == nil) {
				t.Errorf("%s: the chart says %v, the daemon %v", name, admits(name), err)
			}
		}
	}
}
