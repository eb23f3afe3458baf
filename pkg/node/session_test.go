package node_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const openTarget = "iqn.2025-01.com.example:open"

func sessions(t *testing.T, m win.Machine) *wholenode.Description {
	t.Helper()
	found, err := newOn(t, m).Describe(t.Context(), wholenode.Sessions)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// loggedIn is a node with a persistent login.
func loggedIn(t *testing.T) *winsim.Node {
	t.Helper()
	model := winsim.Default()
	model.ISCSI.PnPDelay = 0
	model.ISCSI.Portals[0].Registered = true
	model.ISCSI.Logins = []winsim.ISCSILogin{{Target: openTarget, Portal: "10.0.0.10:3260"}}
	return newNode(t, model)
}

func TestDescribe_Sessions(t *testing.T) {
	node := loggedIn(t)
	found := sessions(t, node)
	if len(found.Sessions) != 1 || !found.SessionsListed {
		t.Fatalf("%+v, problems %q", found.Sessions, found.Problems)
	}
	want := wholenode.Session{Target: openTarget, Connections: 1, Disks: []uint32{4}, Persistent: true, Problems: []string{}}
	if diff := cmp.Diff(want, found.Sessions[0]); diff != "" {
		t.Error(diff)
	}
	// Without the part, the initiator is not asked.
	node.ResetCalls()
	without, err := newOn(t, node).Describe(t.Context())
	if err != nil || without.SessionsListed || without.Sessions != nil || node.Calls()["Sessions"] != 0 {
		t.Errorf("%+v, %v, calls %v", without.Sessions, err, node.Calls())
	}
}

// TestDescribe_NoInitiator: an initiator that does not run has no sessions, and stays stopped. One that
// runs and fails is a problem.
func TestDescribe_NoInitiator(t *testing.T) {
	node := newNode(t, winsim.Azure()) // its initiator does not run
	if found := sessions(t, node); !found.SessionsListed || len(found.Sessions) != 0 || len(found.Problems) != 0 {
		t.Errorf("%+v, problems %q", found.Sessions, found.Problems)
	}
	if info, err := node.ServiceInfo("MSiSCSI"); err != nil || info.State != winsim.ServiceStopped {
		t.Errorf("the initiator is %+v, %v", info, err)
	}
	node = loggedIn(t)
	for call, listed := range map[string]bool{"Sessions": false, "PersistentLogins": false, "DevicesForSession": true} {
		fault, err := node.Inject(winsim.Fault{Call: call, Error: uint32(winerr.AccessDenied)})
		if err != nil {
			t.Fatal(err)
		}
		found := sessions(t, node)
		fault.Remove()
		if found.SessionsListed != listed || listed && len(found.Sessions[0].Problems) != 1 || !listed && len(found.Problems) != 1 {
			t.Errorf("%s: listed %v, %+v, problems %q", call, found.SessionsListed, found.Sessions, found.Problems)
		}
	}
}
