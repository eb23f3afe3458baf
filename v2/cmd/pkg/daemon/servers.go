package daemon

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/unc"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// askPause is the least time from one question to the file servers to the next.
const askPause = time.Minute

// servers knows what opening one share of each file server has shown. Windows calls a mapping OK after its server is gone.
type servers struct {
	// open is node.OpenShares; nil if no share is opened.
	open func(ctx context.Context, shares ...node.Share) []*node.Problem

	mu     sync.Mutex
	asking bool
	asked  time.Time
	known  map[string]*fileServer // by name
}

// fileServer is what is known of a server whose shares links use.
type fileServer struct {
	shares map[string]*fileShare
	last   string        // the share that was opened last
	again  bool          // whether it was one with a problem
	failed *node.Problem // the last answer, if it is about all shares
	silent int           // questions without an answer, since the last answer
	// refused are the mappings when the server refused the account, by share; nil if it did not. Another question could lock it.
	refused map[string]mapping
}

// mapping is what shows that a share was mapped again.
type mapping struct {
	works   bool
	changes uint64
}

// fileShare is what opening a share has shown.
type fileShare struct {
	asked   time.Time
	opened  bool
	problem *node.Problem // nil also if the account may not list it, which says nothing about pods
	silent  bool          // it did not answer the last two questions
}

// maxSilent is how many shares of a server that does not answer are opened: each may hold a thread.
const maxSilent = 16

// ask opens one share of each server that links use, unless the last question was less than askPause ago or still waits.
// It calls run with what takes time.
func (s *servers) ask(ctx context.Context, now time.Time, found *node.Description, run func(func())) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil || s.asking || !s.asked.IsZero() && now.Sub(s.asked) < askPause || !found.SharesListed {
		return
	}
	before := s.known
	s.known = map[string]*fileServer{}
	mapped := map[string][]node.Share{}
	for _, share := range found.Shares {
		server := serverOf(share.Remote)
		mapped[server] = append(mapped[server], share)
	}
	var shares []node.Share
	var of []*fileServer
	for name, its := range mapped {
		server := before[name]
		if server == nil {
			server = &fileServer{shares: map[string]*fileShare{}}
		}
		s.known[name] = server
		if share := server.next(its); share != nil {
			shares, of = append(shares, *share), append(of, server)
		}
	}
	if s.asked = now; len(shares) == 0 {
		return
	}
	s.asking = true
	run(func() {
		answers := s.open(ctx, shares...)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asking = false
		for i, server := range of {
			if ctx.Err() == nil {
				server.learn(now, shares[i].Remote, answers[i])
			}
		}
	})
}

// next returns the share to open, out of all that are mapped: the one that was not opened for longest, and each other time
// one with a problem. It returns nil if no link uses one, or if a question would lock the account.
func (s *fileServer) next(mapped []node.Share) *node.Share {
	known, mappings := s.shares, map[string]mapping{}
	s.shares = map[string]*fileShare{}
	var used []node.Share
	for _, share := range mapped {
		of := known[share.Remote]
		if of == nil {
			of = &fileShare{}
		}
		s.shares[share.Remote] = of
		now := mapping{share.Status == "ok", share.Changes}
		mappings[share.Remote] = now
		was, refused := s.refused[share.Remote]
		isAnother := was.changes != now.changes || now.works && !was.works // Windows changes other states while it tries to connect
		if refused && !isAnother {
			s.refused[share.Remote] = now
		} else if len(share.Links) > 0 {
			used = append(used, share)
		}
	}
	if s.refused != nil && len(used) == 0 {
		return nil
	}
	troubled := func(share node.Share) bool { return s.shares[share.Remote].problem != nil }
	s.again = !s.again && s.silent != 1 // whether it is the server, another share shows
	prefer := func(wanted func(node.Share) bool) {
		if slices.ContainsFunc(used, wanted) {
			used = slices.DeleteFunc(used, func(share node.Share) bool { return !wanted(share) })
		}
	}
	if s.again || s.silent >= maxSilent {
		prefer(troubled)
	}
	if len(used) == 0 {
		s.failed, s.silent, s.last = nil, 0, ""
		return nil
	}
	s.refused = mappings // until it answers
	oldest := slices.MinFunc(used, func(a, b node.Share) int { return s.shares[a.Remote].asked.Compare(s.shares[b.Remote].asked) })
	return &oldest
}

func (s *fileServer) learn(now time.Time, remote string, answer *node.Problem) {
	share := s.shares[remote]
	silent := answer != nil && answer.Kind == node.Silence
	before := share.problem != nil && share.problem.Kind == node.Silence
	*share = fileShare{asked: now, opened: answer == nil, problem: answer, silent: silent && before}
	s.last, s.failed = remote, nil
	switch code := codeOf(answer); {
	case silent && (s.silent > 0 || !before): // else others have answered since this one did
		s.silent++
		s.failed = answer
	case silent:
	case code == winerr.AccessDenied:
		share.problem, s.silent = nil, 0
	default:
		if s.silent = 0; answer != nil && !ofOneShare(answer) {
			s.failed, share.problem = answer, nil
		}
	}
	if !codeOf(answer).RefusesAccount() {
		s.refused = nil
	}
}

func codeOf(p *node.Problem) winerr.Code {
	if p == nil {
		return 0
	}
	return winerr.Code(p.WindowsCode)
}

// annotate adds to a description which shares open, unless it says so. A server, or a share, that was silent once may only
// be slow.
func (s *servers) annotate(found *extensionv1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, share := range found.GetShares() {
		server := s.known[serverOf(share.GetRemote())]
		asked := share.Answers != nil || slices.ContainsFunc(share.GetProblems(), func(p *extensionv1.Problem) bool { return p.GetObject() == "" })
		if server == nil || server.last == "" || asked || len(share.GetLinks()) == 0 {
			continue
		}
		of := server.shares[share.GetRemote()]
		p, dead := server.failed, server.silent != 1
		if p == nil && of != nil {
			p, dead = of.problem, of.problem == nil || of.problem.Kind != node.Silence || of.silent
		}
		switch {
		case p == nil && of != nil && of.opened && share.GetRemote() == server.last && share.GetStatus() == "ok":
			share.Answers = new(true)
		case p != nil:
			if share.Problems = append(share.Problems, grpcapi.WireProblem(p)); dead {
				share.Answers = new(false)
			}
		}
	}
}

// ofOneShare reports whether a server that answers so may open its other shares.
func ofOneShare(p *node.Problem) bool {
	switch winerr.Code(p.WindowsCode) {
	case 0, winerr.FileNotFound, winerr.PathNotFound, winerr.BadNetName:
		return true
	default:
		return false
	}
}

// serverOf returns the server of a share, for which Windows takes each of its names.
func serverOf(share string) string {
	remote, err := unc.Parse("open", share)
	if err != nil {
		return share
	}
	return strings.ToLower(remote.Server())
}
