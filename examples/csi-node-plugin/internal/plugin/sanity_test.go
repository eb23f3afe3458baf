package plugin_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestSanity runs all of csi-sanity in both modes, for disks, shares and disks of an iSCSI target; the controller is the
// cloud of this test. Ginkgo runs once per process, so -count must be 1.
func TestSanity(t *testing.T) {
	variants := []string{}
	for mode, over := range modes {
		node := newNode(t)
		d := start(t, node, over(t, node))
		controller := serveCloud(t, node)
		for _, kind := range []string{"disk", "smb", "iscsi"} {
			variant := mode + " " + kind
			variants = append(variants, variant)
			ginkgo.Describe(variant, func() {
				tests := sanity.GinkgoTest(sanityConfig(t, node, variant, d.address, controller, kind))
				ginkgo.AfterAll(tests.Finalize)
			}, ginkgo.Ordered)
		}
		t.Cleanup(func() {
			if left := node.Describe(); len(left.ISCSI.Sessions)+len(left.SMBMappings) > 0 {
				t.Errorf("%s: left are %v and %v", mode, left.ISCSI.Sessions, left.SMBMappings)
			}
		})
	}
	passed := map[string]int{}
	ginkgo.ReportAfterSuite("what has run", func(report ginkgo.Report) {
		for _, spec := range report.SpecReports {
			if spec.LeafNodeType != types.NodeTypeIt {
				continue
			}
			if spec.State.Is(types.SpecStatePassed) {
				passed[spec.ContainerHierarchyTexts[0]]++
			}
		}
	})
	suite, reporter := ginkgo.GinkgoConfiguration()
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "csi-sanity", suite, reporter)

	for _, variant := range variants {
		const want = 52 // the others are about what neither the plugin nor the cloud offers
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
	if password := map[string]string{"smb": "csi-Pa55", "iscsi": "csi-Pa55-chap"}[kind]; password != "" {
		config.SecretsFile = filepath.Join(t.TempDir(), "secrets.yaml")
		secrets := "NodeStageVolumeSecret: {username: csi, password: " + password + "}\n"
		must(t, os.WriteFile(config.SecretsFile, []byte(secrets), 0o600))
	}
	return &config
}

// serveCloud serves the driver's controller and returns its address.
func serveCloud(t *testing.T, node *winsim.Node) string {
	t.Helper()
	return listenAndServe(t, func(ctx context.Context, listener net.Listener) error {
		server := grpc.NewServer(grpc.UnaryInterceptor(required))
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
