// Package unmodified runs released CSI drivers, as they are, against csi-proxy-sim.exe under Wine. It is
// part of what `make test-drivers` starts.
package unmodified
