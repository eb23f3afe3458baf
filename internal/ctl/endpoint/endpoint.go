// Package endpoint knows the endpoints of a node: which there are, where they are, and
// whether somebody answers on them.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
)

// Name is one version of one API group.
type Name struct {
	Group   string // "disk"
	Version string // "v1"
}

func (n Name) String() string { return n.Group + "/" + n.Version }

// groups are the versions of each group, from the oldest to the newest. A test compares
// them with what the server registers.
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

// All returns every endpoint there can be: groups by name, versions by age.
func All() []Name {
	var all []Name
	for _, g := range groups {
		for _, version := range g.versions {
			all = append(all, Name{g.name, version})
		}
	}
	return all
}

// Versions returns the versions of a group, from the oldest to the newest.
func Versions(group string) []string {
	for _, g := range groups {
		if g.name == group {
			return slices.Clone(g.versions)
		}
	}
	return nil
}

// Newest returns the newest version of a group.
func Newest(group string) string {
	versions := Versions(group)
	if len(versions) == 0 {
		return ""
	}
	return versions[len(versions)-1]
}

// Node is where the endpoints of one node are.
type Node struct {
	// Dir is the directory of the sockets, or what the names of pipes begin with; empty
	// means where every client looks.
	Dir string
}

// Path returns the path of an endpoint.
func (n Node) Path(name Name) string {
	version, err := apiversion.NewVersion(name.Version)
	if err != nil {
		version = apiversion.Version{} // nothing is there
	}
	path := client.PipePath(name.Group, version)
	if n.Dir == "" {
		return path
	}
	// Base takes the slashes of this system for separators, and so finds the name behind
	// \\.\pipe\ as well.
	return filepath.Join(n.Dir, filepath.Base(path))
}

// UnreachableError says that nobody can be asked at an endpoint.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return e.Err.Error() }

func (e *UnreachableError) Unwrap() error { return e.Err }

// Dial connects to an endpoint, or fails with an *UnreachableError. The caller closes the
// connection.
func (n Node) Dial(ctx context.Context, name Name) (*grpc.ClientConn, error) {
	version, err := apiversion.NewVersion(name.Version)
	if err != nil {
		return nil, err
	}
	path := n.Path(name)
	conn, err := client.Connect(ctx, name.Group, version, client.WithPipePath(path))
	if err != nil && n.Dir != "" && errors.Is(err, fs.ErrNotExist) {
		// The client's own words ask after the variable that nobody has looked at.
		err = fmt.Errorf("csi-proxy endpoint %s: no such socket or pipe: is this the right directory, and does its server have this group and version? (%w)", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, &UnreachableError{err}
	}
	return conn, nil
}

// Gone reports whether an error says that an endpoint has no server any more.
func Gone(err error) bool {
	state := unreachable(err)
	return state == Missing || state == Dead
}
