// Package endpoint lists the endpoints of a node, connects to them, and checks their health.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
)

// Name is one version of one API group.
type Name struct {
	Group   string // "disk"
	Version string // "v1"
}

func (n Name) String() string { return n.Group + "/" + n.Version }

// groups are the versions of each group, oldest first. A test compares them with the server.
var groups = []struct {
	name     string
	versions []string
}{
	{"disk", []string{"v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1"}},
	{"filesystem", []string{"v1alpha1", "v1beta1", "v1beta2", "v1", "v2alpha1"}},
	{"iscsi", []string{"v1alpha1", "v1alpha2"}},
	{"smb", []string{"v1alpha1", "v1beta1", "v1beta2", "v1"}},
	{"system", []string{"v1alpha1"}},
	{"volume", []string{"v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1", "v2alpha1"}},
}

// All returns every possible endpoint: groups by name, versions by age.
func All() []Name {
	var all []Name
	for _, g := range groups {
		for _, version := range g.versions {
			all = append(all, Name{g.name, version})
		}
	}
	return all
}

// Newest returns the newest version of a group.
func Newest(group string) string {
	for _, g := range groups {
		if g.name == group {
			return g.versions[len(g.versions)-1]
		}
	}
	return ""
}

// Node locates the endpoints of one node.
type Node struct {
	// Dir is the directory of the sockets or the prefix of the pipes; empty means the default
	// of all clients.
	Dir string

	// ControlPath is the path of the control service; empty means beside the others.
	ControlPath string

	// TrustedOwners may own endpoints, besides the accounts that all clients trust.
	TrustedOwners []string
}

// Control is the control service of csi-proxy-sim. It is not one of All.
var Control = Name{"sim", "v1"}

// Path returns the path of an endpoint.
func (n Node) Path(name Name) string {
	version, err := apiversion.NewVersion(name.Version)
	if err != nil {
		version = apiversion.Version{} // a path that does not exist
	}
	if name == Control && n.ControlPath != "" {
		return n.ControlPath
	}
	path := client.PipePath(name.Group, version)
	if n.Dir == "" {
		return path
	}
	// Base uses the separators of this system, so it also works for \\.\pipe\ on Windows.
	return filepath.Join(n.Dir, filepath.Base(path))
}

// UnreachableError says that an endpoint does not answer.
type UnreachableError struct {
	Err   error
	Ended bool // during a call, which may have taken effect
}

func (e *UnreachableError) Error() string { return e.Err.Error() }

func (e *UnreachableError) Unwrap() error { return e.Err }

// remedy is for an endpoint that is not there.
const remedy = "start csi-proxy ('csi-proxyctl service start'), or run 'csi-proxyctl doctor'"

// Dial connects to an endpoint, or fails with an *UnreachableError. The caller closes the
// connection.
func (n Node) Dial(ctx context.Context, name Name) (*grpc.ClientConn, error) {
	version, err := apiversion.NewVersion(name.Version)
	if err != nil {
		return nil, err
	}
	path := n.Path(name)
	conn, err := client.Connect(ctx, name.Group, version, client.WithPipePath(path), client.WithTrustedOwners(n.TrustedOwners...),
		client.WithDialOptions(grpc.WithUserAgent(extensionv1.Operator)))
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case missing && name == Control:
		err = fmt.Errorf("control service of csi-proxy-sim at %s: no such socket or pipe; start csi-proxy-sim with -control default, or pass its address with --control (%w)", path, fs.ErrNotExist)
	case missing && n.Dir != "":
		// The client's error suggests CSI_PROXY_SOCKET_DIR, which --endpoint-dir overrides.
		err = fmt.Errorf("csi-proxy endpoint %s: no such socket or pipe; %s, and check --endpoint-dir (%w)", path, remedy, fs.ErrNotExist)
	case missing:
		err = fmt.Errorf("%w; %s", err, remedy)
	}
	if err != nil {
		return nil, &UnreachableError{Err: err}
	}
	return conn, nil
}

// Gone reports whether an error of Dial says that the endpoint has no server.
func Gone(err error) bool {
	state := unreachable(err)
	return state == Missing || state == Dead
}
