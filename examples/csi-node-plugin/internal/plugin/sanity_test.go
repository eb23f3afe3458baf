package plugin_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// notApplicable are the tests of csi-sanity that are about what the plugin does not offer, and
// says so in its capabilities.
var notApplicable = []string{
	"NodePublishVolume with single node multi writer capability should fail when volume with single node single writer access mode is already mounted at a different target path",
}

// TestSanity runs the node and identity tests of csi-sanity in both modes, for disks and for
// shares. Its tests of controllers would only test the cloud of this test. Ginkgo runs once per
// process, so -count must be 1.
func TestSanity(t *testing.T) {
	variants := []string{}
	for mode, over := range modes {
		node := newNode(t)
		d := start(t, node, over(t, node))
		controller := serveCloud(t, node)
		for _, kind := range []string{"disk", "smb"} {
			variant := mode + " " + kind
			variants = append(variants, variant)
			ginkgo.Describe(variant, func() {
				tests := sanity.GinkgoTest(sanityConfig(t, node, variant, d.address, controller, kind))
				ginkgo.AfterAll(tests.Finalize)
			}, ginkgo.Ordered)
		}
	}
	passed := map[string]int{}
	skipped := map[string][]string{}
	ginkgo.ReportAfterSuite("what has run", func(report ginkgo.Report) {
		for _, spec := range report.SpecReports {
			if spec.LeafNodeType != types.NodeTypeIt {
				continue
			}
			variant := spec.ContainerHierarchyTexts[0]
			switch {
			case spec.State.Is(types.SpecStatePassed):
				passed[variant]++
			case spec.State.Is(types.SpecStateSkipped) && spec.Failure.Message != "": // else it is out of focus
				names := append(slices.Clone(spec.ContainerHierarchyTexts[2:]), spec.LeafNodeText)
				skipped[variant] = append(skipped[variant], strings.Join(names, " "))
			}
		}
	})
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.FocusStrings = []string{"Node Service", "Identity Service"}
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "csi-sanity", suite, reporter)

	for _, variant := range variants {
		slices.Sort(skipped[variant])
		if diff := cmp.Diff(notApplicable, skipped[variant]); diff != "" {
			t.Errorf("%s: other tests were skipped than those that do not apply (-want +got):\n%s", variant, diff)
		}
		const want = 26
		if passed[variant] != want {
			t.Errorf("%s: %d tests have passed, want %d", variant, passed[variant], want)
		}
	}
}

// sanityConfig says how csi-sanity finds the plugin and the cloud, and lets it make its folders
// on the emulated node.
func sanityConfig(t *testing.T, node *winsim.Node, variant, address, controller, kind string) *sanity.TestConfig {
	t.Helper()
	config := sanity.NewTestConfig()
	config.Address, config.ControllerAddress = address, controller
	config.TestVolumeParameters = map[string]string{"kind": kind}
	config.TestVolumeSize, config.TestVolumeExpandSize = 1<<30, 2<<30
	config.IdempotentCount = 3
	config.StagingPath = kubelet + `\plugins\` + strings.ReplaceAll(variant, " ", "-")
	config.TargetPath = kubelet + `\pods\` + strings.ReplaceAll(variant, " ", "-")
	makeDir := func(path string) (string, error) { return path, node.Mkdir(path) }
	config.CreateStagingDir, config.CreateTargetDir = makeDir, makeDir
	config.RemoveStagingPath, config.RemoveTargetPath = node.RemoveAll, node.RemoveAll
	config.CheckPath = func(path string) (sanity.PathKind, error) {
		if !node.Exists(strings.ReplaceAll(path, "/", `\`)) {
			return sanity.PathIsNotFound, nil
		}
		return sanity.PathIsOther, nil
	}
	if kind == "smb" {
		config.SecretsFile = filepath.Join(t.TempDir(), "secrets.yaml")
		secrets := "NodeStageVolumeSecret: {username: csi, password: csi-Pa55}\n"
		must(t, os.WriteFile(config.SecretsFile, []byte(secrets), 0o600))
	}
	return &config
}

// serveCloud serves the driver's controller and returns its address.
func serveCloud(t *testing.T, node *winsim.Node) string {
	t.Helper()
	return listenAndServe(t, func(ctx context.Context, listener net.Listener) error {
		server := grpc.NewServer()
		csi.RegisterControllerServer(server, newCloud(node))
		csi.RegisterIdentityServer(server, cloudIdentity{})
		defer context.AfterFunc(ctx, server.GracefulStop)()
		return server.Serve(listener)
	})
}

// cloudIdentity is that of the driver, from the controller's side.
type cloudIdentity struct {
	csi.UnimplementedIdentityServer
}

func (cloudIdentity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "csi-node-plugin.example.com", VendorVersion: "test"}, nil
}

func (cloudIdentity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
			Type: csi.PluginCapability_Service_CONTROLLER_SERVICE,
		}},
	}}}, nil
}

func (cloudIdentity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}
