package api_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/grouptest"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
)

func TestNew_OtherSystems(t *testing.T) {
	grouptest.Unsupported[diskapi.HostAPI](t, diskapi.New(), grouptest.Zero)
}
