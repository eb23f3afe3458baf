// Package version knows which build this is.
package version

import (
	"runtime/debug"
	"strings"
)

// Header is the gRPC header in which the answer to a health check has the version.
const Header = "csi-proxy-version"

// Set by the linker: -X .../internal/version.stamped=v1.4.0, for instance.
var (
	stamped string
	commit  string // the commit's full name
	date    string // of the commit, not of the build, which would be another one every time
)

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
	if info.Main.Path == "github.com/kubernetes-csi/csi-proxy/v2/cmd" && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version // of a program of ours that go install has built
	}
	return "devel"
}

// Full returns the version, with the commit and its date where the build was stamped with them:
// "v1.4.0 (commit 1f94e68, 2026-11-15T08:00:00Z)".
func Full() string {
	if commit == "" || date == "" {
		return String()
	}
	return String() + " (commit " + commit + ", " + date + ")"
}
