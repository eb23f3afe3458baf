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

// Problem is what could not be found out about an object, and why.
type Problem struct {
	Kind        ProblemKind
	WindowsCode uint32 // of a failure; 0 if Windows gave none
	// Object are the values that are unknown, separated by ", ". It is Content if a disk cannot be read, and empty if
	// nothing is known.
	Object string
	Text   string // for people
}

func (p Problem) String() string { return p.Text }

// ProblemKind is the kind of a Problem.
type ProblemKind string

// The kinds of problems. The words are those on the wire.
const (
	Silence ProblemKind = "silence" // there was no answer in time
	Failure ProblemKind = "failure"
)

// Content is what a disk has that cannot be read.
const Content = "content"

// problemOf is the problem that something is unknown because of an error.
func problemOf(object, intro string, err error) Problem {
	p := Problem{Kind: Failure, WindowsCode: uint32(winerr.CodeOf(err)), Object: object, Text: intro + reasonOf(err)}
	if isSilence(err) {
		p.Kind, p.WindowsCode = Silence, 0
	}
	return p
}

// problems are reasons, each once, with everything that is unknown because of it: a dying
// disk fails all requests alike.
type problems []problem

type problem struct {
	Problem // without the object
	what    []string
	more    int // that are not named
}

// maxNamed is how many things are named with one reason: all lists of a node. Pods can make any number of
// directories that cannot be read.
const maxNamed = 12

// add notes that something is unknown, and reports whether the answer will name it.
func (p *problems) add(what string, err error) (named bool) {
	if err == nil {
		return false
	}
	reason := problemOf("", "", err)
	for i, known := range *p {
		if known.Problem == reason {
			if len(known.what) == maxNamed {
				(*p)[i].more++
				return false
			}
			(*p)[i].what = append(known.what, what)
			return true
		}
	}
	*p = append(*p, problem{Problem: reason, what: []string{what}})
	return true
}

// addUnlessUnsupported notes that something is unknown, unless the object does not have it.
func (p *problems) addUnlessUnsupported(what string, err error) {
	if !errors.Is(err, winerr.Unsupported) {
		p.add(what, err)
	}
}

// list are the problems with sentences such as "size, state: the device failed".
func (p problems) list() []Problem {
	list := make([]Problem, 0, len(p))
	for _, problem := range p {
		problem.Object = strings.Join(problem.what, ", ")
		what := problem.Object
		if problem.more > 0 {
			what += fmt.Sprintf(" and %d more", problem.more)
		}
		problem.Text = what + ": " + problem.Text
		list = append(list, problem.Problem)
	}
	return list
}

// logMistake logs the device of a panic; tasks.Recover has logged the stack. Questions that fail are
// not errors of their caller, so there is nothing else to log.
func logMistake(ctx context.Context, object string, err error) {
	klog.FromContext(ctx).Error(err, "Looking at a device panicked", "device", object)
}

// reasonOf is an error without operation and object, which the reader knows already.
func reasonOf(err error) string {
	if isSilence(err) { // the same at each look
		return "no answer in time"
	}
	text, _, _ := strings.Cut(winerr.Cause(err).Error(), "\n") // joined errors have several lines
	return text
}

func isSilence(err error) bool {
	err = winerr.Cause(err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, win.ErrStuck)
}
