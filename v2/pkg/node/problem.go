package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// problems are reasons, each once, with everything that is unknown because of it: a dying
// disk fails all requests alike.
type problems []problem

type problem struct {
	reason string
	what   []string
	more   int // that are not named
}

// maxNamed is how many things are named with one reason. Pods can make any number of
// directories that cannot be read.
const maxNamed = 8

// add notes that something is unknown, and reports whether the answer will name it.
func (p *problems) add(what string, err error) (named bool) {
	if err == nil {
		return false
	}
	reason := reasonOf(err)
	for i, known := range *p {
		if known.reason == reason {
			if len(known.what) == maxNamed {
				(*p)[i].more++
				return false
			}
			(*p)[i].what = append(known.what, what)
			return true
		}
	}
	*p = append(*p, problem{reason: reason, what: []string{what}})
	return true
}

// addUnlessUnsupported notes that something is unknown, unless the object does not have it.
func (p *problems) addUnlessUnsupported(what string, err error) {
	if !errors.Is(err, winerr.Unsupported) {
		p.add(what, err)
	}
}

// texts are the problems as sentences: "size, state: the device failed".
func (p problems) texts() []string {
	texts := make([]string, 0, len(p))
	for _, problem := range p {
		what := strings.Join(problem.what, ", ")
		if problem.more > 0 {
			what += fmt.Sprintf(" and %d more", problem.more)
		}
		texts = append(texts, what+": "+problem.reason)
	}
	return texts
}

// logMistake logs the device of a panic; tasks.Recover has logged the stack. Questions that fail are
// not errors of their caller, so there is nothing else to log.
func logMistake(ctx context.Context, object string, err error) {
	klog.FromContext(ctx).Error(err, "Looking at a device panicked", "device", object)
}

// reasonOf is an error without operation and object, which the reader knows already.
func reasonOf(err error) string {
	switch err = winerr.Cause(err); {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, win.ErrStuck): // the same at each look
		return "no answer in time"
	default:
		text, _, _ := strings.Cut(err.Error(), "\n") // joined errors have several lines
		return text
	}
}
