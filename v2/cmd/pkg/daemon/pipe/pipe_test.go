package pipe

import (
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
)

// TestDefaultFor: administrators connect, and only the account of the daemon can make instances or change the list.
func TestDefaultFor(t *testing.T) {
	for _, own := range []string{sddl.LocalSystem, "S-1-5-21-1-2-3-1001"} {
		list, err := sddl.Parse(defaultFor(own))
		if err != nil {
			t.Fatal(err)
		}
		const readWrite, createInstance, changeAccess = 0x100003, 0x4, 0x40000
		for _, sid := range []string{own, sddl.LocalSystem, sddl.Administrators} {
			serves := sid == own
			if !list.Allows(readWrite, sid) || list.Allows(createInstance, sid) != serves || list.Allows(changeAccess, sid) != serves {
				t.Errorf("%s: the access of %s is wrong", defaultFor(own), sid)
			}
		}
		if !strings.HasSuffix(defaultFor(own), "(A;;RC;;;S-1-3-4)") {
			t.Errorf("%s: the owner can change it", defaultFor(own))
		}
	}
}
