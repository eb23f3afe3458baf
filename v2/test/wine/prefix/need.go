//go:build linux

package prefix

import (
	"os"
	"testing"
)

// RequiredVariable is the environment variable that makes tests fail where Wine cannot be
// had, and with the value links where Wine stores none. CI sets it, or CI, so that skipped tests do not look like passed ones.
const RequiredVariable = "CSI_PROXY_WINE_REQUIRED"

// Need is Install for tests. It skips those for which Wine cannot be installed, as without
// a network, unless it is required.
func Need(t testing.TB) *Wine {
	t.Helper()
	wine, err := Install(t.Context())
	switch {
	case err == nil:
	case os.Getenv(RequiredVariable) != "" || os.Getenv("CI") != "":
		t.Fatalf("Wine is required, and cannot be installed: %v", err)
	default:
		t.Skipf("Wine cannot be installed here; set %s=1 to make this a failure: %v", RequiredVariable, err)
	}
	return wine
}
