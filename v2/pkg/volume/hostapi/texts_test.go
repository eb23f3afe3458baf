package api_test

import (
	"regexp"
	"testing"

	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestTexts pins the words that released drivers look for in errors. They must never
// change.
func TestTexts(t *testing.T) {
	node := newNode(t, twoVolumes())
	must(t, node.Mkdir(target))
	must(t, node.MountFolder(mount, volumeID(2)))
	host := volumeapi.NewOn(node)
	for driver, c := range map[string]struct {
		pattern string
		call    func() error
	}{
		// mount_windows.go: anything else makes NodeStageVolume fail.
		"aws-ebs, GetVolumeIDFromTargetPath": {
			`(Get-Item -Path \S+).Target, output: , error: <nil>|because it does not exist`,
			func() error { _, err := host.GetVolumeIDFromTargetPath(target); return err },
		},
		"democratic-csi, MountVolume": {
			"The requested access path is already in use",
			func() error { return host.MountVolume(id, mount) },
		},
		"democratic-csi, UnmountVolume": {
			"The access path is not valid",
			func() error { return host.UnmountVolume(id, mount) },
		},
		"democratic-csi, ResizeVolume": {
			"The size of the extent is less than the minimum of 1MB",
			func() error { return host.ResizeVolume(id, int64(2*winsim.GiB)) },
		},
	} {
		if err := c.call(); err == nil || !regexp.MustCompile(c.pattern).MatchString(err.Error()) {
			t.Errorf("%s: the error %q does not match %q", driver, err, c.pattern)
		}
	}
}
