// Package groups calls an API group in whichever version a daemon serves. Drivers use the typed client of one version,
// such as package groups/disk/v1.
package groups

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"google.golang.org/grpc"
)

// lines are the versions of the groups that have the same messages.
var lines = map[string]struct {
	messages string   // the version whose messages callers use
	versions []string // the first is the one that drivers mount into their containers
	only     string   // a method that is in no other version than that of the messages
}{
	"disk":       {"v1", []string{"v1", "v1beta3"}, ""},
	"filesystem": {"v2alpha1", []string{"v1", "v2alpha1", "v1beta2"}, "RmdirContents"},
	"iscsi":      {"v1alpha2", []string{"v1alpha2", "v1alpha1"}, ""},
	"smb":        {"v1", []string{"v1", "v1beta2"}, ""},
	"system":     {"v1alpha1", []string{"v1alpha1"}, ""},
	"volume":     {"v2alpha1", []string{"v1", "v2alpha1", "v1beta3"}, "GetClosestVolumeIDFromTargetPath"},
}

// Conn is the connection of the generated clients of a group, and of the extensions beside it. The clients are those of the
// newest version; the daemon may serve another one with the same messages. It connects at the first call, and is safe for
// concurrent use.
type Conn struct {
	group   string
	connect func(ctx context.Context, version string) (*grpc.ClientConn, error)

	turn  chan struct{}               // has a value while a call connects, which takes as long as its context allows
	conns map[string]*grpc.ClientConn // by version; nil after Close
}

// New returns the connection of a group. Calls fail with the error of connect. If it matches fs.ErrNotExist, the daemon
// does not serve the version.
func New(group string, connect func(ctx context.Context, version string) (*grpc.ClientConn, error)) *Conn {
	return &Conn{group: group, connect: connect, turn: make(chan struct{}, 1), conns: map[string]*grpc.ClientConn{}}
}

// Connect connects without a call.
func (c *Conn) Connect(ctx context.Context) error {
	_, _, err := c.use(ctx, lines[c.group].versions)
	return err
}

// Invoke implements grpc.ClientConnInterface.
func (c *Conn) Invoke(ctx context.Context, method string, in, out any, options ...grpc.CallOption) error {
	line := lines[c.group]
	versions := line.versions
	if path.Base(method) == line.only {
		versions = []string{line.messages}
	}
	conn, version, err := c.use(ctx, versions)
	if err != nil {
		return err
	}
	if rest, ok := strings.CutPrefix(method, "/"+line.messages+"."); ok { // not of an extension
		method = "/" + version + "." + rest
	}
	return conn.Invoke(ctx, method, in, out, options...)
}

// NewStream implements grpc.ClientConnInterface. No group has streams.
func (c *Conn) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, fmt.Errorf("call %s: streams are %w", c.group, errors.ErrUnsupported)
}

// use returns the connection to the first of the versions that the daemon serves.
func (c *Conn) use(ctx context.Context, versions []string) (conn *grpc.ClientConn, version string, first error) {
	select {
	case c.turn <- struct{}{}: // also if the context has ended: connecting says what it waits for
	default:
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, "", ctx.Err()
		}
	}
	defer func() { <-c.turn }()
	if c.conns == nil {
		return nil, "", fmt.Errorf("call %s: the connection is closed: %w", c.group, fs.ErrClosed)
	}
	if len(versions) == 0 {
		return nil, "", fmt.Errorf("call %s: there is no such API group", c.group)
	}
	if at := slices.IndexFunc(versions, func(v string) bool { return c.conns[v] != nil }); at >= 0 {
		return c.conns[versions[at]], versions[at], nil
	}
	for _, version := range versions {
		conn, err := c.connect(ctx, version)
		if err == nil {
			c.conns[version] = conn
			return conn, version, nil
		}
		if first == nil {
			first = err
		}
		if !errors.Is(err, fs.ErrNotExist) { // it exists
			break
		}
	}
	return nil, "", first
}

// Close ends the connections. Afterwards every call fails with an error that matches fs.ErrClosed.
func (c *Conn) Close() error {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	var errs []error
	for _, conn := range c.conns {
		errs = append(errs, conn.Close())
	}
	c.conns = nil
	return errors.Join(errs...)
}
