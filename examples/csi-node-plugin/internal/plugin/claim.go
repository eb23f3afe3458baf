package plugin

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/kubernetes-csi/csi-proxy/examples/csi-node-plugin/internal/storage"
)

// claim is the note on the node that says where a disk is staged. CSI Proxy tells which volume
// is at a path, but not at which paths a volume is. The note is a link to the staging path: it
// is made as a whole or not at all, outlives the plugin, and is never replaced by another.
type claim struct {
	node         storage.Node
	folder, link string
}

// newClaim is the claim of the disk with a serial number, in the driver's own folder.
func newClaim(config Config, serial string) claim {
	folder := strings.TrimRight(config.KubeletPath, `\`) + `\plugins\` + config.Name + `\staged`
	// Serial numbers may have characters that names of files cannot have.
	name := fmt.Sprintf("%x", sha256.Sum256([]byte(serial)))
	return claim{node: config.Storage, folder: folder, link: folder + `\` + name}
}

// claimed says which path a claim names, compared with a given one.
type claimed int

const (
	noPath claimed = iota // there is no claim
	thisPath
	otherPath
)

// take makes the claim for a path. A claim for another path is AlreadyExists.
func (c claim) take(ctx context.Context, path string) error {
	if err := c.node.MakeDir(ctx, c.folder); err != nil {
		return err
	}
	return c.node.Link(ctx, c.link, path)
}

// compare tells which path the claim names. The API cannot read a link, but it can create the same
// one again.
func (c claim) compare(ctx context.Context, path string) (claimed, error) {
	exists, err := c.node.Exists(ctx, c.link)
	if err != nil || !exists {
		return noPath, err
	}
	switch err := c.node.Link(ctx, c.link, path); codeOf(err) {
	case codes.OK:
		return thisPath, nil
	case codes.AlreadyExists:
		return otherPath, nil
	default:
		return noPath, err
	}
}

func (c claim) drop(ctx context.Context) error { return c.node.Remove(ctx, c.link) }
