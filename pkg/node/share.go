package node

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

var shareStates = map[win.SMBStatus]string{
	win.SMBOK:           "ok",
	win.SMBPaused:       "paused",
	win.SMBDisconnected: "disconnected",
	win.SMBNetworkError: "network error",
	win.SMBConnecting:   "connecting",
	win.SMBReconnecting: "reconnecting",
	win.SMBUnavailable:  "unavailable",
}

// allShares lists the global mappings by name. Windows answers from what it knows.
func (l *look) allShares(ctx context.Context) ([]Share, error) {
	mappings, err := l.m.SMBMappings(ctx)
	if err != nil {
		return nil, err
	}
	shares := make([]Share, len(mappings))
	for i, mapping := range mappings {
		status, ok := shareStates[mapping.Status]
		if !ok {
			status = strconv.FormatUint(uint64(mapping.Status), 10)
		}
		shares[i] = Share{Remote: mapping.Remote, Status: status}
	}
	slices.SortFunc(shares, func(a, b Share) int { return cmp.Compare(a.Remote, b.Remote) })
	return shares, nil
}
