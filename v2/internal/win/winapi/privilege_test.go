package winapi_test

import (
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

// TestPage: attack-surface.md names the privileges and mitigations of this package, and no other privilege.
func TestPage(t *testing.T) {
	page := strings.Join(strings.Fields(read(t, "../../../../docs/attack-surface.md")), " ")
	for _, p := range winapi.RequiredPrivileges() {
		if !strings.Contains(page, "`"+p.Name+"`") {
			t.Errorf("docs/attack-surface.md does not name %s", p.Name)
		}
	}
	if got := strings.Count(page, "Privilege`"); got != len(winapi.RequiredPrivileges()) {
		t.Errorf("docs/attack-surface.md names %d privileges", got)
	}
	for _, m := range append(winapi.Mitigations(), winapi.StrictHandleChecks()) {
		if !strings.Contains(page, m.Name) {
			t.Errorf("docs/attack-surface.md does not name %q", m.Name)
		}
	}
}
