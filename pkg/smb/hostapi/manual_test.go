package api_test

import (
	"os"
	"strings"
	"testing"

	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
)

// TestManual compares the table in the manual with the one that decides.
func TestManual(t *testing.T) {
	const (
		manual = "../../../docs/api/smb.md"
		begin  = "<!-- decisions, printed by go test ./pkg/smb/hostapi -run TestManual -update -->\n"
		end    = "<!-- end of decisions -->\n"
	)
	text, err := os.ReadFile(manual)
	must(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	was, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s lacks the lines\n%s%s", manual, begin, end)
	}
	want := "\n" + smbapi.DecisionTable() + "\n"
	switch {
	case was == want:
	case *update:
		must(t, os.WriteFile(manual, []byte(before+begin+want+end+after), 0o644))
	default:
		t.Errorf("the table in %s is out of date; run this test with -update", manual)
	}
}
