package daemon

import (
	"context"
	"fmt"
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
	mappings string            // as they were when it was asked
	denied   map[string]string // shares that the account may not list, which says nothing about pods, and their mappings then

	share    string        // that was opened last
	answered *node.Problem // nil: it opened
	silent   int           // questions without an answer, since the last answer
}

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
		if server := serverOf(share.Remote); len(share.Links) > 0 {
			mapped[server] = append(mapped[server], share)
		}
	}
	var shares []node.Share
	var of []*fileServer
	for name, its := range mapped {
		server := before[name]
		if server == nil {
			server = &fileServer{denied: map[string]string{}}
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
				server.learn(shares[i], answers[i])
			}
		}
	})
}

// next returns the share to open; nil if a question would lock the account, or would bring nothing new.
func (s *fileServer) next(shares []node.Share) *node.Share {
	var all []string
	var free *node.Share
	for i, share := range shares {
		all = append(all, mappingOf(share))
		if free == nil && s.denied[share.Remote] != mappingOf(share) {
			free = &shares[i]
		}
	}
	mappings := strings.Join(all, "\n")
	refused := s.answered != nil && winerr.Code(s.answered.WindowsCode).RefusesAccount() && s.mappings == mappings
	if s.mappings = mappings; refused {
		return nil
	}
	if free == nil {
		s.share, s.answered = "", nil
	}
	return free
}

// mappingOf is different if a mapping is another one, or works again. Windows changes other states while it tries to
// connect.
func mappingOf(share node.Share) string {
	return fmt.Sprint(share.Remote, share.Status == "ok", share.Changes)
}

func (s *fileServer) learn(share node.Share, answer *node.Problem) {
	delete(s.denied, share.Remote)
	if answer != nil && answer.Kind == node.Silence {
		s.silent++
	} else {
		s.silent = 0
	}
	s.share, s.answered = share.Remote, answer
	if answer != nil && winerr.Code(answer.WindowsCode) == winerr.AccessDenied {
		s.denied[share.Remote] = mappingOf(share)
		s.share, s.answered = "", nil
	}
}

// annotate adds to a description which shares open. A server that was silent once may only be slow. What is known of one
// share says something about the others of its server if that does not answer, or refuses the account.
func (s *servers) annotate(found *extensionv1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, share := range found.GetShares() {
		server := s.known[serverOf(share.GetRemote())]
		if server == nil || server.share == "" || share.Answers != nil || len(share.GetLinks()) == 0 {
			continue
		}
		switch p := server.answered; {
		case p == nil && share.GetRemote() == server.share:
			share.Answers = new(true)
		case p != nil && (share.GetRemote() == server.share || p.Kind == node.Silence || !ofOneShare(p)):
			if share.Problems = append(share.Problems, grpcapi.WireProblem(p)); server.silent != 1 {
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
