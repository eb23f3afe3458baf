package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

// hop is where one link leads.
type hop struct {
	volume win.VolumeID // a volume,
	below  bool         // or a folder of it without a name of its own
	remote string       // a share
	path   string       // anything else: a clean path on a drive
}

// follow reads the link at a path. The error is 4390 if there is none.
func (h host) follow(ctx context.Context, path string) (hop, error) {
	point, err := h.m.ReparsePoint(ctx, path)
	if err != nil {
		return hop{}, err
	}
	return leadsTo(path, point)
}

// leadsTo works out where a link at a path leads.
func leadsTo(path string, point win.ReparsePoint) (hop, error) {
	if point.Tag != win.TagMountPoint && point.Tag != win.TagSymlink {
		return hop{}, winerr.NotAReparsePoint // deduplicated or the like: what it looks like
	}
	target := point.Target()
	if id, ok := win.ParseVolumeID(target); ok {
		return hop{volume: id}, nil
	}
	if end := strings.IndexByte(target, '}'); end >= 0 {
		if id, ok := win.ParseVolumeID(target[:end+1]); ok {
			return hop{volume: id, below: true}, nil
		}
	}
	if onDrive, ok := strings.CutPrefix(target, `\\?\`); ok && len(onDrive) > 2 && onDrive[1] == ':' {
		target = onDrive // written by hand
	}
	switch {
	case strings.HasPrefix(target, `\\?\`) || strings.HasPrefix(target, `\\.\`):
		return hop{}, winerr.New(winerr.Unsupported, "follow link", path, "it leads to %s, which is not on a drive", target)
	case strings.HasPrefix(target, `\\`):
		return hop{remote: target}, nil
	case strings.HasPrefix(target, `\`): // from the root of the same drive
		target = path[:2] + target
	case len(target) < 2 || target[1] != ':': // from the folder of the link
		parent, _ := winpath.Parent(path)
		target = winpath.Join(parent, target)
	}
	clean, err := normalise(target)
	if err != nil {
		return hop{}, winerr.As(winerr.Unsupported, "follow link", path, err, "")
	}
	return hop{path: clean}, nil
}

// normalise resolves the dots of a path on a drive, as Windows does before it opens one.
func normalise(path string) (string, error) {
	var names []string
	for name := range strings.SplitSeq(path[2:], winpath.Separator) {
		switch name {
		case "", ".":
		case "..":
			names = names[:max(0, len(names)-1)]
		default:
			names = append(names, name)
		}
	}
	clean, err := winpath.Clean(path[:2] + winpath.Separator + strings.Join(names, winpath.Separator))
	if err != nil {
		return "", fmt.Errorf("it leads to %w", err)
	}
	return clean, nil
}
