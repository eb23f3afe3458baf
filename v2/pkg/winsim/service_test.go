package winsim_test

import (
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func serialOf(t *testing.T, model winsim.Model) string {
	t.Helper()
	got, err := newSystem(t, newNode(t, model)).GetBIOSSerialNumber(t.Context(), &system.GetBIOSSerialNumberRequest{})
	mustAll(t, err)
	return got.SerialNumber
}

// TestPresets_SerialNumber: drivers tell clouds by how the serial number begins.
func TestPresets_SerialNumber(t *testing.T) {
	for name, want := range map[string]string{
		"default":    `^WINSIM-`,
		"azure":      `^[0-9]{4}(-[0-9]{4}){5}-[0-9]{2}$`,
		"azure-nvme": `^[0-9]{4}(-[0-9]{4}){5}-[0-9]{2}$`,
		"gce-nvme":   `^GoogleCloud-[0-9A-F]{32}$`,
		"gce":        `^GoogleCloud-[0-9A-F]{32}$`,
		"ebs-nvme":   `^ec2[0-9a-f]{5}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`,
		"vsphere":    `^VMware-[0-9a-f]{2}( [0-9a-f]{2}){7}-[0-9a-f]{2}( [0-9a-f]{2}){7}$`,
	} {
		model, ok := winsim.Preset(name)
		if !ok {
			t.Fatalf("there is no preset %s", name)
		}
		if got := serialOf(t, model); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: %q does not match %s", name, got, want)
		}
	}
	// What the vSphere driver makes of it: 32 digits after the prefix.
	uuid, found := strings.CutPrefix(serialOf(t, winsim.VSphere()), "VMware-")
	digits := strings.NewReplacer(" ", "", "-", "").Replace(uuid)
	if b, err := hex.DecodeString(digits); !found || err != nil || len(b) != 16 {
		t.Errorf("%q is not a UUID: %v", digits, err)
	}
}

// TestPresets_Services: what storage uses is there, and what must never be stopped runs.
func TestPresets_Services(t *testing.T) {
	for _, preset := range winsim.Presets() {
		model, _ := winsim.Preset(preset)
		node := newNode(t, model)
		initiator := winsim.ServiceStopped // as Windows comes
		if preset == "default" || preset == "busy" || preset == "broken" {
			initiator = winsim.ServiceRunning
		}
		for name, want := range map[string]winsim.ServiceState{
			"MSiSCSI": initiator, "vds": winsim.ServiceStopped, "smphost": winsim.ServiceStopped, "defragsvc": winsim.ServiceStopped,
			"LanmanWorkstation": winsim.ServiceRunning, "RpcSs": winsim.ServiceRunning, "kubelet": winsim.ServiceRunning, "csi-proxy": winsim.ServiceRunning,
		} {
			if info, err := node.ServiceInfo(name); err != nil || info.State != want {
				t.Errorf("%s: %s is %+v, %v, want it %s", preset, name, info, err, want)
			}
		}
	}
}
