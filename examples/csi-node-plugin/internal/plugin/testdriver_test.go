package plugin_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// testDriver is what the external storage suite reads; the types themselves would need k8s.io/kubernetes and 30 replace
// directives. The suite itself ignores unknown fields; here they fail.
// https://github.com/kubernetes/kubernetes/blob/01aa0f3f6052/test/e2e/storage/external/external.go#L53
// https://github.com/kubernetes/kubernetes/blob/025f2834a128/test/e2e/storage/framework/testdriver.go#L211
type testDriver struct {
	DriverInfo struct {
		Name                 string              `yaml:"Name"`
		SupportedSizeRange   map[string]string   `yaml:"SupportedSizeRange"` // Min, Max
		SupportedFsType      map[string]struct{} `yaml:"SupportedFsType"`
		SupportedMountOption map[string]struct{} `yaml:"SupportedMountOption"`
		RequiredMountOption  map[string]struct{} `yaml:"RequiredMountOption"`
		Capabilities         map[string]bool     `yaml:"Capabilities"`
		RequiredAccessModes  []string            `yaml:"RequiredAccessModes"`
		TopologyKeys         []string            `yaml:"TopologyKeys"`
	} `yaml:"DriverInfo"`
	StorageClass   class             `yaml:"StorageClass"`
	SnapshotClass  class             `yaml:"SnapshotClass"`
	InlineVolumes  []map[string]any  `yaml:"InlineVolumes"`
	ClientNodeName string            `yaml:"ClientNodeName"`
	Timeouts       map[string]string `yaml:"Timeouts"`
}

type class struct {
	FromName              bool   `yaml:"FromName"`
	FromFile              string `yaml:"FromFile"`
	FromExistingClassName string `yaml:"FromExistingClassName"`
}

func (d *testDriver) capability(name string) bool { return d.DriverInfo.Capabilities[name] }

// TestTestDriver: what testdriver.yaml says is true: each file system and mount option is staged, and block volumes are not.
func TestTestDriver(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdriver.yaml"))
	must(t, err)
	var d testDriver
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	must(t, decoder.Decode(&d))
	known := []string{
		"persistence", "block", "fsGroup", "volumeMountGroup", "exec", "snapshotDataSource", "pvcDataSource", "multipods", "RWX", "controllerExpansion", "nodeExpansion",
		"offlineExpansion", "onlineExpansion", "volumeLimits", "singleNodeVolume", "topology", "capacity", "FSResizeFromSourceNotSupported", "readWriteOncePod", "multiplePVsSameID", "capReadOnlyMany",
	}
	names := map[string]bool{}
	for _, name := range known {
		names[name] = true
	}
	for name := range d.DriverInfo.Capabilities {
		if !names[name] {
			t.Errorf("the suite knows no capability %s", name)
		}
	}
	if d.DriverInfo.Name == "" || d.StorageClass.FromExistingClassName == "" || len(d.DriverInfo.SupportedMountOption) == 0 || !d.capability("persistence") || d.capability("block") {
		t.Errorf("%+v", d)
	}
	for fsType := range d.DriverInfo.SupportedFsType {
		inBothModes(t, func(p *driver) {
			staging, target := paths(p.t, p.node, "e2e")
			as := mounted(fsType)
			as.GetMount().MountFlags = nil
			for option := range d.DriverInfo.SupportedMountOption {
				as.GetMount().MountFlags = append(as.GetMount().MountFlags, option)
			}
			_, err := p.NodeStageVolume(p.t.Context(), &csi.NodeStageVolumeRequest{VolumeId: "disk/WINSIM0001", StagingTargetPath: staging, VolumeCapability: as})
			must(p.t, err)
			_, err = p.NodePublishVolume(p.t.Context(), &csi.NodePublishVolumeRequest{VolumeId: "disk/WINSIM0001", StagingTargetPath: staging, TargetPath: target, VolumeCapability: as})
			must(p.t, err)
		})
	}
}
