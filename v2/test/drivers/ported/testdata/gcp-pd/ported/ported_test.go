package ported

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"

	"sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/deviceutils"
	"sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/gce-cloud-provider/metadata"
	driver "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/gce-pd-csi-driver"
	mountmanager "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/mount-manager"
	"sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/ported/life"
	"sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/ported/machine"
)

// The disks as the metadata server reports them: pvc-data-1 is one of winsim.GCE, and hyperdisk-1 one of
// winsim.GCENVMe.
const disks = `[
	{"deviceName": "pvc-data-1", "interface": "SCSI"},
	{"deviceName": "hyperdisk-1", "interface": "NVME", "nvmeNamespaceIdentifier": 1210507561596603963}
]`

func Test(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		_, _ = w.Write([]byte(disks))
	}))
	defer server.Close()
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))

	const id = "projects/project-1/zones/us-central1-a/disks/"
	for name, model := range map[string]winsim.Model{"pvc-data-1": winsim.GCE(), "hyperdisk-1": winsim.GCENVMe()} {
		t.Run(name, func(t *testing.T) {
			life.Test(t, life.Driver{
				Model:   model,
				Disk:    1,
				Volume:  life.Volume{ID: id + name},
				Missing: life.Volume{ID: id + "missing"},
				Offline: true,
				Serve: func(node *winsim.Node, m *kit.Mounter) (csi.IdentityServer, csi.NodeServer) {
					machine.Use(node)
					safe := mountmanager.Bind(t.Context(), m)
					return &driver.GCEIdentityServer{}, driver.NewNodeServer(driver.GetGCEDriver(), safe, deviceutils.NewDeviceUtils(),
						metadata.NewFakeService(), mountmanager.NewStatter(safe), &driver.NodeServerArgs{})
				},
			})
		})
	}
}
