package winapi_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// TestRequiredPrivileges_HaveAllThatCallsEnable: a privilege that a call enables and the service
// gives up would fail on nodes only.
func TestRequiredPrivileges_HaveAllThatCallsEnable(t *testing.T) {
	constants := map[string]string{}
	for _, match := range regexp.MustCompile(`(\w+)\s+= "(Se\w+Privilege)"`).FindAllStringSubmatch(read(t, "privilege.go"), -1) {
		constants[match[1]] = match[2]
	}
	enabled := regexp.MustCompile(`= newPrivilege\((.*)\)`).FindAllStringSubmatch(read(t, "privilege_windows.go"), -1)
	if len(enabled) == 0 {
		t.Fatal("no call enables a privilege")
	}
	for _, match := range enabled {
		if !slices.ContainsFunc(winapi.RequiredPrivileges(), func(p winapi.RequiredPrivilege) bool { return p.Name == constants[match[1]] }) {
			t.Errorf("a call enables %s, which is not required", match[1])
		}
	}
}

// TestPage: the tables of attack-surface.md are those of this package.
func TestPage(t *testing.T) {
	page := read(t, "../../../docs/attack-surface.md")
	var privileges, mitigations strings.Builder
	for _, p := range winapi.RequiredPrivileges() {
		fmt.Fprintf(&privileges, "| `%s` | %s | %s |\n", p.Name, p.Requests, p.Reason)
	}
	for _, m := range append(winapi.Mitigations(), winapi.StrictHandleChecks()) {
		fmt.Fprintf(&mitigations, "| %s | %s | `%s` |\n", m.Name, m.Stops, m.Setting)
	}
	for _, table := range []string{privileges.String(), mitigations.String()} {
		if !strings.Contains(page, "|---|---|---|\n"+table+"\n") {
			t.Errorf("docs/attack-surface.md does not have this table:\n%s", table)
		}
	}
}
