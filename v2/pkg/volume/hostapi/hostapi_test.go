package api_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/grouptest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

func TestNew_OtherSystems(t *testing.T) {
	grouptest.Unsupported[volumeapi.HostAPI](t, volumeapi.New(), func(method string, n int, parameter reflect.Type) reflect.Value {
		switch {
		case parameter.Kind() != reflect.String:
			return reflect.Zero(parameter)
		case n == 0 && !strings.HasSuffix(method, "FromTargetPath"):
			return reflect.ValueOf(id)
		}
		return reflect.ValueOf(`C:\x`)
	})
}

// TestVolumeID_Malformed sends what is not a volume id to every method that takes one: the
// node is not even asked.
func TestVolumeID_Malformed(t *testing.T) {
	node := nodeWith(t, formatted())
	host := volumeapi.NewOn(node)
	node.ResetCalls()
	for _, text := range []string{
		"", "2", "C:", `C:\`, `\\.\PhysicalDrive1`, `\\?\Volume{}\`, `Volume{ffff0000-0000-4000-8000-000000000000}`,
		id + `..\x`, id + `\`, `\\?\GLOBALROOT\Device\Harddisk1\Partition2`, id[:len(id)-2], "\x00" + id, id + "\n",
	} {
		for name, call := range map[string]func() error{
			"MountVolume":       func() error { return host.MountVolume(text, pods+`\x`) },
			"UnmountVolume":     func() error { return host.UnmountVolume(text, pods+`\x`) },
			"IsVolumeFormatted": func() error { _, err := host.IsVolumeFormatted(text); return err },
			"FormatVolume":      func() error { return host.FormatVolume(text) },
			"ResizeVolume":      func() error { return host.ResizeVolume(text, 0) },
			"GetVolumeStats":    func() error { _, _, err := host.GetVolumeStats(text); return err },
			"GetDiskNumberFromVolumeID": func() error {
				_, err := host.GetDiskNumberFromVolumeID(text)
				return err
			},
			"WriteVolumeCache": func() error { return host.WriteVolumeCache(text) },
		} {
			wantKind(t, name+" of "+text, call(), winerr.Invalid, `\\?\Volume{GUID}\`)
		}
	}
	if calls := node.Calls(); len(calls) != 0 {
		t.Errorf("the node was asked: %v", calls)
	}
}

func TestVolumeRegexp(t *testing.T) {
	const name = "Volume{4c1b02c1-d990-11dc-99ae-806e6f6e6963}"
	if got := volumeapi.VolumeRegexp.FindString(`\\?\` + name + `\`); got != name {
		t.Errorf("found %q in a volume id, want %q", got, name)
	}
	if got := volumeapi.VolumeRegexp.FindString(`C:\Volume`); got != "" {
		t.Errorf("found %q in a path that is not a volume id", got)
	}
}
