// Package v2alpha1 is the client of the volume API in version v2alpha1. It is v1
// with GetClosestVolumeIDFromTargetPath added.
//
// The methods of [Client] are those of
// [github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1.VolumeClient],
// where they are documented; go doc does not list them here.
package v2alpha1

import (
	"context"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client"
	v2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
)

// GroupName is the name of the API group.
const GroupName = "volume"

// Version is the version of the API.
var Version = apiversion.NewVersionOrPanic("v2alpha1")

// Client makes calls to one endpoint, from any number of goroutines. In tests the
// embedded interface may be set to a fake.
type Client struct {
	v2alpha1.VolumeClient
	conn *grpc.ClientConn
}

// New returns a client of the endpoint that [client.PipePath] names, unless opts
// say otherwise. ctx covers the making of the client only. The caller closes it.
func New(ctx context.Context, opts ...client.Option) (*Client, error) {
	conn, err := client.Connect(ctx, GroupName, Version, opts...)
	if err != nil {
		return nil, err
	}
	return &Client{VolumeClient: v2alpha1.NewVolumeClient(conn), conn: conn}, nil
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
