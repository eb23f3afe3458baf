package warning

import (
	"sync"
	"time"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
)

// maxRemembered is how many problems a History remembers. A node that has more has other worries.
const maxRemembered = 500

// History remembers since when problems exist. The zero value is ready to use.
type History struct {
	mu    sync.Mutex
	known map[problem]memory
}

// problem is what stays the same while a problem exists.
type problem struct {
	kind   Kind
	object Object
}

type memory struct {
	since time.Time
	last  Warning
	hurt  bool // pods, at some look
}

// Learn takes what a look at a node has found. It returns the problems that hurt pods since this look, and those that did
// and are gone. Nothing counts as gone if the look is not complete: no answer does not mean that all is well.
func (h *History) Learn(now time.Time, node *extensionv1.Node) (began, ended []Warning) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, complete := h.known, len(node.GetProblems()) == 0
	h.known = map[problem]memory{}
	for _, w := range Find(node) {
		p := problem{w.Kind, w.Object}
		m, known := before[p]
		if !known {
			m.since = now
		}
		if w.Severity == Hurts && !m.hurt {
			began = append(began, w)
		}
		m.last, m.hurt = w, m.hurt || w.Severity == Hurts
		if delete(before, p); len(h.known) < maxRemembered {
			h.known[p] = m
		}
	}
	for p, m := range before {
		switch {
		case !complete && len(h.known) < maxRemembered:
			h.known[p] = m
		case m.hurt:
			ended = append(ended, m.last)
		}
	}
	Sort(ended)
	return began, ended
}

// Fill adds to a description since when its problems exist.
func (h *History) Fill(node *extensionv1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p, m := range h.known {
		node.Since = append(node.Since, &extensionv1.Since{Kind: string(p.kind), Type: string(p.object.Type), Id: p.object.ID, Unix: m.since.Unix()})
	}
}
