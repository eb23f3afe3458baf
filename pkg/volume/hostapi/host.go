package api

import "github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"

// host is the machine this program runs on.
type host struct{}

var _ HostAPI = host{}

// New returns the machine this program runs on. Calls it cannot serve fail with
// an error for which errors.Is(err, errors.ErrUnsupported) holds.
func New() HostAPI { return host{} }

func (host) ListVolumesOnDisk(uint32, uint32) ([]string, error) {
	return nil, winerr.NotYet("list volumes")
}

func (host) MountVolume(string, string) error { return winerr.NotYet("mount volume") }

func (host) UnmountVolume(string, string) error { return winerr.NotYet("unmount volume") }

func (host) IsVolumeFormatted(string) (bool, error) {
	return false, winerr.NotYet("look for a file system")
}

func (host) FormatVolume(string) error { return winerr.NotYet("format volume") }

func (host) ResizeVolume(string, int64) error { return winerr.NotYet("resize volume") }

func (host) GetVolumeStats(string) (int64, int64, error) {
	return 0, 0, winerr.NotYet("get volume stats")
}

func (host) GetDiskNumberFromVolumeID(string) (uint32, error) {
	return 0, winerr.NotYet("get disk of volume")
}

func (host) GetVolumeIDFromTargetPath(string) (string, error) {
	return "", winerr.NotYet("get mounted volume")
}

func (host) WriteVolumeCache(string) error { return winerr.NotYet("write volume cache") }

func (host) GetClosestVolumeIDFromTargetPath(string) (string, error) {
	return "", winerr.NotYet("get closest volume")
}
