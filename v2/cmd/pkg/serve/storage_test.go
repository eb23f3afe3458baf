package serve_test

import (
	"testing"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
)

// descriptions receives what is found, and wants nothing more.
type descriptions chan *extensionv1.Node

// StorageWanted implements daemon.StorageObserver.
func (descriptions) StorageWanted() <-chan struct{} { return nil }

// Storage implements daemon.StorageObserver.
func (d descriptions) Storage(node *extensionv1.Node) { d <- node }

// TestStorage: a server describes its node for the metrics, also if no endpoint serves the inspector, and
// looks only at what the endpoints serve.
func TestStorage(t *testing.T) {
	for name, test := range map[string]struct {
		groups                  []string
		links, shares, sessions bool
	}{
		"all":     {nil, true, true, true},
		"drivers": {[]string{"disk/v1", "volume/v1", "filesystem/v1"}, true, false, false},
		"smb":     {[]string{"smb/v1"}, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			found := make(descriptions, 1)
			_, stop := runUntil(t, newNode(t), serve.Config{Config: daemon.Config{APIGroups: test.groups, Storage: found}})
			defer stop()
			got := <-found
			if len(got.Disks) != 4 || got.LinksSearched != test.links || got.SharesListed != test.shares || got.SessionsListed != test.sessions {
				t.Errorf("%d disks, links %v, shares %v, sessions %v", len(got.Disks), got.LinksSearched, got.SharesListed, got.SessionsListed)
			}
		})
	}
}
