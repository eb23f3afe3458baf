package smb

import mount "k8s.io/mount-utils"

// NewPorted returns the node service on a mounter, for the test.
func NewPorted(m *mount.SafeFormatAndMount) *Driver {
	d := NewDriver(&DriverOptions{NodeID: "node-1", DriverName: "smb.csi.k8s.io", Kubeconfig: "no-need-kubeconfig"})
	d.mounter = m
	return d
}
