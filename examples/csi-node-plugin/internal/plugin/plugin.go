// Package plugin is the node part of a CSI driver for Windows: the Identity and the Node
// service, for volumes on disks, SMB shares and iSCSI targets.
//
// A volume's handle holds all that the node must know, so the plugin keeps nothing in memory and
// can be restarted at any time:
//
//	disk/<serial number>              the disk with this serial number
//	smb/<server>/<share>[/<folder>]   a share, or a folder in it
//	iscsi/<portal>/<target>/<LUN>     a disk of an iSCSI target
//
// The driver's controller attaches a disk to the node before it is staged. Package mounter does
// the work on Windows; the plugin translates between it and CSI.
package plugin

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/mounter"
)

// Config says what the plugin works on. All fields but Controller are required.
type Config struct {
	// Name and Version are what the plugin calls itself.
	Name, Version string
	// NodeID is the name by which the driver's controller knows this node.
	NodeID string
	// Controller says that the driver has a controller, which runs elsewhere.
	Controller bool
	// KubeletPath is the directory of the kubelet. Without it the node is not ready.
	KubeletPath string
	// Mounter does the work.
	Mounter *mounter.Mounter
	// Log gets a line per request, and what the mounter logs. No secret is in it.
	Log *slog.Logger
}

// stopTimeout bounds how long a stop waits for calls in flight. Windows continues what it has
// begun, and kubelet repeats the call.
const stopTimeout = 10 * time.Second

// Serve answers requests until ctx ends, and then lets those in flight finish. It closes the
// listener.
func Serve(ctx context.Context, listener net.Listener, config Config) error {
	server := grpc.NewServer(grpc.UnaryInterceptor(logRequests(config.Log)))
	csi.RegisterIdentityServer(server, &identityServer{config: config})
	csi.RegisterNodeServer(server, &nodeServer{config: config, inFlight: newInFlight()})

	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		hard := time.AfterFunc(stopTimeout, server.Stop)
		defer hard.Stop()
		server.GracefulStop()
	})
	err := server.Serve(listener)
	if !stop() {
		<-stopped // the server has stopped
	}
	return err
}
