package local

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// start is how to find the volume from which the machine starts.
type start struct {
	partition func() (string, error)             // its device, as Windows has written it down
	volumes   func() ([]win.VolumeID, error)     // all
	device    func(win.VolumeID) (string, error) // the device behind a volume
}

// volume returns the volume of the partition from which the machine starts, or "". It has
// no name on some machines, and on most of them it is on the same disk as Windows.
//
// That Windows has written down none, or that no volume is on it, are answers. Any other
// failure is none: whoever does not know this volume cannot tell which disks to leave
// alone.
func (s start) volume() (win.VolumeID, error) {
	partition, err := s.partition()
	if winerr.CodeOf(err) == winerr.FileNotFound {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find the partition that the machine starts from: %w", err)
	}
	ids, err := s.volumes()
	if err != nil {
		return "", fmt.Errorf("find the volume that the machine starts from: %w", err)
	}
	var failure error
	for _, id := range ids {
		device, err := s.device(id)
		switch {
		case winerr.CodeOf(err) == winerr.FileNotFound: // it has just gone
		case err != nil:
			failure = fmt.Errorf("find the volume that the machine starts from: %s: %w", id, err)
		case winpath.Equal(device, partition):
			return id, nil
		}
	}
	return "", failure
}
