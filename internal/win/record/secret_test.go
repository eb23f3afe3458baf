package record_test

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestLibrary_Secrets calls every method of the API that takes a secret, so that it succeeds and so that the machine
// refuses it. The file has no secret, in whatever form.
func TestLibrary_Secrets(t *testing.T) {
	const password, wrong, chap, mutual = "csi-Pa55", "wrong-Pa55word", "chap-secret-1", "mutual-secret2"
	node, err := winsim.New(winsim.Default())
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	recorder, err := record.Open(t.Context(), record.Config{Path: path})
	require.NoError(t, err)
	machine := win.Intercept(node, recorder.Intercept)
	files, err := filesystem.New(fsapi.NewOn(machine))
	require.NoError(t, err)
	shares, err := smb.New(smbapi.NewOn(machine), files)
	require.NoError(t, err)
	targets, err := iscsi.New(iscsiapi.NewOn(machine))
	require.NoError(t, err)
	for _, secret := range []string{wrong, password} {
		_, _ = shares.NewSMBGlobalMapping(t.Context(), &smb.NewSMBGlobalMappingRequest{RemotePath: `\\files\data`, Username: "csi", Password: secret})
	}
	portal := &iscsi.TargetPortal{TargetAddress: "10.0.0.10", TargetPort: 3260}
	if _, err := targets.AddTargetPortal(t.Context(), &iscsi.AddTargetPortalRequest{TargetPortal: portal}); err != nil {
		t.Fatal(err)
	}
	if _, err := targets.SetMutualChapSecret(t.Context(), &iscsi.SetMutualChapSecretRequest{MutualChapSecret: mutual}); err != nil {
		t.Fatal(err)
	}
	found, err := targets.DiscoverTargetPortal(t.Context(), &iscsi.DiscoverTargetPortalRequest{TargetPortal: portal})
	if err != nil || len(found.IQNs) == 0 {
		t.Fatalf("%v, %v", found, err)
	}
	for _, iqn := range found.IQNs { // some take no secret, some another
		_, _ = targets.ConnectTarget(t.Context(), &iscsi.ConnectTargetRequest{
			TargetPortal: portal, IQN: iqn, AuthType: iscsi.ONE_WAY_CHAP, ChapUsername: "user", ChapSecret: chap,
		})
	}
	require.NoError(t, recorder.Close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	text := string(content)
	for _, method := range []string{"CreateSMBMapping", "SetInitiatorCHAPSharedSecret", "Login"} {
		if !strings.Contains(text, `"method":"`+method+`"`) {
			t.Errorf("%s is not recorded", method)
		}
	}
	for _, secret := range []string{password, wrong, chap, mutual} {
		for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret))} {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("the file has %s: …%s", secret, text[max(0, at-80):at+20])
			}
		}
	}
}
