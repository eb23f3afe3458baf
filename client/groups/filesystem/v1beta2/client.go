// Package v1beta2 is the client of the file system API in version v1beta2. It is
// kept for drivers built with it and has the same methods as v1. New code uses
// [github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1].
//
// The methods of [Client] are those of
// [github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2.FilesystemClient],
// where they are documented; go doc does not list them here.
package v1beta2

import (
	"context"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client"
	v1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
)

// GroupName is the name of the API group.
const GroupName = "filesystem"

// Version is the version of the API.
var Version = apiversion.NewVersionOrPanic("v1beta2")

// Client makes calls to one endpoint, from any number of goroutines. In tests the
// embedded interface may be set to a fake.
type Client struct {
	v1beta2.FilesystemClient
	conn *grpc.ClientConn
}

// New returns a client of the endpoint that [client.PipePath] names, unless opts
// say otherwise. ctx covers the making of the client only. The caller closes it.
func New(ctx context.Context, opts ...client.Option) (*Client, error) {
	conn, err := client.Connect(ctx, GroupName, Version, opts...)
	if err != nil {
		return nil, err
	}
	return &Client{FilesystemClient: v1beta2.NewFilesystemClient(conn), conn: conn}, nil
}

// NewClient is New without a context. It fails at once if nobody serves the API.
func NewClient() (*Client, error) {
	return New(context.Background())
}

// NewClientWithPipePath is NewClient for the endpoint at pipePath.
func NewClientWithPipePath(pipePath string) (*Client, error) {
	return New(context.Background(), client.WithPipePath(pipePath))
}

// Close ends the connection and all calls under way. Closing again does nothing.
func (w *Client) Close() error {
	if w.conn != nil {
		_ = w.conn.Close() // fails only when closed before
	}
	return nil
}
