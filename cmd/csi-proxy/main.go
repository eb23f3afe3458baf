// Command csi-proxy serves privileged storage operations of a Windows node to CSI
// drivers, on one named pipe per API group and version.
package main

import (
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/service"
)

func main() {
	os.Exit(program().Main(os.Args[1:], os.Stdout, os.Stderr))
}

// program is the daemon, with what it has of its own.
func program() daemon.Program {
	var options options
	return daemon.Program{
		Name:       "csi-proxy",
		Summary:    "csi-proxy serves privileged storage operations of this Windows node to CSI drivers.",
		Register:   options.register,
		Refuse:     refuse,
		Facts:      facts,
		Serve:      options.serve,
		RunService: service.Run,
	}
}
