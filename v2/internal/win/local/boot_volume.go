package local

import (
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// bootSource has what is needed to find the volume from which the machine starts.
type bootSource struct {
	partition func() (string, error)             // the device that Windows has recorded
	volumes   func() ([]win.VolumeID, error)     // all
	device    func(win.VolumeID) (string, error) // the device behind a volume
}

// volume returns the volume of the partition from which the machine starts, or "". It has
// no name on some machines, and on most of them it is on the same disk as Windows.
//
// Windows may have recorded no partition, and the partition may have no volume: the result
// is "" then. Any other failure is an error, because without this volume the caller cannot
// tell which disks to leave alone.
func (s bootSource) volume() (win.VolumeID, error) {
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
