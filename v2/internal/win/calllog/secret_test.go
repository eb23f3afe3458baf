package calllog_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/klogtest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/calllog"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestMachine_Secrets calls every method of the library that takes a secret, so that it succeeds and so that the machine
// refuses it. The log has no password, no CHAP secret and no key of a storage account, in whatever form.
func TestMachine_Secrets(t *testing.T) {
	const password, chap, mutual = "csi-Pa55", "chap-secret-1", "mutual-secret2"
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("key of an account", 4)))
	log := klogtest.Verbose(t, 6)
	node, err := winsim.New(winsim.Default())
	require.NoError(t, err)
	machine := calllog.Machine(node)
	files, err := filesystem.New(fsapi.NewOn(machine))
	require.NoError(t, err)
	shares, err := smb.New(smbapi.NewOn(machine), files)
	require.NoError(t, err)
	targets, err := iscsi.New(iscsiapi.NewOn(machine))
	require.NoError(t, err)
	for _, secret := range []string{key, password} { // the first is refused
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
	text := log.String()
	for _, method := range []string{"CreateSMBMapping", "SetInitiatorCHAPSharedSecret", "Login"} {
		if !strings.Contains(text, `method="`+method+`"`) {
			t.Errorf("%s is not logged", method)
		}
	}
	for _, secret := range []string{password, key, chap, mutual} {
		for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret))} {
			if strings.Contains(text, form) {
				t.Errorf("%s is in\n%s", secret, text)
			}
		}
	}
}
