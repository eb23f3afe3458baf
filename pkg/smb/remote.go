package smb

import (
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
)

// remote is a place on an SMB server.
type remote struct {
	share string // \\server\share in lower case: what a mapping is known by
	path  string // the whole path with backslashes, its case unchanged
}

// parseRemote takes \\server\share with an optional path below it, in either
// kind of slash.
//
// A mapping is one per share: Windows keeps one connection per server and share
// for all paths below, and compares their names without case.
func parseRemote(op, text string) (remote, error) {
	path := strings.ReplaceAll(text, "/", `\`)
	rest, ok := strings.CutPrefix(path, `\\`)
	server, rest, _ := strings.Cut(rest, `\`)
	share, _, _ := strings.Cut(rest, `\`)
	// A server called ? or . is Windows' way to name a device, not a server.
	if !ok || server == "" || server == "?" || server == "." || share == "" {
		return remote{}, winerr.New(winerr.Invalid, op, text, `the remote path names no share; it looks like \\server\share`)
	}
	return remote{share: strings.ToLower(`\\` + server + `\` + share), path: path}, nil
}
