// Package client connects CSI drivers to CSI Proxy, the daemon that does
// privileged storage work on a Windows node.
//
// Drivers use the typed client of one API group and version, such as
// [github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1]:
//
//	disk, err := v1.New(ctx, client.WithWait())
//	if err != nil {
//		return err
//	}
//	defer disk.Close()
//	stats, err := disk.GetDiskStats(ctx, &api.GetDiskStatsRequest{DiskNumber: 1})
//
// Each group and version has its own endpoint: a named pipe on Windows, and a Unix
// socket on other systems, where the emulated node csi-proxy-sim serves the same API.
// A driver finds out what a node offers by connecting: New fails for a version that
// is not served. A client reconnects by itself when the daemon restarts.
package client

import (
	"os"
	"path"
	"runtime"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
)

// socketDirEnv names the environment variable that moves the Unix sockets.
const socketDirEnv = "CSI_PROXY_SOCKET_DIR"

// PipePath returns the endpoint of an API group in one version. On Windows that is
// a named pipe:
//
//	\\.\pipe\csi-proxy-<group>-<version>
//
// On other systems it is a Unix socket in the directory that [SocketDir] returns:
//
//	<dir>/csi-proxy-<group>-<version>.sock
func PipePath(apiGroupName string, apiVersion apiversion.Version) string {
	return endpoint(runtime.GOOS, SocketDir(), apiGroupName, apiVersion)
}

// SocketDir returns the directory in which servers create their Unix sockets and
// clients look for them: $CSI_PROXY_SOCKET_DIR if it is set, else csi-proxy below
// $XDG_RUNTIME_DIR, else csi-proxy-<uid> below the directory for temporary files.
// It does not create the directory.
//
// On Windows the result is empty, because named pipes have no directory.
func SocketDir() string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return socketDir(os.Getenv, os.TempDir(), os.Getuid())
}

func endpoint(goos, dir, group string, version apiversion.Version) string {
	name := "csi-proxy-" + group + "-" + version.String()
	if goos == "windows" {
		return `\\.\pipe\` + name
	}
	return path.Join(dir, name+".sock")
}

func socketDir(getenv func(string) string, tempDir string, uid int) string {
	if dir := getenv(socketDirEnv); dir != "" {
		return dir
	}
	// A relative XDG_RUNTIME_DIR is invalid and must be ignored, see
	// https://specifications.freedesktop.org/basedir-spec/latest/
	if dir := getenv("XDG_RUNTIME_DIR"); path.IsAbs(dir) {
		return path.Join(dir, "csi-proxy")
	}
	return path.Join(tempDir, "csi-proxy-"+strconv.Itoa(uid))
}
