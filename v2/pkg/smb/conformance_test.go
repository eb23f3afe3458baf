package smb_test

import (
	"errors"
	iofs "io/fs"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	fs "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestConformance runs the suite over the library, with working directories and without.
func TestConformance(t *testing.T) {
	for name, options := range map[string][]smb.Option{
		"free":    nil,
		"limited": {smb.WorkingDirs(`C:\var\lib\kubelet`)},
		"plain":   {smb.RequirePrivacy(false)},
	} {
		t.Run(name, func(t *testing.T) {
			hosttest.SMB(t, func(t *testing.T) hosttest.SMBNode {
				t.Helper()
				model := winsim.Default()
				model.SMBServers[0].Shares = append(model.SMBServers[0].Shares, winsim.SMBShare{Name: "More"})
				model.SMBServers[0].NoEncryption = name == "plain"
				model.SMBAlwaysPersistent = name == "limited"
				node, err := winsim.New(model)
				require.NoError(t, err)
				return smbNode(t, node, newOn(t, node, options...))
			})
		})
	}
}

func newOn(t testing.TB, node *winsim.Node, options ...smb.Option) *smb.SMB {
	t.Helper()
	files, err := fs.New(node.Filesystem())
	require.NoError(t, err)
	api, err := smb.New(node.SMB(), files, options...)
	require.NoError(t, err)
	return api
}

func smbNode(t testing.TB, node *winsim.Node, api smb.Interface) hosttest.SMBNode {
	t.Helper()
	return hosttest.SMBNode{
		API:          api,
		Root:         `C:\var\lib\kubelet\plugins`,
		Share:        `\\files\data`,
		Other:        `\\files\more`,
		Username:     "csi",
		Password:     "csi-Pa55",
		MissingShare: `\\files\none`,
		WriteFile:    node.WriteFile,
		ReadFile:     node.ReadFile,
		RemoveLink:   node.RemoveAll,
		Mapped: func(share string) (bool, error) {
			_, err := node.SMBMapping(t.Context(), share)
			if errors.Is(err, iofs.ErrNotExist) {
				return false, nil
			}
			return err == nil, err
		},
		ChangePassword: func(password string) error {
			return node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[0].Password = password })
		},
		Reboot: func() error {
			node.Reboot()
			return nil
		},
	}
}
