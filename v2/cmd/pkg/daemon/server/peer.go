package server

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
)

// peerCredentials lets each call find its connection, and so its process. The pipe's security
// descriptor or the socket's mode decides who may connect.
type peerCredentials struct {
	credentials.TransportCredentials
}

func newPeerCredentials() credentials.TransportCredentials {
	return peerCredentials{insecure.NewCredentials()}
}

// ServerHandshake lets each call find its connection.
func (peerCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	info := peerInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}, conn: conn.(*connection)}
	return conn, info, nil
}

func (c peerCredentials) Clone() credentials.TransportCredentials {
	return peerCredentials{c.TransportCredentials.Clone()}
}

// peerInfo is what gRPC keeps about a connection.
type peerInfo struct {
	credentials.CommonAuthInfo
	conn *connection
}

func (peerInfo) AuthType() string { return "local" }

func caller(ctx context.Context) *connection {
	p, _ := peer.FromContext(ctx)
	return p.AuthInfo.(peerInfo).conn
}
