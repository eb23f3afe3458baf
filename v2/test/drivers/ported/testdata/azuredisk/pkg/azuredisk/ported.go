package azuredisk

import (
	"k8s.io/mount-utils"

	volumehelper "sigs.k8s.io/azuredisk-csi-driver/pkg/util"
)

// NewPorted returns the node service on a mounter, for the test.
func NewPorted(m *mount.SafeFormatAndMount) *Driver {
	d := &Driver{DriverCore: DriverCore{mounter: m, hostUtil: noDevices{}}, volumeLocks: volumehelper.NewVolumeLocks()}
	d.NodeID = "node-1"
	return d
}

type noDevices struct{}

// PathIsDevice is false, as it is on Windows.
func (noDevices) PathIsDevice(string) (bool, error) { return false, nil }
