// Command csi-proxy serves privileged storage operations of a Windows node to CSI
// drivers, on one named pipe per API group and version.
package main

import (
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon"
)

func main() {
	os.Exit(program().Main(os.Args[1:], os.Stdout, os.Stderr))
}

// program is the daemon with its own flag; what it does depends on the OS.
func program() daemon.Program {
	var options options
	return daemon.Program{
		Name:     "csi-proxy",
		Summary:  "csi-proxy serves privileged storage operations of this Windows node to CSI drivers.",
		Register: options.register,
		Serve:    options.serve,
	}
}
