package problem

import (
	"sync"
	"time"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
)

const (
	// maxRemembered is how many problems a History remembers. A node that has more has other worries.
	maxRemembered = 500

	// hangTime is from the first of the looks that failed alike to the one that says that something hangs, or keeps
	// failing. A disk that is busy, or whose controller resets, answers until then.
	hangTime = time.Minute
)

// History remembers since when problems exist. The zero value is ready to use.
type History struct {
	mu    sync.Mutex
	known map[identity]record
}

// identity is what stays the same while a problem exists.
type identity struct {
	kind   Kind
	object Object
}

type record struct {
	since time.Time
	same  time.Time // the first of the looks in a row with the same cause; zero if the last one could not see
	last  Problem
	hurt  bool // pods, in some description
}

// Learn takes a description of a node, which Fill has filled, and when it began. It returns the problems that hurt pods since this description, and those that did
// and are gone. Nothing counts as gone if the description is not complete: no answer does not mean that all is well.
func (h *History) Learn(now time.Time, node *extensionv1.Node) (began, ended []Problem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, complete := h.known, len(node.GetProblems()) == 0
	h.known = map[identity]record{}
	for _, p := range find(node) {
		id := identity{p.Kind, p.Object}
		if _, known := h.known[id]; known { // of two problems of an object, the first is more urgent
			continue
		}
		r, known := before[id]
		if !known {
			r.since = now
		}
		if r.same.IsZero() || p.Cause != r.last.Cause {
			r.same = now
		}
		if p.Severity == Hurts && !r.hurt {
			began = append(began, p)
		}
		r.last, r.hurt = p, r.hurt || p.Severity == Hurts
		if delete(before, id); len(h.known) < maxRemembered {
			h.known[id] = r
		}
	}
	for id, r := range before {
		switch {
		case !complete && len(h.known) < maxRemembered:
			r.same = time.Time{}
			h.known[id] = r
		case r.hurt:
			ended = append(ended, r.last)
		}
	}
	Sort(ended)
	return group(node, began), group(node, ended)
}

// Fill adds to a description, which is of now, since when its problems exist.
func (h *History) Fill(now time.Time, node *extensionv1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, r := range h.known {
		since := &extensionv1.Since{Kind: string(id.kind), Type: string(id.object.Type), Id: id.object.ID, Unix: r.since.Unix()}
		if !r.same.IsZero() && now.Sub(r.same) >= hangTime {
			since.Lasting = r.last.Cause
		}
		node.Since = append(node.Since, since)
	}
}
