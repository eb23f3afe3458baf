package serve_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func describeNode(t *testing.T, dir string, request *extensionv1.DescribeNodeRequest) *extensionv1.Node {
	t.Helper()
	conn := dial(t, dir, grpcapi.Endpoint{Group: "system", Version: "v1alpha1"})
	response, err := extensionv1.NewInspectorClient(conn).DescribeNode(t.Context(), request)
	must(t, err)
	return response
}

// TestInspector_Share: what the daemon knows about a mapping is on the wire, without the password.
// After a restart it still reports what Windows and the links show.
func TestInspector_Share(t *testing.T) {
	const remote, link = `\\files\data`, `C:\var\lib\kubelet\plugins\share`
	node := newNode(t)
	dir, stop := runUntil(t, node, serve.Config{})
	shares := smbv1.NewSmbClient(dial(t, dir, grpcapi.Endpoint{Group: "smb", Version: "v1"}))
	_, err := shares.NewSmbGlobalMapping(t.Context(), &smbv1.NewSmbGlobalMappingRequest{RemotePath: remote, LocalPath: link, Username: "csi", Password: "csi-Pa55"})
	must(t, err)
	if _, err := shares.RemoveSmbGlobalMapping(t.Context(), &smbv1.RemoveSmbGlobalMappingRequest{RemotePath: remote}); err != nil {
		t.Fatal(err)
	}
	request := &extensionv1.DescribeNodeRequest{Links: true, Shares: true, ShareAnswers: true}
	response := describeNode(t, dir, request)
	got := response.GetShares()
	if len(got) != 1 || got[0].GetRemote() != remote || got[0].GetStatus() != "ok" || got[0].User == nil || got[0].GetUser() != "csi" || !got[0].GetPrivate() || !got[0].GetAnswers() ||
		len(got[0].GetLinks()) != 1 || got[0].GetLinks()[0] != link || !got[0].GetRemovalWaits() {
		t.Errorf("shares %v", got)
	}
	if text := protojson.Format(response); strings.Contains(text, "csi-Pa55") {
		t.Error("the answer has the password")
	}
	if got := describeNode(t, dir, &extensionv1.DescribeNodeRequest{Shares: true}).GetShares(); len(got) != 1 || got[0].Answers != nil || len(got[0].GetLinks()) != 1 {
		t.Errorf("not asked: shares %v", got)
	}

	stop()
	must(t, node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Down = true }))
	// One after the other: on Windows a pipe has one owner.
	t.Run("after a restart, with a dead server", func(t *testing.T) {
		got := describeNode(t, run(t, node), request).GetShares()
		if len(got) != 1 || got[0].User != nil || got[0].GetStatus() != "disconnected" || !got[0].GetPrivate() || got[0].Answers == nil || got[0].GetAnswers() ||
			len(got[0].GetLinks()) != 1 || got[0].RemovalWaits == nil || got[0].GetRemovalWaits() || len(got[0].GetProblems()) != 1 {
			t.Errorf("shares %v", got)
		}
	})
	t.Run("smb is not served", func(t *testing.T) {
		hidden := describeNode(t, run(t, node, "system", "disk", "volume", "filesystem"), request)
		if hidden.GetSharesListed() || len(hidden.GetShares()) != 0 {
			t.Errorf("shares %v", hidden.GetShares())
		}
	})
}
