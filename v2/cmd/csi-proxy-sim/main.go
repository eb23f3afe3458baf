// Command csi-proxy-sim serves the whole CSI Proxy API of an emulated Windows node, to test
// drivers without Windows. It serves Unix sockets, or on Windows the named pipes of the daemon.
package main

import (
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
)

func main() {
	os.Exit(program(options{}).Main(os.Args[1:], os.Stdout, os.Stderr))
}

func program(options options) daemon.Program {
	return daemon.Program{
		Name:     "csi-proxy-sim",
		Summary:  "csi-proxy-sim serves the CSI Proxy API of an emulated Windows node.",
		Register: options.register,
		Common: []string{
			"api-groups", "control", "faults", "files", "kubelet-path", "metrics-bind-address", "model", "preset", "seed",
			"socket-dir", "v", "version", "working-dir",
		},
		Serve: options.serve,
	}
}
