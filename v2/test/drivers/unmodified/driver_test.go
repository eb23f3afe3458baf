// Package unmodified runs released CSI drivers, as they are, against csi-proxy-sim.exe under Wine. It is
// part of what `make test-drivers` starts.
//
// The test plays the kubelet: it makes the directories that the kubelet makes, and calls the driver
// through CSI's gRPC interface. What drivers are and which nodes they meet is in files without a build
// tag, and tested without Wine.
package unmodified

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/fetch"
)

// driver is a released CSI driver, and how its own manifests start it.
type driver struct {
	name     string
	program  fetch.Program
	args     []string // of the node service; the test adds the endpoint
	metadata *service // nil if the driver does not ask for metadata
	apis     []api    // that the driver speaks, its first choice first

	// disk returns the fields of the model by which the driver finds a disk. For a driver of shares
	// it is nil.
	disk   func(unit int) string
	volume func(unit int) volume

	expand codes.Code // of NodeExpandVolume
	// unstage is the code of NodeUnstageVolume while nothing is mounted at the staging path.
	unstage codes.Code
	// offline says that the driver takes the disk offline when it unstages the volume.
	offline bool
	// unmaps is the version with which the driver unmaps a share that it does not need any more. With
	// others it leaves the mapping.
	unmaps string
	// ownStats says that the driver asks its own machine for the size of a volume.
	ownStats bool
}

// service is an HTTP server that the driver finds through a variable of its environment.
type service struct {
	variable string
	format   string // of the value, which has the address in it
	handler  http.Handler
	others   []string // more variables
}

// api is a set of API versions as the flag -api-groups takes them.
type api []string

func (a api) String() string { return strings.ReplaceAll(strings.Join(a, ", "), "/", " ") }

// flag returns the value of -api-groups. The inspector, which csi-proxyctl asks for the node, is with
// the group system, and describes disks and volumes where they are served.
func (a api) flag() string {
	groups := slices.Clone(a)
	for _, group := range []string{"disk", "volume", "system"} {
		if !slices.ContainsFunc(a, func(name string) bool { return strings.HasPrefix(name, group+"/") }) {
			groups = append(groups, group)
		}
	}
	return strings.Join(groups, ",")
}

// volume is what a driver's controller says about a volume.
type volume struct {
	id                                     string
	publishContext, volumeContext, secrets map[string]string
}

func drivers() []driver {
	return []driver{azureDisk(), computeDisk(), elasticBlockStore(), share()}
}

func azureDisk() driver {
	return driver{
		name: "azuredisk",
		program: fetch.Program{
			Module:  fetch.Module{Path: "sigs.k8s.io/azuredisk-csi-driver", Version: "v1.30.0"},
			Package: "./pkg/azurediskplugin",
		},
		// Without a cluster and a cloud to ask for the zone.
		args: []string{"--nodeid=node-1", "--volume-attach-limit=16", "--support-zone=false", "--allow-empty-cloud-config=true", "--kubeconfig=no-need-kubeconfig", "--v=4"},
		apis: []api{
			{"filesystem/v1", "disk/v1", "volume/v1"},
			{"filesystem/v1beta1", "disk/v1beta2", "volume/v1beta2"},
		},
		disk: func(unit int) string {
			return fmt.Sprintf(`
    bus: sas
    vendor: Msft
    product: Virtual Disk
    page83: [{hex: 60022480c1f0a2b3d4e5f60718293a%02x}]
    location: 'Integrated : Bus 0 : Device 63667 : Function 30747 : Adapter 1 : Port 0 : Target 0 : LUN %d'
    scsi: {port: 1, lun: %d, busNumber: "0"}`, unit, unit, unit)
		},
		volume: func(unit int) volume {
			return volume{
				id:             fmt.Sprintf("/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/pvc-%d", unit),
				publishContext: map[string]string{"LUN": fmt.Sprint(unit)},
			}
		},
	}
}

func computeDisk() driver {
	module := fetch.Module{Path: "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver", Version: "v1.28.1"}
	return driver{
		name:     "gcp-pd",
		program:  fetch.Program{Module: module, Package: "./cmd/gce-pd-csi-driver", LinkerFlags: "-X main.version=" + module.Version},
		args:     []string{"--run-controller-service=false", "--v=4"},
		metadata: &service{variable: "GCE_METADATA_HOST", format: "%s", handler: computeEngineMetadata()},
		apis: []api{
			{"filesystem/v1", "disk/v1", "volume/v1"},
			{"filesystem/v1beta1", "disk/v1beta2", "volume/v1beta1"},
		},
		disk: func(unit int) string {
			return fmt.Sprintf(`
    bus: scsi
    vendor: Google
    product: PersistentDisk
    page83: [{text: 'Google  pvc-%d'}]
    scsi: {port: 0, target: %d, busNumber: "0"}`, unit, unit+2)
		},
		volume: func(unit int) volume {
			return volume{id: fmt.Sprintf("projects/project-1/zones/us-central1-a/disks/pvc-%d", unit)}
		},
		// The driver removes the directory only after it has asked which volume is mounted there, and
		// takes "none" for an error. The kubelet does not call it after a stage that failed for good.
		unstage: codes.Internal,
		offline: true,
	}
}

func elasticBlockStore() driver {
	return driver{
		name: "aws-ebs",
		program: fetch.Program{
			Module:  fetch.Module{Path: "github.com/kubernetes-sigs/aws-ebs-csi-driver", Version: "v1.63.0"},
			Package: "./cmd",
		},
		args: []string{"node", "--v=4"},
		metadata: &service{
			variable: "AWS_EC2_METADATA_SERVICE_ENDPOINT", format: "http://%s", handler: ec2Metadata(),
			others: []string{"CSI_NODE_NAME=node-1"},
		},
		apis: []api{{"filesystem/v1", "disk/v1", "volume/v1"}},
		disk: func(unit int) string {
			return fmt.Sprintf(`
    bus: nvme
    vendor: NVMe
    product: Amazon Elastic Block Store
    serial: vol0123456789abcdef%d_00000001.`, unit)
		},
		volume: func(unit int) volume {
			return volume{
				id:             fmt.Sprintf("vol-0123456789abcdef%d", unit),
				publishContext: map[string]string{"devicePath": "/dev/xvdb" + string(rune('a'+unit))},
			}
		},
		offline:  true,
		ownStats: true,
	}
}

func share() driver {
	return driver{
		name: "csi-driver-smb",
		program: fetch.Program{
			Module:  fetch.Module{Path: "github.com/kubernetes-csi/csi-driver-smb", Version: "v1.20.1"},
			Package: "./cmd/smbplugin",
		},
		args: []string{"--nodeid=node-1", "--kubeconfig=no-need-kubeconfig", "--v=4"},
		apis: []api{
			{"filesystem/v1", "smb/v1"},
			{"filesystem/v1beta1", "smb/v1beta1"},
		},
		volume: func(unit int) volume {
			return volume{
				id:            fmt.Sprintf("srv.example/share#pvc-%d", unit),
				volumeContext: map[string]string{"source": "//srv.example/share"},
				secrets:       map[string]string{"username": "csi", "password": "csi-Pa55"},
			}
		},
		expand:   codes.Unimplemented,
		unmaps:   "smb/v1",
		ownStats: true,
	}
}

// TestModels: the emulator accepts the nodes of all drivers, and their disks can be distinguished.
func TestModels(t *testing.T) {
	for _, d := range drivers() {
		contents := []content{blank, linuxPartition, linuxDisk, moved}
		if d.disk == nil {
			contents = nil
		}
		for _, pace := range []delays{idle, late} {
			text := d.model(pace, contents...)
			model, err := winsim.LoadModel(strings.NewReader(text), d.name)
			if err != nil {
				t.Errorf("%v\n%s", err, text)
				continue
			}
			node, err := winsim.New(model)
			if err != nil {
				t.Errorf("%s: %v", d.name, err)
				continue
			}
			var fingerprints []string
			for number := range uint32(len(contents)) {
				fingerprint, err := node.DiskFingerprint(number + 1)
				if err != nil || slices.Contains(fingerprints, fingerprint) {
					t.Errorf("%s: disk %d has the content of another: %v", d.name, number+1, err)
				}
				fingerprints = append(fingerprints, fingerprint)
			}
		}
	}
}
