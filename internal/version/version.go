// Package version knows which build this is.
package version

import "runtime/debug"

// Header is the gRPC header in which the answer to a health check has the version.
const Header = "csi-proxy-version"

// stamped is set by the linker: -X .../internal/version.stamped=v2.0.0.
var stamped string

// String returns the version the build was stamped with, else what the Go toolchain
// recorded of the source, else "unknown".
func String() string {
	if stamped != "" {
		return stamped
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return "devel-" + setting.Value[:min(12, len(setting.Value))]
		}
	}
	return "devel"
}
