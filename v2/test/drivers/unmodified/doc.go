// Package unmodified runs released CSI drivers, as they are, against csi-proxy-sim.exe under Wine. It is
// part of what `make test-drivers` starts.
//
// The test plays the kubelet: it makes the directories that the kubelet makes, and calls the driver
// through CSI's gRPC interface. What drivers are and which nodes they meet is in files without a build
// tag, and tested without Wine.
package unmodified
