package node_test

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	want := wholenode.Session{Target: openTarget, Connections: 1, Disks: []uint32{4}, Persistent: true, Portals: []string{"10.0.0.10:3260"}, Problems: []wholenode.Problem{}}
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

// lunNode is a node with a target at two portals, whose disks are LUN 3 and 7, and which is logged in.
func lunNode(t *testing.T, mpio bool, sessions int) *winsim.Node {
	t.Helper()
	model := winsim.Default()
	model.ISCSI.MPIO = mpio
	model.ISCSI.Portals = []winsim.ISCSIPortal{{Address: "10.0.0.10", Registered: true}, {Address: "10.0.0.11", Registered: true}}
	model.ISCSI.Targets[0].LUNs = []winsim.Disk{{Size: winsim.GiB, SCSI: &winsim.SCSI{LUN: 3}}, {Size: winsim.GiB, SCSI: &winsim.SCSI{LUN: 7}}}
	logins := []winsim.ISCSILogin{{Target: openTarget, Portal: "10.0.0.10"}, {Target: openTarget, Portal: "10.0.0.11"}}
	model.ISCSI.Logins = logins[:sessions]
	return newNode(t, model)
}

// TestFindDisk_LUN: the sessions of a target say which disk is at a LUN, with and without MPIO, and before the disk is there.
func TestFindDisk_LUN(t *testing.T) {
	for _, mpio := range []bool{false, true} {
		node := lunNode(t, mpio, 2)
		n := newOn(t, node)
		found, err := n.FindDisk(t.Context(), wholenode.Query{Adapter: strings.ToUpper(openTarget), LUN: "7"}) // after PnPDelay
		if err != nil || *found.Number != 5 || strings.HasPrefix(found.Path, `\\?\mpio#`) != mpio {
			t.Fatalf("MPIO %t: %+v, %v", mpio, found, err)
		}
		sessions, err := n.SessionsOf(t.Context(), nil, 5)
		if err != nil || len(sessions) != 2 || !slices.Equal(sessions[1].Disks, []uint32{4, 5}) {
			t.Errorf("the sessions are %+v, %v", sessions, err)
		}
	}
	node := lunNode(t, false, 1)
	n := newOn(t, node)
	for _, c := range []struct {
		adapter, lun string
		kind         winerr.Kind
	}{
		{openTarget, "", winerr.Invalid},
		{openTarget, "256", winerr.Invalid},
		{openTarget, "x", winerr.Invalid},
		{openTarget, "0", winerr.NotFound},
		{openTarget + "x", "3", winerr.NotFound},
	} {
		if _, err := n.FindDisk(t.Context(), wholenode.Query{Adapter: c.adapter, LUN: c.lun}); winerr.KindOf(err) != c.kind {
			t.Errorf("LUN %q of %s: %v, want %v", c.lun, c.adapter, err, c.kind)
		}
	}
	node.ResetCalls()
	if sessions, err := n.SessionsOf(t.Context(), nil, 1, 2); err != nil || len(sessions) != 0 || node.Calls()["Sessions"] != 0 {
		t.Errorf("of other disks: %+v, %v, calls %v", sessions, err, node.Calls())
	}
	if _, err := n.SessionsOf(t.Context(), []string{`C:\`}); winerr.KindOf(err) != winerr.Invalid {
		t.Errorf("of a folder: %v", err)
	}
	if err := node.SetISCSIPortalDown("10.0.0.10", true); err != nil {
		t.Fatal(err)
	}
	if sessions, err := n.SessionsOf(t.Context(), []string{strings.ToUpper(openTarget)}); err != nil || len(sessions) != 1 || sessions[0].Connections != 0 {
		t.Errorf("of the target: %+v, %v", sessions, err)
	}
	if _, err := n.FindDisk(t.Context(), wholenode.Query{Adapter: openTarget, LUN: "3"}); winerr.KindOf(err) != winerr.Unavailable || !strings.Contains(err.Error(), "has lost its connection") {
		t.Errorf("without a connection: %v", err)
	}
}

// TestFindDisk_TwoLUNs: a disk that appears twice is not taken for one.
func TestFindDisk_TwoLUNs(t *testing.T) {
	node := lunNode(t, false, 2)
	twice := &oddSessions{Node: node}
	_, err := newOn(t, twice).FindDisk(t.Context(), wholenode.Query{Adapter: openTarget, LUN: "3"})
	if several := (*wholenode.AmbiguousError)(nil); !errors.As(err, &several) || len(several.Candidates) != 2 {
		t.Errorf("%v", err)
	}
}

// oddSessions is Windows without MPIO: each session has disks of its own.
type oddSessions struct {
	*winsim.Node
	asked uint32
}

func (o *oddSessions) DevicesForSession(context.Context, win.SessionID) ([]win.SessionDevice, error) {
	o.asked++
	return []win.SessionDevice{{LUN: 3, Device: win.DeviceNumber{Type: win.DeviceTypeDisk, Number: o.asked}, LegacyName: "x"}}, nil
}
