package server

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
)

// peerCredentials adds the caller's process to a connection, for the log. The pipe's security
// descriptor or the socket's mode decides who may connect.
type peerCredentials struct {
	credentials.TransportCredentials
}

func newPeerCredentials() credentials.TransportCredentials {
	return peerCredentials{insecure.NewCredentials()}
}

// ServerHandshake lets each call find its connection and process id.
func (peerCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	info := peerInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}
	if tracked, ok := conn.(*connection); ok {
		info.pid, info.name, info.conn = tracked.pid, tracked.name, tracked
	}
	return conn, info, nil
}

func (c peerCredentials) Clone() credentials.TransportCredentials {
	return peerCredentials{c.TransportCredentials.Clone()}
}

// peerInfo describes the process at the other end; pid 0 and no name mean unknown.
type peerInfo struct {
	credentials.CommonAuthInfo
	pid  int
	name string
	conn *connection
}

func (peerInfo) AuthType() string { return "local" }

// caller describes the caller of a request.
func caller(ctx context.Context) peerInfo {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(peerInfo); ok {
			return info
		}
	}
	return peerInfo{}
}
