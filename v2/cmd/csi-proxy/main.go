// Command csi-proxy performs privileged storage operations on a Windows node for CSI
// drivers. It serves one named pipe per API group and version.
package main

import (
	"os"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/service"
)

func main() {
	os.Exit(program().Main(os.Args[1:], os.Stdout, os.Stderr))
}

func program() daemon.Program {
	var options options
	return daemon.Program{
		Name:     "csi-proxy",
		Summary:  "csi-proxy performs privileged storage operations on this Windows node for CSI drivers.",
		Register: options.register,
		Common: []string{
			"allowed-services", "api-groups", "format-allocation-unit-size", "format-label", "format-root-access",
			"heal-stale-mounts", "kubelet-path", "log_file", "logtostderr", "memory-limit", "metrics-bind-address",
			"pipe-security-descriptor", "require-privacy", "smb-refuse-other-user", "stop-timeout", "v", "version",
			"windows-service", "working-dir",
		},
		Refuse:     refuse,
		Facts:      facts,
		Serve:      options.serve,
		RunService: service.Run,
	}
}
