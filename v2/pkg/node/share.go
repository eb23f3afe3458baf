package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
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

func shareState(status win.SMBStatus) string {
	if name, ok := shareStates[status]; ok {
		return name
	}
	return strconv.FormatUint(uint64(status), 10)
}

// allShares lists the global mappings by name. Windows answers from what it knows. Only with
// answers does it open the shares.
func (l *lookup) allShares(ctx context.Context, answers bool) ([]Share, error) {
	mappings, err := l.m.SMBMappings(ctx)
	if err != nil {
		return nil, err
	}
	shares := make([]Share, len(mappings))
	for i, mapping := range mappings {
		shares[i] = l.share(mapping)
	}
	slices.SortFunc(shares, func(a, b Share) int { return printable.Compare(a.Remote, b.Remote) })
	if answers {
		l.askAll(ctx, shares)
	}
	return shares, nil
}

func (l *lookup) share(mapping win.SMBMapping) Share {
	share := Share{Remote: mapping.Remote, Status: shareState(mapping.Status)}
	if mapping.Plain || mapping.Private {
		share.Private = pointer(mapping.Private)
	}
	if l.smb == nil {
		return share
	}
	facts := l.smb.MappingFacts(mapping.Remote)
	share.RemovalWaits, share.Changes = &facts.RemovalWaits, facts.Changes
	if facts.Created {
		share.User = &facts.User
		if facts.Private || share.Private == nil {
			share.Private = &facts.Private
		}
	}
	return share
}

// askAll finds out which shares answer. Those of one server have the time of one object together:
// if one does not answer, the others do not either.
func (l *lookup) askAll(ctx context.Context, shares []Share) {
	var servers []string
	byServer := map[string][]*Share{}
	for i := range shares {
		server := shares[i].Remote
		if remote, err := unc.Parse(op, server); err == nil {
			server = remote.Server()
		}
		if byServer[server] == nil {
			servers = append(servers, server)
		}
		byServer[server] = append(byServer[server], &shares[i])
	}
	failures := tasks.Each(ctx, len(servers), l.objectTime(ctx), func(ctx context.Context, i int) error {
		var failed *Problem // of the server
		for _, share := range byServer[servers[i]] {
			p := failed
			if p == nil {
				p = l.open(ctx, share)
			}
			if p != nil && p.WindowsCode == uint32(winerr.AccessDenied) { // such an account can use what is in it
				p = nil
			}
			if p == nil || p.Kind != Silence { // a server that is slow may answer
				share.Answers = pointer(p == nil)
			}
			if p != nil {
				share.Problems = append(share.Problems, *p)
				if p.Kind == Silence || winerr.Code(p.WindowsCode).RefusesAccount() {
					failed = p
				}
			}
		}
		return nil
	})
	for i, err := range failures {
		if err != nil {
			logMistake(ctx, servers[i], err)
			l.problems.add("answers of "+servers[i], err)
		}
	}
}

var errOwnAccount = errors.New("the account of the node opens it, but the mapping stays disconnected; stage a volume of the share again to recreate the mapping")

// open opens a share, as the pods that use its mapping do, and returns why that fails. ERROR_ACCESS_DENIED (5) means that
// the account may not list the share; it may be able to use what is in it.
func (l *lookup) open(ctx context.Context, share *Share) *Problem {
	_, err := l.m.FileInfo(ctx, win.Following(share.Remote))
	denied := winerr.CodeOf(err) == winerr.AccessDenied
	if (err == nil || denied) && share.Status != shareStates[win.SMBOK] {
		if failed := l.connected(ctx, share); failed != nil {
			err = failed
		}
	}
	if err == nil {
		return nil
	}
	return pointer(problemOf("", "", err))
}

// openLimit is how long a share that OpenShares opens may take.
const openLimit = 5 * time.Second

// OpenShares opens shares of a description, as the pods that use them do, each for at most 5 seconds and without keeping
// calls of drivers waiting. It returns why they do not open, in their order; nil for those that do.
func (n *Node) OpenShares(ctx context.Context, shares ...Share) []*Problem {
	found := make([]*Problem, len(shares))
	l := lookup{Node: n}
	failures := tasks.Each(win.AsInspector(ctx), len(shares), openLimit, func(ctx context.Context, i int) error {
		found[i] = l.open(ctx, &shares[i])
		return nil
	})
	for i, err := range failures {
		if err != nil {
			logMistake(ctx, shares[i].Remote, err)
			found[i] = pointer(problemOf("", "", err))
		}
	}
	return found
}

// connected looks whether opening a share has made Windows connect its mapping again.
func (l *lookup) connected(ctx context.Context, share *Share) error {
	mapping, err := l.m.SMBMapping(ctx, share.Remote)
	if err != nil {
		return err
	}
	if share.Status = shareState(mapping.Status); mapping.Status != win.SMBOK {
		return errOwnAccount
	}
	return nil
}

// addToShares adds the links that the search has found to their shares. Those into shares that are
// not mapped go to the other links.
func (s *linkSearch) addToShares(node *Description) {
	for i := range node.Shares {
		if remote, err := unc.Parse(op, node.Shares[i].Remote); err == nil {
			node.Shares[i].Links = s.intoShares[remote.Share()]
			slices.Sort(node.Shares[i].Links)
			delete(s.intoShares, remote.Share())
		}
	}
	if !node.SharesListed {
		return
	}
	for share, paths := range s.intoShares {
		for _, path := range paths {
			node.Links = append(node.Links, Link{Path: path, Share: share})
		}
	}
}

// addKnownLinks adds the links that the process has made, as far as they fit into an answer.
func (l *lookup) addKnownLinks(ctx context.Context, shares []Share) {
	if l.smb == nil {
		return
	}
	left := maxLinkBytes
	for i := range shares {
		share := &shares[i]
		all := l.smb.LiveLinks(ctx, share.Remote)
		for _, path := range all {
			if left -= encodedSize(path); left < 0 {
				share.Problems = append(share.Problems, problemOf("links", "", fmt.Errorf("only %d of %d links are listed, because the answer would be too long", len(share.Links), len(all))))
				break
			}
			share.Links = append(share.Links, path)
		}
	}
}
