package api_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/grouptest"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
)

func TestNew_OtherSystems(t *testing.T) {
	grouptest.Unsupported[systemapi.HostAPI](t, systemapi.New(), grouptest.Zero)
}
